//! Is it right? Seeded and adversarial inputs, float64 references with error bounds, and the
//! comparison.

pub mod adversarial;
pub mod compare;
pub mod generate;
mod judge;
mod keys;
pub mod level;
mod naive;
pub mod oracle;
mod pattern;
mod ranges;
mod recheck;
pub mod references;
mod sampling;
mod tiling;
pub mod tolerance;
mod trials;
pub mod verify;
mod verified;

pub use keys::expectation;
pub use recheck::recheck;
pub use verified::Verified;
