//! Collected hazards: one a kind and pair of instructions, with a count.

use std::collections::BTreeMap;

use super::shadow::Conflict;
use super::{HazardKind, Space};

/// What makes two reports the same hazard: kind, program counter, the other's program counter.
pub(crate) type Key = (HazardKind, u32, u32);

/// The first occurrence (in order of block and thread) and how often it happened.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) address: u64,
    pub(crate) space: Space,
    pub(crate) detail: String,
    pub(crate) repeated: u64,
    /// The earlier access of a race.
    pub(crate) conflict: Option<Conflict>,
}

impl Found {
    /// An occurrence whose detail is not formed yet.
    pub(crate) fn at(block: u32, thread: usize, space: Space, address: u64) -> Found {
        Found {
            block,
            thread: thread as u32,
            address,
            space,
            detail: String::new(),
            repeated: 0,
            conflict: None,
        }
    }
}

/// Hazards of one worker or of a whole launch.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    pub(crate) found: BTreeMap<Key, Found>,
}

impl Collector {
    /// Adds an occurrence; `detail` is only formed for one that is kept.
    pub(crate) fn add(&mut self, key: Key, mut new: Found, detail: impl FnOnce() -> String) {
        match self.found.get_mut(&key) {
            Some(old) => {
                let repeated = old.repeated + 1;
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

    /// Joins the hazards of another worker.
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
