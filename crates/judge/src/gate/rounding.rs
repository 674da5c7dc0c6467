//! Runs of the reference kernel with random rounding: the same blocks on the same inputs.

use super::adversarial::Data;
use super::compare::Comparison;
use super::naive::Kernel;
use super::oracle::OracleError;
use super::partial::PartialReference;
use super::spread::{FurtherRuns, MAX_ROUNDED_RUNS, ROUNDED_RUNS, precision, shadow_error_type};
use super::verify::{Gate, Stop};
use crate::session::{Blocks, Rounding};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Largest error over tolerance of a candidate that gets more runs: four spreads are rarely all
/// small by chance.
const NEAR_MISS: f64 = 64.0;

/// Limit of the outputs of all runs beyond which no extra runs are made, bytes.
const MAX_ROUNDED_BYTES: u64 = 1 << 29;

/// Cost of the runs with random rounding and with shadow values, in runs of the reference: a shadow value
/// costs several instructions.
const FURTHER_RUNS_COST: u64 = ROUNDED_RUNS as u64 + 4;

/// Results of a reference kernel under random rounding.
#[derive(Debug, Clone, Default)]
pub(super) struct RandomRoundings {
    runs: Vec<RoundedRun>,
    /// The run with shadow values; its outputs are the differences between shadow values and values.
    shadow: RoundedRun,
    /// A run with shadow values failed.
    shadow_failed: bool,
    /// A run did not end or had a hazard, which can occur under random rounding.
    failed: bool,
}

#[derive(Debug, Clone, Default)]
struct RoundedRun {
    naive: PartialReference,
    /// All blocks ran.
    whole: bool,
    /// Lane instructions of all runs.
    cost: u64,
}

impl RandomRoundings {
    /// Returns the memory of the outputs.
    pub(super) fn bytes(&self) -> u64 {
        let runs = self.runs.iter().chain([&self.shadow]);
        runs.map(|run| run.naive.bytes()).sum()
    }
}

/// Outputs of the runs.
pub(super) struct RoundedRuns {
    rounded: Vec<Arc<Vec<Vec<u8>>>>,
    shadow_errors: Option<Arc<Vec<Vec<u8>>>>,
}

/// Returns one output of each run.
pub(super) fn output_of(runs: &RoundedRuns, number: usize) -> FurtherRuns<'_> {
    let rounded = runs.rounded.iter();
    let errors = runs.shadow_errors.as_ref().and_then(|all| all.get(number));
    FurtherRuns {
        rounded: rounded
            .map(|run| run.get(number).map_or(&[][..], Vec::as_slice))
            .collect(),
        shadow_errors: errors
            .map(Vec::as_slice)
            .filter(|errors| !errors.is_empty()),
    }
}

/// Arithmetic of a further run.
#[derive(Debug, Clone, Copy)]
enum Arithmetic {
    Rounded(Rounding),
    WithShadowValues,
}

