//! Results of a reference kernel on the same inputs: complete if that is cheap, else from the
//! blocks that write the compared elements.

use super::adversarial::Data;
use super::compare;
use super::conflicts::updates_atomically;
use super::expected_output::Rule;
use super::oracle::OracleError;
use super::partial::PartialReference;
use super::ranges::{changed, outside, overlap, union};
use super::reference_blocks::WantedElements;
use super::sampling;
use super::tiling::Tiling;
use super::verify::{Gate, Pass, Stop};
use crate::session::{Blocks, Order, Run, RunReport, Slot};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, PlanReference};
use tuner_core::record::Verdict;

/// Elements of a reference kernel's output that are compared with float64 at each of three places.
const PROVEN_ELEMENTS: u64 = 2048;

/// The reference of a plan, if it is a kernel.
pub(super) struct Kernel<'a> {
    pub(super) code: &'a Code,
    pub(super) launch: &'a PlanLaunch,
    pub(super) oracle: Option<&'a str>,
    /// Several blocks may contribute to one element, by atomics.
    pub(super) shared: bool,
}

impl<'a> Kernel<'a> {
    pub(super) fn from_plan(plan: &'a Plan) -> Option<Self> {
        let PlanReference::Kernel {
            code,
            launch,
            oracle,
        } = &plan.reference
        else {
            return None;
        };
        Some(Self {
            code,
            launch,
            oracle: oracle.as_deref(),
            shared: updates_atomically(&code.ptx),
        })
    }
}

/// Outputs of the reference kernel, and the known elements of one of them.
pub(super) type KnownElements = (Arc<Vec<Vec<u8>>>, Vec<Range<u64>>);

