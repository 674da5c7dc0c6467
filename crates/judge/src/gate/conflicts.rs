//! Conflicts between the blocks of one launch, found from their traced accesses.

use crate::session::{BlockTrace, Slot};
use std::collections::BTreeMap;

/// PTX that orders memory accesses of one block before those of another, besides atomics.
const ORDERINGS: [&str; 8] = [
    "membar.gl",
    "membar.sys",
    "fence.sc",
    "fence.acq_rel",
    ".volatile",
    ".acquire",
    ".release",
    ".relaxed",
];

/// Reports whether code atomically updates memory that several blocks share.
pub(super) fn updates_atomically(ptx: &str) -> bool {
    let shared = |rest: &str| {
        let name = rest.split_whitespace().next().unwrap_or(rest);
        name.contains(".shared")
    };
    ["atom.", "red."].iter().any(|start| {
        // Atomics on shared memory do not order accesses of different blocks.
        ptx.match_indices(start)
            .any(|(at, _)| !shared(&ptx[at..]) && is_opcode(&ptx[..at]))
    }) || ptx.contains("cp.reduce.")
}

/// Reports whether `before` can precede an opcode: identifiers may contain its letters.
fn is_opcode(before: &str) -> bool {
    let last = before.chars().next_back();
    last.is_none_or(|last| last.is_whitespace() || matches!(last, ';' | '{' | '.'))
}

/// Reports whether blocks of one launch can order their accesses: through atomics, fences or
/// strong loads and stores. Without these, two blocks that touch one byte race.
pub(super) fn can_order_blocks(ptx: &str) -> bool {
    updates_atomically(ptx) || ORDERINGS.iter().any(|text| ptx.contains(text))
}

/// Two blocks that store to one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) slot: Slot,
    /// The first byte that both store to.
    pub(super) byte: u64,
    pub(super) blocks: [u64; 2],
}

/// Returns two blocks that store to one byte, if there are any.
pub(super) fn first_conflict(blocks: &[BlockTrace]) -> Option<Conflict> {
    let mut written: BTreeMap<Slot, Vec<u64>> = BTreeMap::new();
    for block in blocks {
        for write in &block.writes {
            let slot = write.first.slot;
            let bits = written.entry(slot).or_default();
            let first = &write.first.bytes;
            for number in 0..write.count {
                let offset = number * write.stride;
                let Some(byte) = mark(bits, first.start + offset, first.end + offset) else {
                    continue;
                };
                let holds = |other: &&BlockTrace| {
                    let mut writes = other.writes.iter().filter(|write| write.first.slot == slot);
                    writes.any(|write| {
                        let range = write.ending_after(byte);
                        range.is_some_and(|range| range.contains(&byte))
                    })
                };
                // The ranges of one block are disjoint, so another block holds the byte.
                let other = blocks.iter().find(holds)?;
                return Some(Conflict {
                    slot,
                    byte,
                    blocks: [other.block, block.block],
                });
            }
        }
    }
    None
}

/// Sets the bits of a range; returns the first that was set before.
fn mark(bits: &mut Vec<u64>, start: u64, end: u64) -> Option<u64> {
    let words = usize::try_from(end.div_ceil(64)).unwrap_or(usize::MAX);
    if bits.len() < words {
        bits.resize(words, 0);
    }
    let mut found = None;
    let mut at = start;
    while at < end {
        let (index, from) = (at / 64, at % 64);
        let count = (64 - from).min(end - at);
        let mask = u64::MAX >> (64 - count) << from;
        if let Some(word) = usize::try_from(index).ok().and_then(|at| bits.get_mut(at)) {
            let twice = *word & mask;
            if twice != 0 && found.is_none() {
                found = Some(index * 64 + u64::from(twice.trailing_zeros()));
            }
            *word |= mask;
        }
        at += count;
    }
    found
}

#[cfg(test)]
mod tests;
