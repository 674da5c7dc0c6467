//! The few things timing asks of a device, so that a real GPU and a synthetic noisy clock are
//! timed by the same code.
//!
//! The device holds the launch sequences that are compared (the subjects), each with its own
//! buffers, and measures what it is told to measure. It decides nothing: how often, in which
//! order, what to throw away and when to stop is the plan's business ([`crate::timing::race`],
//! [`crate::timing::paired`]).

use crate::session::{Contents, Session};
use std::time::Duration;
use tuner_core::cache_mode::CacheMode;
use tuner_core::judgement::Judgement;

/// One launch sequence that the device has loaded and can time: a candidate's launches of one
/// problem on buffers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(pub usize);

/// One sample: a number of launches of one subject, back to back (as one graph where the device
/// has graphs), between two time stamps of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Time of one launch sequence: the whole divided by the number of launches, microseconds.
    pub micros: f64,
    /// Cycles of the multiprocessors' clock of one launch sequence, where the device can stamp
    /// them.
    pub cycles: Option<f64>,
    /// Mean clock of the multiprocessors during the sample, MHz.
    pub clock_mhz: Option<f64>,
    /// The device says that it slowed itself down for heat or a fault during the sample. A clock
    /// that is low for want of load is none, nor is one that a power limit holds down: that is how
    /// such a device runs.
    pub throttled: bool,
    /// The host had not queued everything when the sample began, so it may have waited for the host.
    pub late: bool,
}

impl Sample {
    /// A sample of which nothing but the time is known.
    #[must_use]
    pub fn of_micros(micros: f64) -> Self {
        Self {
            micros,
            cycles: None,
            clock_mhz: None,
            throttled: false,
            late: false,
        }
    }
}

/// What a device drew in a window of its energy counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// By how much the counter went up, millijoules.
    pub millijoules: u64,
    /// Launch sequences that ended meanwhile.
    pub launches: u64,
}

/// The outputs of one buffer set: contents by argument index of the plan, ascending.
pub type OutputSet = Vec<(usize, Contents)>;

/// A device that times.
pub trait Stopwatch {
    /// Times `launches` launch sequences of a subject and waits for everything on the device to
    /// end (the context, not only a stream) before the end stamp is read.
    ///
    /// # Errors
    /// The launch was refused, or the device failed.
    fn sample(
        &mut self,
        subject: Subject,
        cache: CacheMode,
        launches: u32,
    ) -> Result<Sample, Judgement>;

    /// Lets the device cool or clock up again.
    fn pause(&mut self, how_long: Duration);

    /// Poisons the outputs (and scratch) of all buffer sets of a subject, so that the next sample
    /// must write them again to pass.
    ///
    /// # Errors
    /// The device failed.
    fn poison(&mut self, subject: Subject) -> Result<(), Judgement>;

    /// Whether the launches of the last sample drove what they change in place to values that are
    /// not finite: what they computed then is not what they compute from the space's data. Asked
    /// before [`Stopwatch::outputs`].
    ///
    /// # Errors
    /// The device failed.
    fn overflowed(&mut self, _subject: Subject) -> Result<bool, Judgement> {
        Ok(false)
    }

    /// What the last sample of a subject left in its outputs: of the first and the last buffer set
    /// it used, which may be the same one. Where launches change a buffer in place: what one more
    /// launch sequence leaves from the beginning.
    ///
    /// # Errors
    /// The device failed.
    fn outputs(&mut self, subject: Subject) -> Result<Vec<OutputSet>, Judgement>;

    /// Runs launch sequences of a subject back to back, `launches` at a time, from one step of the
    /// device's energy counter to another after `least` of them or more. `None` where the device does
    /// not count its energy.
    ///
    /// # Errors
    /// The device failed.
    fn draw(
        &mut self,
        _subject: Subject,
        _launches: u32,
        _least: u64,
    ) -> Result<Option<Draw>, Judgement> {
        Ok(None)
    }

    /// The same device as the gate sees it, where it can look at what it keeps.
    fn as_session(&mut self) -> Option<&mut dyn Session> {
        None
    }
}
