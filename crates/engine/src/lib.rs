//! Pipeline: request → prepare ahead → evaluate → store → report, until a limit is reached.
//!
//! Only this crate defines the order of the steps. It is generic over an [`Evaluator`], which is a
//! device with all steps from a configuration to a judged candidate; the store and the search are the
//! same for all of them.
//!
//! **Order.** If results must not depend on the machine ([`Order::Fixed`]: replay and the virtual GPU),
//! [`WINDOW`] candidates are in flight. Results are reported to the search in the order of a virtual clock:
//! one device judges one candidate after another. The search chooses the next one among the due candidates,
//! which depend only on the number of results. The number of threads and their timing change nothing. On a
//! real GPU ([`Order::Arrival`]) the search chooses among the compiled candidates, and results are reported
//! as they arrive.
//!
//! **Durability.** A result is announced ([`Event::Trial`]) after the commit of the transaction
//! that holds it, and never before. Results are reported to the search immediately; commits follow in
//! groups.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod ablation;
pub mod baseline;
mod cuda;
mod error;
mod evaluator;
mod event;
pub mod fleet;
pub mod job;
pub mod knowledge;
mod lanes;
mod ledger;
mod foresight;
pub mod grid;
mod judging;
mod limits;
pub mod night;
mod parallel;
mod pipeline;
mod predict;
mod prior;
pub mod quality;
mod record;
mod regression;
mod replay;
mod schedule;
pub mod threads;
mod virtual_gpu;
mod other_problems;
mod window;

pub use error::EngineError;
pub use evaluator::{BoxError, Clock, Evaluator, Judged, Order, Preparation, Proof, ProofOutcome};
pub use event::{Event, StopReason, TaskFacts, TrialEvent};
pub use judging::{Demand, JudgePool, KernelTask, Work};
pub use ledger::{Best, Report, TaskReport, TaskState};
pub use limits::{BudgetError, Limits, format_duration, parse_budget, parse_share};
pub use pipeline::{Plan, run, turned};
pub use predict::{Predictor, named};
pub use prior::like;
pub use record::record;
pub use regression::Rounds;
pub use replay::ReplayEvaluator;
pub use schedule::{Allocation, StartPoint, Task};

/// Candidates in flight on devices of fixed order, from which the search chooses the next one
/// (`window.rs`). Sixteen keep the compile pool of a workstation busy, and cost the search about
/// 0.01 of its score (`tuner replay --in-flight 16`). Runs are only reproducible with this value,
/// so it is not a setting.
pub const WINDOW: usize = 16;

/// Candidates that may wait for a real device, in addition to those being prepared.
const DEVICE_QUEUE: usize = 2;
