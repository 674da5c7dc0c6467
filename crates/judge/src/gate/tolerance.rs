//! How far an output may be from what a reference kernel wrote, and why.
//!
//! Whole numbers must be equal. For floating-point types both sides are kernels: each rounds its
//! result once, and each adds its terms up in an order of its own. Where a sum cancels, its error is
//! that of the terms, not of what is left of them. The spread of the reference's element under
//! random rounding shows how large they were:
//! `|got − want| ≤ own · |want| + max(k · spread, sums · min(size, rms))`. On a device that cannot
//! round at random, the root mean square of the reference's values around the element stands in:
//! `|got − want| ≤ relative · |want| + spread · rms`. docs/verdicts.md derives the factors.

mod text;

pub use text::describe;

use super::compare::{self, Comparison, from};
use super::oracle::eighths;
use super::spread::{Spread, precision};
use super::wanted;
use crate::session::Wanted;
use std::collections::HashMap;
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument, PlanReference};

/// What an output of a plan is compared under.
#[derive(Debug, Clone, PartialEq)]
pub struct Tolerance {
    element: Element,
    /// `atol` and `rtol` of the space.
    given: (Option<f64>, Option<f64>),
    /// Terms of a sum, and how they are known.
    terms: (f64, Terms),
    /// Allowed error over the size of the expected value.
    relative: f64,
    /// Allowed error over the rms of the values around.
    spread: f64,
    /// The part of `relative` that is no sum's.
    own: f64,
    /// Allowed error of a sum over the size of its terms.
    sums: f64,
    /// The same for what a kernel holds in a 16-bit type.
    between: f64,
    /// Size of the inputs, as far as their fills show it.
    inputs: f64,
    /// Sizes that a sum of random inputs of either sign may have had before it cancelled,
    /// ascending; empty where it cannot cancel.
    sizes: Vec<f64>,
    /// Elements of a row of the output.
    columns: u64,
    /// The reference is values, which show no spread.
    by_values: bool,
}

/// How the number of terms is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Terms {
    Given,
    Flops,
    Inputs,
}

/// Roundings in units of the accumulator that any kernel may make, whatever it computes: special
/// functions, divisions, fast mathematics.
const UNITS: f64 = 32.0;

/// Terms that one accumulator of a tensor core takes at most before another one is used.
const CHAIN_MAX: f64 = 16384.0;

/// Spreads of the reference that a candidate's element may be off by. A rounding up or down by
/// chance errs twice as much (rms) as one to nearest, and two kernels that round to nearest differ
/// by √2 of the error of one: 4 standard deviations are 5.7 times the rms of their difference. The
/// reference's own error counts twice.
const SPREADS: f64 = 4.0;

/// The same for sums of fewer terms than [`SHORT_SUM`], as far as the plan shows: the spread alone
/// must cover another order of the terms.
const SHORT_SUM_SPREADS: f64 = 8.0;

/// Terms from which the length of a sum covers another order of its terms.
const SHORT_SUM: f64 = 16.0;

/// Units of the accumulator, relative to the size of the element, its neighbours and the inputs,
/// beyond which an element may not cancel but jump.
const JUMP_UNITS: f64 = 1024.0;

/// Fewer outputs than this do not show how large the sums were that cancelled.
const FEW: u64 = 8;

/// Values whose rms is the scale of the elements among them: at least so many where there are.
const AROUND: u64 = 64;

impl Tolerance {
    /// The tolerance of an argument of the plan against a reference kernel.
    #[must_use]
    pub fn of(plan: &Plan, argument: &PlanArgument) -> Self {
        let element = argument.element;
        let terms = terms(plan);
        let unit = element.accumulator().unit_roundoff();
        let [walk, steps] = sums(plan, terms.0);
        let steps = steps * unit
            + if eight_bits(plan) {
                eighths(terms.0.min(CHAIN_MAX))
            } else {
                0.0
            };
        let factor = walk.max(UNITS) * unit + steps;
        let between = 3.0 * between(plan, element);
        let (relative, spread) = if element.is_float() {
            (2.0 * element.unit_roundoff() + factor, between + factor)
        } else {
            (0.0, 0.0)
        };
        Self {
            element,
            given: (plan.gate.atol, plan.gate.rtol),
            terms,
            relative,
            spread,
            own: 2.0 * element.unit_roundoff() + UNITS * unit,
            sums: walk * unit + steps,
            between,
            inputs: input_size(plan),
            sizes: sizes(plan),
            columns: argument.shape.last().copied().unwrap_or(1).max(1),
            by_values: matches!(plan.reference, PlanReference::Values(_)),
        }
    }

