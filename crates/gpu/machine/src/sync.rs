//! Barriers in shared memory, and copies that complete them.
//!
//! Kernels initialise barriers themselves, which fixes the layout. On compute capability 8 the
//! lower word is 2^30 minus the arrivals of a phase. The upper word is 2^31 minus the pending
//! arrivals, plus the phase (bit 31). Later barriers have 64 bits: arrivals of a phase (bits 1 to
//! 20, as 2^20 minus the number), pending bytes (21 to 42), pending arrivals (43 to 62, as 2^20
//! minus the number) and the phase (63). Only the position of the bytes is an assumption.

use super::memory::{AddressOp, Memory, RANK_SHIFT, lanes};
use super::registers::{Dest, Pred, Source};
use super::warp::Warp;
use gpu_arithmetic::Lanes as Row;
use gpu_arithmetic::atomic::{AtomOp, AtomType, apply};
use vgpu::exec::trace::SignalKind;

/// A bulk copy; the numbers are those of uniform registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct BulkCopy {
    /// First of the shared address and the barrier's.
    pub(super) shared: u8,
    /// The other address.
    pub(super) other: u8,
    /// The number of 16-byte units; with the mask of a multicast in the high half.
    pub(super) units: u8,
    pub(super) into_shared: bool,
    /// The other address is one of shared memory.
    pub(super) between_blocks: bool,
    pub(super) multicast: bool,
}

/// A store that a barrier counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedStore {
    /// First of the registers with the address of the data and that of the barrier.
    pub(super) pair: u8,
    pub(super) value: Source,
    pub(super) bytes: u8,
    /// Operation of a reduction.
    pub(super) reduce: Option<AtomOp>,
}

/// An operation on a barrier in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sync {
    /// Arrives on completion of copies, which are complete at once here. If not `expected`, the
    /// phase takes one more arrival.
    Copied { at: AddressOp, expected: bool },
    /// Writes a barrier or another word.
    Exchange { at: AddressOp, value: Source },
    /// Arrives, with an optional number of bytes to expect.
    Arrive {
        at: AddressOp,
        dest: Option<Dest>,
        arrivals: Source,
        bytes: Option<Source>,
        /// Returns the lanes that arrive together and the previous upper word.
        masks: bool,
    },
    /// Writes zeros; the register has the number of 8-byte units.
    Clear { at: AddressOp, units: Source },
    /// Invalidates a barrier, whose memory is then used otherwise.
    Nothing,
    /// Tests the end of the phase of a token.
    Check {
        at: AddressOp,
        out: Pred,
        phase: Source,
    },
    /// Copies a range; uniform registers hold the addresses and the number of 16-byte units.
    Bulk(BulkCopy),
    /// Stores to the shared memory of a cluster and completes its bytes at a barrier.
    Store(CountedStore),
}

/// Computes the word of a compute capability 8 barrier after `arrivals`.
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

const ARRIVALS_MASK: u64 = 0xf_ffff;
const BYTES_MASK: u64 = 0x3f_ffff;