impl Gate<'_> {
    /// Computes those elements of output `number` by the reference kernel; `None` if it would take
    /// too long on this device.
    pub(super) fn naive(
        &mut self,
        data: Data,
        number: usize,
        written: &[Range<u64>],
        pass: &Pass,
    ) -> Result<Option<KnownElements>, Stop> {
        let all = |outputs| Some((outputs, written.to_vec()));
        if let Some(outputs) = self.references.outputs(&self.keyed, data) {
            return Ok(all(outputs));
        }
        let plan = self.plan;
        if let PlanReference::Values(values) = &plan.reference {
            let outputs = Arc::new(self.read_values(values)?);
            self.references.keep_outputs(&self.keyed, data, &outputs);
            return Ok(all(outputs));
        }
        let Some(kernel) = Kernel::from_plan(plan) else {
            return Ok(None);
        };
        // Blocks of a cooperative launch wait for each other, so none can be omitted.
        if !self.session.can_sample() || kernel.launch.cooperative {
            return Ok(all(self.naive_whole(data, &kernel)?));
        }
        let allowed = self.demands.block_limit;
        let allowed = allowed.max(self.demands.reference_block_limit);
        let allowed = self
            .block_budget
            .map_or(allowed, |budget| budget.min(allowed));
        let naive = match self.references.take_part(&self.keyed, data) {
            // A proof allows more than the sample in which the block did not end.
            Some(naive) if naive.cost.is_some() || naive.allowed >= allowed => naive,
            _ => self.first_block(data, &kernel, allowed)?,
        };
        let whole = naive
            .cost
            .map(|cost| cost.saturating_mul(kernel.launch.blocks()));
        let limit = self.demands.reference_limit(pass.sampled);
        if whole.is_some_and(|whole| whole <= limit) {
            return Ok(all(self.naive_whole(data, &kernel)?));
        }
        // The first block did not end; its result is kept so that later candidates do not try
        // again.
        let Some(cost) = naive.cost else {
            self.references.keep_part(&self.keyed, data, naive);
            return Ok(None);
        };
        let most = (self.demands.reference_sample_limit() / cost.max(1)).max(1);
        let mut naive = naive;
        let wanted = WantedElements {
            number,
            written,
            untouched: pass.untouched.get(number).map_or(&[], Vec::as_slice),
        };
        let blocks = self.reference_blocks(data, &kernel, &mut naive, wanted, most)?;
        let naive = self.further_blocks(data, &kernel, naive, blocks)?;
        let known = plan.compared().nth(number);
        let known = known.map(|argument| naive.final_elements(number, argument, kernel.shared));
        let known = overlap(&known.unwrap_or_default(), written);
        let outputs = Arc::clone(&naive.outputs);
        self.references.keep_part(&self.keyed, data, naive);
        Ok((!known.is_empty()).then_some((outputs, known)))
    }

    /// Reads the expected contents of all outputs from their files.
    fn read_values(&self, values: &[Fill]) -> Result<Vec<Vec<u8>>, Stop> {
        let outputs = self.plan.compared().zip(values).map(|(argument, fill)| {
            let values = PlanArgument {
                fill: fill.clone(),
                ..argument.clone()
            };
            let content = values.content(0, 0).map_err(|why| {
                Stop::Oracle(OracleError::Data {
                    argument: argument.name.clone(),
                    problem: self.plan.problem.clone(),
                    why,
                })
            })?;
            Ok(content.to_vec())
        });
        outputs.collect()
    }

    pub(super) fn run_naive(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        blocks: Blocks,
        budget: Option<u64>,
    ) -> Result<(RunReport, Vec<Option<Slot>>), Stop> {
        let slots = self.prepare(data, kernel.code)?;
        let report = self.session.run(&Run {
            code: kernel.code,
            launch: kernel.launch,
            plan: self.plan,
            slots: &slots,
            blocks,
            order: Order::Natural,
            budget,
        })?;
        // An error of the space, not of the candidate, hence not a rejection.
        if let Some(hazard) = report.hazards.first() {
            return Err(Stop::Oracle(OracleError::ReferenceHazard {
                kind: hazard.kind,
                problem: self.plan.problem.clone(),
                detail: hazard.detail.clone(),
            }));
        }
        Ok((report, slots))
    }

    /// Checks that a reference kernel that ran whole wrote every output element: an unwritten one
    /// holds the poison, which no candidate can match.
    fn complete(&mut self, slots: &[Option<Slot>], outputs: &[Vec<u8>]) -> Result<(), Stop> {
        for ((index, argument), bytes) in compared(self.plan).zip(outputs) {
            if argument.role.is_updated() {
                // Unwritten elements keep their previous content.
                continue;
            }
            let element = argument.element;
            let size = element.size() as u64;
            let count = bytes.len() as u64 / size;
            let holes = slots[index].and_then(|slot| self.session.unwritten(slot));
            let first = match holes.map(|holes| without_padding(argument, holes)) {
                Some(holes) => holes.first().map(|hole| hole.start / size),
                None => first_poisoned(bytes, element),
            };
            if let Some(first) = first {
                return Err(Stop::Oracle(OracleError::ReferenceIncomplete {
                    output: argument.name.clone(),
                    problem: self.plan.problem.clone(),
                    first,
                    count,
                }));
            }
        }
        Ok(())
    }

    fn naive_whole(&mut self, data: Data, kernel: &Kernel<'_>) -> Result<Arc<Vec<Vec<u8>>>, Stop> {
        let (report, slots) = self.run_naive(data, kernel, Blocks::All, self.block_budget)?;
        if report.budget_exhausted {
            return Err(Stop::Oracle(OracleError::ReferenceHazard {
                kind: Verdict::Timeout,
                problem: self.plan.problem.clone(),
                detail: "a block did not end".to_owned(),
            }));
        }
        let cost = report.work.lane_instructions;
        self.references.keep_cost(&self.keyed, data, cost);
        let outputs = self.outputs(&slots)?;
        self.complete(&slots, &outputs)?;
        if let Some(name) = kernel.oracle
            && self.references.unproven(&self.keyed)
        {
            self.prove(name, data, &outputs, None)?;
            self.references.keep_proven(&self.keyed);
        }
        let outputs = Arc::new(outputs);
        self.references.keep_outputs(&self.keyed, data, &outputs);
        Ok(outputs)
    }

    /// Runs one block, up to `allowed` warp instructions, to measure its cost and the distribution of
    /// the outputs over blocks.
    fn first_block(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        allowed: u64,
    ) -> Result<PartialReference, Stop> {
        let block = sampling::first(kernel.launch.blocks());
        let list = Blocks::Some(vec![block]);
        let (report, slots) = self.run_naive(data, kernel, list, Some(allowed))?;
        let work = report.work;
        let mut naive = PartialReference {
            cost: (!report.budget_exhausted).then_some(work.lane_instructions),
            allowed,
            ..PartialReference::default()
        };
        // With atomics several blocks may contribute to one element, which a tiling cannot express.
        let shared = kernel.shared || work.atomics > 0;
        self.learn(data, &mut naive, &slots)?;
        for (argument, known) in self.plan.compared().zip(&naive.known) {
            let tiling = Tiling::learn(
                &argument.shape,
                kernel.launch.grid.map(u64::from),
                block,
                known,
            );
            naive.tilings.push(tiling.filter(|_| !shared));
        }
        naive.blocks.insert(block);
        Ok(naive)
    }

    /// Runs those of the blocks that have not run yet.
    fn further_blocks(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        mut naive: PartialReference,
        mut blocks: BTreeSet<u64>,
    ) -> Result<PartialReference, Stop> {
        let total = kernel.launch.blocks();
        blocks.retain(|block| *block < total && !naive.blocks.contains(block));
        if !blocks.is_empty() {
            if kernel.shared {
                // What blocks of two runs add to one element cannot be merged.
                blocks.append(&mut naive.blocks);
                naive.known.clear();
            }
            let list = Blocks::Some(blocks.iter().copied().collect());
            let (_, slots) = self.run_naive(data, kernel, list, self.block_budget)?;
            self.learn(data, &mut naive, &slots)?;
            naive.blocks.extend(blocks);
        }
        if let (Some(name), false) = (kernel.oracle, naive.proven) {
            if self.references.unproven(&self.keyed) {
                self.prove(name, data, &naive.outputs, Some(&naive.known))?;
                self.references.keep_proven(&self.keyed);
            }
            naive.proven = true;
        }
        Ok(naive)
    }

    /// Adds the outputs of the last run of the reference to the known ones.
    pub(super) fn learn(
        &mut self,
        data: Data,
        naive: &mut PartialReference,
        slots: &[Option<Slot>],
    ) -> Result<(), Stop> {
        let outputs = self.outputs(slots)?;
        self.learn_contents(data, naive, slots, outputs, None)
    }

    /// Adds the shadow errors of the last run of the reference, for the elements that it wrote.
    pub(super) fn learn_shadow_errors(
        &mut self,
        data: Data,
        naive: &mut PartialReference,
        slots: &[Option<Slot>],
    ) -> Result<(), Stop> {
        let outputs = self.outputs(slots)?;
        let errors = compared(self.plan).map(|(index, argument)| {
            let slot = slots[index].filter(|_| argument.layout.is_none())?;
            self.session.shadow_errors(slot, argument.element)
        });
        let errors = errors.zip(&outputs).map(|(errors, output)| {
            // Zeros: no output without errors may be missing, whose place in the list counts.
            errors.unwrap_or_else(|| vec![0; output.len()])
        });
        let errors = errors.collect();
        self.learn_contents(data, naive, slots, outputs, Some(errors))
    }

    /// Adds `contents` (`None`: the outputs) of the elements that a run wrote to the known ones.
    fn learn_contents(
        &mut self,
        data: Data,
        naive: &mut PartialReference,
        slots: &[Option<Slot>],
        outputs: Vec<Vec<u8>>,
        contents: Option<Vec<Vec<u8>>>,
    ) -> Result<(), Stop> {
        let initial = self.references.inputs(&self.keyed, data);
        let mut known = Vec::with_capacity(outputs.len());
        for ((index, argument), bytes) in compared(self.plan).zip(&outputs) {
            let size = argument.element.size();
            // An in-out buffer has no unwritten bytes; a changed value shows the store.
            if let Some(before) = &initial[index] {
                known.push(changed(before, bytes, size));
                continue;
            }
            let holes = slots[index].and_then(|slot| self.session.unwritten(slot));
            let (size, count) = (size as u64, (bytes.len() / size) as u64);
            known.push(outside(&holes.unwrap_or_default(), size, count));
        }
        let outputs = contents.unwrap_or(outputs);
        if naive.known.is_empty() {
            (naive.outputs, naive.known) = (Arc::new(outputs), known);
            return Ok(());
        }
        let kept = Arc::make_mut(&mut naive.outputs);
        for (number, argument) in self.plan.compared().enumerate() {
            let size = argument.element.size();
            for range in &known[number] {
                let bounds = [range.start, range.end].map(|at| {
                    usize::try_from(at)
                        .unwrap_or(usize::MAX)
                        .saturating_mul(size)
                });
                kept[number][bounds[0]..bounds[1]]
                    .copy_from_slice(&outputs[number][bounds[0]..bounds[1]]);
            }
            naive.known[number] = union(&naive.known[number], &known[number]);
        }
        Ok(())
    }

    /// Returns the bytes of all outputs.
    fn outputs(&mut self, slots: &[Option<Slot>]) -> Result<Vec<Vec<u8>>, Stop> {
        let mut outputs = Vec::new();
        for (index, _) in compared(self.plan) {
            if let Some(slot) = slots[index] {
                outputs.push(self.session.download(slot)?);
            }
        }
        Ok(outputs)
    }

    /// Compares the naive kernel with float64, once for each problem: a wrong reference is an error
    /// of the space, not of a candidate.
    fn prove(
        &mut self,
        name: &str,
        data: Data,
        outputs: &[Vec<u8>],
        known: Option<&[Vec<Range<u64>>]>,
    ) -> Result<(), Stop> {
        let oracle = self.oracle(name, data)?;
        for (number, (argument, bytes)) in self.plan.compared().zip(outputs).enumerate() {
            let mut parts = places(argument.count());
            if let Some(known) = known {
                // `union` sorts the parts, which `overlap` requires.
                parts = overlap(&known[number], &union(&parts, &[]));
            }
            let result = self.by_rule(Rule::Elements(None), |rule| {
                let element = argument.element;
                compare::with_oracle(oracle.as_ref(), number, element, bytes, &parts, rule)
            });
            if !result.passed() {
                return Err(Stop::Oracle(OracleError::Disagrees {
                    oracle: name.to_owned(),
                    detail: result.describe(&argument.name, &argument.shape),
                }));
            }
        }
        Ok(())
    }
}

