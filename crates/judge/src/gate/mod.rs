//! Verification: seeded and adversarial inputs, float64 references with error bounds, and the
//! comparison.
#![expect(
    clippy::indexing_slicing,
    reason = "arguments, launches, slots and outputs are numbered by the plan, whose own lists they index"
)]

pub mod adversarial;
pub mod compare;
mod closure;
mod conflicts;
mod coverage;
mod demands;
mod expected;
mod extremes;
pub mod generate;
mod bounded_cache;
mod evidence;
mod hard_reference;
mod judge;
mod keys;
pub mod level;
mod long_row;
mod naive;
mod numbers;
mod on_device;
pub mod oracle;
mod outputs;
mod partial;
mod pattern;
mod points;
mod probe;
mod proof;
mod ranges;
mod recheck;
mod reference_blocks;
pub mod references;
mod rounding;
mod sampling;
pub mod spread;
mod tiling;
pub mod tolerance;
mod trials;
mod unread;
pub mod verify;
mod verified;
mod writers;
mod zeros;
pub mod expected_output;

pub use keys::expectation;
pub use recheck::recheck;
pub use verified::Verified;
