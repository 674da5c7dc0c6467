//! `tuner`: an auto-tuner for CUDA C++ kernel templates.
//!
//! ```text
//! search_spaces/*.yaml + templates/*/kernel.cu
//!       └─► space ─► evolve ─► compile ─► gate ─► timing ─► store ─► leaderboard, export
//! ```
//!
//! `ARCHITECTURE.md` at the repository's root says where everything lives and which invariants
//! hold. Modules are declared in the order data flows through them.

// Words that every stage speaks.
pub mod atomic;
pub mod baseline_record;
pub mod cache_mode;
pub mod element;
pub mod entry;
pub mod exit;
pub mod fill;
mod fp8;
pub mod plan;
pub mod provenance;
pub mod record;
pub mod recorded;
pub mod statistics;
pub mod units;
pub mod value;

// What the judge asks of a device, and what it answers.
pub mod judgement;
pub mod session;
pub mod stopwatch;

// The pipeline.
pub mod space;
pub mod evolve;
pub mod compile;
pub mod declarations;
pub mod device;
pub mod gate;
pub mod timing;
pub mod baseline;
pub mod engine;

// Results.
pub mod store;
pub mod export;
pub mod report;
pub mod accept;

// Composition.
pub mod catalog;
pub mod job;
pub mod serve;
pub mod cli;
