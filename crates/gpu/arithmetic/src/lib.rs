//! Pure numerics of the number formats that PTX computes with.
//!
//! Everything here is a function of its arguments: no state, no platform libm, no `unsafe`. A
//! result therefore has the same bits on every host. The crate is built bottom up:
//!
//! - [`soft`]: exact arithmetic on any binary format with any rounding; the slow, sure path.
//! - [`single`], [`double`], [`half`], [`small`]: the formats, each with fast round-to-nearest.
//! - [`convert`]: float ↔ integer and integral rounding.
//! - [`approx`]: `ex2`, `lg2`, `sin`, … within the documented error.
//! - [`integer`], [`video`]: `lop3`, `prmt`, bit fields, dot products, `vabsdiff4`.
//! - [`layout`], [`mma`], [`wmma`]: fragments of the matrix instructions and the products.
//! - [`atomic`]: what an atomic leaves in memory.
//! - [`random`]: random rounding, which shows how far rounding moves a result.
//! - [`host`]: loops over lanes, with AVX2 where the CPU has it.
//!
//! Flushing and saturation are separate functions because PTX applies them to every operation in
//! the same way: `add.ftz.sat.f32` is `sat(ftz(add(ftz(a), ftz(b), Round::Rn)))`.
#![expect(
    clippy::indexing_slicing,
    reason = "arrays of the sizes that the instructions of matrices have, and tables of every value of a few bits"
)]

pub mod soft;
pub mod single;
pub mod double;
pub mod half;
pub mod small;
pub mod convert;
pub mod approx;
pub mod integer;
pub mod video;
pub mod layout;
pub mod mma;
pub mod wmma;
pub mod atomic;
pub mod random;
pub mod host;

/// One 32-bit register of all lanes of a warp.
pub type Lanes = [u32; 32];

/// Rounding of a floating-point result, with PTX's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// To nearest, ties to even.
    Rn,
    /// Towards zero.
    Rz,
    /// Towards negative infinity.
    Rm,
    /// Towards positive infinity.
    Rp,
    /// To nearest, ties away from zero (conversions only).
    Rna,
}

/// Treatment of a magnitude beyond the largest finite value of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// Infinity, or the largest finite value if the rounding mode requires it.
    Infinite,
    /// `.satfinite`: the largest finite value with the same sign. NaN stays NaN.
    Finite,
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
