//! Words by which streams wait for the host and for each other (`cuStreamWaitValue`, `cuStreamWriteValue`).
//!
//! The device runs an operation when it is submitted. A stream whose word does not have the value yet keeps its later
//! operations here; they run when the word has it, at the latest when the host waits for the stream.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::client::{self, describe_stream};
use crate::connection::call;
use crate::errors::{self, Code};
use crate::graph::{Node, in_host_function};
use crate::protocol::{ALL_STREAMS, Message, Op};
use crate::registered::exchanged;
use crate::say::say_once;
use crate::state::{lock, state};

/// A write of a word, or a wait for its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamValue {
    /// Address on the device.
    pub(crate) address: u64,
    /// Value, 4 bytes of it for a word.
    pub(crate) value: u64,
    /// 4 or 8.
    pub(crate) bytes: u32,
    /// `CUstreamWaitValue_flags` of a wait; `None` for a write.
    pub(crate) wait: Option<u32>,
}

/// `CU_STREAM_WAIT_VALUE_FLUSH`, which has no effect here.
const FLUSH: u32 = 1 << 30;
/// Largest number of a condition.
const LAST_CONDITION: u32 = 3;

impl StreamValue {
    /// Creates a write, or a wait with flags.
    pub(crate) fn new(
        address: u64,
        value: u64,
        bytes: u32,
        wait: Option<u32>,
    ) -> Result<Self, Code> {
        let wait = wait.map(|flags| flags & !FLUSH);
        let valid = address != 0 && address.is_multiple_of(bytes.into());
        if !valid || wait.is_some_and(|condition| condition > LAST_CONDITION) {
            return Err(errors::INVALID_VALUE);
        }
        Ok(StreamValue {
            address: crate::memory::device_address(address).unwrap_or(address),
            value,
            bytes,
            wait,
        })
    }

    /// Writes the word, or orders the stream behind the write that its word has the value of; `false` where it has
    /// another one.
    pub(crate) fn run(&self, stream: u64) -> Result<bool, Code> {
        let mut head = Message::new();
        head.put_u64(stream)
            .put_u64(self.address)
            .put_u64(self.value)
            .put_u32(self.bytes);
        let Some(condition) = self.wait else {
            return exchanged(|| call(Op::WriteValue, &head)).map(|_| true);
        };
        head.put_u32(condition);
        let reply = exchanged(|| call(Op::WaitValue, &head))?;
        reply
            .fields()
            .u32()
            .map(|met| met != 0)
            .map_err(|_| errors::UNKNOWN)
    }
}

/// An operation that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Place in the order of submission.
    number: u64,
    node: Node,
}

/// Operations that wait, by stream.
#[derive(Debug)]
pub(crate) struct Held {
    queues: BTreeMap<u64, VecDeque<Waiting>>,
    /// Streams that the program destroyed before their operations ran, after which they end.
    destroyed: BTreeSet<u64>,
}

impl Held {
    pub(crate) const fn new() -> Held {
        Held {
            queues: BTreeMap::new(),
            destroyed: BTreeSet::new(),
        }
    }
}

fn held() -> MutexGuard<'static, Held> {
    lock(&state().held)
}

/// The legacy default stream and its explicit handle.
const LEGACY: [u64; 2] = [0, 1];
const NON_BLOCKING: u32 = 1;

fn is_blocking(stream: u64) -> bool {
    LEGACY.contains(&stream)
        || describe_stream(stream).is_ok_and(|found| found.flags & NON_BLOCKING == 0)
}

/// Reports whether operations of a stream wait for others.
pub(crate) fn is_held(stream: u64) -> bool {
    state().holds.load(Ordering::Relaxed) && must_wait(&held(), stream, u64::MAX)
}

/// Reports whether an operation of a stream waits for those that were submitted before it.
fn must_wait(held: &Held, stream: u64, number: u64) -> bool {
    let is_earlier =
        |queue: &VecDeque<Waiting>| queue.front().is_some_and(|first| first.number < number);
    held.queues.iter().any(|(other, queue)| {
        // The legacy default stream waits for blocking streams, and they for it.
        let meets = LEGACY.contains(&stream) != LEGACY.contains(other);
        let ordered = *other == stream || meets && is_blocking(*other) && is_blocking(stream);
        is_earlier(queue) && ordered
    })
}

/// Reports whether the record of an event is among the operations that wait.
fn records(held: &Held, event: u64) -> bool {
    find_record(held, event).is_some()
}

/// The stream that records an event after it has waited.
fn find_record(held: &Held, event: u64) -> Option<u64> {
    let is_it = |waiting: &Waiting| matches!(waiting.node, Node::Record(e) if e == event);
    let mut streams = held.queues.iter();
    let found = streams.find(|(_, queue)| queue.iter().any(is_it));
    found.map(|(stream, _)| *stream)
}