    /// Compares the known elements of an output with those of the reference, whose spread is that
    /// of its outputs with random rounding, where there are any.
    #[must_use]
    pub fn compare(
        &self,
        bytes: &[u8],
        reference: &[u8],
        known: &[Range<u64>],
        rounded: &[&[u8]],
    ) -> Comparison {
        let scales = Scales::of(self, reference, known);
        let spreads = !rounded.is_empty() && precision(self.element).is_some();
        let spread = spreads.then(|| {
            let group = self.run();
            Spread::new(self.element, reference, rounded, known, group)
        });
        let mut result = Comparison::default();
        let mut jumps = 0;
        for range in known {
            let tolerance = |index, value: f64| {
                let rms = scales.at(index);
                let Some(spread) = &spread else {
                    return self.at(value, rms);
                };
                let size = spread.size(index);
                if size <= JUMP_UNITS * value.abs().max(rms).max(self.inputs) {
                    return self.at_size(value, size, rms);
                }
                let seen = spread.all_values(index, value);
                if !self.jumps(&seen) {
                    return self.at_size(value, spread.own_size(index, value), rms);
                }
                jumps += 1;
                let got = self.element.decode(from(self.element, bytes, index));
                self.of_jump(got, value, &seen)
            };
            let part =
                compare::with_reference(self.element, bytes, reference, range.clone(), tolerance);
            result.merge(&part);
        }
        result.discontinuous = jumps;
        result
    }

    /// The same for a device: value and tolerance of each known element of a floating-point type.
    pub(super) fn wanted(&self, reference: &[u8], known: &[Range<u64>]) -> Wanted {
        let scales = Scales::of(self, reference, known);
        wanted::in_runs(known, |index| {
            let value = self.element.decode(from(self.element, reference, index));
            [value, self.at(value, scales.at(index))]
        })
    }

    /// The tolerance of one value among values of this rms.
    fn at(&self, value: f64, scale: f64) -> f64 {
        let (atol, rtol) = self.given;
        rtol.unwrap_or(self.relative) * value.abs()
            + atol.unwrap_or_else(|| self.spread * scale + self.least())
    }

    /// The tolerance of a value whose terms have this size, among values of this rms. What a kernel
    /// may add up in another order, or hold in another type, has at most the size of the values
    /// around.
    fn at_size(&self, value: f64, size: f64, rms: f64) -> f64 {
        let (atol, rtol) = self.given;
        let unit = self.element.accumulator().unit_roundoff();
        let same_order = self.spreads() * unit * size;
        let other_order = self.sums * size.min(rms);
        let between = self.between * size.max(value.abs()).min(rms);
        rtol.unwrap_or(self.own) * value.abs()
            + atol.unwrap_or_else(|| same_order.max(other_order) + between + self.least())
    }

    /// Spreads of the reference that are allowed.
    fn spreads(&self) -> f64 {
        if self.terms.0 < SHORT_SUM {
            SHORT_SUM_SPREADS
        } else {
            SPREADS
        }
    }

    /// The tolerance of a value that is no sum.
    fn near(&self, value: f64) -> f64 {
        self.at_size(value, 0.0, 0.0)
    }

    /// Whether an element, whose values are given in ascending order, takes one of two values as the
    /// reference rounds. The values of a sum that cancels lie apart from one another.
    fn jumps(&self, values: &[f64]) -> bool {
        let apart = |pair: &&[f64]| {
            let near = self.near(pair[0].abs().max(pair[1].abs()));
            pair[1] - pair[0] > near
        };
        values.iter().any(|value| !value.is_finite())
            || values.windows(2).filter(apart).count() == 1
    }

    /// The tolerance of an element that jumps: what was got must be near one of the values that the
    /// reference has taken.
    fn of_jump(&self, got: f64, want: f64, seen: &[f64]) -> f64 {
        let near = |value: f64| self.near(value);
        let ratios = seen.iter().map(|value| (got - value).abs() / near(*value));
        let ratio = ratios.fold(f64::INFINITY, f64::min);
        if ratio <= 1.0 {
            return (got - want).abs() / ratio;
        }
        near(want)
    }

    /// Below the smallest normal number a kernel may flush to zero; a smaller type has a smallest
    /// step.
    fn least(&self) -> f64 {
        match self.element {
            Element::F32 | Element::Bf16 => f64::from(f32::MIN_POSITIVE),
            Element::F64 => f64::MIN_POSITIVE,
            other => other.smallest_step(),
        }
    }

    /// Elements that share a scale: a part of a row, or some short rows.
    fn run(&self) -> u64 {
        if self.columns < AROUND {
            self.columns * AROUND.div_ceil(self.columns)
        } else {
            self.columns.div_ceil((self.columns / (4 * AROUND)).max(1))
        }
    }
}

/// The rms of the reference's values around each element.
struct Scales {
    run: u64,
    runs: HashMap<u64, Sum>,
    /// Of all known elements: for runs of which little is known.
    all: f64,
}

/// Squares that are added up.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    squares: f64,
    count: u64,
}

impl Sum {
    fn rms(self) -> f64 {
        (self.squares / self.count.max(1) as f64).sqrt()
    }
}