impl Memory<'_> {
    fn word(&mut self, at: u64) -> Result<&mut [u8], String> {
        let place = self.shared_place(at)? as usize;
        let part = self.shared.get_mut(place..place + 8);
        part.ok_or_else(|| format!("address {at:#x} is past the end of shared memory"))
    }

    fn read_word(&mut self, at: u64) -> Result<u64, String> {
        let part = self.word(at)?;
        Ok(part.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b)))
    }

    fn write_word(&mut self, at: u64, value: u64) -> Result<(), String> {
        self.word(at)?.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Subtracts arrivals and bytes, flips the phase at zero, and returns the old word.
    pub(super) fn progress(&mut self, at: u64, arrivals: u64, bytes: i64) -> Result<u64, String> {
        let old = self.read_word(at)?;
        if !self.barriers_count_bytes {
            self.write_word(at, arrived(old, arrivals))?;
            return Ok(old);
        }
        let expected = (ARRIVALS_MASK + 1 - (old >> 1 & ARRIVALS_MASK)) & ARRIVALS_MASK;
        let mut left = (ARRIVALS_MASK + 1 - (old >> 43 & ARRIVALS_MASK)) & ARRIVALS_MASK;
        // Bytes may complete before they are expected: the counter is modular.
        let mut to_come = (old >> 21 & BYTES_MASK).wrapping_add(bytes as u64) & BYTES_MASK;
        let mut phase = old >> 63;
        left = left.saturating_sub(arrivals);
        if left == 0 && to_come == 0 {
            phase ^= 1;
            left = expected;
            to_come = 0;
            self.phases.end(at);
        }
        let left = (ARRIVALS_MASK + 1 - left) & ARRIVALS_MASK;
        let new = phase << 63 | left << 43 | to_come << 21 | old & (ARRIVALS_MASK << 1);
        self.write_word(at, new)?;
        Ok(old)
    }

    /// Executes a barrier operation for the lanes of `mask`.
    pub(super) fn sync(&mut self, w: &mut Warp, op: &Sync, mask: u32) -> Result<(), String> {
        match op {
            Sync::Copied { at, expected } => {
                let at = at.addresses(&w.registers);
                // Before 9.0 a separate instruction adds one arrival to the phase.
                if *expected || !self.barriers_count_bytes {
                    for lane in lanes(mask) {
                        let phase = || self.phases.present(at[lane]);
                        w.note_signal(phase, SignalKind::ArrivesAfterCopies);
                        self.progress(at[lane], 1, 0)?;
                    }
                }
            }
            Sync::Exchange { at, value } => {
                let (at, value) = (at.addresses(&w.registers), w.registers.raw_wide(value.from));
                if let Some(lane) = lanes(mask).next() {
                    self.write_word(at[lane], value[lane])?;
                    self.phases.begin(at[lane]);
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
                    w.note_signal(|| self.phases.present(at[lane]), SignalKind::Arrives);
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
                    // The phase of the token is over once the bit has changed.
                    let now = self.read_word(at[lane])? >> 63;
                    over |= u32::from(now != u64::from(phase[lane] >> 31)) << lane;
                }
                // A poll in vain ends no wait: the trace leaves it out.
                if let Some(lane) = lanes(over).next()
                    && let Some(phase) = self.phases.last(at[lane])
                {
                    w.note_signal(|| phase, SignalKind::Waits);
                }
                w.registers.set_truth(*out, mask, over);
            }
            Sync::Nothing => {}
            Sync::Clear { at, units } => {
                let first = at.addresses(&w.registers)[0];
                for n in 0..u64::from(w.registers.raw(units.from)[0]) {
                    self.store_shared(first + 8 * n, 8, [0; 4])?;
                }
            }
            Sync::Bulk(copy) => self.bulk(w, copy)?,
            Sync::Store(store) => self.store_counted(w, store, mask)?,
        }
        Ok(())
    }

    /// Executes `st.async` and `red.async`.
    fn store_counted(&mut self, w: &mut Warp, s: &CountedStore, mask: u32) -> Result<(), String> {
        let at = w.registers.rows[usize::from(s.pair)];
        let barrier = w.registers.rows[usize::from(s.pair.saturating_add(1))];
        let mut rows: [Row; 4] = [[0; 32]; 4];
        for (n, row) in (0u8..).zip(rows.iter_mut().take(usize::from(s.bytes / 4))) {
            *row = w.registers.raw(s.value.from.nth(n));
        }
        for lane in lanes(mask) {
            let to = u64::from(at[lane]);
            let mut new = rows.map(|row| row[lane]);
            if let Some(op) = s.reduce {
                let old = self.load_shared(to, s.bytes)?;
                // `async_store` lowers no other type.
                let value = apply(op, AtomType::U32, old[0].into(), new[0].into(), 0);
                new[0] = value as u32;
            }
            self.store_shared(to, s.bytes, new)?;
            self.complete_bytes(w, barrier[lane].into(), u32::from(s.bytes))?;
        }
        Ok(())
    }

    /// Subtracts the bytes of a bulk copy from a barrier.
    pub(super) fn complete_bytes(
        &mut self,
        w: &mut Warp,
        at: u64,
        bytes: u32,
    ) -> Result<(), String> {
        w.note_signal(|| self.phases.present(at), SignalKind::Copies);
        self.progress(at, 0, -i64::from(bytes))?;
        Ok(())
    }

    fn bulk(&mut self, w: &mut Warp, copy: &BulkCopy) -> Result<(), String> {
        let u = |index: u8| w.registers.uniform[usize::from(index)];
        let next = |index: u8| u(index.saturating_add(1));
        let at = u64::from(u(copy.shared));
        let from = match copy.between_blocks {
            true => u64::from(u(copy.other)),
            false => u64::from(u(copy.other)) | u64::from(next(copy.other)) << 32,
        };
        let (units, blocks) = match copy.multicast {
            true => (u(copy.units) & 0xffff, u(copy.units) >> 16),
            false => (u(copy.units), 0),
        };
        let total = u64::from(units) * 16;
        let barrier = u64::from(next(copy.shared));
        let into = copy.into_shared;
        if !copy.between_blocks {
            w.note_bulk(std::iter::once(from..from.saturating_add(total)), !into);
        }
        if !into {
            for step in (0..total).step_by(16) {
                let value = self.load_shared(at + step, 16)?;
                self.store_global(from.wrapping_add(step), 16, value)?;
            }
            return Ok(());
        }
        for (at, barrier) in self.receivers(at, barrier, copy.multicast.then_some(blocks)) {
            for step in (0..total).step_by(16) {
                let value = match copy.between_blocks {
                    true => self.load_shared(from + step, 16)?,
                    false => self.load_global(from.wrapping_add(step), 16)?,
                };
                self.store_shared(at + step, 16, value)?;
            }
            // The copy is complete at once, so its bytes are subtracted here.
            self.complete_bytes(w, barrier, total as u32)?;
        }
        Ok(())
    }

    /// Returns the addresses of a copy's data and barrier in each block that receives it; `blocks` is
    /// the mask of a multicast.
    pub(super) fn receivers(&self, at: u64, barrier: u64, blocks: Option<u32>) -> Vec<(u64, u64)> {
        let Some(blocks) = blocks else {
            return vec![(at, barrier)];
        };
        let own = |at: u64| at & ((1 << RANK_SHIFT) - 1);
        let ranks = (0..32).filter(|rank| blocks >> rank & 1 == 1);
        let there = |rank: u64, at: u64| rank << RANK_SHIFT | own(at);
        ranks
            .map(|rank| (there(rank, at), there(rank, barrier)))
            .collect()
    }
}
