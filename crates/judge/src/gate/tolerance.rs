//! Tolerance of an output against a reference kernel, and its derivation.
//!
//! Whole numbers must be equal. For floating-point types both sides are kernels: each rounds its
//! result once, and each adds its terms in its own order. If a sum cancels, its error is that of
//! the terms, not of the remainder. The spread of the reference's element under random rounding
//! shows how large they were: `|got − want| ≤ own · |want| + max(k · spread, sums · min(size,
//! rms))`. On a device that cannot round at random, the root mean square of the reference's values
//! around the element is used instead: `|got − want| ≤ relative · |want| + spread · rms`.
//! docs/verdicts.md derives the factors.

mod text;

pub use text::describe;

use super::compare::{self, Comparison, bias, from};
use super::expected_output;
use super::oracle::eighths;
use super::spread::{FurtherRuns, Spread, precision};
use crate::session::ExpectedOutput;
use std::collections::HashMap;
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument, PlanReference};

/// Tolerance of an output of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Tolerance {
    element: Element,
    /// `atol` and `rtol` of the space.
    given: (Option<f64>, Option<f64>),
    /// Terms of a sum, and the source of their number.
    terms: (f64, Terms),
    /// Allowed error over the size of the expected value.
    relative: f64,
    /// Allowed error over the rms of the surrounding values.
    spread: f64,
    /// Part of `relative` that is not from a sum.
    own: f64,
    /// Allowed error of a sum in another order, over the size of its terms.
    walk: f64,
    /// Allowed error of sums by tensor cores, over the size of their terms.
    steps: f64,
    /// Allowed error of sums of products of 8-bit numbers, over the size of their terms.
    eighths: f64,
    /// Allowed error of values that a kernel may store in a 16-bit type, over their size.
    between: f64,
    /// Size of the inputs, if their fills determine it.
    inputs: f64,
    /// Possible sizes of a sum of random inputs of either sign before it cancelled, ascending;
    /// empty if it cannot cancel.
    sizes: Vec<f64>,
    /// Elements of a row of the output.
    columns: u64,
    /// The reference is stored values, which have no spread.
    by_values: bool,
}

/// Source of the number of terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Terms {
    Given,
    Flops,
    Inputs,
}

/// Value that the tolerance of an element surrounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Centre {
    /// The reference's, with its rounding errors.
    Reference,
    /// The reference's shadow value.
    Shadow,
}

/// Rounding errors, in units of the accumulator, allowed for any kernel: special functions,
/// divisions, fast mathematics.
const ROUNDING_UNITS: f64 = 32.0;

/// Maximum terms of one tensor-core accumulator before another one is used.
const CHAIN_MAX: f64 = 16384.0;

/// Allowed error of a candidate's element in spreads of the reference. Random rounding errs twice as much
/// (rms) as rounding to nearest. Two kernels that round to nearest differ by √2 of the error of one: 4
/// standard deviations are 5.7 times the rms of their difference.
const SPREADS: f64 = 4.0;

/// [`SPREADS`] around a shadow value, where only the candidate errs: its error is smaller than the
/// difference of two kernels by √2.
const SHADOW_SPREADS: f64 = SPREADS / std::f64::consts::SQRT_2;

/// [`SPREADS`] for sums that the plan shows to have fewer terms than [`SHORT_SUM`]: the spread alone must
/// cover another summation order.
const SHORT_SUM_SPREADS: f64 = 8.0;

/// Size implied by the spread, over the rms of the surrounding values, below which a sum counts as exact.
const EXACT_SUM: f64 = 0.25;

/// Number of terms above which the length of a sum covers another summation order.
const SHORT_SUM: f64 = 16.0;

/// Units of the accumulator, relative to the size of the element, its neighbours and the inputs,
/// beyond which an element jumps rather than cancels.
const JUMP_UNITS: f64 = 1024.0;

/// Minimum outputs that show the size of the sums before cancellation.
const MIN_OUTPUTS: u64 = 8;

/// Minimum number of values for an rms to be their scale.
const MIN_SCALE_VALUES: u64 = 64;

/// Minimum limit of the terms derived from a metric: kernels that iterate have few inputs or none.
const MIN_TERMS_LIMIT: f64 = 4096.0;

