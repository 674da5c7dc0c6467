//! Captures of streams: where in its graph each capturing stream is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::edges::are_joined;
use super::{Graph, destroy, keep, with_graph};
use crate::client;
use crate::errors::{self, Code};
use crate::protocol::ALL_STREAMS;
use crate::state::{Thread, lock, state, thread_state};

/// `cudaStreamCaptureMode`: which threads may not call what could wait for the device.
const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;
/// `cudaStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;

/// Place in a graph that is being captured.
#[derive(Debug, Clone, Default)]
pub(super) struct Branch {
    pub(super) graph: u64,
    /// Handles of the nodes that the next one depends on.
    pub(super) tips: Vec<u64>,
    /// Beginning of the capture; none in the streams that joined it.
    origin: Option<Origin>,
    /// The legacy default stream would wait for the stream.
    blocking: bool,
    /// The `tips` that the program was told, at an address that stays.
    pub(super) told: Vec<u64>,
}

/// Beginning of a capture.
#[derive(Debug, Clone, Copy)]
struct Origin {
    mode: u32,
    thread: Thread,
}

impl Branch {
    /// Adds nodes that the next one depends on.
    fn join(&mut self, tips: &[u64]) {
        let new = tips.iter().filter(|tip| !self.tips.contains(tip));
        let new: Vec<u64> = new.copied().collect();
        self.tips.extend(new);
    }
}

/// Captures of the process.
#[derive(Debug)]
pub(crate) struct Captures {
    /// By capturing stream.
    streams: BTreeMap<u64, Branch>,
    /// By event that was recorded in a capture.
    events: BTreeMap<u64, Branch>,
    /// Graphs whose capture an error ended.
    invalid: BTreeSet<u64>,
}

impl Captures {
    pub(crate) const fn new() -> Captures {
        Captures {
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            invalid: BTreeSet::new(),
        }
    }
}

fn captures() -> MutexGuard<'static, Captures> {
    lock(&state().captures)
}

/// Returns the handle of the graph that a capturing stream adds to.
pub(crate) fn captured(stream: u64) -> Option<u64> {
    if state().capturing.load(Ordering::Acquire) == 0 {
        return None;
    }
    let captures = captures();
    captures.streams.get(&stream).map(|branch| branch.graph)
}

/// Uses the place of a capturing stream.
pub(super) fn with_branch<T>(stream: u64, body: impl FnOnce(&mut Branch) -> T) -> Option<T> {
    let mut captures = captures();
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
    let mut captures = captures();
    captures.events.insert(event, branch);
}

/// Forgets that an event was recorded in a capture: it is recorded elsewhere.
pub(super) fn forget_record(event: u64) {
    if state().capturing.load(Ordering::Acquire) > 0 {
        captures().events.remove(&event);
    }
}

/// Refuses a call that asks for the state of an event of a capture, which it ends.
pub(crate) fn refuse_captured_event(event: u64) -> Result<(), Code> {
    if state().capturing.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let mut captures = captures();
    let Some(graph) = captures.events.get(&event).map(|branch| branch.graph) else {
        return Ok(());
    };
    captures.invalid.insert(graph);
    Err(errors::CAPTURED_EVENT)
}

/// A stream that waits for an event of a capture takes part in it.
pub(super) fn join_capture(stream: u64, event: u64) {
    if state().capturing.load(Ordering::Acquire) == 0 {
        return;
    }
    let mut captures = captures();
    let Some(recorded) = captures.events.get(&event).cloned() else {
        return;
    };
    match captures.streams.get_mut(&stream) {
        Some(branch) => branch.join(&recorded.tips),
        None => {
            let branch = Branch {
                origin: None,
                blocking: is_blocking(stream),
                ..recorded
            };
            captures.streams.insert(stream, branch);
            state().capturing.fetch_add(1, Ordering::Release);
        }
    }
}

/// Reports whether operations of the stream are recorded.
pub(crate) fn is_capturing(stream: u64) -> bool {
    captured(stream).is_some()
}

/// State of a stream's capture in `cudaStreamCaptureStatus`: none, active or invalidated.
pub(crate) fn status(stream: u64) -> i32 {
    let captures = captures();
    let branch = captures.streams.get(&stream);
    branch.map_or(0, |branch| {
        1 + i32::from(captures.invalid.contains(&branch.graph))
    })
}

/// Reports whether the legacy default stream waits for a stream.
fn is_blocking(stream: u64) -> bool {
    let info = client::describe_stream(stream);
    info.map_or(true, |info| info.flags & NON_BLOCKING == 0)
}

impl Captures {
    /// Forgets the capture into a graph; reports whether an error had ended it.
    fn forget(&mut self, graph: u64) -> bool {
        let before = self.streams.len();
        self.streams.retain(|_, other| other.graph != graph);
        self.events.retain(|_, other| other.graph != graph);
        state()
            .capturing
            .fetch_sub(before - self.streams.len(), Ordering::Release);
        self.invalid.remove(&graph)
    }

    /// Ends the captures of the branches that an operation must not meet.
    fn invalidate(&mut self, meets: impl Fn(u64, &Branch) -> bool) -> bool {
        let streams = self.streams.iter();
        let met = streams.filter(|(stream, branch)| meets(**stream, branch));
        let met: Vec<u64> = met.map(|(_, branch)| branch.graph).collect();
        self.invalid.extend(&met);
        !met.is_empty()
    }
}

