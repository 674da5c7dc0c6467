//! Second half of the gate: compares the outputs of a pass with the expected values.

use super::adversarial::{Data, oracle_of};
use super::compare::{self, Comparison};
use super::expected_output::Rule;
use super::naive::{Kernel, POISON_RUN, first_poisoned, without_padding};
use super::oracle::Oracle;
use super::proof;
use super::ranges::{changed, outside, union};
use super::rounding::{RoundedRuns, output_of};
use super::sampling::{HARD_WORK_MAX, WorkBudget, affordable, compared_max, thin, work_max};
use super::spread::{FurtherRuns, precision};
use super::tolerance::Tolerance;
use super::verify::{Gate, Pass, Stop};
use crate::session::Contents;
use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::layout::Layout;
use tuner_core::plan::{Plan, PlanArgument, PlanReference, Role};
use tuner_core::record::Verdict;

/// Reported for results without a comparison.
const UNCOMPARED: &str = "the reference kernel would take too long on the virtual GPU, so the \
    results of this problem were not compared (an oracle, or `proven_by`, compares them)";

/// An oracle, the rule to compare by, and the parts of an output that it covers.
type Standard = (Arc<dyn Oracle>, Rule, Vec<Range<u64>>);

impl Gate<'_> {
    /// Checks that outputs are written, inputs untouched, and values correct.
    pub(super) fn judge(&mut self, data: Data, pass: &Pass) -> Result<(), Stop> {
        // First: expected values are computed from the inputs as uploaded.
        self.inputs_untouched(data, pass)?;
        // For all outputs first: a reference kernel replaces the buffers.
        let initial = self.references.inputs(&self.keyed, data);
        let mut written = Vec::with_capacity(pass.outputs.len());
        for (number, (index, contents)) in pass.outputs.iter().enumerate() {
            let argument = &self.plan.arguments[*index];
            written.push(match (&initial[*index], &pass.elements) {
                (_, Some(elements)) => elements[number].clone(),
                // An unchanged element may be written only by blocks outside the sample; a chosen one is
                // compared in either case.
                (Some(before), None) if pass.sampled => {
                    let bytes = self.bytes_of(contents)?;
                    let changed = changed(before, &bytes, argument.element.size());
                    union(&changed, pass.chosen.get(number).map_or(&[], Vec::as_slice))
                }
                (Some(_), None) => all_of(argument),
                (None, None) => self.written(data, number, contents, pass)?,
            });
        }
        if let Some(why) = &pass.uncomparable {
            self.note.get_or_insert_with(|| {
                format!(
                    "the results of problem {} were not compared: {why}",
                    self.plan.problem
                )
            });
            return Ok(());
        }
        let mut total = Comparison::default();
        for (number, (index, _)) in pass.outputs.iter().enumerate() {
            let (result, told) = self.compare(data, number, pass, &written[number])?;
            // Values that are all NaN or infinite agree with any broken kernel that writes NaN.
            if result.expected.finite > 0 {
                self.compared.insert(number);
            }
            self.expected.note(data, number, &result);
            let failed = !result.passed();
            let argument = &self.plan.arguments[*index];
            let detail = failed
                .then(|| told.unwrap_or_else(|| result.describe(&argument.name, &argument.shape)));
            total.merge(&result);
            if let Some(detail) = detail {
                self.comparison.get_or_insert_default().merge(&total);
                let detail = format!("{detail} (problem {}, {data})", self.plan.problem);
                return Err(self.reject(Verdict::Incorrect, detail));
            }
        }
        if total.compared > 0 {
            self.comparison.get_or_insert_default().merge(&total);
        }
        if total.rare > 0 {
            let (rare, all, error) = (total.rare, total.compared, total.rare_error);
            self.note.get_or_insert_with(|| {
                format!(
                    "{rare} of {all} elements differ by up to {error:.2} times their tolerance, \
                     which kernels that round at other places do"
                )
            });
        }
        if total.discontinuous > 0 {
            let (jumps, all) = (total.discontinuous, total.compared);
            self.note.get_or_insert_with(|| {
                format!(
                    "{jumps} of {all} elements are discontinuous: where the reference rounds \
                     otherwise it takes another value, and they were compared with each of these"
                )
            });
        }
        Ok(())
    }

    fn inputs_untouched(&mut self, data: Data, pass: &Pass) -> Result<(), Stop> {
        let inputs = self.references.inputs(&self.keyed, data);
        for (index, input) in inputs.iter().enumerate() {
            if self.plan.arguments[index].role != Role::Input {
                continue;
            }
            let (Some(data), Some(slot)) = (input, pass.slots[index]) else {
                continue;
            };
            if !self.session.is_unchanged(slot, data)? {
                let name = &self.plan.arguments[index].name;
                let detail = format!("the kernel changed its input `{name}`");
                return Err(self.reject(Verdict::Incorrect, detail));
            }
            // Equal contents do not prove that the kernel did not write: it may have stored the same
            // values.
            if self.session.is_overwritten(slot) {
                let name = &self.plan.arguments[index].name;
                let detail = format!(
                    "the kernel writes to its input `{name}`, though what it leaves there is what \
                     it found"
                );
                return Err(self.reject(Verdict::Incorrect, detail));
            }
        }
        Ok(())
    }

    /// Returns the written element ranges of an output; all must be written if all blocks ran.
    fn written(
        &mut self,
        data: Data,
        number: usize,
        contents: &Contents,
        pass: &Pass,
    ) -> Result<Vec<Range<u64>>, Stop> {
        let index = pass.outputs[number].0;
        let argument = &self.plan.arguments[index];
        let element = argument.element;
        let size = element.size() as u64;
        let count = argument.bytes() / size;
        let Some(holes) = pass.slots[index].and_then(|slot| self.session.unwritten(slot)) else {
            self.poison_is_gone(index, contents, element)?;
            return Ok(all_of(argument));
        };
        // Compilers need not store padding bytes.
        let holes = without_padding(argument, holes);
        if let (Some(detail), false) = (hole_detail(self.plan, argument, &holes), pass.sampled) {
            if self.plan.reference == PlanReference::None {
                // Results are not judged here, but the finding is worth a note.
                self.note.get_or_insert(detail);
                return Ok(outside(&holes, size, count));
            }
            // A reference that leaves them unwritten as well is the space's fault, and is reported as such.
            if matches!(self.plan.reference, PlanReference::Kernel { .. }) {
                self.naive(data, number, &all_of(argument), pass)?;
            }
            return Err(self.reject(Verdict::Incorrect, detail));
        }
        Ok(outside(&holes, size, count))
    }

    /// Rejects outputs with a long run of the poison pattern on a device that cannot report unwritten
    /// bytes. An honest NaN has other bits or is expected there. A large problem is compared only at some
    /// elements, which could miss the run.
    fn poison_is_gone(
        &mut self,
        index: usize,
        contents: &Contents,
        element: Element,
    ) -> Result<(), Stop> {
        if self.plan.reference == PlanReference::None {
            return Ok(());
        }
        let first = match contents {
            Contents::Host(bytes) => first_poisoned(bytes, element),
            // Integers have no distinct poison pattern.
            Contents::Device(_) if !element.is_float() => None,
            Contents::Device(kept) => {
                let run = POISON_RUN as u64;
                self.session.first_run(*kept, element.poison(), run)?
            }
        };
        let Some(first) = first else {
            return Ok(());
        };
        let argument = &self.plan.arguments[index];
        let detail = format!(
            "elements of `{}` are never written; the first is element {first} (problem {})",
            argument.name, self.plan.problem
        );
        Err(self.reject(Verdict::Incorrect, detail))
    }

    fn compare(
        &mut self,
        data: Data,
        number: usize,
        pass: &Pass,
        written: &[Range<u64>],
    ) -> Result<(Comparison, Option<String>), Stop> {
        let plan = self.plan;
        let index = pass.outputs[number].0;
        let argument = &plan.arguments[index];
        if let (Some(layout), PlanReference::Kernel { .. } | PlanReference::Values(_)) =
            (&argument.layout, &plan.reference)
        {
            return self.compare_fields(data, number, pass, written, layout);
        }
        self.compare_elements(data, number, pass, written)
            .map(|result| (result, None))
    }

    /// Compares a buffer of structs field by field; the first wrong field is described.
    fn compare_fields(
        &mut self,
        data: Data,
        number: usize,
        pass: &Pass,
        written: &[Range<u64>],
        layout: &Layout,
    ) -> Result<(Comparison, Option<String>), Stop> {
        let plan = self.plan;
        let (index, ref contents) = pass.outputs[number];
        let Some((outputs, known)) = self.naive(data, number, written, pass)? else {
            self.note = Some(UNCOMPARED.to_owned());
            return Ok((Comparison::default(), None));
        };
        let bytes = &*self.bytes_of(contents)?;
        let wanted = outputs.get(number).map_or(&[][..], Vec::as_slice);
        // Random rounding has one precision for a run, so fields of different types need separate
        // runs.
        let precisions = layout.fields.iter().filter_map(|f| precision(f.element));
        // As for single elements, equal bytes need no spread. The ranges of structs count bytes.
        let equal = compare::are_equal(Element::U8, bytes, wanted, &known);
        let precisions = precisions.filter(|_| !equal);
        self.under_spread(data, &precisions.collect(), |runs| {
            let (mut total, mut told) = (Comparison::default(), None);
            for (field, column) in layout.fields.iter().zip(plan.arguments[index].columns()) {
                let known = layout.known(field, &known);
                let (got, want) = (layout.column(field, bytes), layout.column(field, wanted));
                let wide = precision(field.element);
                let runs = runs.iter().find(|(bits, _)| Some(*bits) == wide);
                let runs = runs.map(|(_, runs)| output_of(runs, number));
                let runs = runs.map_or_else(Vec::new, |runs| runs.rounded);
                let runs: Vec<_> = runs.iter().map(|run| layout.column(field, run)).collect();
                let runs = FurtherRuns {
                    rounded: runs.iter().map(Vec::as_slice).collect(),
                    // Fields of a struct have different types, so the buffer has no shadow errors.
                    shadow_errors: None,
                };
                let result =
                    Tolerance::for_argument(plan, &column).compare(&got, &want, &known, &runs);
                if !result.passed() && told.is_none() {
                    told = Some(result.describe(&column.name, &column.shape));
                }
                total.merge(&result);
            }
            (total, told)
        })
    }

    fn compare_elements(
        &mut self,
        data: Data,
        number: usize,
        pass: &Pass,
        written: &[Range<u64>],
    ) -> Result<Comparison, Stop> {
        let plan = self.plan;
        let (index, ref contents) = pass.outputs[number];
        let element = plan.arguments[index].element;
        if let Contents::Device(kept) = contents
            && let Some(found) = self.on_device(data, number, *kept, written, pass)?
        {
            return Ok(found);
        }
        let bytes = &*self.bytes_of(contents)?;
        // A naive kernel in float32 may overflow or cancel on adversarial inputs; float64 does not.
        let hard = data.case.and_then(|_| oracle_of(plan));
        let name = match (hard, &plan.reference) {
            (Some(name), _) => name,
            (None, PlanReference::None) => return Ok(Comparison::default()),
            (None, PlanReference::Oracle(name)) => name,
            (None, PlanReference::Kernel { .. } | PlanReference::Values(_)) => {
                if let Some((outputs, known)) = self.naive(data, number, written, pass)? {
                    let wanted = outputs.get(number).map_or(&[][..], Vec::as_slice);
                    let tolerance = Tolerance::for_argument(plan, &plan.arguments[index]);
                    // Equal bytes pass under every spread, and the runs that measure a spread are slow.
                    let equal = compare::are_equal(element, bytes, wanted, &known);
                    let precisions = precision(element).or_else(|| self.behind_whole(element));
                    let precisions = precisions.filter(|_| !equal);
                    let precisions = precisions.into_iter().collect();
                    let compare = |runs: &[(u32, RoundedRuns)]| {
                        let has_runs = !runs.is_empty();
                        let runs = runs.first();
                        let runs = runs.map(|(_, runs)| output_of(runs, number));
                        let runs = runs.unwrap_or_default();
                        (tolerance.compare(bytes, wanted, &known, &runs), has_runs)
                    };
                    let (mut found, has_runs) = self.under_spread(data, &precisions, compare)?;
                    // A tolerance of the space applies to every element.
                    if has_runs && !tolerance.is_given() {
                        found.accept_rare();
                    }
                    return Ok(found);
                }
                let Some(name) = Kernel::from_plan(plan).and_then(|kernel| kernel.oracle) else {
                    self.note = Some(UNCOMPARED.to_owned());
                    return Ok(Comparison::default());
                };
                name
            }
        };
        let (oracle, rule, parts) = self.by_oracle(data, name, number, written)?;
        Ok(self.by_rule(rule, |rule| {
            compare::with_oracle(oracle.as_ref(), number, element, bytes, &parts, rule)
        }))
    }

    /// Returns the precision of random rounding for whole numbers that the reference computes from floats.
    fn behind_whole(&self, element: Element) -> Option<u32> {
        let kernel = Kernel::from_plan(self.plan)?;
        let rounds = !element.is_float() && kernel.code.ptx.contains(".f32");
        rounds.then(|| precision(Element::F32)).flatten()
    }

    /// Returns the oracle for an output, the rule, and the covered parts of the written ranges. On
    /// adversarial inputs float64 decides: exactly if the case requires it, else by the more permissive of
    /// the oracle's error model and the space's tolerance. The same applies if the oracle replaces a naive
    /// kernel that takes too long.
    pub(super) fn by_oracle(
        &mut self,
        data: Data,
        name: &str,
        number: usize,
        written: &[Range<u64>],
    ) -> Result<Standard, Stop> {
        let oracle = self.oracle(name, data)?;
        let tile = oracle.tile(number);
        if data.case.is_some() {
            let made = self.references.hard(&self.keyed, data);
            // Exactness and exceptions are defined for the first output only.
            let made = made.filter(|_| number == 0);
            let excused = made.as_ref().map_or(&[][..], |made| &made.excused);
            let judged = without(written, excused);
            let budget = WorkBudget {
                element: oracle.work(),
                total: HARD_WORK_MAX,
            };
            let parts = affordable(&judged, tile, budget, data.seed);
            let exact = made.is_some_and(|made| made.exact);
            let rule = if exact {
                Rule::Exact
            } else {
                Rule::Elements(None)
            };
            return Ok((oracle, rule, parts));
        }
        let rule = match (&self.plan.reference, self.plan.gate.tolerance()) {
            // An oracle in place of a naive kernel judges only single elements, as a comparison with the
            // kernel would.
            (PlanReference::Kernel { .. }, _) => Rule::Elements(None),
            (_, None) => Rule::Tiles,
            (_, given) => Rule::Elements(given),
        };
        // A single range means that everything was written; a proof then compares a million of its
        // elements.
        if let (Some(_), [all]) = (self.demands.proof_limit, written) {
            return Ok((oracle, rule, proof::compared_pieces(all, tile, data.seed)));
        }
        let work = self.work(oracle.as_ref());
        let thinned = thin(written, compared_max(work), tile);
        let parts = affordable(&thinned, tile, work, data.seed);
        Ok((oracle, rule, parts))
    }

    /// Compares by a rule. If the oracle's error model of single elements rejects, the space's tolerance is
    /// tried.
    pub(super) fn by_rule(&self, rule: Rule, compare: impl Fn(Rule) -> Comparison) -> Comparison {
        let model = compare(rule);
        match (rule, self.plan.gate.tolerance()) {
            // The more permissive one decides: the user's tolerance may cover deliberate approximations.
            (Rule::Elements(None), Some(flat)) if !model.passed() => {
                compare(Rule::Elements(Some(flat)))
            }
            _ => model,
        }
    }

    /// Returns the cost of an element of an oracle, and the limit for all.
    fn work(&self, oracle: &dyn Oracle) -> WorkBudget {
        let screening = self.session.can_sample() && self.demands.extra_limit < u64::MAX;
        WorkBudget {
            element: oracle.work(),
            total: work_max(screening),
        }
    }

    pub(super) fn oracle(&mut self, name: &str, data: Data) -> Result<Arc<dyn Oracle>, Stop> {
        let oracle = self.references.oracle(name, &self.keyed, data);
        oracle.map_err(Stop::Oracle)
    }
}

