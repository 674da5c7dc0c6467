//! Registers of a warp, and reads of operands.

use std::sync::Arc;

use sass::ZERO;

pub(super) use super::operand::{Dest, Origin, Part, Pred, Source, TRUE};
use gpu_arithmetic::Lanes as Row;

/// A register pair of all lanes.
type Row64 = [u64; 32];
use gpu_arithmetic::host::vectorised;

/// Constant banks of a launch, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Banks(pub(super) [Vec<u8>; 8]);

impl Banks {
    /// Reads `N` bytes as a number; bytes after the end of a bank are zero.
    pub(super) fn read<const N: usize>(&self, bank: u8, offset: usize) -> u64 {
        let bank = self.0.get(usize::from(bank)).map_or(&[][..], |b| b);
        let end = offset.saturating_add(N).min(bank.len());
        let part = bank.get(offset..end).unwrap_or_default();
        part.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b))
    }
}

/// Position of a warp in its launch, as read through special registers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThreadPosition {
    /// Blocks of the grid in x, y, z.
    pub(super) grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub(super) block: [u32; 3],
    /// Index of the block in x, y, z.
    pub(super) block_at: [u32; 3],
    /// Index of the warp in its block.
    pub(super) warp: u32,
    /// Rank of the block in its cluster.
    pub(super) rank: u32,
}

/// Registers of one warp.
#[derive(Debug)]
pub(super) struct Registers {
    /// Registers of the lanes; the last one is zero.
    pub(super) rows: Vec<Row>,
    /// Uniform registers; the last one is zero.
    pub(super) uniform: [u32; 256],
    /// Lane masks of the predicates; the last one is true.
    pub(super) predicates: [u32; 8],
    /// Uniform predicates: zero or all lanes.
    pub(super) uniform_predicates: [u32; 8],
    /// Participants of each convergence barrier, per lane.
    pub(super) barriers: [Row; 16],
    /// Return address of each lane, in two words.
    pub(super) return_address: [Row; 2],
    /// Lanes of the running path, regardless of guards.
    pub(super) active: u32,
    /// Result of the last reduction at a block-wide barrier: a count, or all lanes for true.
    pub(super) reduced: u32,
    pub(super) place: ThreadPosition,
    pub(super) banks: Arc<Banks>,
    /// Number of instructions executed by the warp, its clock.
    pub(super) clock: u64,
}

/// Applies the sign modifiers of an operand to floats.
#[inline(always)]
fn with_float_signs(s: &Source, mut row: Row) -> Row {
    if s.absolute {
        row = row.map(|v| v & 0x7fff_ffff);
    }
    if s.negate {
        row = row.map(|v| v ^ 0x8000_0000);
    }
    row
}

impl Registers {
    pub(super) fn new(place: ThreadPosition, banks: Arc<Banks>) -> Registers {
        let mut predicates = [0; 8];
        predicates[usize::from(TRUE)] = u32::MAX;
        Registers {
            rows: vec![[0; 32]; 256],
            uniform: [0; 256],
            predicates,
            uniform_predicates: predicates,
            barriers: [[0; 32]; 16],
            return_address: [[0; 32]; 2],
            active: 0,
            reduced: 0,
            place,
            banks,
            clock: 0,
        }
    }
}

/// Computes a row in a loop that the compiler vectorises.
#[inline(always)]
pub(super) fn map_lanes(f: impl Fn(usize) -> u32) -> Row {
    vectorised(
        #[inline(always)]
        || {
            let mut out = [0; 32];
            for (lane, slot) in out.iter_mut().enumerate() {
                *slot = f(lane);
            }
            out
        },
    )
}

