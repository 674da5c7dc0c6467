//! A run on inputs with zeros.
//!
//! Numbers that are drawn from a range are hardly ever exactly zero, so a kernel that divides by an input
//! agrees with a reference that guards against zero, and a root that is computed as `x * rsqrt(x)` with
//! one that is not. Beside a reference kernel, whose operation nobody described, the inputs get a row of
//! zeros and scattered ones. Zeros are equal to each other, and an index of a maximum or the order of
//! equal keys is no error, so only one rule holds: where the reference is finite, the candidate must be. Another
//! difference is a warning.

use super::adversarial::{Case, Data};
use super::evidence::add_new;
use super::expected::warning;
use super::hard_reference::budget;
use super::verify::{Gate, Pass, Stop};
use crate::session::Order;
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::plan::PlanArgument;
use tuner_core::record::Verdict;

/// Precedes a difference on zeros.
const AT_ZERO: &str = "differs from the reference on zeros, which no `fill` rules out: ";

/// Share of a value by which results may differ on numbers that the fill does not have.
const FAR_OF_VALUE: f64 = 1e-2;

/// Share of the largest value by which all results may differ then.
const FAR_OF_LARGEST: f64 = 1e-3;

impl Gate<'_> {
    /// Judges the candidate on inputs with zeros, as far as the limits allow. A candidate or a reference
    /// that fails on them otherwise says nothing: nobody promised it zeros.
    pub(super) fn zeros(&mut self, first_data: Data, first: &Pass) -> Result<(), Stop> {
        let data = Data {
            case: Some(Case::Zeros),
            ..first_data
        };
        if !self.affords_hard(first) || self.references.hard(&self.keyed, data).is_none() {
            return Ok(());
        }
        let Some(reference) = self.reference_budget(first_data) else {
            return Ok(());
        };
        let kept = (self.hazards.len(), self.warnings.len(), self.note.clone());
        self.block_budget = Some(budget(first));
        let pass = self.pass(data, Order::Natural);
        self.block_budget = Some(reference);
        let found = pass.and_then(|pass| {
            let ended = pass.budget_exhausted.is_none();
            let found = match ended {
                true => self.at_zeros(data, &pass),
                false => Ok((None, None)),
            };
            self.forget(&pass);
            found
        });
        self.block_budget = None;
        // Findings on zeros say nothing about the declared inputs.
        self.hazards.truncate(kept.0);
        self.warnings.truncate(kept.1);
        self.note = kept.2;
        match found {
            Ok((Some(detail), _)) => Err(self.reject(Verdict::Incorrect, detail)),
            Ok((None, Some(detail))) => {
                add_new(
                    &mut self.warnings,
                    vec![warning(format!("{AT_ZERO}{detail}"))],
                );
                Ok(())
            }
            Ok((None, None)) | Err(_) => Ok(()),
        }
    }

    /// Describes the elements that are not finite where the reference is, and those that differ otherwise.
    fn at_zeros(&mut self, data: Data, pass: &Pass) -> Result<WrongAtZeros, Stop> {
        let not_finite = self.find_wrong(data, pass, not_finite)?;
        let other = match not_finite {
            None => self.find_wrong(data, pass, far_off)?,
            Some(_) => None,
        };
        Ok((not_finite, other))
    }

    /// Describes the first output with elements that are wrong by a rule.
    pub(super) fn find_wrong(
        &mut self,
        data: Data,
        pass: &Pass,
        describe: ElementRule,
    ) -> Result<Option<String>, Stop> {
        for number in 0..pass.outputs.len() {
            let (index, ref contents) = pass.outputs[number];
            let argument = &self.plan.arguments[index];
            let size = argument.element.size() as u64;
            let all: Vec<_> = std::iter::once(0..argument.bytes() / size).collect();
            let got = self.bytes_of(contents)?.into_owned();
            let Some((outputs, known)) = self.naive(data, number, &all, pass)? else {
                continue;
            };
            let want = outputs.get(number).map_or(&[][..], Vec::as_slice);
            let detail = match &argument.layout {
                None => describe(argument, &got, want, &known),
                Some(layout) => {
                    let fields = layout.fields.iter().zip(argument.columns());
                    let mut found = fields.map(|(field, column)| {
                        let known = layout.known(field, &known);
                        let (got, want) = (layout.column(field, &got), layout.column(field, want));
                        describe(&column, &got, &want, &known)
                    });
                    found.find_map(|found| found)
                }
            };
            if let Some(detail) = detail {
                let problem = &self.plan.problem;
                return Ok(Some(format!("{detail} (problem {problem}, {data})")));
            }
        }
        Ok(None)
    }
}

