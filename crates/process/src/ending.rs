//! How children end, and whose doing it was.

use crate::oom::OomKills;
use crate::worker::EXIT_BAD_REQUEST;
use rustix::process::Signal;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Signals that a process gets for what it does itself.
const FAULTS: [Signal; 7] = [
    Signal::ILL,
    Signal::TRAP,
    Signal::ABORT,
    Signal::BUS,
    Signal::FPE,
    Signal::SEGV,
    Signal::SYS,
];

/// The end of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Its exit status; `None` where the system no longer tells.
    pub status: Option<ExitStatus>,
    /// The end of its standard error.
    pub said: String,
    out_of_memory: Option<&'static str>,
}

impl Ending {
    pub(crate) fn new(status: Option<ExitStatus>, said: String, before: &OomKills) -> Self {
        let killed = status.is_some_and(|status| status.signal() == Some(Signal::KILL.as_raw()));
        Self {
            status,
            said,
            out_of_memory: killed
                .then(|| OomKills::read().cause_since(before))
                .flatten(),
        }
    }

    /// Whether the child was ended by something else than what it ran: by a signal from outside, by
    /// the out-of-memory killer, or by a request that was damaged on its way.
    #[must_use]
    pub fn is_from_outside(&self) -> bool {
        let Some(status) = self.status else {
            return true;
        };
        match status.signal() {
            Some(signal) => !FAULTS.iter().any(|fault| fault.as_raw() == signal),
            None => status.code() == Some(EXIT_BAD_REQUEST),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("no exit status")?,
        }
        if let Some(cause) = self.out_of_memory {
            write!(f, " ({cause})")?;
        }
        if !self.said.is_empty() {
            write!(f, "; {}", self.said)?;
        }
        Ok(())
    }
}

/// Why a child gave no answer.
#[derive(Debug)]
pub enum Failure {
    /// Nothing came in time.
    Late,
    /// It holds more memory than it may.
    OverMemory,
    /// It is stopped (SIGSTOP, a debugger) and nobody lets it go on.
    Stopped,
    /// It ended.
    Ended(Ending),
    /// It sent something that is no answer.
    Nonsense(String),
    /// This process cannot watch it.
    Host(io::Error),
}

impl Failure {
    /// Whether it says nothing of what the child was asked to do, so that another child should be
    /// asked the same.
    #[must_use]
    pub fn is_from_outside(&self) -> bool {
        match self {
            Self::Late | Self::OverMemory => false,
            Self::Ended(ending) => ending.is_from_outside(),
            Self::Stopped | Self::Nonsense(_) | Self::Host(_) => true,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late => f.write_str("it did not answer in time"),
            Self::OverMemory => f.write_str("it needed more memory than it may"),
            Self::Stopped => f.write_str("it was stopped by a signal (SIGSTOP) and did not go on"),
            Self::Ended(ending) => write!(f, "it ended with {ending}"),
            Self::Nonsense(what) => write!(f, "it sent {what}"),
            Self::Host(error) => write!(f, "it cannot be watched: {error}"),
        }
    }
}
