//! Runs of a reference kernel on inputs that the declared fills do not have, and their limits.

use super::adversarial::Data;
use super::naive::{Kernel, KnownElements};
use super::trials::cost;
use super::verify::{Gate, Pass, Stop};

/// Least warp instructions of a block: a search that goes back over a run of equal numbers takes many times an
/// average block.
const LEAST_BUDGET: u64 = 1 << 17;

/// Returns the warp instructions of a block after which it is taken for one that does not end: some 64 times
/// those of an average block of a run of so many lane instructions.
fn budget_of_blocks(cost: u64, blocks: u64) -> u64 {
    (cost / blocks.max(1)).saturating_mul(2).max(LEAST_BUDGET)
}

/// Returns the budget of a candidate's blocks, from its first run.
pub(super) fn budget(first: &Pass) -> u64 {
    let blocks = first.work.iter().map(|work| work.blocks).sum();
    budget_of_blocks(cost(first), blocks)
}

impl Gate<'_> {
    /// Reports whether the device and the limits permit a run on such inputs.
    pub(super) fn affords_hard(&self, first: &Pass) -> bool {
        // A GPU does not survive an index that leaves a buffer, or a loop without an end.
        self.session.can_sample() && !first.sampled && cost(first) <= self.hard_limit()
    }

    /// Returns the reference's outputs on inputs of a case; `None` where it fails on them, or where they do
    /// not suit the plan, the device or the limits.
    pub(super) fn hard_reference(&mut self, data: Data, first: &Pass) -> Option<KnownElements> {
        if !self.affords_hard(first)
            || self.references.has_failed(&self.keyed, data)
            || self.references.hard(&self.keyed, data).is_none()
        {
            return None;
        }
        let (index, _) = first.outputs.first()?;
        let all = 0..self.plan.arguments[*index].count();
        self.naive(data, 0, &[all], first).unwrap_or_else(|_| {
            self.references.keep_failed(&self.keyed, data);
            None
        })
    }

    /// Returns the budget of the reference's blocks; `None` if it did not run whole.
    pub(super) fn reference_budget(&self, data: Data) -> Option<u64> {
        let kernel = Kernel::from_plan(self.plan)?;
        let cost = self.references.cost(&self.keyed, data)?;
        Some(budget_of_blocks(cost, kernel.launch.blocks()))
    }
}

/// Returns a finding with the name of the inputs.
pub(super) fn named(found: Result<(), Stop>, data: Data) -> Result<(), Stop> {
    match found {
        // A hazard does not say on which data it was found.
        Err(Stop::Rejected(mut found)) if !found.detail.contains(&data.to_string()) => {
            found.detail = format!("{} ({data})", found.detail);
            Err(Stop::Rejected(found))
        }
        found => found,
    }
}