/// Descriptions of elements that are not finite, and of others.
type WrongAtZeros = (Option<String>, Option<String>);

/// Describes the wrong elements among those of the ranges, from an output's bytes and the reference's; `None` if
/// there are none.
type ElementRule = fn(&PlanArgument, &[u8], &[u8], &[Range<u64>]) -> Option<String>;

/// Describes the elements that are not finite where the reference is.
fn not_finite(
    argument: &PlanArgument,
    got: &[u8],
    want: &[u8],
    known: &[Range<u64>],
) -> Option<String> {
    let element = argument.element;
    if !element.is_float() {
        return None;
    }
    let values = pairs(element, got, want, known);
    let mut wrong = values.filter(|(_, got, want)| !got.is_finite() && want.is_finite());
    let (at, got, want) = wrong.next()?;
    let count = 1 + wrong.count();
    let name = &argument.name;
    Some(format!(
        "{count} elements of `{name}` are not finite though the reference is; first {name}{} = \
         {got:e}, expected {want:e}",
        super::compare::subscript(at, &argument.shape)
    ))
}

/// Describes the elements that differ from the reference by more than another rounding explains, whatever its
/// tolerance: by a hundredth of the value and a thousandth of the largest, whole numbers of a wide range by one in addition.
pub(super) fn far_off(
    argument: &PlanArgument,
    got: &[u8],
    want: &[u8],
    known: &[Range<u64>],
) -> Option<String> {
    let element = argument.element;
    let values = || pairs(element, got, want, known);
    let finite = values()
        .map(|(_, _, want)| want.abs())
        .filter(|want| want.is_finite());
    let largest = finite.fold(0.0, f64::max);
    // A scale that rounds otherwise moves a whole number of a wide range by one, but no index, flag or count of few.
    let unit = if element.is_float() {
        0.0
    } else {
        (FAR_OF_VALUE * largest).min(1.0)
    };
    let least = unit + FAR_OF_LARGEST * largest;
    let mut values = values().filter(|(.., want)| want.is_finite());
    let (at, got, want) = values.find(|(_, got, want)| {
        // A difference that is not a number is that of a finite value and one that is not.
        let difference = (got - want).abs();
        difference.is_nan() || difference > least + FAR_OF_VALUE * want.abs()
    })?;
    let name = &argument.name;
    let place = super::compare::subscript(at, &argument.shape);
    Some(format!("{name}{place} = {got:e}, expected {want:e}"))
}

/// Returns the index, the value and the reference's value of each element of the ranges.
fn pairs<'a>(
    element: Element,
    got: &'a [u8],
    want: &'a [u8],
    known: &'a [Range<u64>],
) -> impl Iterator<Item = (u64, f64, f64)> + 'a {
    let size = element.size();
    let values = got.chunks_exact(size).zip(want.chunks_exact(size));
    let values = values.map(move |(got, want)| (element.decode(got), element.decode(want)));
    let inside = |at: &u64| known.iter().any(|range| range.contains(at));
    let values = (0u64..).zip(values).filter(move |(at, _)| inside(at));
    values.map(|(at, (got, want))| (at, got, want))
}
