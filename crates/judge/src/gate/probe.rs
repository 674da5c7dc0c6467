//! Cost of a problem, estimated from a few of its blocks.

use super::adversarial::Data;
use super::conflicts::updates_atomically;
use super::coverage::{Costs, Sample};
use super::sampling;
use super::verify::{Gate, Stop, uses_atomics};
use crate::session::{Blocks, Order, RunReport, Slot};

/// Threshold below which blocks divide their work: the work of two blocks relative to two separate runs of
/// one, percent. A block that takes tiles from a queue takes all of them if it runs alone.
const SHARED_WORK_PERCENT: u64 = 75;

impl Gate<'_> {
    /// Chooses the sample of the problem: one block of each launch shows the cost of a block, and
    /// the coverage of the outputs determines the compared blocks. `None` if the problem is run
    /// whole.
    pub(super) fn choose_sample(
        &mut self,
        data: Data,
        order: Order,
        slots: &[Option<Slot>],
    ) -> Result<Option<Sample>, Stop> {
        let plan = self.plan;
        let reports = self.run_blocks(1, order, slots)?;
        let costs: Vec<u64> = reports
            .iter()
            .map(|report| report.work.lane_instructions)
            .collect();
        let exhausted = reports.iter().any(|report| report.budget_exhausted);
        let data_cost = self.demands.data_cost(plan);
        let mut whole = self.whole_cost(&costs).saturating_add(data_cost);
        let has_atomics = reports.iter().any(|report| uses_atomics(&report.work));
        // Blocks can share a queue only through atomics; without them each block costs as much as the
        // first.
        if has_atomics && !exhausted && whole > self.demands.whole_limit {
            let shared = self.shared_cost(data, order, slots, &costs)?;
            whole = whole.min(shared.saturating_add(data_cost));
        }
        if !exhausted && whole <= self.demands.whole_limit {
            return Ok(None);
        }
        let costs = Costs {
            blocks: &costs,
            // Also for blocks that did not run: only some blocks may reach atomics.
            atomics: updates_atomically(&plan.code.ptx) || has_atomics,
        };
        let mut sample = self.draw_sample(data, slots, &costs)?;
        if sample.uncomparable.is_some() {
            // A whole run can be compared when a sample cannot, so it may cost more.
            if !exhausted && whole <= self.demands.uncomparable_limit {
                return Ok(None);
            }
            sample.blocks = sampling::blocks(plan, self.demands, data.seed, costs.blocks);
        }
        for (blocks, launch) in sample.blocks.iter_mut().zip(&plan.launches) {
            // A block outside a closed sample would read results of blocks that do not run.
            if blocks.is_empty() && !sample.linked {
                blocks.push(sampling::first(launch.blocks()));
            }
        }
        Ok(Some(sample))
    }

    /// Runs up to `count` blocks of each launch at once.
    fn run_blocks(
        &mut self,
        count: u64,
        order: Order,
        slots: &[Option<Slot>],
    ) -> Result<Vec<RunReport>, Stop> {
        let plan = self.plan;
        // One block may hold the work of the whole problem and would never end here.
        let budget = Some(self.demands.block_limit);
        let mut reports = Vec::with_capacity(plan.launches.len());
        for (index, launch) in plan.launches.iter().enumerate() {
            let count = count.min(launch.blocks());
            let first = sampling::first(launch.blocks()).min(launch.blocks() - count);
            let blocks = Blocks::Some((first..first + count).collect());
            reports.push(self.launch(index, slots, blocks, order, budget)?);
        }
        Ok(reports)
    }

    /// Returns the lane instructions of all blocks at the cost of the measured one.
    fn whole_cost(&self, costs: &[u64]) -> u64 {
        let each = self.plan.launches.iter().zip(costs);
        each.map(|(launch, cost)| cost.saturating_mul(launch.blocks()))
            .fold(0, u64::saturating_add)
    }

    /// Returns the lane instructions of all blocks if blocks may divide work: each further block costs the
    /// difference that a second block makes. `costs` are those of one block.
    fn shared_cost(
        &mut self,
        data: Data,
        order: Order,
        slots: &[Option<Slot>],
        costs: &[u64],
    ) -> Result<u64, Stop> {
        // The first block has consumed its share of a queue.
        self.refresh(data, slots)?;
        let two = self.run_blocks(2, order, slots)?;
        let launches = self.plan.launches.iter().zip(costs).zip(&two);
        let whole = launches.map(|((launch, cost), two)| {
            let both = two.work.lane_instructions;
            let separate = cost.saturating_mul(2);
            if both.saturating_mul(100) >= separate.saturating_mul(SHARED_WORK_PERCENT) {
                return cost.saturating_mul(launch.blocks());
            }
            let further = both.saturating_sub(*cost);
            cost.saturating_add(further.saturating_mul(launch.blocks() - 1))
        });
        Ok(whole.fold(0, u64::saturating_add))
    }
}
