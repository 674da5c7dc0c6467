//! Child processes: start, messages, supervision and end in one place.
//!
//! ```text
//! tuner  ── Process: deadlines, memory, stops and ends, standard error ──┐ pipes
//! worker ── Parent: requests in, replies out, dies with the tuner ───────┘ frames
//! ```
//!
//! [`Process`] is a worker that answers requests; [`run()`] runs a command to its end, and [`ask()`] one
//! that answers within limits. The waiting thread moves all pipes itself. A full pipe and a silent or
//! stopped child therefore only cost a deadline and never hang, and a child needs no thread.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod answer;
mod descendants;
mod ending;
mod frame;
mod memory;
mod oom;
mod pipes;
mod process;
mod run;
mod worker;

pub use answer::{AnswerLimits, NoAnswer, ask};
pub use ending::{Ending, Failure};
pub use frame::{Decoder, Parts, encode, from_json, to_json};
pub use memory::free_memory;
pub use pipes::{Program, start_error};
pub use process::{ATTEMPTS, Limits, Process, pause};
pub use run::{Finished, run};
pub use worker::{EXIT_BAD_REQUEST, Parent, Replies, die, watch_requests};
