//! `tuner`: an auto-tuner for CUDA C++ kernel templates. The command line, and what it composes.
//!
//! ```text
//! search_spaces/*.yaml + templates/*/kernel.cu
//!       └─► space ─► search ─► kernel ─► judge (on a device) ─► store ─► report
//! ```
//!
//! `ARCHITECTURE.md` at the repository's root says where everything lives and which invariants hold.

mod atomic;
mod cli;
mod exit;

fn main() -> std::process::ExitCode {
    cli::main()
}
