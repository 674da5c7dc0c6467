//! A worker process that answers requests.

use crate::ending::Failure;
use crate::frame::{Decoder, Parts, encode};
use crate::pipes::{Pipes, Program, State, is_transient};
use std::io;
use std::time::{Duration, Instant};

/// How often a request is made, each time of a fresh process, that was lost through no fault of its
/// own.
pub const ATTEMPTS: u32 = 3;
/// How often a busy worker is looked at, and one whose memory is limited.
const TICK: Duration = Duration::from_millis(100);
const MEMORY_TICK: Duration = Duration::from_millis(20);
/// How long a worker may be stopped before it is given up.
const MAX_STOPPED: Duration = Duration::from_secs(3);
/// How long a worker that closed its output may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Lets the machine recover before a request is made the next time: `attempt` counts from 0.
pub fn pause(attempt: u32) {
    std::thread::sleep(match attempt {
        0 => Duration::ZERO,
        1 => Duration::from_millis(100),
        _ => Duration::from_secs(1),
    });
}

/// What a worker may use up before it answers.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time, the writing of the request included.
    pub within: Duration,
    /// Resident memory, bytes.
    pub memory_bytes: Option<u64>,
}

/// A running worker. Dropped, it is killed with all that it started.
pub struct Process {
    pipes: Pipes,
    decoder: Decoder,
    /// Requests sent.
    count: u32,
    received: Vec<u8>,
}

impl Process {
    /// Starts one. Where the system is short of something, it is tried a few times.
    ///
    /// # Errors
    /// The system's; [`crate::start_error`] says what to do about it.
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

    /// Its number.
    #[must_use]
    pub fn id(&self) -> Option<i32> {
        self.pipes.id().map(|id| id.as_raw_nonzero().get())
    }

    /// Processor time that it has had, on all its threads; `None` where the system does not tell.
    #[must_use]
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()?)).ok()?;
        // The name, in brackets, may hold blanks. Behind it, fields 14 and 15 are user and system time
        // in clock ticks (proc_pid_stat(5)).
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let ticks = ticks()?.saturating_add(ticks()?);
        let each = rustix::param::clock_ticks_per_second().max(1);
        Some(Duration::from_millis(ticks.saturating_mul(1000) / each))
    }

    /// Queues a request; it is written while the answer is waited for.
    ///
    /// # Errors
    /// It is too large.
    pub fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.pipes.queue(encode(self.count, parts)?);
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    /// The next message from it.
    ///
    /// # Errors
    /// It gave none, and is to be dropped.
    pub fn receive(&mut self, limits: Limits) -> Result<Parts, Failure> {
        let deadline = Instant::now() + limits.within;
        let tick = if limits.memory_bytes.is_some() {
            MEMORY_TICK
        } else {
            TICK
        };
        let mut stopped: Option<Instant> = None;
        loop {
            match self.decoder.take() {
                Ok(Some(parts)) => return Ok(parts),
                Ok(None) => {}
                Err(error) => return Err(Failure::Nonsense(error.to_string())),
            }
            // Asked before the pipe is read: after its end nothing more is written.
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
                return Err(self.closed());
            }
            if self.over(limits.memory_bytes) {
                return Err(Failure::OverMemory);
            }
            stopped = stopped.or(Some(now)).filter(|_| state == State::Stopped);
            if stopped.is_some_and(|since| since.elapsed() >= MAX_STOPPED) {
                return Err(Failure::Stopped);
            }
            if now >= deadline && !moved {
                // Neither a stop, which is noticed later than a short deadline, nor an answer that
                // does not get through is the request's fault.
                return Err(match state {
                    State::Stopped => Failure::Stopped,
                    _ if self.decoder.is_empty() => Failure::Late,
                    _ => Failure::Nonsense("a part of a message only".to_owned()),
                });
            }
        }
    }

    /// It says nothing more: how it ended, or what it left unfinished.
    fn closed(&mut self) -> Failure {
        let end = Instant::now() + END_TIMEOUT;
        while self.pipes.state() != State::Ended {
            if Instant::now() >= end {
                return Failure::Nonsense("the end of its output, and goes on running".to_owned());
            }
            // Its standard error is read on, so that it can end.
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

    fn over(&self, limit: Option<u64>) -> bool {
        let held = || resident_bytes(self.id()?);
        limit.is_some_and(|limit| held().is_some_and(|bytes| bytes > limit))
    }

    /// Whether it ended while nobody waited for it.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.pipes.state() == State::Ended
    }

    /// The end of what it wrote to standard error, after a last look at it.
    pub fn said(&mut self) -> String {
        let _ = self.pipes.turn(Duration::ZERO, &mut self.received);
        self.pipes.said()
    }

    /// Forgets what it wrote to standard error: what follows belongs to the next request.
    pub fn forget_said(&mut self) {
        let _ = self.pipes.turn(Duration::ZERO, &mut self.received);
        self.pipes.forget_said();
    }
}

/// Resident memory of a process, bytes.
fn resident_bytes(id: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
