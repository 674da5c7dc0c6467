//! Verification and timing of candidates.
//!
//! [`gate`] drives any [`session::Session`], [`timing`] any [`stopwatch::Stopwatch`]; a time
//! requires the gate's proof ([`gate::Verified`]). Devices are implemented in the crates above.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod session;
pub mod stopwatch;
pub mod explanation;
pub mod judgement;
pub mod gate;
pub mod timing;
