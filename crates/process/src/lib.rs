//! Child processes: started, spoken with, watched and ended in one way.
//!
//! ```text
//! tuner  ── Process: deadlines, memory, stops and ends, standard error ──┐ pipes
//! worker ── Parent: requests in, replies out, dies with the tuner ───────┘ frames
//! ```
//!
//! [`Process`] is a worker that answers requests, [`run()`] a command that runs to its end. Both move
//! all pipes from the thread that waits, so that a full pipe, a silent child or one that is stopped
//! costs a deadline and never a hang, and no thread is needed for a child.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod ending;
mod frame;
mod memory;
mod oom;
mod pipes;
mod process;
mod run;
mod worker;

pub use ending::{Ending, Failure};
pub use frame::{Decoder, Parts, encode, from_json, to_json};
pub use memory::free_memory;
pub use pipes::{Program, start_error};
pub use process::{ATTEMPTS, Limits, Process, pause};
pub use run::{Finished, run};
pub use worker::{EXIT_BAD_REQUEST, Parent, Replies, die, watch_requests};
