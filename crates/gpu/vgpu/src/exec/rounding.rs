//! Random rounding: coins that decide the direction of each result.

use gpu_arithmetic::atomic::{AtomOp, AtomType, apply};
use gpu_arithmetic::half::{self, Bfloat16, Fp16, Half};
use gpu_arithmetic::random::{Toss, sum_error};

/// Random rounding of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounding {
    /// The same seed produces the same results, on any number of host threads.
    pub seed: u64,
    /// Inverts every coin of the seed: a result that rounds down in one of the two launches rounds
    /// up in the other.
    pub inverted: bool,
    /// Maximum number of significand bits of a result, including the leading one: 24 rounds doubles
    /// like singles, 53 rounds every format at its own last place.
    pub precision: u32,
}

/// Coins of one warp. They depend only on the seed, the block, the warp and the number of earlier
/// draws, and so not on host threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Coins {
    state: u64,
    inverted: bool,
    /// 0 where results are not rounded at random.
    precision: u32,
}

/// Two coins per lane, for one instruction.
#[derive(Clone, Copy)]
pub(crate) struct Tosses {
    bits: u64,
    precision: u32,
}

impl Coins {
    pub(super) fn new(rounding: Rounding, ctaid: [u32; 3], warp: usize) -> Coins {
        let mut coins = Coins {
            state: rounding.seed,
            inverted: rounding.inverted,
            precision: rounding.precision,
        };
        // Block and warp enter one at a time, each through a mixing step: neighbouring warps get
        // unrelated coins.
        for part in ctaid.map(u64::from).into_iter().chain([warp as u64]) {
            coins.state = coins.next() ^ part;
        }
        coins
    }

    pub(super) fn is_active(self) -> bool {
        self.precision != 0
    }

    /// Advances SplitMix64 (G. Steele, D. Lea and C. Flood, 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn draw(&mut self) -> Tosses {
        let bits = self.next();
        Tosses {
            bits: if self.inverted { !bits } else { bits },
            precision: self.precision,
        }
    }
}

impl Tosses {
    #[inline(always)]
    pub(crate) fn of_lane(self, lane: usize) -> Toss {
        Toss {
            precision: self.precision,
            away: self.bits >> lane & 1 == 1,
            second: self.bits >> (32 + lane) & 1 == 1,
        }
    }
}

/// Computes the new value of an atomic, a sum being rounded at random.
pub(super) fn apply_randomly(
    toss: Toss,
    op: AtomOp,
    ty: AtomType,
    old: u64,
    b: u64,
    c: u64,
) -> u64 {
    let nearest = apply(op, ty, old, b, c);
    // Only sums round: the other operations are exact.
    if op != AtomOp::Add {
        return nearest;
    }
    match ty {
        AtomType::F32 => {
            let [old, b, nearest] = [old, b, nearest].map(|bits| f32::from_bits(bits as u32));
            let exact = f64::from(old) + f64::from(b);
            toss.single(nearest, exact).to_bits().into()
        }
        AtomType::F64 => {
            let [old, b, nearest] = [old, b, nearest].map(f64::from_bits);
            toss.double(nearest, sum_error(old, b)).to_bits()
        }
        AtomType::F16 => halves::<Fp16>(toss, old as u16, b as u16).into(),
        AtomType::Bf16 => halves::<Bfloat16>(toss, old as u16, b as u16).into(),
        AtomType::F16x2 => {
            half::map2(old as u32, b as u32, |x, y| halves::<Fp16>(toss, x, y)).into()
        }
        AtomType::Bf16x2 => {
            half::map2(old as u32, b as u32, |x, y| halves::<Bfloat16>(toss, x, y)).into()
        }
        _ => nearest,
    }
}

fn halves<H: Half>(toss: Toss, a: u16, b: u16) -> u16 {
    let exact = f64::from(H::widen(a)) + f64::from(H::widen(b));
    toss.half::<H>(half::add::<H>(a, b), exact)
}
