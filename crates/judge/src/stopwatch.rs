//! Device interface of timing, so that a real GPU and a synthetic noisy clock are timed by the same
//! code.
//!
//! The device holds the launch sequences that are compared (the subjects), each with its own
//! buffers, and measures on request. It makes no decisions: repetitions, order, discarded samples
//! and the end are decided by the plan ([`crate::timing::race`], [`crate::timing::paired`]).

use crate::session::{Contents, Session};
use std::time::Duration;
use tuner_core::cache_mode::CacheMode;
use tuner_core::judgement::Judgement;

/// A launch sequence that the device has loaded and can time: a candidate's launches of one problem
/// with separate buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(pub usize);

/// One sample: a number of launches of one subject, back to back (as one graph if the device has
/// graphs), between two time stamps of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Time of one launch sequence: the total divided by the number of launches, microseconds.
    pub micros: f64,
    /// Multiprocessor clock cycles of one launch sequence, if the device can stamp them.
    pub cycles: Option<f64>,
    /// Mean clock of the multiprocessors during the sample, MHz.
    pub clock_mhz: Option<f64>,
    /// The device throttled for heat or a fault during the sample, by its own report. A clock that is low
    /// for lack of load or by a power limit does not count: that is the device's normal state.
    pub throttled: bool,
    /// The host had not queued everything when the sample began, so the device may have waited for
    /// the host.
    pub late: bool,
}

impl Sample {
    /// Builds a sample with a time only.
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

/// Energy during a window of the device's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Increase of the counter, millijoules.
    pub millijoules: u64,
    /// Launch sequences that ended in the window.
    pub launches: u64,
}

/// The outputs of one buffer set: contents by argument index of the plan, ascending.
pub type OutputSet = Vec<(usize, Contents)>;

/// Device interface of timing.
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

    /// Pauses the device so that it cools or raises its clock.
    fn pause(&mut self, how_long: Duration);

    /// Poisons the outputs (and scratch) of all buffer sets of a subject, so that the next sample
    /// must write them again to pass.
    ///
    /// # Errors
    /// The device failed.
    fn poison(&mut self, subject: Subject) -> Result<(), Judgement>;

    /// Reports whether the launches of the last sample drove buffers that they update in place to
    /// non-finite values: the work then differs from that on the space's data. Called before
    /// [`Stopwatch::outputs`].
    ///
    /// # Errors
    /// The device failed.
    fn overflowed(&mut self, _subject: Subject) -> Result<bool, Judgement> {
        Ok(false)
    }

    /// Returns the outputs of the last sample of a subject, from the first and the last buffer set
    /// it used, which may be the same. If launches update a buffer in place, returns the outputs of
    /// one more launch sequence from the initial state.
    ///
    /// # Errors
    /// The device failed.
    fn outputs(&mut self, subject: Subject) -> Result<Vec<OutputSet>, Judgement>;

    /// Runs launch sequences of a subject back to back, `launches` at a time, from one step of the
    /// device's energy counter to another after at least `least` of them. `None` if the device does
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

    /// Returns the gate's view of the same device, if the device can inspect retained contents.
    fn as_session(&mut self) -> Option<&mut dyn Session> {
        None
    }
}
