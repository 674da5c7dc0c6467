//! Release and acquire through memory: what each synchronisation variable publishes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::clock::Clock;

/// What a release published: the clock of its block, and what it knew of other blocks.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) block: u32,
    pub(crate) floor: u32,
    pub(crate) clock: Clock,
    pub(crate) foreign: Option<Arc<Vec<Acquired>>>,
    /// Whether it reaches beyond its block (`.gpu` or `.sys`).
    pub(crate) device_wide: bool,
}

impl Published {
    /// Adds what `other`, of the same block, covers.
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
                for a in theirs.iter() {
                    match mine.iter_mut().find(|b| b.same_variable(a)) {
                        Some(b) => b.extend_to(a),
                        None => mine.push(a.clone()),
                    }
                }
            }
        }
    }
}

#[derive(Debug, Default)]
struct History {
    releases: usize,
    by_block: HashMap<u32, Vec<(usize, Published)>>,
}

/// A memory location that releases were written to.
#[derive(Debug, Default)]
pub(crate) struct Variable(Mutex<History>);

/// The releases of a variable up to a point, seen by some thread.
#[derive(Debug, Clone)]
pub(crate) struct Acquired {
    variable: Arc<Variable>,
    releases: usize,
}

impl Variable {
    fn with<T>(&self, f: impl FnOnce(&mut History) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn release(&self, published: Published) {
        self.with(|h| {
            h.releases += 1;
            let at = h.releases;
            let list = h.by_block.entry(published.block).or_default();
            // A block that releases over and over (a spinning lock) would grow without bound.
            if list.len() >= 4096 {
                list.drain(..2048);
            }
            list.push((at, published));
        });
    }

    /// The latest clock published by `block`, joined over its releases.
    pub(crate) fn of_block(&self, block: u32) -> Vec<Clock> {
        self.with(|h| {
            let list = h
                .by_block
                .get(&block)
                .map(Vec::as_slice)
                .unwrap_or_default();
            list.iter()
                .rev()
                .take(64)
                .map(|(_, p)| p.clock.clone())
                .collect()
        })
    }

    pub(crate) fn releases(&self) -> usize {
        self.with(|h| h.releases)
    }
}

impl Acquired {
    pub(crate) fn new(variable: &Arc<Variable>) -> Acquired {
        Acquired {
            variable: variable.clone(),
            releases: variable.releases(),
        }
    }

    pub(crate) fn same_variable(&self, other: &Acquired) -> bool {
        Arc::ptr_eq(&self.variable, &other.variable)
    }

    pub(crate) fn extend_to(&mut self, other: &Acquired) {
        self.releases = self.releases.max(other.releases);
    }

    /// Whether these releases cover an access of `thread` of `block` at `segment`.
    fn covers(&self, block: u32, thread: usize, segment: u32, depth: u32) -> bool {
        let (hit, deeper) = self.variable.with(|h| {
            let seen = |at: &usize| *at <= self.releases;
            let hit = h.by_block.get(&block).is_some_and(|list| {
                list.iter().any(|(at, p)| {
                    seen(at)
                        && p.device_wide
                        && (segment < p.floor
                            || segment < p.clock.get(thread).copied().unwrap_or(0))
                })
            });
            let mut deeper = Vec::new();
            if !hit && depth > 0 {
                for (at, p) in h.by_block.values().flatten() {
                    if seen(at)
                        && p.device_wide
                        && let Some(f) = &p.foreign
                    {
                        deeper.push(f.clone());
                    }
                }
            }
            (hit, deeper)
        });
        hit || covered(
            deeper.iter(),
            block,
            thread,
            segment,
            depth.saturating_sub(1),
        )
    }
}

fn covered<'a>(
    lists: impl Iterator<Item = &'a Arc<Vec<Acquired>>>,
    block: u32,
    thread: usize,
    segment: u32,
    depth: u32,
) -> bool {
    lists
        .flat_map(|l| l.iter())
        .any(|a| a.covers(block, thread, segment, depth))
}

/// Whether someone who knows `foreign` has seen an access of another block.
pub(crate) fn knows(
    foreign: &Option<Arc<Vec<Acquired>>>,
    block: u32,
    thread: usize,
    segment: u32,
) -> bool {
    covered(foreign.iter(), block, thread, segment, 6)
}
