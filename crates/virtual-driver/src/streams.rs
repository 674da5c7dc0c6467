//! Order of operations: CUDA's guarantees for streams, events and the host, as vector clocks.
//!
//! Operations run when they are submitted. If two access the same bytes and one of them writes, they must
//! be ordered by a stream, an event, a synchronization or the rules of the legacy default stream. Otherwise
//! the program relies on timing ([`Conflict`]).

mod properties;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use cuda_shim::protocol::ALL_STREAMS;

use self::properties::Properties;
pub(crate) use self::values::Word;

/// The legacy default stream, and the handle that names it explicitly.
const LEGACY: u64 = 0;
const LEGACY_HANDLE: u64 = 1;
/// The default stream of a thread: a blocking stream.
const PER_THREAD: u64 = 2;
/// First handle of a created stream.
const FIRST_HANDLE: u64 = 0x1000;
/// Distance between handles.
const HANDLE_STEP: u64 = 16;
/// `cudaStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;
/// Maximum accesses kept per buffer; the oldest are dropped.
const MAX_ACCESSES: usize = 4096;

/// Operations that precede, as the number of the last one of each stream.
type Clock = BTreeMap<u64, u64>;

fn join(into: &mut Clock, other: &Clock) {
    for (stream, number) in other {
        let own = into.entry(*stream).or_insert(0);
        *own = (*own).max(*number);
    }
}

#[derive(Debug, Default)]
struct Stream {
    clock: Clock,
    properties: Properties,
}

/// `cudaEventDisableTiming`.
const DISABLE_TIMING: u32 = 2;

#[derive(Debug, Default, Clone)]
struct Event {
    clock: Clock,
    /// Virtual time of the record, µs.
    time_us: f64,
    recorded: bool,
    /// The program requested an event without timing.
    untimed: bool,
}

/// An operation, as named in a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Such as `kernel add` or `copy to the host`.
    pub(crate) name: Arc<str>,
    pub(crate) stream: u64,
    number: u64,
}

/// Bytes that an operation read or wrote.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// Address of the first byte, and the end.
    pub(crate) bytes: Range<u64>,
    pub(crate) write: bool,
    /// Every access was atomic at device scope: two such accesses do not race.
    pub(crate) atomic: bool,
}

#[derive(Debug, Clone)]
struct Past {
    operation: Operation,
    access: Access,
}

/// Two operations without an order that touch the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) earlier: Operation,
    pub(crate) later: Operation,
    /// First byte that both touch.
    pub(crate) address: u64,
    pub(crate) earlier_writes: bool,
    pub(crate) later_writes: bool,
}

/// Streams and events of one process.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: BTreeMap<u64, Stream>,
    events: BTreeMap<u64, Event>,
    /// Operations that the host has waited for.
    host: Clock,
    /// Operations of destroyed streams that the host has not waited for.
    ended: Clock,
    /// Those of blocking ones.
    ended_blocking: Clock,
    next_handle: u64,
    next_number: u64,
    past: Vec<Past>,
    /// Operations that precede the last write of each word that streams wrote.
    words: BTreeMap<u64, Clock>,
    /// Virtual time at which each stream is idle, µs.
    idle_us: BTreeMap<u64, f64>,
    /// Virtual time of the host, µs.
    host_us: f64,
}

impl Default for Streams {
    fn default() -> Streams {
        let mut streams = BTreeMap::new();
        for stream in [LEGACY, PER_THREAD] {
            streams.insert(stream, Stream::default());
        }
        Streams {
            streams,
            events: BTreeMap::new(),
            host: Clock::new(),
            ended: Clock::new(),
            ended_blocking: Clock::new(),
            next_handle: FIRST_HANDLE,
            next_number: 1,
            past: Vec::new(),
            words: BTreeMap::new(),
            idle_us: BTreeMap::new(),
            host_us: 0.0,
        }
    }
}

fn plain(stream: u64) -> u64 {
    if stream == LEGACY_HANDLE {
        LEGACY
    } else {
        stream
    }
}

impl Streams {
    /// Reports whether the handle is a stream's.
    pub(crate) fn holds(&self, stream: u64) -> bool {
        self.streams.contains_key(&plain(stream))
    }

    /// Reports whether two operations can be unordered: the program created a stream or uses a per-thread
    /// one.
    pub(crate) fn can_conflict(&self) -> bool {
        let per_thread = self.streams.get(&PER_THREAD);
        self.streams.len() > 2
            || !self.ended.is_empty()
            || per_thread.is_some_and(|stream| !stream.clock.is_empty())
    }

