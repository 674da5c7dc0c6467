//! Spread of a reference's elements: their variation when each rounding of the reference goes up
//! or down at random. docs/verdicts.md derives the consequences.

use super::compare::from;
use std::ops::Range;
use tuner_core::element::Element;

/// Runs of the reference with random rounding: three seeds, from which CADNA estimates an error, and the
/// inverse of the first, so that a single rounding goes both ways.
pub(super) const ROUNDED_RUNS: usize = 4;

/// Runs after a near miss: four spreads may all be small by chance.
pub const MAX_ROUNDED_RUNS: usize = 16;

/// Elements of similar size whose median spread replaces one that is small by chance.
const POOL_SIZE: usize = 16;

/// Spread over size of the smallest elements of a pool, relative to that of the middle one.
const SMALLEST_RATIO: f64 = 8.0;

/// Standard deviations by which the mean of the runs may differ from a shadow value: few runs.
const CONTRADICTION_SPREADS: f64 = 4.0;

/// Minimum distance of the shadow value over that of the mean, both from the reference's value, to count as
/// the reference's own error.
const MIN_SHADOW_ERROR: f64 = 1.0 / 8.0;

/// Share of the reference's own error in a spread: 2√2 spreads, the fewest that are allowed around a
/// shadow value, allow a kernel the same error once.
const OWN_ERROR: f64 = std::f64::consts::FRAC_1_SQRT_2 / 2.0;

/// Additional allowed difference, in units of the output's type: random rounding moves approximations of
/// special functions by one unit only.
const CONTRADICTION_UNITS: f64 = 16.0;

/// Returns the significand bits of reference results under random rounding: those of the output's type.
/// More bits would not show in the output, and fewer would exceed its own rounding. `None` if the type has
/// too few bits or is not floating-point.
#[must_use]
pub fn precision(element: Element) -> Option<u32> {
    let rounded = element.is_float() && element.size() >= 2;
    // A unit roundoff is a power of two: 2⁻ᵖ.
    rounded.then(|| -element.unit_roundoff().log2().round() as i32 as u32)
}

/// Returns the type of a shadow value's distance from the value of an output: as wide as the output's, so
/// that both have equal indices. `None` if a shadow is useless: for integers, for types without random
/// rounding, and for float64, which is computed in double already. Also for 16-bit types, whose own
/// rounding hides the errors of a reference's sums.
#[must_use]
pub fn shadow_error_type(element: Element) -> Option<Element> {
    (element == Element::F32).then_some(Element::F32)
}

/// Outputs of further runs of a reference.
#[derive(Debug, Clone, Default)]
pub struct FurtherRuns<'a> {
    /// Values under random rounding, by run.
    pub rounded: Vec<&'a [u8]>,
    /// Distances of the shadow values from the values, as [`shadow_error_type`].
    pub shadow_errors: Option<&'a [u8]>,
}

impl FurtherRuns<'_> {
    /// Returns the distance of a whole number from the reference's `want` if a run has the same number: sums in
    /// another order move a number that is rounded to a whole one, or the index of a maximum. 0 otherwise.
    pub(super) fn jump(&self, element: Element, bytes: &[u8], index: u64, want: f64) -> f64 {
        let Some(got) = element.whole(from(element, bytes, index)) else {
            return 0.0;
        };
        let runs = self.rounded.iter();
        let mut runs = runs.map(|run| element.whole(from(element, run, index)));
        match runs.any(|run| run == Some(got)) {
            true => (got as f64 - want).abs(),
            false => 0.0,
        }
    }
}

/// The spread of the known elements of an output.
pub(super) struct Spread<'a> {
    element: Element,
    runs: &'a FurtherRuns<'a>,
    /// By element; 0 if unknown.
    sizes: Vec<f32>,
}

/// Mean and standard deviation of the values of an element.
struct Moments {
    mean: f64,
    deviation: f64,
}

