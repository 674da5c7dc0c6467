//! Runs on numbers that the declared inputs do not contain, or hardly.
//!
//! Whole numbers without a fill are 0 to 100, so a kernel that takes bytes for signed or unpacks the lower
//! half of a byte is correct on them. Nothing limits them, so beside a reference kernel they get the whole range.
//! Floating-point inputs without a fill get large numbers. All inputs get equal numbers, and those whose fill has
//! both signs alike numbers of one sign: none that the fill does not have.

use super::adversarial::{Case, Data, oracle_of};
use super::evidence::add_new;
use super::expected::warning;
use super::hard_reference::{budget, named};
use super::verify::{Gate, Pass, Stop};
use super::zeros::far_off;
use crate::session::Order;
use tuner_core::element::Element;
use tuner_core::plan::PlanArgument;
use tuner_core::record::Verdict;

/// Times by which results may exceed those on the declared inputs. Above it, they may overflow where the
/// reference does not.
const GROWTH_MAX: f64 = 128.0;

/// Precedes a difference on equal numbers of a candidate with results that are whole numbers.
const CHOICE: &str = "another choice among equal numbers than the reference's, or an error: ";

/// Precedes a difference on numbers that few inputs of whole numbers have.
const UNLIMITED: &str = "differs from the reference on whole numbers that no `fill` rules out: ";

/// The cases, in order.
const CASES: [Case; 9] = [
    Case::WholeRange,
    Case::WideRange,
    Case::Markers,
    Case::Signed,
    Case::Runs,
    Case::Negative,
    Case::Positive,
    Case::Scaled,
    Case::Ties,
];

impl Gate<'_> {
    /// Judges the candidate on such numbers. A reference that fails on them is no evidence: they may be
    /// indices, or arguments of a logarithm.
    pub(super) fn other_numbers(&mut self, first_data: Data, first: &Pass) -> Result<(), Stop> {
        // An oracle has its own cases, one of which is among these.
        if oracle_of(self.plan).is_some() {
            return Ok(());
        }
        let Some(reference) = self.reference_budget(first_data) else {
            return Ok(());
        };
        for case in CASES {
            let data = Data {
                case: Some(case),
                ..first_data
            };
            let hazards = self.hazards.len();
            // A loop may run to a number of the input.
            self.block_budget = Some(reference);
            let judged = match self.is_comparable(first_data, data, first) {
                true => self.on_numbers(data, first, reference),
                false => Ok(()),
            };
            self.block_budget = None;
            let judged = named(judged, data).map_err(|stop| with_help(stop, case));
            match (judged, self.reason_of_doubt(case)) {
                (Err(Stop::Rejected(found)), Some(why))
                    if case != Case::Ties || found.verdict == Verdict::Incorrect =>
                {
                    self.hazards.truncate(hazards);
                    let doubt = warning(format!("{why}{}", found.detail));
                    add_new(&mut self.warnings, vec![doubt]);
                }
                (judged, _) => judged?,
            }
        }
        Ok(())
    }

    /// Returns what precedes a difference in a case that a correct kernel may have; `None` if it is an error.
    fn reason_of_doubt(&self, case: Case) -> Option<&'static str> {
        let whole = |argument: &PlanArgument| !argument.element.is_float();
        let has_whole = self.plan.compared().any(whole);
        let signed = |argument: &PlanArgument| {
            argument.any_value && matches!(argument.element, Element::I32 | Element::I64)
        };
        match case {
            Case::Signed => Some(UNLIMITED),
            // Two roundings of a frequency are unrelated angles at a large position.
            Case::WideRange if !has_whole && self.plan.arguments.iter().any(signed) => {
                Some(UNLIMITED)
            }
            // An index, or the order of a sort.
            Case::Ties if has_whole => Some(CHOICE),
            _ => None,
        }
    }

    fn on_numbers(&mut self, data: Data, first: &Pass, reference: u64) -> Result<(), Stop> {
        self.block_budget = Some(budget(first));
        let kept = (self.warnings.len(), self.note.clone());
        let pass = self.pass(data, Order::Natural)?;
        self.block_budget = Some(reference);
        let before = self.comparison.take();
        let mut judged = match pass.budget_exhausted {
            None => self.judge(data, &pass),
            Some(_) => Ok(()),
        };
        let found = std::mem::replace(&mut self.comparison, before);
        let differs = found.as_ref().is_some_and(|found| !found.passed());
        if differs && is_lenient(data.case) && self.find_wrong(data, &pass, far_off)?.is_none() {
            judged = Ok(());
        } else if let (Ok(()), Some(found)) = (&judged, &found) {
            self.comparison.get_or_insert_default().merge(found);
        }
        self.forget(&pass);
        if judged.is_ok() {
            // Warnings on these numbers say nothing about the declared ones.
            self.warnings.truncate(kept.0);
            self.note = kept.1;
        }
        judged
    }

    /// Reports whether the reference has results on these inputs that are whole numbers, or not far larger
    /// than on the declared ones.
    fn is_comparable(&mut self, declared: Data, data: Data, first: &Pass) -> bool {
        let Some((outputs, _)) = self.hard_reference(data, first) else {
            return false;
        };
        let before = self.references.outputs(&self.keyed, declared);
        let compared = first.outputs.iter().map(|(index, _)| *index);
        compared.enumerate().all(|(number, index)| {
            let argument = &self.plan.arguments[index];
            if argument.layout.is_some() {
                return false;
            }
            let largest = |outputs: &[Vec<u8>]| Some(largest(argument, outputs.get(number)?));
            let known = before.as_deref().map(Vec::as_slice);
            !argument.element.is_float()
                || known
                    .and_then(largest)
                    .zip(largest(&outputs))
                    .is_some_and(|(before, now)| now.is_finite() && now <= GROWTH_MAX * before)
        })
    }
}

/// Reports whether results may differ by more than their tolerance: sums of equal numbers or of one sign round
/// to one side, and the error of an exponential is that of its large argument.
fn is_lenient(case: Option<Case>) -> bool {
    let lenient = [Case::Negative, Case::Positive, Case::Scaled, Case::Ties];
    case.is_some_and(|case| lenient.contains(&case))
}

/// Appends what to do about numbers that the kernel need not take.
fn with_help(stop: Stop, case: Case) -> Stop {
    let help = match case {
        Case::WholeRange | Case::WideRange | Case::Markers | Case::Signed => {
            "; if its whole numbers are limited, give those inputs a `fill`"
        }
        Case::Scaled => {
            "; if its numbers are limited, give those inputs a `fill`, such as `normal`"
        }
        Case::Runs | Case::Ties => {
            "; if all numbers of an input are different, give it `fill: permutation`"
        }
        _ => "; if an input is never of one sign throughout, give it a `fill` of its range",
    };
    match stop {
        Stop::Rejected(mut found) => {
            found.detail.push_str(help);
            Stop::Rejected(found)
        }
        other => other,
    }
}

/// Returns the largest magnitude; NaN counts as infinite.
fn largest(argument: &PlanArgument, bytes: &[u8]) -> f64 {
    let values = bytes.chunks_exact(argument.element.size());
    let magnitudes = values.map(|value| argument.element.decode(value).abs());
    magnitudes.fold(0.0, |largest, value| match value.is_nan() {
        true => f64::INFINITY,
        false => value.max(largest),
    })
}
