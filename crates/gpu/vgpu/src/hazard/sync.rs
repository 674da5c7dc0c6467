//! Release and acquire through memory: what each synchronisation variable publishes.
//!
//! As in the PTX memory model, a release is observed by a thread that reads its value, or that of a
//! read-modify-write that follows it (8.9.2, observation order). It synchronises with an acquire
//! where the scope of each includes the other's thread (8.9.4, 8.7 morally strong).

use crate::table::Table;
use std::sync::{Arc, Mutex, PoisonError};

use super::clock::{Clock, join};

/// State published by a release: the clock of its block, and its acquires from other blocks.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) block: u32,
    pub(crate) floor: u32,
    pub(crate) clock: Clock,
    pub(crate) foreign: Option<Arc<Vec<Acquired>>>,
    /// Its scope is wider than its block (`.gpu` or `.sys`).
    pub(crate) device_wide: bool,
}

impl Published {
    /// Joins what `other`, of the same block, covers.
    pub(crate) fn join(&mut self, other: &Published) {
        self.floor = self.floor.max(other.floor);
        let both = self.clock.iter().zip(other.clock.iter());
        self.clock = both.map(|(a, b)| *a.max(b)).collect();
        match (&mut self.foreign, &other.foreign) {
            (_, None) => {}
            (None, Some(theirs)) => self.foreign = Some(theirs.clone()),
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
            (Some(mine), Some(theirs)) => {
                let mine = Arc::make_mut(mine);
                theirs.iter().for_each(|a| a.add_to(mine));
            }
        }
    }
}

/// Releases of one block, and their joint clock since the variable was last overwritten.
#[derive(Debug, Default)]
struct BlockReleases {
    list: Vec<(usize, Published)>,
    joined: Option<Clock>,
}

#[derive(Debug, Default)]
struct History {
    /// Number of releases, and of those that a write has overwritten: their values can no longer be
    /// read.
    releases: usize,
    overwritten: usize,
    by_block: Table<u32, BlockReleases>,
}

/// Releases of a block that a variable records.
const MAX_RELEASES: usize = 4096;

/// Spans of releases that a thread records separately. A longer list joins those of one variable, with
/// the releases between: a lock taken that often passed from each holder to the next.
const MAX_ACQUIRED: usize = 256;

/// A memory location that releases were written to.
#[derive(Debug, Default)]
pub(crate) struct Variable(Mutex<History>);

/// An access of another block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForeignAccess {
    pub(crate) block: u32,
    pub(crate) thread: usize,
    pub(crate) segment: u32,
}

/// The releases of a variable between two points, observed by some thread.
#[derive(Debug, Clone)]
pub(crate) struct Acquired {
    variable: Arc<Variable>,
    from: usize,
    to: usize,
    /// Block of the observing thread, and whether it observed at device scope.
    by: u32,
    device_wide: bool,
}

impl Variable {
    fn with<T>(&self, f: impl FnOnce(&mut History) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records an atomic write. One that does not read (`modifies` is false) ends the release
    /// sequence before.
    pub(crate) fn write(&self, modifies: bool, published: Option<Published>) {
        self.with(|h| {
            if !modifies {
                h.overwritten = h.releases;
                h.by_block.values_mut().for_each(|b| b.joined = None);
            }
            let Some(published) = published else { return };
            h.releases += 1;
            let at = h.releases;
            let own = h.by_block.entry(published.block).or_default();
            join(&mut own.joined, published.clock.clone());
            // A block that releases repeatedly (a spinning lock) would grow the list without bound.
            if own.list.len() >= MAX_RELEASES {
                own.list.drain(..MAX_RELEASES / 2);
            }
            own.list.push((at, published));
        });
    }

    /// Returns the joint clock of what `block` itself published.
    pub(crate) fn of_block(&self, block: u32) -> Option<Clock> {
        self.with(|h| h.by_block.get(&block)?.joined.clone())
    }

    /// Returns what a thread of `block` that reads the variable now may acquire, at device scope or
    /// at that of its block.
    pub(crate) fn seen(self: &Arc<Self>, block: u32, device_wide: bool) -> Option<Acquired> {
        let (from, to) = self.with(|h| (h.overwritten, h.releases));
        (from < to).then(|| Acquired {
            variable: self.clone(),
            from,
            to,
            by: block,
            device_wide,
        })
    }
}

impl Acquired {
    /// Narrows the acquire to the scope of a fence.
    pub(crate) fn fenced(mut self, device_wide: bool) -> Acquired {
        self.device_wide &= device_wide;
        self
    }

    /// Reports whether it covers other blocks.
    pub(crate) fn is_wide(&self) -> bool {
        self.device_wide
    }

    /// Reports whether two are of one variable, acquired by the same block at the same scope.
    fn is_like(&self, other: &Acquired) -> bool {
        Arc::ptr_eq(&self.variable, &other.variable)
            && (self.by, self.device_wide) == (other.by, other.device_wide)
    }

    /// Reports whether it includes all of `other`.
    pub(crate) fn holds(&self, other: &Acquired) -> bool {
        self.is_like(other) && self.from <= other.from && self.to >= other.to
    }

    /// Adds it to a list.
    pub(crate) fn add_to(&self, list: &mut Vec<Acquired>) {
        let full = list.len() >= MAX_ACQUIRED;
        let joins =
            |a: &&mut Acquired| a.is_like(self) && (full || a.from <= self.to && self.from <= a.to);
        match list.iter_mut().find(joins) {
            Some(known) => {
                known.from = known.from.min(self.from);
                known.to = known.to.max(self.to);
            }
            None => list.push(self.clone()),
        }
    }

    /// Reports whether the acquire includes a release.
    fn takes(&self, at: usize, p: &Published) -> bool {
        let scopes = p.block == self.by || p.device_wide && self.device_wide;
        at > self.from && at <= self.to && scopes
    }

    /// Reports whether these releases cover an access of `thread` of `block` at `segment`;
    /// otherwise adds their own acquires to `deeper`.
    fn covers(&self, access: ForeignAccess, deeper: &mut Vec<Arc<Vec<Acquired>>>) -> bool {
        let ForeignAccess {
            block,
            thread,
            segment,
        } = access;
        self.variable.with(|h| {
            let own = h.by_block.get(&block).map(|own| own.list.as_slice());
            // From the latest on: it mostly covers the earlier ones.
            let covered = own.unwrap_or_default().iter().rev().any(|(at, p)| {
                let clock = p.clock.get(thread).copied().unwrap_or(0);
                self.takes(*at, p) && (segment < p.floor || segment < clock)
            });
            if !covered {
                let all = h.by_block.values().flat_map(|of| &of.list);
                let taken = all.filter(|(at, p)| self.takes(*at, p));
                deeper.extend(taken.filter_map(|(_, p)| p.foreign.clone()));
            }
            covered
        })
    }
}

/// Reports whether acquires cover an access of another block, directly or through other blocks.
pub(crate) fn covers_foreign_access(
    foreign: &Option<Arc<Vec<Acquired>>>,
    access: ForeignAccess,
) -> bool {
    let mut next: Vec<Arc<Vec<Acquired>>> = foreign.iter().cloned().collect();
    // Already searched: chains of blocks reach the same variables repeatedly.
    let mut done: Vec<Acquired> = Vec::new();
    while let Some(list) = next.pop() {
        for acquired in list.iter() {
            if done.iter().any(|d| d.holds(acquired)) {
                continue;
            }
            acquired.add_to(&mut done);
            if acquired.covers(access, &mut next) {
                return true;
            }
        }
    }
    false
}
