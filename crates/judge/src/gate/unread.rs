//! Inputs whose extreme values lie in elements that the candidate does not read.
//!
//! An index of a maximum, or a maximum itself, is right on random data although the kernel stops before
//! the end of its input, unless the maximum lies there. Only the elements that a whole run did not read
//! can show that, so the largest and smallest values are swapped with some of them.

use super::adversarial::Data;
use super::naive::Kernel;
use super::ranges::{outside, overlap};
use super::trials::cost;
use super::verify::{Gate, Pass, Stop};
use crate::session::{Order, Slot};
use rand::SeedableRng as _;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::{PlanArgument, Role};
use tuner_core::units::ContentHash;

/// Largest values that are moved, and the number of smallest ones.
const MOVED: usize = 64;

/// Elements that no launch reads, by argument.
pub(super) type UnreadElements = BTreeMap<usize, Vec<Range<u64>>>;

impl Gate<'_> {
    /// Records which elements of the inputs a launch of the first whole run did not read; launches
    /// before it did not either.
    pub(super) fn record_unread(&mut self, slots: &[Option<Slot>]) {
        let paid = self.demands.proof_limit.is_some() || self.demands.extra_limit > 0;
        if !paid {
            return;
        }
        let mut found = UnreadElements::new();
        for (index, argument) in self.plan.arguments.iter().enumerate() {
            let slot = slots[index].filter(|_| is_drawn(argument));
            let Some(bytes) = slot.and_then(|slot| self.session.unread(slot)) else {
                continue;
            };
            let (size, count) = (argument.element.size() as u64, argument.count());
            // Words of 4 bytes hold several narrow elements: those at the edges count as read.
            let read = outside(&bytes, 1, argument.bytes());
            let mut elements = outside(&read, size, count);
            if let Some(before) = &self.unread {
                elements = overlap(before.get(&index).map_or(&[], Vec::as_slice), &elements);
            }
            if !elements.is_empty() {
                found.insert(index, elements);
            }
        }
        self.unread = Some(found);
    }

    /// Judges the candidate with the extreme values of its inputs in elements that it does not read, as
    /// far as the limits allow.
    pub(super) fn unread_extremes(&mut self, data: Data, first: &Pass) -> Result<(), Stop> {
        let unread = self.unread.clone().unwrap_or_default();
        let limit = self.demands.proof_limit.unwrap_or(self.demands.extra_limit);
        let reference = self.references.cost(&self.keyed, data).unwrap_or(0);
        let twice = cost(first).max(reference).saturating_mul(2);
        let compared = Kernel::from_plan(self.plan).is_some();
        if first.sampled || unread.is_empty() || !compared || twice > limit {
            return Ok(());
        }
        let data = Data {
            unread: Some(self.references.keep_unread(unread)),
            ..data
        };
        let pass = self.pass(data, Order::Natural)?;
        self.judge(data, &pass)?;
        self.forget(&pass);
        Ok(())
    }
}

/// Returns the number by which data names a set of elements.
pub(super) fn number_of(unread: &UnreadElements) -> u64 {
    let hash = ContentHash::from_parts([format!("{unread:?}").as_bytes()]);
    u64::from_str_radix(hash.as_str().get(..16).unwrap_or_default(), 16).unwrap_or(0)
}

/// Reports whether the elements of an input are drawn one by one, so that two of them can be swapped.
fn is_drawn(argument: &PlanArgument) -> bool {
    let drawn = matches!(
        argument.fill,
        Fill::Normal { .. } | Fill::Uniform { .. } | Fill::Permutation | Fill::Sparse { .. }
    );
    drawn && argument.role == Role::Input && argument.layout.is_none()
}

