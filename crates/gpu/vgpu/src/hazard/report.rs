//! Collected hazards: one per kind and pair of instructions, with a count.

use std::collections::BTreeMap;

use super::shadow::Conflict;
use super::{HazardKind, Space};

/// Memory location that a hazard is reported at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Location {
    pub(crate) space: Space,
    pub(crate) address: u64,
}

impl Location {
    /// Location of hazards without a memory access.
    pub(crate) const NONE: Location = Location::new(Space::Generic, 0);

    pub(crate) const fn new(space: Space, address: u64) -> Location {
        Location { space, address }
    }
}

/// Two instructions of a hazard; `other` may be `NONE`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstructionPair {
    pub(crate) pc: u32,
    pub(crate) other: u32,
}

/// Identity of a hazard: kind, program counter, the other access's program counter.
pub(crate) type Key = (HazardKind, u32, u32);

/// The first occurrence (in order of block and thread) and the number of occurrences.
#[derive(Debug, Clone)]
pub(crate) struct Occurrence {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) address: u64,
    pub(crate) space: Space,
    pub(crate) detail: String,
    pub(crate) repeated: u64,
    /// The earlier access of a race.
    pub(crate) conflict: Option<Conflict>,
}

impl Occurrence {
    /// Creates an occurrence without its detail.
    pub(crate) fn new(block: u32, thread: usize, at: Location) -> Occurrence {
        Occurrence {
            block,
            thread: thread as u32,
            address: at.address,
            space: at.space,
            detail: String::new(),
            repeated: 0,
            conflict: None,
        }
    }
}

/// Hazards of one worker or of a whole launch.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    pub(crate) found: BTreeMap<Key, Occurrence>,
}

impl Collector {
    /// Adds an occurrence; `detail` is only formatted for one that is kept.
    pub(crate) fn add(&mut self, key: Key, mut new: Occurrence, detail: impl FnOnce() -> String) {
        match self.found.get_mut(&key) {
            Some(old) => {
                let repeated = old.repeated + 1;
                // The lowest thread is kept, so that the report does not depend on the order of
                // blocks.
                if (new.block, new.thread) < (old.block, old.thread) {
                    new.detail = detail();
                    *old = new;
                }
                old.repeated = repeated;
            }
            None => {
                new.detail = detail();
                new.repeated = 1;
                self.found.insert(key, new);
            }
        }
    }

    /// Merges the hazards of another worker.
    pub(crate) fn merge(&mut self, other: Collector) {
        for (key, new) in other.found {
            match self.found.get_mut(&key) {
                Some(old) => {
                    let repeated = old.repeated + new.repeated;
                    if (new.block, new.thread) < (old.block, old.thread) {
                        *old = new;
                    }
                    old.repeated = repeated;
                }
                None => {
                    self.found.insert(key, new);
                }
            }
        }
    }
}