impl Gate<'_> {
    /// Compares under the spread of a few runs with random rounding and, after a near miss, of more runs.
    /// The decision depends only on these runs, and few candidates need them. Compares without a spread if
    /// there is no precision or the device cannot round at random.
    pub(super) fn under_spread<T>(
        &mut self,
        data: Data,
        precisions: &BTreeSet<u32>,
        mut compare: impl FnMut(&[(u32, RoundedRuns)]) -> (Comparison, T),
    ) -> Result<(Comparison, T), Stop> {
        if self.exceeds_proof(data, precisions) {
            // The sample before a proof had these runs. First the elements are compared without them: only
            // a rejected candidate is worth their cost.
            let (result, detail) = compare(&[]);
            if result.passed() {
                return Ok((result, detail));
            }
        }
        let few = self.rounded(data, precisions, ROUNDED_RUNS)?;
        let (result, detail) = compare(&few);
        // Chance explains a near miss, and a few elements without any spread: their roundings compensated
        // in all runs. For other failures more runs would only cost time.
        let by_chance = result.max_error <= NEAR_MISS || result.has_few_wrong();
        if result.passed() || few.is_empty() || !by_chance || !self.affords_more(data, precisions) {
            return Ok((result, detail));
        }
        let more = self.rounded(data, precisions, MAX_ROUNDED_RUNS)?;
        Ok(compare(&more))
    }

    /// Reports whether the first runs of a reference that ran whole exceed the budget of a proof.
    fn exceeds_proof(&self, data: Data, precisions: &BTreeSet<u32>) -> bool {
        let limit = self.demands.proof_limit;
        let cost = self.references.cost(&self.keyed, data);
        let Some((limit, cost)) = limit.zip(cost) else {
            return false;
        };
        let is_missing = |precision: &&u32| {
            let known = self.references.peek_rounded(&self.keyed, data, **precision);
            !known.is_some_and(|all| all.runs.first().is_some_and(|run| run.whole))
        };
        let missing = precisions.iter().filter(is_missing).count() as u64;
        cost.saturating_mul(FURTHER_RUNS_COST * missing) > limit
    }

    /// Reports whether each additional run costs no more than a reference that is run whole.
    fn affords_more(&self, data: Data, precisions: &BTreeSet<u32>) -> bool {
        let limit = self.demands.reference_limit(false);
        let first = |precision: &u32| self.references.peek_rounded(&self.keyed, data, *precision);
        let runs = precisions.iter().filter_map(first);
        let mut runs = runs.filter_map(|rounded| rounded.runs.first());
        runs.all(|run| {
            // Partial reference runs have a separate limit.
            let short = !run.whole || run.cost <= limit;
            short && run.naive.bytes().saturating_mul(MAX_ROUNDED_RUNS as u64) <= MAX_ROUNDED_BYTES
        })
    }

    /// Returns the outputs of the reference under random rounding for each precision; empty if the device
    /// cannot round at random or the kernel does not end. The same blocks run as with regular rounding.
    fn rounded(
        &mut self,
        data: Data,
        precisions: &BTreeSet<u32>,
        count: usize,
    ) -> Result<Vec<(u32, RoundedRuns)>, Stop> {
        let plan = self.plan;
        let mut all = Vec::new();
        let Some(kernel) = Kernel::from_plan(plan) else {
            return Ok(all);
        };
        // Also the query for support: a device without random rounding returns false.
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
                    // Run 1 uses the seed of run 0 and inverts its decisions.
                    seed: data.seed.rotate_left(8) ^ if number == 1 { 0 } else { number as u64 },
                    // The inverse of the first run, so that a single rounding goes both ways.
                    inverted: number == 1,
                    precision,
                };
                rounded.failed = rounded.failed
                    || !self.run_further(
                        data,
                        &kernel,
                        run,
                        &blocks,
                        Arithmetic::Rounded(rounding),
                    )?;
            }
            let shadows = !rounded.failed && self.session.set_shadow_values(false);
            if shadows && !rounded.shadow_failed && self.has_shadow_errors(precision) {
                let (run, arithmetic) = (&mut rounded.shadow, Arithmetic::WithShadowValues);
                let ended = self.run_further(data, &kernel, run, &blocks, arithmetic)?;
                rounded.shadow_failed = !ended;
            }
            if !rounded.failed {
                let runs = rounded.runs.iter().take(count);
                let errors = &rounded.shadow.naive.outputs;
                let known = !rounded.shadow_failed && !errors.is_empty();
                let outputs = RoundedRuns {
                    rounded: runs.map(|run| Arc::clone(&run.naive.outputs)).collect(),
                    shadow_errors: known.then(|| Arc::clone(errors)),
                };
                all.push((precision, outputs));
            }
            self.references
                .keep_rounded(&self.keyed, data, precision, rounded);
        }
        Ok(all)
    }

    /// Reports whether an output of this precision can use shadow values.
    fn has_shadow_errors(&self, bits: u32) -> bool {
        let mut outputs = self.plan.compared().filter(|a| a.layout.is_none());
        outputs
            .any(|a| precision(a.element) == Some(bits) && shadow_error_type(a.element).is_some())
    }

    /// Runs the blocks (`None`: all) that have not run yet; reports whether they ended without a hazard.
    fn run_further(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        run: &mut RoundedRun,
        blocks: &Option<BTreeSet<u64>>,
        arithmetic: Arithmetic,
    ) -> Result<bool, Stop> {
        let missing = match blocks {
            _ if run.whole => return Ok(true),
            None => Blocks::All,
            Some(blocks) => {
                let missing: Vec<u64> = blocks.difference(&run.naive.blocks).copied().collect();
                match kernel.shared && !missing.is_empty() {
                    // Contributions of blocks from two runs to one element cannot be merged.
                    true => Blocks::Some(blocks.iter().copied().collect()),
                    false => Blocks::Some(missing),
                }
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
        match arithmetic {
            Arithmetic::Rounded(rounding) => self.session.set_rounding(Some(rounding)),
            Arithmetic::WithShadowValues => self.session.set_shadow_values(true),
        };
        let ran = self.run_naive(data, kernel, missing.clone(), self.block_budget);
        // Also after a failure: a candidate must never run with random rounding.
        self.session.set_rounding(None);
        self.session.set_shadow_values(false);
        let (report, slots) = match ran {
            Ok(ran) => ran,
            // Convergence loops may not end under random rounding; that is not an error of the
            // space.
            Err(Stop::Rejected(_) | Stop::Oracle(OracleError::ReferenceHazard { .. })) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        if kernel.shared {
            run.naive.known.clear();
        }
        match arithmetic {
            Arithmetic::Rounded(_) => self.learn(data, &mut run.naive, &slots)?,
            Arithmetic::WithShadowValues => {
                self.learn_shadow_errors(data, &mut run.naive, &slots)?;
            }
        }
        run.cost += report.work.lane_instructions;
        match missing {
            Blocks::Some(missing) => run.naive.blocks.extend(missing),
            Blocks::All => run.whole = true,
        }
        Ok(true)
    }
}