/// Refuses an operation of a stream that would have to wait for a capturing stream, whose capture it ends.
pub(crate) fn refuse_in_capture(stream: u64) -> Result<(), Code> {
    if state().capturing.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let met = captures().invalidate(|captured, _| captured == stream || stream == ALL_STREAMS);
    match met {
        true => Err(errors::CAPTURE_UNSUPPORTED),
        false => refuse_implicit(stream),
    }
}

/// Refuses an operation of the legacy default stream while a stream that it waits for is captured.
pub(super) fn refuse_implicit(stream: u64) -> Result<(), Code> {
    if state().capturing.load(Ordering::Acquire) == 0 || !matches!(stream, 0 | 1) {
        return Ok(());
    }
    match captures().invalidate(|_, branch| branch.blocking) {
        true => Err(errors::CAPTURE_IMPLICIT),
        false => Ok(()),
    }
}

/// Sets the mode of the thread; returns the one before.
pub(crate) fn exchange_mode(mode: u32) -> Result<u32, Code> {
    match mode {
        GLOBAL..=RELAXED => Ok(thread_state(|thread| thread.capture_mode.replace(mode))),
        _ => Err(errors::INVALID_VALUE),
    }
}

/// Refuses a call that could wait for the device, such as an allocation, where the mode of a capture or of the
/// thread does not permit it; it ends the capture.
pub(crate) fn refuse_unsafe() -> Result<(), Code> {
    let mode = thread_state(|thread| thread.capture_mode.get());
    if state().capturing.load(Ordering::Acquire) == 0 || mode == RELAXED {
        return Ok(());
    }
    let thread = Thread::current();
    let met = captures().invalidate(|_, branch| match branch.origin {
        Some(origin) if origin.thread == thread => origin.mode != RELAXED,
        Some(origin) => origin.mode == GLOBAL && mode != THREAD_LOCAL,
        None => false,
    });
    match met {
        true => Err(errors::CAPTURE_UNSUPPORTED),
        false => Ok(()),
    }
}

/// Refuses an operation of a capture that an error ended.
pub(super) fn refuse_invalid(graph: u64) -> Result<(), Code> {
    match captures().invalid.contains(&graph) {
        true => Err(errors::CAPTURE_INVALIDATED),
        false => Ok(()),
    }
}

/// A capture to begin.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) stream: u64,
    pub(crate) mode: u32,
    /// Graph of the program that it adds to.
    pub(crate) into: Option<u64>,
    /// Nodes that the first one depends on.
    pub(crate) tips: Vec<u64>,
}

/// Begins a capture, into a graph of the program or a new one.
pub(crate) fn begin_capture(beginning: Beginning) -> Result<(), Code> {
    let stream = beginning.stream;
    if matches!(stream, 0 | 1) {
        // The legacy default stream cannot be captured.
        return Err(errors::CAPTURE_UNSUPPORTED);
    }
    if beginning.mode > RELAXED {
        return Err(errors::INVALID_VALUE);
    }
    if let Some(graph) = beginning.into {
        with_graph(graph, |_| ())?;
    }
    let blocking = is_blocking(stream);
    let mut captures = captures();
    if captures.streams.contains_key(&stream) {
        return Err(errors::ILLEGAL_STATE);
    }
    let graph = beginning.into.unwrap_or_else(|| keep(Graph::default()));
    let origin = Origin {
        mode: beginning.mode,
        thread: Thread::current(),
    };
    let branch = Branch {
        graph,
        tips: beginning.tips,
        origin: Some(origin),
        blocking,
        told: Vec::new(),
    };
    captures.streams.insert(stream, branch);
    state().capturing.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Drops the capture that a destroyed stream began: nothing can end it any more.
pub(crate) fn abandon_capture(stream: u64) {
    if state().capturing.load(Ordering::Acquire) == 0 {
        return;
    }
    let mut captures = captures();
    let own = captures.streams.get(&stream);
    if let Some(graph) = own.filter(|own| own.origin.is_some()).map(|own| own.graph) {
        captures.forget(graph);
    }
}

/// Drops all captures: the device was reset.
pub(crate) fn abandon_captures() {
    let mut captures = captures();
    captures.streams.clear();
    captures.events.clear();
    captures.invalid.clear();
    state().capturing.store(0, Ordering::Release);
}

/// Ends a capture; returns the handle of its graph.
pub(crate) fn end_capture(stream: u64) -> Result<u64, Code> {
    let mut captures = captures();
    let own = captures.streams.get(&stream).cloned();
    let own = own.ok_or(errors::ILLEGAL_STATE)?;
    let origin = own.origin.ok_or(errors::CAPTURE_UNMATCHED)?;
    if origin.mode != RELAXED && origin.thread != Thread::current() {
        return Err(errors::CAPTURE_WRONG_THREAD);
    }
    let graph = own.graph;
    let all = captures.streams.values();
    let others = all.filter(|other| other.graph == graph && other.origin.is_none());
    let others: Vec<u64> = others.flat_map(|other| other.tips.clone()).collect();
    let invalid = captures.forget(graph);
    // Destroying the graph may call functions of the program, which may ask for captures.
    drop(captures);
    if invalid {
        destroy(graph)?;
        return Err(errors::CAPTURE_INVALIDATED);
    }
    match are_joined(graph, &others, &own.tips)? {
        true => Ok(graph),
        false => {
            destroy(graph)?;
            Err(errors::CAPTURE_UNJOINED)
        }
    }
}
