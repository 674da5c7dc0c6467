//! Evidence value of a problem's expected results: zero if they are NaN or infinite everywhere, low if they
//! are one constant for all inputs.

use super::adversarial::Data;
use super::compare::Comparison;
use super::compare::bias::{self, Bias};
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::plan::Plan;
use tuner_core::record::{Hazard, Verdict};

/// Summary of expected values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ExpectedValues {
    /// Values that are neither NaN nor infinite.
    pub finite: u64,
    /// The value shared by all; 0 and −0 are equal.
    constant: Constant,
    /// Largest magnitude of the finite values.
    largest: f64,
    /// Values of which the tolerance is more than [`LOOSE`], other than zeros.
    loose: u64,
}

/// Share of an expected value above which its tolerance proves little. Neither type of 8 bits reaches it by its own
/// rounding.
const LOOSE: f64 = 0.3;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Constant {
    #[default]
    NoValue,
    Value(f64),
    Varied,
}

impl ExpectedValues {
    /// Returns the summary of values that were not read; they are assumed to be evidence.
    pub(super) fn unknown() -> Self {
        Self {
            finite: 1,
            constant: Constant::Varied,
            largest: f64::INFINITY,
            loose: 0,
        }
    }

    /// Adds one value with its tolerance.
    pub(super) fn add(&mut self, value: f64, tolerance: f64) {
        self.loose += u64::from(value != 0.0 && tolerance > LOOSE * value.abs());
        self.finite += u64::from(value.is_finite());
        if value.is_finite() {
            self.largest = self.largest.max(value.abs());
        }
        self.constant = self.constant.joined(Constant::Value(value));
    }

    /// Merges the summary of another part.
    pub(super) fn merge(&mut self, other: Self) {
        self.finite += other.finite;
        self.largest = self.largest.max(other.largest);
        self.loose += other.loose;
        self.constant = self.constant.joined(other.constant);
    }

    /// Returns the finite value that all share, if there is one.
    fn constant(&self) -> Option<f64> {
        match self.constant {
            Constant::Value(value) if value.is_finite() => Some(value),
            _ => None,
        }
    }
}

impl Constant {
    fn joined(self, other: Self) -> Self {
        match (self, other) {
            (one, Self::NoValue) | (Self::NoValue, one) => one,
            (Self::Value(one), Self::Value(two)) if one == two => self,
            _ => Self::Varied,
        }
    }
}

impl FromIterator<f64> for ExpectedValues {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut all = Self::default();
        values.into_iter().for_each(|value| all.add(value, 0.0));
        all
    }
}

/// Share of the limit of a systematic error from which on it is reported.
const BIAS_TO_WARN: f64 = 0.25;

/// Summaries of the expected values of each output, over all inputs of a candidate.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    outputs: BTreeMap<usize, ExpectedValues>,
    biases: BTreeMap<usize, Bias>,
    seeds: BTreeSet<u64>,
}

impl Expectations {
    /// Records the comparison of an output for these inputs.
    pub(super) fn note(&mut self, data: Data, number: usize, compared: &Comparison) {
        if compared.compared > 0 {
            self.seeds.insert(data.seed);
            let output = self.outputs.entry(number).or_default();
            let mut expected = compared.expected;
            if data.case.is_some() {
                // Sums cancel on inputs that are made to be hard.
                expected.loose = 0;
            }
            output.merge(expected);
            self.biases.entry(number).or_default().merge(&compared.bias);
        }
    }

    /// Describes the outputs whose expected values are all NaN or infinite; `None` without such
    /// outputs.
    pub(super) fn not_finite(&self, plan: &Plan) -> Option<String> {
        let vacuous = |number: &usize| self.outputs.get(number).is_some_and(|o| o.finite == 0);
        let arguments = plan.compared().enumerate();
        let names: Vec<String> = arguments
            .filter(|(number, _)| vacuous(number))
            .map(|(_, argument)| format!("`{}`", argument.name))
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "every expected value of {} is NaN or infinite (problem {}), so a comparison proves \
                 nothing: correct the reference, or the `fill` of its inputs",
                names.join(" and "),
                plan.problem
            )
        })
    }

    /// Returns a warning for each output whose expected values are one constant for several seeds, for
    /// each output for which the space's tolerance accepts zeros, for each whose tolerance is as large as its
    /// values, and for each that is biased within its limit.
    pub(super) fn warnings(&self, plan: &Plan) -> Vec<Hazard> {
        let arguments = plan.compared().enumerate();
        let details = arguments.filter_map(|(number, argument)| {
            let output = self.outputs.get(&number)?;
            let (name, problem) = (&argument.name, &plan.problem);
            if let Some(value) = output.constant().filter(|_| self.seeds.len() > 1) {
                return Some(format!(
                    "the expected result of `{name}` is {value} everywhere for every seed (problem {problem}): \
                     a kernel that ignores its inputs passes; change the `fill` of the inputs"
                ));
            }
            if let Some(error) = self.biases.get(&number).and_then(|bias| bias.above(BIAS_TO_WARN)) {
                return Some(format!("{} (problem {problem})", bias::describe(error, name)));
            }
            if accepts_zeros(plan, output.largest) {
                return Some(format!(
                    "the tolerance of the space accepts 0 in place of every expected value of `{name}`, which are \
                     at most {:e} in size (problem {problem}): a kernel that writes zeros passes; lower `atol` or \
                     `rtol`",
                    output.largest
                ));
            }
            let given = plan.gate.atol.is_some() || plan.gate.rtol.is_some();
            (!given && output.loose > output.finite / 2).then(|| {
                format!(
                    "the tolerance of most elements of `{name}` is above {} % of the expected value (problem \
                     {problem}): the reference has rounding errors of that size, and a wrong kernel may pass; use \
                     a more accurate reference, or set `atol` and `rtol`",
                    100.0 * LOOSE
                )
            })
        });
        details.map(warning).collect()
    }
}

/// Reports whether the tolerance of the space accepts 0 for all values up to this size.
fn accepts_zeros(plan: &Plan, largest: f64) -> bool {
    let given = plan.gate.tolerance();
    let accepted = given.is_some_and(|(atol, rtol)| largest <= atol + rtol * largest);
    accepted && largest > 0.0 && largest.is_finite()
}

/// Returns a finding that does not reject the candidate.
pub(super) fn warning(detail: String) -> Hazard {
    Hazard {
        kind: Verdict::Unchecked,
        detail,
        file: None,
        line: None,
        block: None,
        thread: None,
        address: None,
    }
}

#[cfg(test)]
mod tests;