/// Describes the elements of an output that no block writes; `None` if all are written.
pub(super) fn hole_detail(
    plan: &Plan,
    argument: &PlanArgument,
    holes: &[Range<u64>],
) -> Option<String> {
    let size = argument.element.size() as u64;
    let count = argument.bytes() / size;
    let first = holes.first()?.start / size;
    let missing: u64 = holes
        .iter()
        .map(|hole| (hole.end - hole.start).div_ceil(size))
        .sum();
    let grids = plan
        .launches
        .iter()
        .map(|launch| launch.blocks().to_string());
    Some(format!(
        "{missing} of {count} elements of `{}` are never written; the first is element {first}; blocks \
         launched: {} (problem {})",
        argument.name,
        grids.collect::<Vec<_>>().join(", "),
        plan.problem
    ))
}

/// Returns all elements of a buffer.
fn all_of(argument: &PlanArgument) -> Vec<Range<u64>> {
    let count = argument.bytes() / argument.element.size() as u64;
    std::iter::once(0..count).collect()
}

/// Subtracts the excused ranges.
fn without(ranges: &[Range<u64>], excused: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = ranges.to_vec();
    for hole in excused {
        left = left
            .into_iter()
            .flat_map(|range| {
                let before = range.start..range.end.min(hole.start);
                let after = range.start.max(hole.end)..range.end;
                [before, after]
            })
            .filter(|range| range.start < range.end)
            .collect();
    }
    left
}

#[cfg(test)]
mod tests;