impl Tolerance {
    /// Derives the tolerance of an argument of the plan against a reference kernel.
    #[must_use]
    pub fn for_argument(plan: &Plan, argument: &PlanArgument) -> Self {
        let element = argument.element;
        let terms = terms(plan);
        let unit = element.accumulator().unit_roundoff();
        let [walk, steps] = sums(plan, terms.0);
        let steps = steps * unit;
        let eighths = match eight_bits(plan) {
            true => eighths(terms.0.min(CHAIN_MAX)),
            false => 0.0,
        };
        // Special functions and divisions dominate short sums, the walk long ones.
        let factor = walk.max(ROUNDING_UNITS) * unit + steps + eighths;
        let between = 3.0 * between(plan, element);
        let (relative, spread) = if element.is_float() {
            // Two roundings to the output's type: one of the candidate and one of the reference.
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
            // With a measured spread the sum's error is not estimated from the value again.
            own: 2.0 * element.unit_roundoff() + ROUNDING_UNITS * unit,
            walk: walk * unit,
            steps,
            eighths,
            between,
            inputs: input_size(plan),
            sizes: sizes(plan),
            columns: argument.shape.last().copied().unwrap_or(1).max(1),
            by_values: matches!(plan.reference, PlanReference::Values(_)),
        }
    }

    /// Compares the known elements of an output with those of the reference, and with its runs with random
    /// rounding and shadow values if there are any.
    #[must_use]
    pub fn compare(
        &self,
        bytes: &[u8],
        reference: &[u8],
        known: &[Range<u64>],
        runs: &FurtherRuns<'_>,
    ) -> Comparison {
        let scales = Scales::new(self, reference, known);
        let spreads = !runs.rounded.is_empty() && precision(self.element).is_some();
        let spread = spreads.then(|| Spread::new(self.element, reference, runs, known, self.run()));
        let mut result = Comparison::default();
        let mut jumps = 0;
        for range in known {
            let expected = |index, value: f64| {
                let rms = scales.scale_at(index);
                let Some(spread) = &spread else {
                    let jump = runs.jump(self.element, bytes, index, value);
                    return [value, self.bound(value, rms).max(jump)];
                };
                // Normally the pooled spread protects against a spread that is small by chance.
                let size = spread.size(index);
                // Cancellation explains a size within this many units of the data; a larger one may
                // be a jump.
                let most = JUMP_UNITS * value.abs().max(rms).max(self.inputs);
                let shadow = spread.shadow(index, value);
                // Beyond this number of units the shadow is the value of another branch, not the centre of
                // the error.
                let near = (shadow - value).abs() <= most * self.element.unit_roundoff();
                let centre = if near { shadow } else { value };
                let around = if centre == value {
                    Centre::Reference
                } else {
                    Centre::Shadow
                };
                if size <= most {
                    return [centre, self.bound_with_size(centre, size, rms, around)];
                }
                let seen = spread.all_values(index, value);
                // The values of a jump are distinct, and the shadow is near one of them. Runs with
                // amplified roundings lie on both sides of it.
                let amplified = spread.encloses(index, shadow) && !self.is_near(shadow, &seen);
                if amplified || !self.jumps(&seen) {
                    let size = spread.own_size(index, value, shadow);
                    return [centre, self.bound_with_size(centre, size, rms, around)];
                }
                jumps += 1;
                let got = self.element.decode(from(self.element, bytes, index));
                [value, self.bound_at_jump(got, value, &seen)]
            };
            let part =
                compare::with_reference(self.element, bytes, reference, range.clone(), expected);
            result.merge(&part);
        }
        result.discontinuous = jumps;
        if !self.is_given() {
            result.limit_bias(bias::limit(self.element, self.relative));
        }
        result
    }

    /// Reports whether the space defines a part of the tolerance.
    pub(super) fn is_given(&self) -> bool {
        self.given.0.is_some() || self.given.1.is_some()
    }

    /// Returns value and tolerance of each known element of a floating-point type, for a device.
    pub(super) fn expected_output(&self, reference: &[u8], known: &[Range<u64>]) -> ExpectedOutput {
        let scales = Scales::new(self, reference, known);
        expected_output::in_runs(known, |index| {
            let value = self.element.decode(from(self.element, reference, index));
            [value, self.bound(value, scales.scale_at(index))]
        })
    }

    /// Returns the tolerance of one value among values of this rms.
    fn bound(&self, value: f64, scale: f64) -> f64 {
        let (atol, rtol) = self.given;
        rtol.unwrap_or(self.relative) * value.abs()
            + atol.unwrap_or_else(|| self.spread * scale + self.least())
    }

