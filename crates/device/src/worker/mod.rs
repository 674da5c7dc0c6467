//! Devices in separate processes.
//!
//! A kernel that hangs, crashes or corrupts its context takes down the worker, never the tuner. The host
//! kills the worker at the deadline of its current step, reports the outcome of the candidate, and starts a
//! fresh worker for the next one. The worker exits with its parent: a separate thread waits for the end of
//! the pipe.

pub mod child;
pub mod host;
pub mod protocol;