    /// Creates a stream.
    pub(crate) fn create(&mut self, flags: u32, priority: i32) -> u64 {
        let handle = self.next_handle;
        self.next_handle += HANDLE_STEP;
        let stream = Stream {
            clock: Clock::new(),
            properties: Properties::new(flags, priority),
        };
        self.streams.insert(handle, stream);
        handle
    }

    /// Destroys a stream. Operations submitted to it still run.
    pub(crate) fn destroy(&mut self, stream: u64) -> bool {
        // The default streams cannot be destroyed.
        if stream < FIRST_HANDLE {
            return false;
        }
        let Some(stream) = self.streams.remove(&stream) else {
            return false;
        };
        join(&mut self.ended, &stream.clock);
        if stream.properties.is_blocking() {
            join(&mut self.ended_blocking, &stream.clock);
        }
        self.forget_ended();
        true
    }

    /// Drops the operations of destroyed streams that the host has waited for.
    fn forget_ended(&mut self) {
        let host = &self.host;
        for clock in [&mut self.ended, &mut self.ended_blocking] {
            clock.retain(|stream, number| host.get(stream).is_none_or(|known| known < number));
        }
    }

    /// Creates an event with flags of `cudaEventCreateWithFlags`.
    pub(crate) fn create_event(&mut self, flags: u32) -> u64 {
        let handle = self.next_handle;
        self.next_handle += HANDLE_STEP;
        let untimed = flags & DISABLE_TIMING != 0;
        let event = Event {
            untimed,
            ..Event::default()
        };
        self.events.insert(handle, event);
        handle
    }

    /// Destroys an event.
    pub(crate) fn destroy_event(&mut self, event: u64) -> bool {
        self.events.remove(&event).is_some()
    }

    /// Reports whether the handle is an event's.
    pub(crate) fn has_event(&self, event: u64) -> bool {
        self.events.contains_key(&event)
    }

    /// Returns the streams whose operations precede the next one of a stream, that stream among them.
    fn ordered_before(&self, stream: u64) -> impl Iterator<Item = (&u64, &Stream)> {
        let own = self.streams.get(&stream);
        let blocking = own.is_some_and(|own| own.properties.is_blocking());
        self.streams.iter().filter(move |(handle, other)| {
            // The legacy default stream and blocking streams wait for each other.
            let with_legacy = stream == LEGACY || **handle == LEGACY;
            let waits = other.properties.is_blocking() && blocking && with_legacy;
            waits || **handle == stream
        })
    }

    /// Returns the operations that precede the next one of a stream.
    fn preceding(&self, stream: u64) -> Clock {
        let mut clock = self.host.clone();
        for (_, other) in self.ordered_before(stream) {
            join(&mut clock, &other.clock);
        }
        if stream == LEGACY {
            join(&mut clock, &self.ended_blocking);
        }
        clock
    }

    /// Returns the virtual time at which the next operation of a stream can start, µs.
    fn start_us(&self, stream: u64) -> f64 {
        let before = self.ordered_before(stream).map(|(handle, _)| handle);
        let ended = self.ended_blocking.keys().filter(|_| stream == LEGACY);
        let idle = before
            .chain(ended)
            .filter_map(|handle| self.idle_us.get(handle));
        idle.copied().fold(self.host_us, f64::max)
    }

    /// Adds an operation with this duration on the virtual clock to a stream.
    pub(crate) fn submit(&mut self, stream: u64, name: Arc<str>, lasting_us: f64) -> Operation {
        let stream = plain(stream);
        let number = self.next_number;
        self.next_number += 1;
        let mut clock = self.preceding(stream);
        clock.insert(stream, number);
        if let Some(own) = self.streams.get_mut(&stream) {
            own.clock = clock;
        }
        let start = self.start_us(stream);
        self.idle_us.insert(stream, start + lasting_us);
        Operation {
            name,
            stream,
            number,
        }
    }

