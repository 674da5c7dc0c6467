//! The end of a child process and its cause.

use crate::oom::OomKills;
use crate::worker::EXIT_BAD_REQUEST;
use rustix::process::Signal;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Signals that a process raises by its own faults.
const FAULTS: [Signal; 7] = [
    Signal::ILL,
    Signal::TRAP,
    Signal::ABORT,
    Signal::BUS,
    Signal::FPE,
    Signal::SEGV,
    Signal::SYS,
];

/// The end of a child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Exit status; `None` if the system no longer reports it.
    pub status: Option<ExitStatus>,
    /// The last bytes of standard error.
    pub said: String,
    out_of_memory: Option<&'static str>,
}

impl Ending {
    pub(crate) fn new(status: Option<ExitStatus>, said: String, before: &OomKills) -> Self {
        // The killer sends SIGKILL, but its counters also grow for other processes.
        let killed = status.is_some_and(|status| status.signal() == Some(Signal::KILL.as_raw()));
        Self {
            status,
            said,
            out_of_memory: killed
                .then(|| OomKills::read().cause_since(before))
                .flatten(),
        }
    }

    /// Reports whether the cause is outside the code that the child ran: a signal of another process, the
    /// out-of-memory killer, or a request damaged in transit.
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

/// Reason why a child did not answer.
#[derive(Debug)]
pub enum Failure {
    /// The deadline passed.
    Late,
    /// The resident memory exceeds the limit.
    OverMemory,
    /// The child is stopped (SIGSTOP, a debugger) and does not continue.
    Stopped,
    /// The child ended.
    Ended(Ending),
    /// The child sent an invalid message.
    Nonsense(String),
    /// This process cannot watch the child.
    Host(io::Error),
}

impl Failure {
    /// Reports whether the failure is independent of the request, so that a fresh child should get
    /// the same request.
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
            Self::OverMemory => f.write_str("it exceeded its memory limit"),
            Self::Stopped => {
                f.write_str("it was stopped by a signal (SIGSTOP) and did not continue")
            }
            Self::Ended(ending) => write!(f, "it ended with {ending}"),
            Self::Nonsense(what) => write!(f, "it sent {what}"),
            Self::Host(error) => write!(f, "it cannot be watched: {error}"),
        }
    }
}
