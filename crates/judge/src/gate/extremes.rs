//! Inputs whose extreme values are moved to given elements.

use rand::SeedableRng as _;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::units::ContentHash;

/// Number of largest values that are moved, and of smallest ones.
const MOVED_PER_END: usize = 64;

/// Elements that no launch reads, by argument.
pub(super) type UnreadElements = BTreeMap<usize, Vec<Range<u64>>>;

/// Returns the number by which `Data` refers to a set of elements.
pub(super) fn number_of(unread: &UnreadElements) -> u64 {
    let hash = ContentHash::from_parts([format!("{unread:?}").as_bytes()]);
    u64::from_str_radix(hash.as_str().get(..16).unwrap_or_default(), 16).unwrap_or(0)
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
    // Distinct elements: a second swap into the same element would move the first value out again.
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

/// Returns the element at a position of a set.
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

/// Returns the indices of the largest and the smallest values, without NaN.
fn extremes(bytes: &[u8], element: Element) -> Vec<usize> {
    // As signed integers, the bits of floats are ordered like their values.
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
    // Alternating, so that a few elements get some of both.
    let pairs = largest.into_iter().zip(smallest);
    pairs.flat_map(|(large, small)| [large, small]).collect()
}

/// Returns the indices of the greatest keys, the greatest first.
fn greatest(keys: impl Iterator<Item = (i64, usize)>) -> Vec<usize> {
    let mut kept = BinaryHeap::with_capacity(MOVED_PER_END + 1);
    for key in keys {
        // Evicts the smallest of the kept keys.
        if kept.len() < MOVED_PER_END || kept.peek().is_some_and(|Reverse(least)| *least < key) {
            kept.push(Reverse(key));
            if kept.len() > MOVED_PER_END {
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
        let extreme = |v: f32| !(-436.0..436.0).contains(&v);
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
