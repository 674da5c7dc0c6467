//! Rounding, saturation and flags of `cvt` in an instruction's constant.

use crate::lower::Mods;
use gpu_arithmetic::{Overflow, Round};

pub(super) const FTZ: u32 = 8;
pub(super) const SAT: u32 = 16;
pub(super) const RELU: u32 = 32;
pub(super) const FINITE: u32 = 64;

#[inline(always)]
pub(super) fn round(k: u32) -> Round {
    match k & 7 {
        0 => Round::Rn,
        1 => Round::Rz,
        2 => Round::Rm,
        3 => Round::Rp,
        _ => Round::Rna,
    }
}

#[inline(always)]
pub(super) fn overflow(k: u32) -> Overflow {
    if k & FINITE != 0 {
        Overflow::Finite
    } else {
        Overflow::Infinite
    }
}

pub(super) fn flags(m: &Mods<'_>) -> u32 {
    let round = match () {
        () if m.has("rz") || m.has("rzi") => 1,
        () if m.has("rm") || m.has("rmi") => 2,
        () if m.has("rp") || m.has("rpi") => 3,
        () if m.has("rna") => 4,
        () => 0,
    };
    let mut k = round;
    for (word, bit) in [
        ("ftz", FTZ),
        ("sat", SAT),
        ("relu", RELU),
        ("satfinite", FINITE),
    ] {
        if m.has(word) {
            k |= bit;
        }
    }
    k
}
