//! Runs of the reference kernel with random rounding: the same blocks on the same inputs.

use super::adversarial::Data;
use super::naive::{Kernel, Naive};
use super::oracle::OracleError;
use super::spread::{RUNS, RoundedOutputs};
use super::verify::{Gate, Stop};
use crate::session::Blocks;
use std::collections::BTreeSet;
use std::sync::Arc;
use vgpu::Rounding;

/// What a reference kernel writes with random rounding.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounded {
    /// One a run; none where a run came to no end, which some kernels do not with other roundings.
    pub(super) runs: Vec<Naive>,
    /// All blocks ran.
    whole: bool,
    failed: bool,
}

/// The outputs of each run.
pub(super) type RoundedRuns = [Arc<Vec<Vec<u8>>>; RUNS];

/// One output of each run.
pub(super) fn output_of(runs: &RoundedRuns, number: usize) -> RoundedOutputs<'_> {
    runs.each_ref()
        .map(|run| run.get(number).map_or(&[][..], Vec::as_slice))
}

impl Gate<'_> {
    /// The outputs of the reference in runs with random rounding at a precision; `None` where
    /// the device cannot round at random, or the kernel does not end so. The blocks are those that
    /// have run without it.
    pub(super) fn rounded(
        &mut self,
        data: Data,
        precision: u32,
    ) -> Result<Option<RoundedRuns>, Stop> {
        let plan = self.plan;
        let Some(kernel) = Kernel::of(plan) else {
            return Ok(None);
        };
        if !self.session.set_rounding(None) {
            return Ok(None);
        }
        let kept = self.references.take_rounded(&self.keyed, data, precision);
        let mut rounded = kept.unwrap_or_default();
        let blocks = self.references.blocks(&self.keyed, data);
        if !self.round_further(data, &kernel, &mut rounded, blocks, precision)? {
            rounded = Rounded {
                failed: true,
                ..Rounded::default()
            };
        }
        let runs = rounded.runs.iter();
        let runs: Vec<_> = runs.map(|run| Arc::clone(&run.outputs)).collect();
        self.references
            .keep_rounded(&self.keyed, data, precision, rounded);
        Ok(runs.try_into().ok())
    }

    /// Runs those of the blocks (`None`: all) that did not run yet; whether every run came to its
    /// end without a hazard.
    fn round_further(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        rounded: &mut Rounded,
        blocks: Option<BTreeSet<u64>>,
        precision: u32,
    ) -> Result<bool, Stop> {
        if rounded.whole || rounded.failed {
            return Ok(!rounded.failed);
        }
        let done = rounded.runs.first().map(|run| run.blocks.clone());
        let done = done.unwrap_or_default();
        let missing = match &blocks {
            None => Blocks::All,
            Some(blocks) => Blocks::Some(blocks.difference(&done).copied().collect()),
        };
        if missing == Blocks::Some(Vec::new()) {
            return Ok(true);
        }
        rounded.runs.resize_with(RUNS, Naive::default);
        if !self.references.has_inputs(&self.keyed, data) {
            // A generator of the inputs must not round at random.
            self.prepare(data, kernel.code)?;
        }
        for (number, run) in rounded.runs.iter_mut().enumerate() {
            // The second run inverts the first, so that a single rounding goes both ways.
            let rounding = Rounding {
                seed: data.seed.rotate_left(8) ^ if number == 1 { 0 } else { number as u64 },
                inverted: number == 1,
                precision,
            };
            self.session.set_rounding(Some(rounding));
            let ran = self.run_naive(data, kernel, missing.clone(), None);
            self.session.set_rounding(None);
            let slots = match ran {
                Ok((_, slots)) => slots,
                Err(Stop::Rejected(_) | Stop::Oracle(OracleError::ReferenceHazard { .. })) => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            self.learn(data, run, &slots)?;
            if let Blocks::Some(missing) = &missing {
                run.blocks.extend(missing);
            }
        }
        rounded.whole = blocks.is_none();
        Ok(true)
    }
}