/// An element with its size and spread.
#[derive(Debug, Clone, Copy)]
struct ElementSpread {
    index: u64,
    size: f64,
    spread: f64,
}

impl<'a> Spread<'a> {
    /// Compares a reference's elements with those of its runs under random rounding. Elements of a
    /// group (a part of a row, or some short rows) share a pool.
    pub(super) fn new(
        element: Element,
        reference: &[u8],
        runs: &'a FurtherRuns<'a>,
        known: &[Range<u64>],
        group: u64,
    ) -> Self {
        let end = known.iter().map(|range| range.end).max().unwrap_or(0);
        let mut spread = Self {
            element,
            runs,
            sizes: vec![0.0; usize::try_from(end).unwrap_or(0)],
        };
        let mut members: Vec<ElementSpread> = Vec::new();
        for index in known.iter().cloned().flatten() {
            if members
                .last()
                .is_some_and(|m| m.index / group != index / group)
            {
                spread.close_group(&mut members);
            }
            let want = element.decode(from(element, reference, index));
            if want.is_finite() {
                members.push(ElementSpread {
                    index,
                    size: want.abs(),
                    // Groups follow the index, since neighbours share the scale of their inputs.
                    spread: spread.measure(index, want, spread.shadow(index, want)),
                });
            }
        }
        spread.close_group(&mut members);
        spread
    }

    /// Returns an element's shadow value. Returns the reference's `value` if there is none, or if the runs
    /// with random rounding contradict it: then an instruction has dropped the shadow, which no longer is
    /// the function that the reference computes.
    pub(super) fn shadow(&self, index: u64, value: f64) -> f64 {
        let errors = self.runs.shadow_errors.zip(shadow_error_type(self.element));
        let Some((errors, ty)) = errors else {
            return value;
        };
        let error = ty.decode(from(ty, errors, index));
        let shadow = value + error;
        if error == 0.0 || !shadow.is_finite() {
            return value;
        }
        let Moments { mean, deviation } = self.moments(index, value);
        let units = CONTRADICTION_UNITS * self.element.unit_roundoff();
        let near = CONTRADICTION_SPREADS * deviation + units * value.abs().max(shadow.abs());
        // Half a unit is the mean distance of random rounding from rounding to nearest, and the largest
        // error of the latter: the shadow is nearer to the mean than the value is.
        if (mean - error).abs() <= mean.abs() + near {
            shadow
        } else {
            value
        }
    }

    /// Returns mean and standard deviation of an element's values, as distances from `want`. Infinite
    /// if a run is not finite.
    fn moments(&self, index: u64, want: f64) -> Moments {
        let runs = self.runs.rounded.len().max(2) as f64;
        let (mut sum, mut squares, mut largest) = (0.0, 0.0, want.abs());
        for value in self.values(index) {
            sum += value - want;
            squares += (value - want) * (value - want);
            largest = if value.is_nan() {
                f64::INFINITY
            } else {
                largest.max(value.abs())
            };
        }
        if !largest.is_finite() || !squares.is_finite() {
            return Moments {
                mean: f64::INFINITY,
                deviation: f64::INFINITY,
            };
        }
        let mean = sum / runs;
        let variance = (squares - runs * mean * mean).max(0.0) / (runs - 1.0);
        Moments {
            mean,
            deviation: variance.sqrt(),
        }
    }

    /// Returns the standard deviation of an element's values plus the share of the reference's own error
    /// that other correct kernels may also have. That share is its distance from the `shadow`; without a
    /// shadow, half the distance of the runs' mean. Infinite if a run is not finite.
    fn measure(&self, index: u64, value: f64, shadow: f64) -> f64 {
        let Moments { mean, deviation } = self.moments(index, value);
        let error = (shadow - value).abs();
        // Roundings to nearest may all have one direction where random ones do not. A shadow that was cut
        // off by a bit operation does not show this; the mean does.
        let own = if error > mean.abs() * MIN_SHADOW_ERROR {
            error * OWN_ERROR
        } else {
            mean.abs() / 2.0
        };
        let spread = deviation + own;
        if self.element.size() > 2 || !spread.is_finite() {
            return spread;
        }
        // A narrow type rounds the reference's result, so a difference of one step is not evidence of an
        // error.
        let values = self.values(index).map(f64::abs);
        let step = step(self.element, values.fold(value.abs(), f64::max));
        (spread * spread - step * step).max(0.0).sqrt()
    }