impl Scales {
    fn of(tolerance: &Tolerance, reference: &[u8], known: &[Range<u64>]) -> Self {
        let (run, element) = (tolerance.run(), tolerance.element);
        let (mut runs, mut all) = (HashMap::<u64, Sum>::new(), Sum::default());
        for range in known {
            for index in range.clone() {
                let value = element.decode(from(element, reference, index));
                if value.is_finite() {
                    let mine = runs.entry(index / run).or_default();
                    for sum in [mine, &mut all] {
                        sum.squares += value * value;
                        sum.count += 1;
                    }
                }
            }
        }
        let few = all.count < FEW;
        let (rms, sizes) = (all.rms(), tolerance.sizes.iter());
        let before = sizes.copied().find(|size| few && *size >= rms / 4.0);
        Self {
            run,
            runs,
            all: before.unwrap_or(rms).max(rms),
        }
    }

    fn at(&self, index: u64) -> f64 {
        match self.runs.get(&(index / self.run)) {
            Some(sum) if sum.count >= AROUND => sum.rms(),
            _ => self.all,
        }
    }
}

/// Elements of these arguments.
fn count<'a>(arguments: impl Iterator<Item = &'a PlanArgument>) -> f64 {
    arguments
        .map(|argument| argument.numbers() as f64)
        .sum::<f64>()
}

/// Terms of the sum that an output element is: what the space says; else two operations of its
/// metric are one term, or as many as there are inputs for each output, whichever are more. Without
/// a metric a row of a matrix may have been added up for all its elements.
fn terms(plan: &Plan) -> (f64, Terms) {
    if let Some(terms) = plan.gate.terms {
        return (terms.max(1.0), Terms::Given);
    }
    let outputs = count(plan.compared()).max(1.0);
    let inputs = plan.filled();
    let rows = inputs.filter(|a| a.shape.len() > 1 && plan.flops.is_none());
    let row = rows.filter_map(|a| a.shape.last().copied()).max();
    let share = (count(plan.filled()) / outputs).max(row.unwrap_or(1) as f64);
    let flops = plan.flops.unwrap_or(0.0) / (2.0 * outputs);
    if flops >= share.max(1.0) {
        (flops, Terms::Flops)
    } else {
        (share.max(1.0), Terms::Inputs)
    }
}

/// Error of a sum of so many terms in units of its accumulator: a random walk of roundings, three
/// times the size of one. Where no input is random all roundings may go one way. The second part:
/// tensor cores, which multiply types of up to 16 bits, lose a unit in each step of 16 terms.
fn sums(plan: &Plan, terms: f64) -> [f64; 2] {
    let inputs = || plan.filled();
    let random = |a: &PlanArgument| matches!(a.fill, Fill::Normal { .. } | Fill::Uniform { .. });
    let walk = if inputs().any(random) {
        3.0 * terms.sqrt()
    } else {
        terms
    };
    let narrow = inputs().any(|a| a.element.is_float() && a.element.size() <= 2);
    let steps = if narrow {
        terms.min(CHAIN_MAX) / 16.0
    } else {
        0.0
    };
    [walk, steps]
}

/// Size of the largest input that is filled with numbers of a known size, which sums that cancel
/// may have had as terms.
fn input_size(plan: &Plan) -> f64 {
    let size = |argument: &PlanArgument| match argument.fill {
        Fill::Normal { mean, std } => mean.hypot(std),
        Fill::Uniform { min, max } => min.abs().max(max.abs()),
        Fill::Constant(value) => value.abs(),
        _ => 0.0,
    };
    plan.filled().map(size).fold(0.0, f64::max)
}

/// Whether an input has an 8-bit floating-point type.
fn eight_bits(plan: &Plan) -> bool {
    plan.filled()
        .any(|a| a.element.is_float() && a.element.size() == 1)
}

/// Unit roundoff of the 16-bit type in which a kernel may hold what lies between its inputs and an
/// output of up to 16 bits, such as the weights of attention; zero for wider outputs.
fn between(plan: &Plan, output: Element) -> f64 {
    if output.size() > 2 {
        return 0.0;
    }
    plan.filled()
        .map(|argument| argument.element)
        .chain([output, Element::F16])
        .filter(|element| element.is_float() && element.size() == 2)
        .map(Element::unit_roundoff)
        .fold(0.0, f64::max)
}

/// What a sum, a normalised sum and a mean of the largest input come to, in size, where its
/// elements have both signs: ascending.
fn sizes(plan: &Plan) -> Vec<f64> {
    let inputs = plan.filled();
    let Some(largest) = inputs.max_by_key(|argument| argument.count()) else {
        return Vec::new();
    };
    let rms = match largest.fill {
        Fill::Normal { mean, std } => mean.hypot(std),
        Fill::Uniform { min, max } if min < 0.0 => {
            ((min * min + min * max + max * max) / 3.0).sqrt()
        }
        _ => return Vec::new(),
    };
    let share = largest.numbers() as f64 / count(plan.compared()).max(1.0);
    let root = share.max(1.0).sqrt();
    vec![rms / root, rms, rms * root]
}
