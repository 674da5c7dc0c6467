//! Current activities of this process, for progress displays: compiles, judgements, waits.
//! Process-wide, because a display belongs to a process.

use crate::panics::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

static NEXT: AtomicU64 = AtomicU64::new(0);
static NOW: Mutex<BTreeMap<u64, Activity>> = Mutex::new(BTreeMap::new());

/// A run, as the owner of activities: a process may tune one kernel on several devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(u64);

impl Owner {
    /// Creates an owner that differs from all others of this process.
    #[must_use]
    pub fn unique() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A current activity.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The run that it is part of, if any.
    pub owner: Option<Owner>,
    /// A verb, such as `compiling`.
    pub verb: &'static str,
    /// Object of the activity.
    pub object: String,
    /// When it began.
    pub since: Instant,
}

/// An activity that lasts until this value is dropped.
#[derive(Debug)]
#[must_use = "the activity ends when this is dropped"]
pub struct ActivityGuard(u64);

/// Begins an activity outside of runs.
pub fn begin(verb: &'static str, object: impl Into<String>) -> ActivityGuard {
    begin_for(None, verb, object)
}

/// Begins an activity of a run.
pub fn begin_for(
    owner: Option<Owner>,
    verb: &'static str,
    object: impl Into<String>,
) -> ActivityGuard {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let activity = Activity {
        owner,
        verb,
        object: object.into(),
        since: Instant::now(),
    };
    let mut now = lock(&NOW);
    now.insert(number, activity);
    ActivityGuard(number)
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        let mut now = lock(&NOW);
        now.remove(&self.0);
    }
}

static TOTAL: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

/// Announces `count` further items of work.
pub fn expect(count: usize) {
    TOTAL.fetch_add(count as u64, Ordering::Relaxed);
}

/// Counts one finished item.
pub fn done() {
    DONE.fetch_add(1, Ordering::Relaxed);
}

/// Returns the finished and the announced items.
#[must_use]
pub fn counts() -> (u64, u64) {
    (DONE.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed))
}

/// Returns the current activities, the oldest first.
#[must_use]
pub fn now() -> Vec<Activity> {
    let now = lock(&NOW);
    now.values().cloned().collect()
}

#[cfg(test)]
mod tests;