/// Removes the padding of structs, which need not be written, from the ranges.
pub(super) fn without_padding(argument: &PlanArgument, ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    match &argument.layout {
        Some(layout) => layout.without_padding(&ranges),
        None => ranges,
    }
}

/// Returns the two ends and the middle of an output: an element of an oracle costs a sum.
pub(super) fn places(count: u64) -> Vec<Range<u64>> {
    let some = count.min(PROVEN_ELEMENTS);
    [0, (count - some) / 2, count - some]
        .map(|start| start..start + some)
        .to_vec()
}

/// Consecutive poisoned elements that indicate an unwritten output: an honest NaN has other bits or
/// is isolated.
pub(super) const POISON_RUN: usize = 8;

/// Returns the first element of a run of poison, on a device that cannot report unwritten bytes.
pub(super) fn first_poisoned(bytes: &[u8], element: Element) -> Option<u64> {
    // Integers have no distinct poison pattern.
    if !element.is_float() {
        return None;
    }
    let poison = element.poison();
    let mut run = 0;
    for (at, value) in bytes.chunks_exact(element.size()).enumerate() {
        // A single poison value may be an honest NaN.
        run = if value == poison { run + 1 } else { 0 };
        if run == POISON_RUN {
            return Some((at + 1 - POISON_RUN) as u64);
        }
    }
    None
}

/// Returns the compared arguments with their indices in the plan.
pub(super) fn compared(plan: &Plan) -> impl Iterator<Item = (usize, &PlanArgument)> {
    let arguments = plan.arguments.iter().enumerate();
    arguments.filter(|(_, argument)| argument.role.is_compared())
}
