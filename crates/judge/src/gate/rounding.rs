//! Runs of the reference kernel with random rounding: the same blocks on the same inputs.

use super::adversarial::Data;
use super::compare::Comparison;
use super::naive::{Kernel, Naive};
use super::oracle::OracleError;
use super::spread::{MORE_RUNS, RUNS};
use super::verify::{Gate, Stop};
use crate::session::Blocks;
use std::collections::BTreeSet;
use std::sync::Arc;
use vgpu::Rounding;

/// Largest error over its tolerance of a candidate that more runs may let pass: four spreads are
/// hardly ever all so small by chance.
const NEAR_MISS: f64 = 64.0;

/// Bytes of outputs of all runs beyond which there are no more than a few.
const MORE_BYTES: u64 = 1 << 29;

/// What a reference kernel writes with random rounding.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounded {
    runs: Vec<RoundedRun>,
    /// A run came to no end, or met a hazard, as some kernels do with other roundings.
    failed: bool,
}

#[derive(Debug, Clone, Default)]
struct RoundedRun {
    naive: Naive,
    /// All blocks ran.
    whole: bool,
    /// Lane instructions of these.
    cost: u64,
}

impl Rounded {
    /// Memory of the outputs.
    pub(super) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.naive.bytes()).sum()
    }
}

/// The outputs of each run.
pub(super) type RoundedRuns = Vec<Arc<Vec<Vec<u8>>>>;

/// One output of each run.
pub(super) fn output_of(runs: &RoundedRuns, number: usize) -> Vec<&[u8]> {
    let runs = runs.iter();
    runs.map(|run| run.get(number).map_or(&[][..], Vec::as_slice))
        .collect()
}

impl Gate<'_> {
    /// Compares under the spread of a few runs with random rounding and, where that refuses
    /// narrowly, of more: whether a candidate passes depends on these alone, and few candidates
    /// need them. Without a precision, or on a device that cannot round at random: under none.
    pub(super) fn under_spread<T>(
        &mut self,
        data: Data,
        precisions: &BTreeSet<u32>,
        mut compare: impl FnMut(&[(u32, RoundedRuns)]) -> (Comparison, T),
    ) -> Result<(Comparison, T), Stop> {
        let few = self.rounded(data, precisions, RUNS)?;
        let (result, detail) = compare(&few);
        let refused_narrowly = !result.passed() && result.max_error <= NEAR_MISS;
        if few.is_empty() || !refused_narrowly || !self.affords_more(data, precisions) {
            return Ok((result, detail));
        }
        let more = self.rounded(data, precisions, MORE_RUNS)?;
        Ok(compare(&more))
    }

    /// Whether more runs cost no more than a problem that is run whole.
    fn affords_more(&self, data: Data, precisions: &BTreeSet<u32>) -> bool {
        let first = |precision: &u32| self.references.peek_rounded(&self.keyed, data, *precision);
        let runs = precisions.iter().filter_map(first);
        let mut runs = runs.filter_map(|rounded| rounded.runs.first());
        runs.all(|run| {
            // Parts of a reference have a limit of their own.
            let short = !run.whole || run.cost <= self.demands.whole_limit;
            short && run.naive.bytes().saturating_mul(MORE_RUNS as u64) <= MORE_BYTES
        })
    }

    /// The outputs of the reference in runs with random rounding, for each precision; none where
    /// the device cannot round at random, or the kernel does not end so. The blocks are those that
    /// have run without it.
    fn rounded(
        &mut self,
        data: Data,
        precisions: &BTreeSet<u32>,
        count: usize,
    ) -> Result<Vec<(u32, RoundedRuns)>, Stop> {
        let plan = self.plan;
        let mut all = Vec::new();
        let Some(kernel) = Kernel::of(plan) else {
            return Ok(all);
        };
        if !self.session.set_rounding(None) {
            return Ok(all);
        }
        let blocks = self.references.blocks(&self.keyed, data);
        for precision in precisions.iter().copied() {
            let kept = self.references.take_rounded(&self.keyed, data, precision);
            let mut rounded = kept.unwrap_or_default();
            let wanted = count.max(rounded.runs.len());
            rounded.runs.resize_with(wanted, RoundedRun::default);
            for (number, run) in rounded.runs.iter_mut().enumerate().take(count) {
                let rounding = Rounding {
                    seed: data.seed.rotate_left(8) ^ if number == 1 { 0 } else { number as u64 },
                    // The inverse of the first, so that a single rounding goes both ways.
                    inverted: number == 1,
                    precision,
                };
                rounded.failed =
                    rounded.failed || !self.round_further(data, &kernel, run, &blocks, rounding)?;
            }
            let runs = rounded.runs.iter().take(count);
            let outputs = runs.map(|run| Arc::clone(&run.naive.outputs)).collect();
            if !rounded.failed {
                all.push((precision, outputs));
            }
            self.references
                .keep_rounded(&self.keyed, data, precision, rounded);
        }
        Ok(all)
    }

    /// Runs those of the blocks (`None`: all) that did not run yet; whether they came to their ends
    /// without a hazard.
    fn round_further(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        run: &mut RoundedRun,
        blocks: &Option<BTreeSet<u64>>,
        rounding: Rounding,
    ) -> Result<bool, Stop> {
        let missing = match blocks {
            _ if run.whole => return Ok(true),
            None => Blocks::All,
            Some(blocks) => {
                let missing = blocks.difference(&run.naive.blocks);
                Blocks::Some(missing.copied().collect())
            }
        };
        if missing == Blocks::Some(Vec::new()) {
            return Ok(true);
        }
        if !self.references.has_inputs(&self.keyed, data) {
            // A generator of the inputs must not round at random.
            self.prepare(data, kernel.code)?;
        }
        self.references.report_progress();
        self.session.set_rounding(Some(rounding));
        let ran = self.run_naive(data, kernel, missing.clone(), None);
        self.session.set_rounding(None);
        let (report, slots) = match ran {
            Ok(ran) => ran,
            Err(Stop::Rejected(_) | Stop::Oracle(OracleError::ReferenceHazard { .. })) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.learn(data, &mut run.naive, &slots)?;
        run.cost += report.work.counters.lane_instructions;
        match missing {
            Blocks::Some(missing) => run.naive.blocks.extend(missing),
            Blocks::All => run.whole = true,
        }
        Ok(true)
    }
}