/// Swaps the extreme values of an input with elements drawn from `unread`.
pub(super) fn move_extremes(
    bytes: &Arc<[u8]>,
    element: Element,
    unread: &[Range<u64>],
    seed: u64,
) -> Arc<[u8]> {
    let total: u64 = unread.iter().map(|range| range.end - range.start).sum();
    if total == 0 {
        return Arc::clone(bytes);
    }
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut moved = bytes.to_vec();
    let size = element.size();
    let sources = extremes(bytes, element);
    // Distinct elements: a value that is swapped into one twice would leave it again.
    let wanted = usize::try_from(total)
        .unwrap_or(usize::MAX)
        .min(sources.len());
    let places = rand::seq::index::sample(
        &mut rng,
        usize::try_from(total).unwrap_or(usize::MAX),
        wanted,
    );
    for (from, place) in sources.into_iter().zip(places) {
        let to = usize::try_from(nth(unread, place as u64)).unwrap_or(from);
        for byte in 0..size {
            moved.swap(from * size + byte, to * size + byte);
        }
    }
    moved.into()
}

/// Returns the element at a position of a set that holds it.
fn nth(set: &[Range<u64>], mut position: u64) -> u64 {
    for range in set {
        let length = range.end - range.start;
        if position < length {
            return range.start + position;
        }
        position -= length;
    }
    0
}

/// Returns the indices of the largest and the smallest values. NaN counts as neither.
fn extremes(bytes: &[u8], element: Element) -> Vec<usize> {
    // The order of the bits of floats, as signed numbers, is that of their values.
    let key = |value: f64| {
        let bits = value.to_bits() as i64;
        bits ^ (((bits >> 63) as u64) >> 1) as i64
    };
    let values = || {
        let values = bytes.chunks_exact(element.size()).enumerate();
        let values = values.map(|(at, value)| (element.decode(value), at));
        values.filter(|(value, _)| !value.is_nan())
    };
    let largest = greatest(values().map(|(value, at)| (key(value), at)));
    let smallest = greatest(values().map(|(value, at)| (!key(value), at)));
    // In turn, so that a few elements get some of both.
    let pairs = largest.into_iter().zip(smallest);
    pairs.flat_map(|(large, small)| [large, small]).collect()
}

/// Returns the indices of the greatest keys, the greatest first.
fn greatest(keys: impl Iterator<Item = (i64, usize)>) -> Vec<usize> {
    let mut kept = BinaryHeap::with_capacity(MOVED + 1);
    for key in keys {
        // The least of the kept ones leaves.
        if kept.len() < MOVED || kept.peek().is_some_and(|Reverse(least)| *least < key) {
            kept.push(Reverse(key));
            if kept.len() > MOVED {
                kept.pop();
            }
        }
    }
    let ascending = kept.into_sorted_vec().into_iter();
    ascending.map(|Reverse((_, at))| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_move_and_no_value_is_lost() {
        let values: Vec<f32> = (0..1000)
            .map(|at| ((at * 7919) % 1000) as f32 - 500.0)
            .collect();
        let bytes: Arc<[u8]> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let unread = [10..20, 900..1000];
        let moved = move_extremes(&bytes, Element::F32, &unread, 3);
        let mut moved: Vec<f32> = moved
            .chunks(4)
            .map(|b| Element::F32.decode(b) as f32)
            .collect();
        let inside = |at: &usize| unread.iter().any(|r| r.contains(&(*at as u64)));
        let extreme = |v: f32| v >= 436.0 || v < -436.0;
        let count = (0..1000)
            .filter(inside)
            .filter(|at| extreme(moved[*at]))
            .count();
        assert!(count > 50, "{count}");
        let mut values = values;
        values.sort_by(f32::total_cmp);
        moved.sort_by(f32::total_cmp);
        assert_eq!(values, moved);
    }

    #[test]
    fn negative_numbers_are_ordered_by_value() {
        let bytes: Vec<u8> = (0..200)
            .flat_map(|v: i32| (v - 150).to_le_bytes())
            .collect();
        let mut found = extremes(&bytes, Element::I32);
        assert_eq!(found[..2], [199, 0]);
        found.sort_unstable();
        let expected: Vec<usize> = (0..64).chain(136..200).collect();
        assert_eq!(found, expected);
    }
}
