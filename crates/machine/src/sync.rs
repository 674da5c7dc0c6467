//! Barriers in shared memory and copies that complete them.
//!
//! Kernels initialise barriers themselves, which tells their layout. On compute capability 8 the lower
//! word is 2^30 less the arrivals that a phase takes, the upper one 2^31 less those still to come, and
//! the phase (bit 31). Later ones are 64 bits: how many arrivals a phase takes (bits 1 to 20, as 2^20 less the number),
//! bytes still to come (21 to 42), arrivals still to come (43 to 62, as 2^20 less the number) and
//! the phase (63); only where the bytes are is our choice.

use super::memory::{Memory, Where, lanes};
use super::registers::{Dest, Source, Truth};
use super::warp::Warp;

/// An operation on a barrier in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sync {
    /// Arrives when copies are done, which they are at once. Where it was not `expected` it is one
    /// arrival more that the phase takes.
    Copied { at: Where, expected: bool },
    /// Sets it, or another word.
    Exchange { at: Where, value: Source },
    /// Arrives, and may say how many bytes are to come.
    Arrive {
        at: Where,
        dest: Option<Dest>,
        arrivals: Source,
        bytes: Option<Source>,
        /// What comes back is the lanes that arrive together and the upper word before them.
        masks: bool,
    },
    /// The barrier's memory is used for something else from now on.
    Nothing,
    /// Whether the phase of a token is over.
    Check {
        at: Where,
        out: Truth,
        phase: Source,
    },
    /// Copies a range; uniform registers hold the places and the units of 16 bytes.
    Bulk {
        shared: u8,
        global: u8,
        units: u8,
        into_shared: bool,
    },
}

/// A barrier of compute capability 8 after some more arrivals.
fn arrived(old: u64, arrivals: u64) -> u64 {
    let low = old & 0xffff_ffff;
    let left = (0x8000_0000 - (old >> 32 & 0x7fff_ffff)).saturating_sub(arrivals);
    let phase = old >> 63;
    let (phase, left) = match left {
        0 => (phase ^ 1, 0x4000_0000u64.saturating_sub(low & 0x3fff_ffff)),
        left => (phase, left),
    };
    phase << 63 | ((0x8000_0000 - left) & 0x7fff_ffff) << 32 | low
}

const FIELD: u64 = 0xf_ffff;
const BYTES: u64 = 0x3f_ffff;

impl Memory<'_> {
    fn word(&mut self, at: u64) -> Result<&mut [u8], String> {
        let part = self.shared.get_mut(at as usize..at as usize + 8);
        part.ok_or_else(|| format!("address {at:#x} is behind the end of shared memory"))
    }

    fn read_word(&mut self, at: u64) -> Result<u64, String> {
        let part = self.word(at)?;
        Ok(part.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b)))
    }

    fn write_word(&mut self, at: u64, value: u64) -> Result<(), String> {
        self.word(at)?.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Fewer arrivals or bytes to come; the phase ends where none are left. Gives the word before.
    fn progress(&mut self, at: u64, arrivals: u64, bytes: i64) -> Result<u64, String> {
        let old = self.read_word(at)?;
        if !self.barriers_count_bytes {
            self.write_word(at, arrived(old, arrivals))?;
            return Ok(old);
        }
        let expected = (FIELD + 1 - (old >> 1 & FIELD)) & FIELD;
        let mut left = (FIELD + 1 - (old >> 43 & FIELD)) & FIELD;
        let mut to_come = (old >> 21 & BYTES).wrapping_add(bytes as u64) & BYTES;
        let mut phase = old >> 63;
        left = left.saturating_sub(arrivals);
        if left == 0 && to_come == 0 {
            phase ^= 1;
            left = expected;
            to_come = 0;
        }
        let left = (FIELD + 1 - left) & FIELD;
        let new = phase << 63 | left << 43 | to_come << 21 | old & (FIELD << 1);
        self.write_word(at, new)?;
        Ok(old)
    }

    /// Executes an operation on a barrier for the lanes of `mask`.
    pub(super) fn sync(&mut self, w: &mut Warp, op: &Sync, mask: u32) -> Result<(), String> {
        match op {
            Sync::Copied { at, expected } => {
                let at = at.addresses(&w.registers);
                // Before 9.0 an instruction of its own makes the phase take one more.
                if *expected || !self.barriers_count_bytes {
                    for lane in lanes(mask) {
                        self.progress(at[lane], 1, 0)?;
                    }
                }
            }
            Sync::Exchange { at, value } => {
                let (at, value) = (at.addresses(&w.registers), w.registers.raw_wide(value.from));
                if let Some(lane) = lanes(mask).next() {
                    self.write_word(at[lane], value[lane])?;
                }
            }
            Sync::Arrive {
                at,
                dest,
                arrivals,
                bytes,
                masks,
            } => {
                let at = at.addresses(&w.registers);
                let bytes = bytes.map_or([0; 32], |b| w.registers.raw(b.from));
                let arrivals = w.registers.raw(arrivals.from);
                let mut tokens = [0; 32];
                for lane in lanes(mask) {
                    let more = i64::from(bytes[lane]);
                    tokens[lane] = self.progress(at[lane], arrivals[lane].into(), more)?;
                }
                if *masks {
                    let before = tokens[mask.trailing_zeros() as usize & 31];
                    tokens = [before & !0xffff_ffff | u64::from(mask); 32];
                }
                if let Some(dest) = dest {
                    w.registers.set_wide(*dest, mask, &tokens);
                }
            }
            Sync::Check { at, out, phase } => {
                let (at, phase) = (at.addresses(&w.registers), w.registers.raw(phase.from));
                let mut over = 0;
                for lane in lanes(mask) {
                    let now = self.read_word(at[lane])? >> 63;
                    over |= u32::from(now != u64::from(phase[lane] >> 31)) << lane;
                }
                w.registers.set_truth(*out, mask, over);
            }
            Sync::Nothing => {}
            Sync::Bulk {
                shared,
                global,
                units,
                into_shared,
            } => self.bulk(w, (*shared, *global, *units), *into_shared)?,
        }
        Ok(())
    }

    fn bulk(
        &mut self,
        w: &Warp,
        (shared, global, units): (u8, u8, u8),
        into: bool,
    ) -> Result<(), String> {
        let u = |index: u8| w.registers.uniform[usize::from(index)];
        let next = |index: u8| u(index.saturating_add(1));
        let at = u64::from(u(shared));
        let from = u64::from(u(global)) | u64::from(next(global)) << 32;
        let total = u64::from(u(units)) * 16;
        for step in (0..total).step_by(16) {
            if into {
                let value = self.load_global(from.wrapping_add(step), 16)?;
                self.store_shared(at + step, 16, value)?;
            } else {
                let value = self.load_shared(at + step, 16)?;
                self.store_global(from.wrapping_add(step), 16, value)?;
            }
        }
        if into {
            self.progress(u64::from(next(shared)), 0, -(total as i64))?;
        }
        Ok(())
    }
}
