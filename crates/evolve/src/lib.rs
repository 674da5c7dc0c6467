//! Changes of a kernel's code, proposed by a mutator and decided by the gate and the times.
//!
//! This crate is pure: it starts no process, opens no file and uses no device. [`protocol`] defines the
//! request and the answer of a mutator, [`answer`] parses an answer strictly, [`edits`] and [`patch`] apply
//! its text, [`space_change`] applies its search space, [`includes`] rejects headers by name.
//! [`population`] chooses parents, [`accept`] decides about a judged change, [`figures`] computes the
//! figures of merit.

pub mod accept;
pub mod answer;
pub mod edits;
pub mod figures;
pub mod includes;
pub mod lineage;
pub mod outcome;
pub mod patch;
pub mod population;
pub mod protocol;
pub mod scripted;
pub mod space_change;
