//! `tuner`: an auto-tuner for CUDA C++ kernel templates. The command line, and what it composes.
//!
//! ```text
//! search_spaces/*.yaml + templates/*/kernel.cu
//!       └─► space ─► search ─► kernel ─► judge (on a device) ─► store ─► report
//! ```
//!
//! `ARCHITECTURE.md` at the repository's root says where everything lives and which invariants hold.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

/// Writes a line to standard error. One that nobody can read any more, because a pipe was closed or a
/// disk is full, is no reason to end a run: `eprintln!` would panic.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::cli::terminal::say(&format!($($text)*))
    };
}

/// The same without the end of a line.
macro_rules! say_part {
    ($($text:tt)*) => {
        $crate::cli::terminal::tell(&format!($($text)*))
    };
}

/// Ends a command by the user's mistake: what is wrong, and the fix.
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
