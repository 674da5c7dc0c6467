//! Sets of element indices as ascending disjoint ranges.

use std::ops::Range;

/// Intersects two sets.
pub(super) fn overlap(one: &[Range<u64>], two: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut both = Vec::new();
    let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
    while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
        let (start, end) = (a.start.max(b.start), a.end.min(b.end));
        if start < end {
            both.push(start..end);
        }
        if a.end < b.end {
            one.next();
        } else {
            two.next();
        }
    }
    both
}

/// Unites two sets; the ranges may be unordered and overlap.
pub(super) fn union(one: &[Range<u64>], two: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = one.iter().chain(two).cloned().collect();
    all.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(all.len());
    for range in all {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns the elements among `count` of `size` bytes each that no hole overlaps.
pub(super) fn outside(holes: &[Range<u64>], size: u64, count: u64) -> Vec<Range<u64>> {
    let mut whole = Vec::new();
    let mut from = 0;
    for hole in holes {
        if hole.start / size > from {
            whole.push(from..hole.start / size);
        }
        from = hole.end.div_ceil(size);
    }
    if from < count {
        whole.push(from..count);
    }
    whole
}

/// Returns the elements of `size` bytes that differ between two contents of a buffer.
pub(super) fn changed(before: &[u8], after: &[u8], size: usize) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    let elements = before.chunks(size.max(1)).zip(after.chunks(size.max(1)));
    for (at, (old, new)) in (0..).zip(elements) {
        if old == new {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

#[cfg(test)]
mod tests;