    /// Checks the accesses of an operation against those that are not ordered before it, and stores them.
    pub(crate) fn check(&mut self, operation: &Operation, accesses: Vec<Access>) -> Vec<Conflict> {
        if !self.can_conflict() {
            return Vec::new();
        }
        let stream = self.streams.get(&operation.stream);
        let clock = stream
            .map(|stream| stream.clock.clone())
            .unwrap_or_default();
        let precedes = |past: &Past| {
            let known = clock.get(&past.operation.stream).copied().unwrap_or(0);
            past.operation.number <= known
        };
        let mut conflicts = Vec::new();
        for access in &accesses {
            let meets = |past: &&Past| {
                (past.access.write || access.write)
                    && !(past.access.atomic && access.atomic)
                    && past.access.bytes.start < access.bytes.end
                    && access.bytes.start < past.access.bytes.end
            };
            let unordered = self.past.iter().filter(meets).find(|past| !precedes(past));
            if let Some(past) = unordered {
                conflicts.push(Conflict {
                    earlier: past.operation.clone(),
                    later: operation.clone(),
                    address: past.access.bytes.start.max(access.bytes.start),
                    earlier_writes: past.access.write,
                    later_writes: access.write,
                });
            }
        }
        // An access that precedes a write of the same bytes is dropped: its conflicts are also conflicts of
        // the write, unless only the write is atomic.
        let host = &self.host;
        let host_precedes = |past: &Past| {
            let known = host.get(&past.operation.stream).copied().unwrap_or(0);
            past.operation.number <= known
        };
        self.past.retain(|past| {
            let covered = accesses.iter().any(|access| {
                access.write
                    && (past.access.atomic || !access.atomic)
                    && access.bytes.start <= past.access.bytes.start
                    && past.access.bytes.end <= access.bytes.end
            });
            !(host_precedes(past) || covered && precedes(past))
        });
        let excess = (self.past.len() + accesses.len()).saturating_sub(MAX_ACCESSES);
        self.past.drain(..excess.min(self.past.len()));
        let kept = accesses.into_iter().map(|access| Past {
            operation: operation.clone(),
            access,
        });
        self.past.extend(kept);
        conflicts
    }

    /// Forgets the accesses to a range: its memory was freed, and the next use of the address is another
    /// allocation.
    pub(crate) fn forget(&mut self, bytes: &Range<u64>) {
        self.past.retain(|past| {
            past.access.bytes.end <= bytes.start || bytes.end <= past.access.bytes.start
        });
    }

    /// Makes the host wait for a stream, or for all.
    pub(crate) fn synchronize(&mut self, stream: u64) {
        if stream == ALL_STREAMS {
            for other in self.streams.values() {
                join(&mut self.host, &other.clock);
            }
            let ended = std::mem::take(&mut self.ended);
            join(&mut self.host, &ended);
            self.ended_blocking.clear();
            let latest = self.idle_us.values().copied().fold(self.host_us, f64::max);
            self.host_us = latest;
            return;
        }
        let stream = plain(stream);
        let clock = self.preceding(stream);
        // Before the host has waited: the destroyed streams are still known.
        self.host_us = self.start_us(stream);
        join(&mut self.host, &clock);
        self.forget_ended();
    }

    /// Records an event after the operations of a stream.
    pub(crate) fn record(&mut self, event: u64, stream: u64) -> bool {
        let stream = plain(stream);
        let clock = self.preceding(stream);
        let time_us = self.start_us(stream);
        let Some(event) = self.events.get_mut(&event) else {
            return false;
        };
        *event = Event {
            clock,
            time_us,
            recorded: true,
            untimed: event.untimed,
        };
        true
    }

    /// Makes a stream wait for an event.
    pub(crate) fn wait(&mut self, stream: u64, event: u64) -> bool {
        let stream = plain(stream);
        let (Some(event), Some(own)) = (self.events.get(&event), self.streams.get_mut(&stream))
        else {
            return false;
        };
        join(&mut own.clock, &event.clock);
        let idle = self.idle_us.entry(stream).or_insert(0.0);
        *idle = idle.max(event.time_us);
        true
    }

    /// Makes the host wait for an event.
    pub(crate) fn synchronize_event(&mut self, event: u64) -> bool {
        let Some(event) = self.events.get(&event) else {
            return false;
        };
        join(&mut self.host, &event.clock);
        self.host_us = self.host_us.max(event.time_us);
        true
    }

    /// Returns the time between two events, ms; `None` if one was not recorded.
    pub(crate) fn elapsed_ms(&self, start: u64, end: u64) -> Option<f64> {
        let time = |event: u64| {
            let event = self.events.get(&event)?;
            (event.recorded && !event.untimed).then_some(event.time_us)
        };
        Some((time(end)? - time(start)?) / 1e3)
    }

    /// Returns the virtual time of the whole program so far, µs.
    pub(crate) fn now_us(&self) -> f64 {
        self.idle_us.values().copied().fold(self.host_us, f64::max)
    }
}