    /// Returns the tolerance of a value whose terms have this size, among values of this rms.
    /// Values that a kernel may sum in another order, or store in another type, are at most as
    /// large as the surrounding values.
    fn bound_with_size(&self, value: f64, size: f64, rms: f64, centre: Centre) -> f64 {
        let (atol, rtol) = self.given;
        let unit = self.element.accumulator().unit_roundoff();
        let same_order = self.spreads(centre) * unit * size;
        // The spread may overestimate the terms, the rms of the surroundings bounds them.
        let terms = size.min(rms);
        // Sums of narrow products may be exact in the reference and then have no spread, although tensor
        // cores truncate them against the largest term. Products of 8 bits nearly always are.
        let sums = self.terms.0 >= SHORT_SUM;
        let truncated = if sums && size < EXACT_SUM * rms {
            rms
        } else {
            terms
        };
        let of_eighths = if sums { rms.max(value.abs()) } else { terms };
        let other_order = self.walk * terms + self.steps * truncated + self.eighths * of_eighths;
        let between = self.between * size.max(value.abs()).min(rms);
        rtol.unwrap_or(self.own(centre)) * value.abs()
            + atol.unwrap_or_else(|| same_order.max(other_order) + between + self.least())
    }

    /// Returns the allowed error over an element's own size. A shadow value is not rounded: only the
    /// candidate rounds to the output's type.
    fn own(&self, centre: Centre) -> f64 {
        match centre {
            Centre::Reference => self.own,
            Centre::Shadow => self.own - self.element.unit_roundoff(),
        }
    }

    /// Returns the allowed spreads of the reference.
    fn spreads(&self, centre: Centre) -> f64 {
        match centre {
            _ if self.terms.0 < SHORT_SUM => SHORT_SUM_SPREADS,
            Centre::Reference => SPREADS,
            Centre::Shadow => SHADOW_SPREADS,
        }
    }

    /// Returns the tolerance of a value that is not a sum.
    fn near(&self, value: f64) -> f64 {
        self.bound_with_size(value, 0.0, 0.0, Centre::Reference)
    }

    /// Reports whether an element, whose values are in ascending order, takes one of two values
    /// depending on the reference's rounding. The values of a sum that cancels are spread out
    /// instead.
    fn jumps(&self, values: &[f64]) -> bool {
        let apart = |pair: &&[f64]| {
            let near = self.near(pair[0].abs().max(pair[1].abs()));
            pair[1] - pair[0] > near
        };
        // One gap separates two values of a jump; a cancelling sum shows several or none.
        values.iter().any(|value| !value.is_finite())
            || values.windows(2).filter(apart).count() == 1
    }

    /// Reports whether a value is within the tolerance of a non-sum of one of the values seen.
    fn is_near(&self, value: f64, seen: &[f64]) -> bool {
        seen.iter()
            .any(|one| (value - one).abs() <= self.near(*one))
    }

    /// Returns the tolerance of an element that jumps: the actual value must be close to one of the
    /// values of the reference.
    fn bound_at_jump(&self, got: f64, want: f64, seen: &[f64]) -> f64 {
        let near = |value: f64| self.near(value);
        let ratios = seen.iter().map(|value| (got - value).abs() / near(*value));
        let ratio = ratios.fold(f64::INFINITY, f64::min);
        if ratio <= 1.0 {
            // The tolerance whose error ratio to `want` equals the ratio to the nearest value.
            return (got - want).abs() / ratio;
        }
        near(want)
    }

    /// Returns the smallest tolerance. Below the smallest normal number a kernel may flush to zero; a
    /// narrower type has a smallest step.
    fn least(&self) -> f64 {
        match self.element {
            Element::F32 | Element::Bf16 => f64::from(f32::MIN_POSITIVE),
            Element::F64 => f64::MIN_POSITIVE,
            other => other.smallest_step(),
        }
    }

    /// Returns the number of elements that share a scale: a part of a row, or some short rows.
    fn run(&self) -> u64 {
        if self.columns < MIN_SCALE_VALUES {
            self.columns * MIN_SCALE_VALUES.div_ceil(self.columns)
        } else {
            self.columns
                .div_ceil((self.columns / (4 * MIN_SCALE_VALUES)).max(1))
        }
    }
}

/// The rms of the reference's values around each element.
struct Scales {
    run: u64,
    runs: HashMap<u64, Sum>,
    /// Rms of all known elements: for runs with few known values.
    all: f64,
}

