//! Captures of streams: where in its graph each capturing stream is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::edges::are_joined;
use super::{Graph, destroy, keep, with_graph};
use crate::errors::{self, Code};

/// Place in a graph that is being captured.
#[derive(Debug, Clone, Default)]
pub(super) struct Branch {
    pub(super) graph: u64,
    /// Handles of the nodes that the next one depends on.
    pub(super) tips: Vec<u64>,
    /// The stream in which the capture began.
    origin: bool,
    /// The `tips` that the program was told, at an address that stays.
    pub(super) told: Vec<u64>,
}

impl Branch {
    /// Adds nodes that the next one depends on.
    fn join(&mut self, tips: &[u64]) {
        let new = tips.iter().filter(|tip| !self.tips.contains(tip));
        let new: Vec<u64> = new.copied().collect();
        self.tips.extend(new);
    }
}

struct Captures {
    /// By capturing stream.
    streams: BTreeMap<u64, Branch>,
    /// By event that was recorded in a capture.
    events: BTreeMap<u64, Branch>,
}

static CAPTURES: Mutex<Captures> = Mutex::new(Captures {
    streams: BTreeMap::new(),
    events: BTreeMap::new(),
});

/// Capturing streams: most programs have none and pay one load.
static CAPTURING: AtomicUsize = AtomicUsize::new(0);

/// Returns the handle of the graph that a capturing stream adds to.
pub(crate) fn captured(stream: u64) -> Option<u64> {
    if CAPTURING.load(Ordering::Acquire) == 0 {
        return None;
    }
    let captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    captures.streams.get(&stream).map(|branch| branch.graph)
}

/// Uses the place of a capturing stream.
pub(super) fn with_branch<T>(stream: u64, body: impl FnOnce(&mut Branch) -> T) -> Option<T> {
    let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    captures.streams.get_mut(&stream).map(body)
}

/// Changes the nodes that the next one of a capturing stream depends on.
pub(crate) fn change_tips(stream: u64, tips: &[u64], replaces: bool) -> Result<(), Code> {
    let changed = with_branch(stream, |branch| {
        if replaces {
            branch.tips.clear();
        }
        branch.join(tips);
    });
    changed.ok_or(errors::INVALID_VALUE)
}

/// Keeps where an event was recorded.
pub(super) fn record(event: u64, branch: Branch) {
    let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    captures.events.insert(event, branch);
}

/// A stream that waits for an event of a capture takes part in it.
pub(super) fn join_capture(stream: u64, event: u64) {
    if CAPTURING.load(Ordering::Acquire) == 0 {
        return;
    }
    let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(recorded) = captures.events.get(&event).cloned() else {
        return;
    };
    match captures.streams.get_mut(&stream) {
        Some(branch) => branch.join(&recorded.tips),
        None => {
            let branch = Branch {
                origin: false,
                ..recorded
            };
            captures.streams.insert(stream, branch);
            CAPTURING.fetch_add(1, Ordering::Release);
        }
    }
}

/// Reports whether operations of the stream are recorded.
pub(crate) fn is_capturing(stream: u64) -> bool {
    captured(stream).is_some()
}

/// Refuses an operation that would have to wait for a capturing stream.
pub(crate) fn refuse_in_capture(stream: u64) -> Result<(), Code> {
    match is_capturing(stream) {
        true => Err(errors::CAPTURE_UNSUPPORTED),
        false => Ok(()),
    }
}

/// Begins a capture, into a graph of the program or a new one; `tips`: nodes that the first one depends on.
pub(crate) fn begin_capture(stream: u64, into: Option<u64>, tips: Vec<u64>) -> Result<(), Code> {
    if matches!(stream, 0 | 1) {
        // The legacy default stream cannot be captured.
        return Err(errors::CAPTURE_UNSUPPORTED);
    }
    if let Some(graph) = into {
        with_graph(graph, |_| ())?;
    }
    let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    if captures.streams.contains_key(&stream) {
        return Err(errors::CAPTURE_UNSUPPORTED);
    }
    let graph = into.unwrap_or_else(|| keep(Graph::default()));
    let branch = Branch {
        graph,
        tips,
        origin: true,
        told: Vec::new(),
    };
    captures.streams.insert(stream, branch);
    CAPTURING.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Ends a capture; returns the handle of its graph.
pub(crate) fn end_capture(stream: u64) -> Result<u64, Code> {
    let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    let own = captures.streams.get(&stream).cloned();
    let own = own.filter(|branch| branch.origin);
    let own = own.ok_or(errors::CAPTURE_UNMATCHED)?;
    let (graph, before) = (own.graph, captures.streams.len());
    let all = captures.streams.values();
    let others = all.filter(|other| other.graph == graph && !other.origin);
    let others: Vec<u64> = others.flat_map(|other| other.tips.clone()).collect();
    captures.streams.retain(|_, other| other.graph != graph);
    captures.events.retain(|_, other| other.graph != graph);
    CAPTURING.fetch_sub(before - captures.streams.len(), Ordering::Release);
    drop(captures);
    match are_joined(graph, &others, &own.tips)? {
        true => Ok(graph),
        false => {
            destroy(graph)?;
            Err(errors::CAPTURE_UNJOINED)
        }
    }
}
