//! Is a candidate right, and how fast is it?
//!
//! [`gate`] drives any [`session::Session`], [`timing`] any [`stopwatch::Stopwatch`]; a time takes
//! the gate's proof ([`gate::Verified`]). What a device is belongs to the crates above.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod session;
pub mod stopwatch;
pub mod judgement;
pub mod gate;
pub mod timing;