impl Registers {
    /// Reads the bits of an operand without sign modifiers.
    #[inline]
    pub(super) fn raw(&self, from: Origin) -> Row {
        match from {
            Origin::Row(r) => self.rows[usize::from(r)],
            Origin::Uniform(r) => [self.uniform[usize::from(r)]; 32],
            Origin::Constant { bank, offset } => {
                [self.banks.read::<4>(bank, offset as usize) as u32; 32]
            }
            Origin::Value(value) => [value as u32; 32],
            Origin::Indexed { .. } => {
                std::array::from_fn(|lane| self.indexed::<4>(from, lane) as u32)
            }
        }
    }

    /// Reads `N` bytes of a constant bank at a lane's address.
    pub(super) fn indexed<const N: usize>(&self, from: Origin, lane: usize) -> u64 {
        let (bank, at) = self.constant_address(from, lane);
        at.map_or(0, |at| self.banks.read::<N>(bank, at))
    }

    /// Returns the constant bank and a lane's address in it.
    pub(super) fn constant_address(&self, from: Origin, lane: usize) -> (u8, Option<usize>) {
        let Origin::Indexed {
            bank,
            base,
            uniform,
            offset,
        } = from
        else {
            return (0, None);
        };
        let base = if uniform {
            self.uniform[usize::from(base)]
        } else {
            self.rows[usize::from(base)][lane]
        };
        // The register holds the offset; the instruction, not the register, selects the bank.
        let at = i64::from(base as i32).wrapping_add(offset);
        (bank, usize::try_from(at).ok())
    }

    /// Reads an integer.
    #[inline]
    pub(super) fn int(&self, s: &Source) -> Row {
        let mut row = self.raw(s.from);
        match s.part {
            Part::Whole | Part::Single | Part::Swapped | Part::Turned => {}
            Part::Low => row = row.map(|v| v & 0xffff),
            Part::High => row = row.map(|v| v >> 16),
            Part::Byte(n) => row = row.map(|v| v >> (8 * u32::from(n)) & 0xff),
        }
        if s.absolute {
            row = row.map(|v| (v as i32).wrapping_abs() as u32);
        }
        if s.invert {
            row = row.map(|v| !v);
        }
        if s.negate {
            row = row.map(u32::wrapping_neg);
        }
        row
    }

    /// Reads an integer for an addition: a negated one as its complement, with 1 to be added.
    #[inline]
    pub(super) fn addend(&self, s: &Source) -> (Row, u64) {
        let row = self.raw(s.from);
        match s.negate || s.invert {
            true => (row.map(|v| !v), u64::from(s.negate)),
            false => (row, 0),
        }
    }

    /// Reads the bits of a single.
    #[inline]
    pub(super) fn float(&self, s: &Source) -> Row {
        with_float_signs(s, self.raw(s.from))
    }

    /// Reads the bits of two halves.
    #[inline]
    pub(super) fn halves(&self, s: &Source) -> Row {
        let mut row = self.raw(s.from);
        match s.part {
            Part::Low => row = row.map(|v| v << 16 | v & 0xffff),
            Part::High => row = row.map(|v| v & 0xffff_0000 | v >> 16),
            Part::Single => {
                row = row.map(|v| {
                    let half = u32::from(gpu_arithmetic::half::f32_to_f16(f32::from_bits(v)));
                    half << 16 | half
                });
            }
            Part::Turned => row = row.map(|v| v.rotate_left(16) ^ 0x8000),
            Part::Whole | Part::Byte(_) | Part::Swapped => {}
        }
        if s.absolute {
            row = row.map(|v| v & 0x7fff_7fff);
        }
        if s.negate {
            row = row.map(|v| v ^ 0x8000_8000);
        }
        row
    }

    /// Reads 64 bits of a register pair without sign modifiers.
    #[inline]
    pub(super) fn raw_wide(&self, from: Origin) -> Row64 {
        match from {
            Origin::Row(r) => {
                let low = &self.rows[usize::from(r)];
                let high = &self.rows[usize::from(r.saturating_add(1))];
                std::array::from_fn(|i| u64::from(high[i]) << 32 | u64::from(low[i]))
            }
            Origin::Uniform(r) => {
                let high = self.uniform[usize::from(r.saturating_add(1))];
                [u64::from(high) << 32 | u64::from(self.uniform[usize::from(r)]); 32]
            }
            Origin::Constant { bank, offset } => [self.banks.read::<8>(bank, offset as usize); 32],
            Origin::Value(value) => [value; 32],
            Origin::Indexed { .. } => std::array::from_fn(|lane| self.indexed::<8>(from, lane)),
        }
    }