/// Runs an operation in its stream, or keeps it while the stream waits.
pub(crate) fn submit(stream: u64, node: Node) -> Result<(), Code> {
    let is_wait = matches!(&node, Node::Value(value) if value.wait.is_some());
    if !is_wait && !state().holds.load(Ordering::Relaxed) {
        return node.run(stream);
    }
    if in_host_function() {
        return Err(errors::NOT_PERMITTED);
    }
    let mut waiting = held();
    if waiting.destroyed.contains(&stream) {
        return Err(errors::INVALID_HANDLE);
    }
    let mut holds = must_wait(&waiting, stream, u64::MAX);
    if let Node::Wait(event) = node {
        holds |= records(&waiting, event);
    }
    if !holds && let Node::Value(value) = &node {
        holds = !value.run(stream)?;
    } else if !holds {
        // A function of the program may submit operations itself.
        drop(waiting);
        node.run(stream)?;
        return progress();
    }
    if holds {
        let number = state().next_held.fetch_add(1, Ordering::Relaxed);
        let queue = waiting.queues.entry(stream).or_default();
        queue.push_back(Waiting { number, node });
        state().holds.store(true, Ordering::Relaxed);
    }
    drop(waiting);
    progress()
}

/// Destroys a stream; one whose operations wait ends after them.
pub(crate) fn destroy_stream(stream: u64) -> Result<(), Code> {
    // The stream ends also where an operation of another one fails.
    let progressed = progress();
    end_stream_in_order(stream).and(progressed)
}

/// Ends a stream after its operations that wait.
pub(crate) fn end_stream_in_order(stream: u64) -> Result<(), Code> {
    let mut held = held();
    if held.destroyed.contains(&stream) {
        return Err(errors::INVALID_HANDLE);
    }
    if held.queues.contains_key(&stream) {
        held.destroyed.insert(stream);
        return Ok(());
    }
    drop(held);
    client::end_stream(stream)
}

/// Drops all operations that wait: the device was reset, and hands out the handles of streams again.
pub(crate) fn forget_all() {
    *held() = Held::new();
    state().holds.store(false, Ordering::Relaxed);
}

/// Takes an operation that no longer waits, with its stream.
fn take_ready() -> Result<Option<(u64, Node)>, Code> {
    let mut held = held();
    let streams: Vec<u64> = held.queues.keys().copied().collect();
    for stream in streams {
        let mut queue = held.queues.remove(&stream).unwrap_or_default();
        let Some(first) = queue.pop_front() else {
            if held.destroyed.remove(&stream) {
                client::end_stream(stream)?;
            }
            continue;
        };
        let ready = match &first.node {
            _ if must_wait(&held, stream, first.number) => Ok(false),
            Node::Value(value) if value.wait.is_some() => value.run(stream),
            Node::Wait(event) => Ok(!records(&held, *event)),
            _ => Ok(true),
        };
        if ready == Ok(true) {
            // Later operations stay behind this one while it runs.
            held.queues.insert(stream, queue);
            return Ok(Some((stream, first.node)));
        }
        queue.push_front(first);
        held.queues.insert(stream, queue);
        // The operations wait also where the word cannot be read.
        ready?;
    }
    state()
        .holds
        .store(!held.queues.is_empty(), Ordering::Relaxed);
    Ok(None)
}

/// Runs the operations that no longer wait.
fn progress() -> Result<(), Code> {
    // A function of the program may not call CUDA: an operation that it took would be lost.
    if in_host_function() {
        return Ok(());
    }
    while state().holds.load(Ordering::Relaxed)
        && let Some((stream, node)) = take_ready()?
    {
        let is_wait = matches!(&node, Node::Value(value) if value.wait.is_some());
        if !is_wait {
            node.run(stream)?;
        }
    }
    Ok(())
}

/// Time after which a wait of the host is reported.
const LONG: Duration = Duration::from_secs(5);

/// Waits until a stream, or every one, has no operation left that waits.
pub(crate) fn finish(stream: u64) -> Result<(), Code> {
    let started = Instant::now();
    while state().holds.load(Ordering::Relaxed) {
        if in_host_function() {
            return Err(errors::NOT_PERMITTED);
        }
        progress()?;
        let done = match stream {
            ALL_STREAMS => held().queues.is_empty(),
            stream => !must_wait(&held(), stream, u64::MAX),
        };
        if done {
            return Ok(());
        }
        if started.elapsed() > LONG {
            say_once("the program waits for a stream that waits for a value (`cuStreamWaitValue`)");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Waits until an event is not to be recorded by an operation that waits.
pub(crate) fn finish_event(event: u64) -> Result<(), Code> {
    let recording = || find_record(&held(), event);
    while state().holds.load(Ordering::Relaxed)
        && let Some(stream) = recording()
    {
        finish(stream)?;
    }
    Ok(())
}

/// Fails where a stream has operations that wait.
pub(crate) fn refuse_unfinished(stream: u64) -> Result<(), Code> {
    progress()?;
    match is_held(stream) {
        true => Err(errors::NOT_READY),
        false => Ok(()),
    }
}

/// Fails where an event is not recorded yet.
pub(crate) fn refuse_unrecorded(event: u64) -> Result<(), Code> {
    progress()?;
    match state().holds.load(Ordering::Relaxed) && records(&held(), event) {
        true => Err(errors::NOT_READY),
        false => Ok(()),
    }
}
