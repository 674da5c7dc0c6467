//! A device in its own process.
//!
//! A kernel that hangs, crashes or poisons its context takes the worker with it, never the tuner:
//! the host kills the worker at the deadline of the step it is in, answers for the candidate, and
//! starts a fresh worker for the next one. The worker dies when its parent does: a thread of its
//! own waits for the end of the pipe.

pub mod child;
pub mod host;
pub mod protocol;
