//! A worker process that answers requests.

use crate::ending::Failure;
use crate::frame::{Decoder, Parts, encode};
use crate::pipes::{Pipes, Program, State, is_transient};
use std::io;
use std::time::{Duration, Instant};

/// Maximum attempts for a request, each in a fresh process, if failures are not the request's fault.
pub const ATTEMPTS: u32 = 3;
/// Polling interval of a busy worker.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time that a worker may be stopped before it is abandoned.
const MAX_STOPPED: Duration = Duration::from_secs(3);
/// Maximum time that a worker may run after it closed its output.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits before the next attempt, so that the machine can recover: `attempt` counts from 0.
pub fn pause(attempt: u32) {
    std::thread::sleep(match attempt {
        0 => Duration::ZERO,
        1 => Duration::from_millis(100),
        _ => Duration::from_secs(1),
    });
}

/// Limits on a worker until it answers.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time, including the time to write the request.
    pub within: Duration,
    /// Resident memory, bytes.
    pub memory_bytes: Option<u64>,
}

/// A running worker. Dropping it kills the worker and its process group.
pub struct Process {
    pipes: Pipes,
    decoder: Decoder,
    /// Number of requests sent.
    count: u32,
    received: Vec<u8>,
}

impl Process {
    /// Starts a worker. Retries a few times if the system lacks a resource.
    ///
    /// # Errors
    /// The system error; [`crate::start_error`] adds a fix.
    pub fn start(program: &Program) -> io::Result<Self> {
        let mut attempt = 0;
        let pipes = loop {
            match Pipes::start(program) {
                Err(error) if is_transient(&error) && attempt + 1 < ATTEMPTS => attempt += 1,
                started => break started?,
            }
            pause(attempt);
        };
        Ok(Self {
            pipes,
            decoder: Decoder::default(),
            count: 0,
            received: Vec::new(),
        })
    }

    /// Returns the process id.
    #[must_use]
    pub fn id(&self) -> Option<i32> {
        self.pipes.id().map(|id| id.as_raw_nonzero().get())
    }

    /// Returns the processor time of all its threads; `None` if the system does not report it.
    #[must_use]
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()?)).ok()?;
        // The name, in brackets, may contain blanks. After it, fields 14 and 15 are user and system time in
        // clock ticks (proc_pid_stat(5)).
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let ticks = ticks()?.saturating_add(ticks()?);
        let each = rustix::param::clock_ticks_per_second().max(1);
        Some(Duration::from_millis(ticks.saturating_mul(1000) / each))
    }

    /// Queues a request, which [`Self::receive`] writes.
    ///
    /// # Errors
    /// The request is too large.
    pub fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.pipes.queue(encode(self.count, parts)?);
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    /// Returns the worker's next message.
    ///
    /// # Errors
    /// The worker sent none; the caller should drop the worker.
    pub fn receive(&mut self, limits: Limits) -> Result<Parts, Failure> {
        let deadline = Instant::now() + limits.within;
        let tick = if limits.memory_bytes.is_some() {
            MEMORY_POLL_INTERVAL
        } else {
            POLL_INTERVAL
        };
        let mut stopped: Option<Instant> = None;
        loop {
            match self.decoder.take() {
                Ok(Some(parts)) => return Ok(parts),
                Ok(None) => {}
                Err(error) => return Err(Failure::Nonsense(error.to_string())),
            }
            // The state is queried before the pipe is read: an ended worker does not write, so a read after
            // the query sees all of its output.
            let state = self.pipes.state();
            let now = Instant::now();
            let wait = match state {
                State::Ended => Duration::ZERO,
                _ => tick.min(deadline.saturating_duration_since(now)),
            };
            let moved = self.pipes.turn(wait, &mut self.received);
            let moved = moved.map_err(Failure::Host)? > 0;
            self.decoder.push(&self.received);
            self.received.clear();
            if !moved && (state == State::Ended || self.pipes.output_ended()) {
                return Err(self.explain_end());
            }
            if self.exceeds_memory(limits.memory_bytes) {
                return Err(Failure::OverMemory);
            }
            stopped = stopped.or(Some(now)).filter(|_| state == State::Stopped);
            if stopped.is_some_and(|since| since.elapsed() >= MAX_STOPPED) {
                return Err(Failure::Stopped);
            }
            if now >= deadline && !moved {
                // A stop is noticed later than a short deadline, and an incomplete answer was lost in
                // transit: neither is the request's fault.
                return Err(match state {
                    State::Stopped => Failure::Stopped,
                    _ if self.decoder.is_empty() => Failure::Late,
                    _ => Failure::Nonsense("a part of a message only".to_owned()),
                });
            }
        }
    }

    /// Explains the end of output: the exit, or the unfinished message.
    fn explain_end(&mut self) -> Failure {
        let end = Instant::now() + END_TIMEOUT;
        while self.pipes.state() != State::Ended {
            if Instant::now() >= end {
                return Failure::Nonsense("the end of its output and is still running".to_owned());
            }
            // Standard error is read until the end: a full pipe would block the worker's exit.
            let wait = Duration::from_millis(5);
            let turned = self.pipes.turn(wait, &mut self.received);
            if turned.is_ok_and(|moved| moved == 0) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let _ = self.pipes.turn(Duration::ZERO, &mut self.received);
        let ending = self.pipes.end();
        if self.decoder.is_empty() || ending.is_from_outside() {
            Failure::Ended(ending)
        } else {
            Failure::Nonsense(format!("a part of a message and ended with {ending}"))
        }
    }

    fn exceeds_memory(&self, limit: Option<u64>) -> bool {
        let held = || resident_bytes(self.id()?);
        limit.is_some_and(|limit| held().is_some_and(|bytes| bytes > limit))
    }

    /// Reports whether the worker ended while idle.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.pipes.state() == State::Ended
    }

    /// Returns the last lines of standard error, including output since the last read.
    pub fn said(&mut self) -> String {
        let _ = self.pipes.turn(Duration::ZERO, &mut self.received);
        self.pipes.said()
    }

    /// Discards standard error so far: later output is of the next request.
    pub fn forget_said(&mut self) {
        let _ = self.pipes.turn(Duration::ZERO, &mut self.received);
        self.pipes.forget_said();
    }
}

/// Reads the resident memory of a process, bytes.
fn resident_bytes(id: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