/// Sum of squares.
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
    fn new(tolerance: &Tolerance, reference: &[u8], known: &[Range<u64>]) -> Self {
        let (run, element) = (tolerance.run(), tolerance.element);
        let (mut runs, mut all) = (HashMap::<u64, Sum>::new(), Sum::default());
        for range in known {
            for index in range.clone() {
                let value = element.decode(from(element, reference, index));
                // One infinity would make the scale of its whole run infinite.
                if value.is_finite() {
                    let mine = runs.entry(index / run).or_default();
                    for sum in [mine, &mut all] {
                        sum.squares += value * value;
                        sum.count += 1;
                    }
                }
            }
        }
        // A single output that cancelled does not show the size of its terms.
        let few = all.count < MIN_OUTPUTS;
        let (rms, sizes) = (all.rms(), tolerance.sizes.iter());
        let before = sizes.copied().find(|size| few && *size >= rms / 4.0);
        Self {
            run,
            runs,
            all: before.unwrap_or(rms).max(rms),
        }
    }

    fn scale_at(&self, index: u64) -> f64 {
        match self.runs.get(&(index / self.run)) {
            // A sample may have too few elements for a separate scale.
            Some(sum) if sum.count >= MIN_SCALE_VALUES => sum.rms(),
            _ => self.all,
        }
    }
}

/// Counts the elements of these arguments.
fn count<'a>(arguments: impl Iterator<Item = &'a PlanArgument>) -> f64 {
    arguments
        .map(|argument| argument.numbers() as f64)
        .sum::<f64>()
}

/// Returns the number of terms of the sum of an output element: from the space, else the larger of two
/// estimates. The first is half the operations of the metric per output, at most the number of inputs or
/// [`MIN_TERMS_LIMIT`]. The second is the number of inputs per output; without a metric also the length of
/// an input's row, which may have been summed for each element.
fn terms(plan: &Plan) -> (f64, Terms) {
    if let Some(terms) = plan.gate.terms {
        return (terms.max(1.0), Terms::Given);
    }
    let outputs = count(plan.compared()).max(1.0);
    let inputs = plan.filled();
    let rows = inputs.filter(|a| a.shape.len() > 1 && plan.flops.is_none());
    // Without a metric, a row may have been summed for each of its elements.
    let row = rows.filter_map(|a| a.shape.last().copied()).max();
    let share = (count(plan.filled()) / outputs).max(row.unwrap_or(1) as f64);
    let flops = plan.flops.unwrap_or(0.0) / (2.0 * outputs);
    // A sum has at most as many terms as there are inputs. A metric in another unit would accept anything.
    let flops = flops.min(count(plan.filled()).max(MIN_TERMS_LIMIT));
    if flops >= share.max(1.0) {
        (flops, Terms::Flops)
    } else {
        (share.max(1.0), Terms::Inputs)
    }
}

/// Returns the error of a sum of `terms` terms in units of its accumulator: three times a random
/// walk of roundings. If no input is random, all roundings may have the same sign. The second part:
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

/// Returns the size of the largest input with numbers of a known size: sums that cancel may have had terms
/// of that size.
fn input_size(plan: &Plan) -> f64 {
    let size = |argument: &PlanArgument| match argument.fill {
        Fill::Normal { mean, std } => mean.hypot(std),
        Fill::Uniform { min, max } => min.abs().max(max.abs()),
        Fill::Constant(value) => value.abs(),
        _ => 0.0,
    };
    plan.filled().map(size).fold(0.0, f64::max)
}

/// Reports whether an input has an 8-bit floating-point type.
fn eight_bits(plan: &Plan) -> bool {
    plan.filled()
        .any(|a| a.element.is_float() && a.element.size() == 1)
}

/// Returns the unit roundoff of the 16-bit type in which a kernel may store intermediates, such as the
/// weights of attention, between its inputs and an output of up to 16 bits. Zero for wider outputs.
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

/// Returns the sizes of a sum, a normalised sum and a mean of the largest input, ascending, if its
/// elements have both signs.
fn sizes(plan: &Plan) -> Vec<f64> {
    let inputs = plan.filled();
    let Some(largest) = inputs.max_by_key(|argument| argument.count()) else {
        return Vec::new();
    };
    let rms = match largest.fill {
        Fill::Normal { mean, std } => mean.hypot(std),
        Fill::Uniform { min, max } if min < 0.0 && max > 0.0 => {
            ((min * min + min * max + max * max) / 3.0).sqrt()
        }
        _ => return Vec::new(),
    };
    let share = largest.numbers() as f64 / count(plan.compared()).max(1.0);
    let root = share.max(1.0).sqrt();
    vec![rms / root, rms, rms * root]
}
