//! Spread of a reference's elements: their variation when each rounding of the reference goes up
//! or down at random. docs/verdicts.md derives the consequences.

use super::compare::from;
use std::ops::Range;
use tuner_core::element::Element;

/// Runs of the reference with random rounding: three seeds, from which CADNA estimates an error, and
/// the inverse of the first, so that a single rounding goes both ways.
pub(super) const ROUNDED_RUNS: usize = 4;

/// Runs after a near miss: four spreads may all be small by chance.
pub const MAX_ROUNDED_RUNS: usize = 16;

/// Elements of similar size whose median spread replaces one that is small by chance.
const POOL_SIZE: usize = 16;

/// Spread over size of the smallest elements of a pool, relative to that of the middle one.
const SMALLEST_RATIO: f64 = 8.0;

/// Returns the significand bits of reference results under random rounding: those of the output's
/// type, since rounding to more bits would not show in it, and rounding to fewer would show more
/// than its own. `None` if the type has too few bits or is not floating-point.
#[must_use]
pub fn precision(element: Element) -> Option<u32> {
    let rounded = element.is_float() && element.size() >= 2;
    // A unit roundoff is a power of two: 2⁻ᵖ.
    rounded.then(|| -element.unit_roundoff().log2().round() as i32 as u32)
}

/// The spread of the known elements of an output.
pub(super) struct Spread<'a> {
    element: Element,
    rounded: &'a [&'a [u8]],
    /// By element; 0 if unknown.
    sizes: Vec<f32>,
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
        rounded: &'a [&'a [u8]],
        known: &[Range<u64>],
        group: u64,
    ) -> Self {
        let end = known.iter().map(|range| range.end).max().unwrap_or(0);
        let mut spread = Self {
            element,
            rounded,
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
                    spread: spread.measure(index, want),
                });
            }
        }
        spread.close_group(&mut members);
        spread
    }

    /// Returns the standard deviation of an element's values plus half the distance of their mean
    /// from the value without random rounding: the reference's own error. Infinite if a run is not
    /// finite.
    fn measure(&self, index: u64, want: f64) -> f64 {
        let runs = self.rounded.len().max(2) as f64;
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
            return f64::INFINITY;
        }
        let mean = sum / runs;
        let variance = (squares - runs * mean * mean).max(0.0) / (runs - 1.0);
        // Rounding to nearest may be biased where random rounding is not: the offset is an error
        // too.
        let spread = variance.sqrt() + mean.abs() / 2.0;
        if self.element.size() > 2 {
            return spread;
        }
        // A narrow type rounds the reference's result: one step is not evidence of more.
        let step = step(self.element, largest);
        (spread * spread - step * step).max(0.0).sqrt()
    }

    /// Records the spread of the elements of a group. One that is small by chance is raised to the
    /// median of the next smaller elements: an element gets no allowance from larger ones, of which
    /// it may not be a sum.
    fn close_group(&mut self, members: &mut Vec<ElementSpread>) {
        // By index among equals, so that pools do not depend on the sort.
        members.sort_by(|a, b| a.size.total_cmp(&b.size).then(a.index.cmp(&b.index)));
        // Zeros are often exact results (masked elements), which get no allowance from others.
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

    /// Returns the size of an element's terms implied by its spread: the number whose unit roundoff
    /// equals the spread.
    pub(super) fn size(&self, index: u64) -> f64 {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        self.sizes.get(at).copied().unwrap_or(0.0).into()
    }

    /// Returns the same size from the element alone, without its neighbours.
    pub(super) fn own_size(&self, index: u64, want: f64) -> f64 {
        self.measure(index, want) / self.element.unit_roundoff()
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
        let runs = self.rounded.iter();
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
