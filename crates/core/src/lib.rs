//! Common types of all stages: plain values with their units. Also functions that every stage needs:
//! reading files within limits, reading the commit of a git tree, and reporting a panic.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod activity;
mod argument;
pub mod baseline_record;
pub mod cache;
pub mod cache_mode;
pub mod data;
mod defaults;
pub mod element;
pub mod entry;
pub mod escape;
pub mod evidence;
pub mod files;
pub mod fill;
mod fp8;
pub mod judgement;
pub mod layout;
mod named;
pub mod objective;
pub mod panics;
pub mod plan;
pub mod private;
pub mod provenance;
pub mod record;
pub mod recorded;
pub mod roofline;
mod repository;
pub mod settings;
pub mod statistics;
pub mod target;
pub mod units;
pub mod value;
