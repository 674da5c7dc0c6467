//! `tuner`: an auto-tuner for CUDA C++ kernel templates. The command line and its composition of
//! crates.
//!
//! ```text
//! search_spaces/*.yaml + templates/*/kernel.cu
//!       └─► space ─► search ─► kernel ─► judge (on a device) ─► store ─► report
//! ```
//!
//! `ARCHITECTURE.md` at the repository's root has the code map and the invariants.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

/// Writes a line to standard error. A write error (closed pipe, full disk) is ignored: `eprintln!`
/// would panic.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::cli::terminal::say(&format!($($text)*))
    };
}

/// Writes to standard error without a line end.
macro_rules! say_part {
    ($($text:tt)*) => {
        $crate::cli::terminal::tell(&format!($($text)*))
    };
}

/// Returns a user error with its cause and fix.
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err($crate::cli::usage(tuner_core::escape::line(&format!($($text)*))))
    };
}

mod atomic;
mod cli;
mod exit;

pub use cli::main;
#[doc(hidden)]
pub use cli::readers;