    /// Records the spread of the elements of a group. A spread that is small by chance is raised to the
    /// median of the next smaller elements. Larger elements give no allowance: the element may not be a sum
    /// of them.
    fn close_group(&mut self, members: &mut Vec<ElementSpread>) {
        // By index among equals, so that pools do not depend on the sort.
        members.sort_by(|a, b| a.size.total_cmp(&b.size).then(a.index.cmp(&b.index)));
        // Zeros are often exact results (masked elements) and get no allowance from others.
        let exact = members.partition_point(|member| member.size == 0.0);
        let mut below: Option<f64> = None;
        for (number, pool) in members[exact..].chunks(POOL_SIZE).enumerate() {
            let mut spreads: Vec<f64> = pool.iter().map(|member| member.spread).collect();
            let middle = spreads.len() / 2;
            let (_, median, _) = spreads.select_nth_unstable_by(middle, f64::total_cmp);
            let median = *median;
            for member in pool {
                let floor = match (number, below) {
                    (0, _) if pool.len() == POOL_SIZE => {
                        let relative = member.size / pool[middle].size;
                        median * (SMALLEST_RATIO * relative).min(1.0)
                    }
                    (_, floor) => floor.unwrap_or(0.0),
                };
                self.note(member, floor);
            }
            below = (pool.len() == POOL_SIZE && median.is_finite()).then_some(median);
        }
        for member in &members[..exact] {
            self.note(member, 0.0);
        }
        members.clear();
    }

    fn note(&mut self, member: &ElementSpread, floor: f64) {
        let own = member.spread;
        let spread = if floor.is_finite() {
            own.max(floor)
        } else {
            own
        };
        if let Ok(at) = usize::try_from(member.index) {
            let size = spread / self.element.unit_roundoff();
            self.sizes[at] = size.min(f64::from(f32::MAX)) as f32;
        }
    }

    /// Returns the size of an element's terms implied by its spread: the number with a unit roundoff equal
    /// to the spread.
    pub(super) fn size(&self, index: u64) -> f64 {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        self.sizes.get(at).copied().unwrap_or(0.0).into()
    }

    /// Returns the same size from the element alone, without its neighbours.
    pub(super) fn own_size(&self, index: u64, value: f64, shadow: f64) -> f64 {
        self.measure(index, value, shadow) / self.element.unit_roundoff()
    }

    /// Reports whether the runs of an element are all finite and lie on both sides of a value.
    pub(super) fn encloses(&self, index: u64, value: f64) -> bool {
        let finite = self.values(index).all(f64::is_finite);
        let below = self.values(index).any(|run| run < value);
        finite && below && self.values(index).any(|run| run > value)
    }

    /// Returns the values of an element in all runs, ascending.
    pub(super) fn all_values(&self, index: u64, want: f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.values(index).chain([want]).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// Returns the values of an element in the runs with random rounding.
    fn values(&self, index: u64) -> impl Iterator<Item = f64> {
        let element = self.element;
        let runs = self.runs.rounded.iter();
        runs.map(move |bytes| element.decode(from(element, bytes, index)))
    }
}

/// Returns the distance of two neighbouring numbers of a type at a magnitude.
fn step(element: Element, magnitude: f64) -> f64 {
    let binade = if magnitude > 0.0 {
        magnitude.log2().floor().exp2()
    } else {
        0.0
    };
    (2.0 * element.unit_roundoff() * binade).max(element.smallest_step())
}

#[cfg(test)]
mod tests;
