//! Is a candidate right, and how fast is it?
//!
//! [`gate`] drives any [`session::Session`], [`timing`] any [`stopwatch::Stopwatch`]; a time takes
//! the gate's proof ([`gate::Verified`]). What a device is belongs to the crates above.
// A panic would end a run; the few exceptions say why they cannot.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo
    )
)]

pub mod session;
pub mod stopwatch;
pub mod judgement;
pub mod gate;
pub mod timing;