    /// Reads a 64-bit integer.
    #[inline]
    pub(super) fn wide(&self, s: &Source) -> Row64 {
        let mut row = self.raw_wide(s.from);
        if s.invert {
            row = row.map(|v| !v);
        }
        if s.negate {
            row = row.map(u64::wrapping_neg);
        }
        row
    }

    /// Reads the bits of a double.
    #[inline]
    pub(super) fn double(&self, s: &Source) -> Row64 {
        let mut row = self.raw_wide(s.from);
        if s.absolute {
            row = row.map(|v| v & (u64::MAX >> 1));
        }
        if s.negate {
            row = row.map(|v| v ^ 1 << 63);
        }
        row
    }

    /// Reads a pair of floats, that of the lower register first; an immediate number is both.
    #[inline]
    pub(super) fn float_pair(&self, s: &Source) -> [Row; 2] {
        let row = self.raw_wide(s.from);
        let (low, high) = (row.map(|v| v as u32), row.map(|v| (v >> 32) as u32));
        let pair = match (s.part, s.from) {
            (Part::Single, _) | (_, Origin::Value(_)) => [low, low],
            (Part::Swapped, _) => [high, low],
            _ => [low, high],
        };
        pair.map(|row| with_float_signs(s, row))
    }

    /// Returns the lanes in which a predicate holds.
    #[inline]
    pub(super) fn truth(&self, t: Pred) -> u32 {
        let file = if t.uniform {
            &self.uniform_predicates
        } else {
            &self.predicates
        };
        let lanes = file[usize::from(t.index)];
        if t.invert { !lanes } else { lanes }
    }

    /// Writes a result in the lanes of `mask`; a uniform destination gets the value of the first
    /// lane.
    #[inline]
    pub(super) fn set(&mut self, dest: Dest, mask: u32, row: &Row) {
        match dest {
            Dest::Row(ZERO) | Dest::Uniform(ZERO) => {}
            Dest::Row(r) => {
                let to = &mut self.rows[usize::from(r)];
                // Most writes are unconditional: a copy is cheaper than a blend.
                if mask == u32::MAX {
                    *to = *row;
                } else {
                    *to = blend(to, row, mask);
                }
            }
            Dest::Uniform(r) => {
                if mask != 0 {
                    self.uniform[usize::from(r)] = row[mask.trailing_zeros() as usize];
                }
            }
        }
    }

    /// Writes 64 bits to a register pair.
    #[inline]
    pub(super) fn set_wide(&mut self, dest: Dest, mask: u32, row: &Row64) {
        self.set(dest, mask, &row.map(|v| v as u32));
        self.set(dest.next(1), mask, &row.map(|v| (v >> 32) as u32));
    }

    /// Writes a predicate in the lanes of `mask`.
    #[inline]
    pub(super) fn set_truth(&mut self, to: Pred, mask: u32, lanes: u32) {
        // `PT` discards writes, like `RZ`.
        if to.index == TRUE {
            return;
        }
        let at = usize::from(to.index);
        if !to.uniform {
            let old = self.predicates[at];
            self.predicates[at] = old & !mask | lanes & mask;
        } else if mask != 0 {
            let first = lanes >> mask.trailing_zeros() & 1;
            self.uniform_predicates[at] = 0u32.wrapping_sub(first);
        }
    }
}

/// Selects `new` in the lanes of `mask`, else `old`.
fn blend(old: &Row, new: &Row, mask: u32) -> Row {
    std::array::from_fn(|lane| match mask >> lane & 1 {
        1 => new[lane],
        _ => old[lane],
    })
}
