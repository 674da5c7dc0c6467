//! Accesses of a whole warp: one check of all addresses, then word by word without calls where the
//! epoch shows that an access is ordered.
//!
//! Exceptional accesses go lane by lane through [`Cta::touch`], which reports the hazard: a warp
//! with an invalid address as a whole, a lane that reads unwritten bytes, a word whose order needs
//! vector clocks. The effects are in the same order: lane by lane.

use super::access::Touch;
use super::cta::Cta;
use super::regs::FULL;
use super::warp::Warp;
use crate::hazard::shadow::{Access, Stamp, Strength};
use crate::lower::program::{Address, Area, Data, SHARED_WINDOW, WINDOW};
use gpu_arithmetic::host::vectorised;

mod global;
mod shared;

/// Byte offsets of the lanes of one access; in bounds and aligned for the active ones.
pub(super) struct Row {
    /// The allocation; `None` for shared memory.
    pub(super) allocation: Option<usize>,
    pub(super) at: [u64; 32],
}

/// Words of up to 16 bytes per lane, indexed by word, then lane.
pub(super) type Words = [[u32; 32]; 4];

/// Properties that all lanes of an access share.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) bytes: u32,
    pub(super) write: bool,
    pub(super) in_flight: bool,
}

impl Kind {
    pub(super) fn read(bytes: u32) -> Kind {
        Kind {
            bytes,
            write: false,
            in_flight: false,
        }
    }

    pub(super) fn write(bytes: u32) -> Kind {
        Kind {
            write: true,
            ..Kind::read(bytes)
        }
    }

    fn touch(self, lane: usize) -> Touch {
        if self.write {
            Touch {
                in_flight: self.in_flight,
                ..Touch::write(lane, self.bytes)
            }
        } else {
            Touch::read(lane, self.bytes)
        }
    }

    fn access(self, stamp: &Stamp) -> Access {
        Access {
            thread: usize::from(stamp.thread),
            segment: stamp.segment,
            pc: stamp.pc,
            write: self.write,
            strength: Strength::Plain,
            sets_flag: false,
            narrow: false,
            in_flight: self.in_flight,
            same_value: false,
            observes: false,
            commutes: 0,
        }
    }
}

/// Returns the addresses of all lanes.
#[inline(always)]
fn addresses(w: &Warp, a: &Address) -> [u64; 32] {
    let mut at = [0u64; 32];
    match a.base {
        Data::R64(row) => {
            for (at, base) in at.iter_mut().zip(&w.regs.r64[row as usize]) {
                *at = base.wrapping_add(a.offset as u64);
            }
        }
        Data::R32(row) => {
            for (at, base) in at.iter_mut().zip(&w.regs.r32[row as usize]) {
                *at = u64::from(*base).wrapping_add(a.offset as u64);
            }
        }
        Data::Nothing => at = [w.base_of(a).wrapping_add(a.offset as u64); 32],
    }
    at
}

/// Returns the lowest and highest active address, and the union of their bits.
#[inline(always)]
fn extent(at: &[u64; 32], mask: u32) -> (u64, u64, u64) {
    let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
    for (lane, at) in at.iter().enumerate() {
        let active = mask == FULL || mask >> lane & 1 == 1;
        low = low.min(if active { *at } else { u64::MAX });
        high = high.max(if active { *at } else { 0 });
        bits |= if active { *at } else { 0 };
    }
    (low, high, bits)
}

impl Cta<'_> {
    /// Returns the offsets of an access of `bytes` (a power of two) by the lanes of `mask`, if all
    /// are in one allocation or in shared memory, and aligned.
    pub(super) fn row(&mut self, w: &Warp, a: &Address, mask: u32, bytes: u32) -> Option<Row> {
        let (mut at, (mut low, mut high, bits)) = vectorised(
            #[inline(always)]
            || {
                let mut at = addresses(w, a);
                if matches!(a.area, Area::Shared | Area::Cluster) && matches!(a.base, Data::R32(_))
                {
                    // Shared addresses have 32 bits.
                    at.iter_mut().for_each(|at| *at &= 0xffff_ffff);
                }
                if w.cluster.blocks > 1 {
                    at.iter_mut().for_each(|at| *at = w.placed(a, *at));
                }
                let extent = extent(&at, mask);
                (at, extent)
            },
        );
        // One test for all lanes: a misaligned address has a low bit set in the union.
        // `Words` has 16 bytes for each lane: accesses of 32 bytes go lane by lane.
        if bits & u64::from(bytes - 1) != 0 || mask == 0 || bytes > 16 {
            return None;
        }
        let mut area = a.area;
        if area == Area::Generic && low >= SHARED_WINDOW && high < SHARED_WINDOW + WINDOW {
            at.iter_mut()
                .for_each(|at| *at = at.wrapping_sub(SHARED_WINDOW));
            low -= SHARED_WINDOW;
            high -= SHARED_WINDOW;
            area = Area::Shared;
        }
        // An end that wraps would make an address near 2^64 valid.
        let end = high.checked_add(u64::from(bytes))?;
        let allocation = match area {
            Area::Shared | Area::Cluster if self.is_own(w, low, end) => None,
            Area::Global | Area::Generic if high < SHARED_WINDOW => {
                let index = self.allocation(low, end)?;
                let base = self.context.memory.allocations[index].base;
                at.iter_mut().for_each(|at| *at = at.wrapping_sub(base));
                Some(index)
            }
            _ => return None,
        };
        Some(Row { allocation, at })
    }

    /// Reports whether a range is in the shared memory of the block of a warp.
    #[inline(always)]
    fn is_own(&self, w: &Warp, start: u64, end: u64) -> bool {
        let cluster = &self.context.cluster;
        match cluster.blocks {
            1 => end <= self.shared.len() as u64 * 4,
            _ => start >= w.shared_base && end <= w.shared_base + u64::from(cluster.stride),
        }
    }

    /// Returns the allocation that contains a range.
    fn allocation(&mut self, start: u64, end: u64) -> Option<usize> {
        let (memory, heap) = (self.context.memory, self.context.heap);
        let holds = |index: usize| {
            let a = memory.allocations.get(index);
            // Blocks of the heap have separate bounds.
            index != heap && a.is_some_and(|a| start >= a.base && end <= a.base + a.bytes)
        };
        if !holds(self.last) {
            self.last = memory.find(start).map(|l| l.index).filter(|i| holds(*i))?;
        }
        Some(self.last)
    }

    /// Reads the words of all active lanes; narrow ones are shifted down.
    pub(super) fn read_row(&mut self, w: &mut Warp, row: &Row, mask: u32, bytes: u32) -> Words {
        let mut to = [[0; 32]; 4];
        let kind = Kind::read(bytes);
        match (row.allocation, bytes) {
            (None, 8) => self.shared_row::<2>(w, row, mask, kind, &mut to),
            (None, 16) => self.shared_row::<4>(w, row, mask, kind, &mut to),
            (None, _) => self.shared_row::<1>(w, row, mask, kind, &mut to),
            (Some(_), 8) => self.global_row::<2>(w, row, mask, kind, &mut to),
            (Some(_), 16) => self.global_row::<4>(w, row, mask, kind, &mut to),
            (Some(_), _) => self.global_row::<1>(w, row, mask, kind, &mut to),
        };
        to
    }

    /// Writes the words of all active lanes. Returns the lanes that succeeded.
    pub(super) fn write_row(
        &mut self,
        w: &mut Warp,
        row: &Row,
        mask: u32,
        kind: Kind,
        from: &mut Words,
    ) -> u32 {
        match (row.allocation, kind.bytes) {
            (None, 8) => self.shared_row::<2>(w, row, mask, kind, from),
            (None, 16) => self.shared_row::<4>(w, row, mask, kind, from),
            (None, _) => self.shared_row::<1>(w, row, mask, kind, from),
            (Some(_), 8) => self.global_row::<2>(w, row, mask, kind, from),
            (Some(_), 16) => self.global_row::<4>(w, row, mask, kind, from),
            (Some(_), _) => self.global_row::<1>(w, row, mask, kind, from),
        }
    }

    #[inline(always)]
    fn stamp(&self, thread: usize, kind: Kind) -> Stamp {
        let plain = Stamp::plain(thread, self.clocks.segment[thread], self.pc);
        if kind.in_flight {
            plain.in_flight()
        } else {
            plain
        }
    }
}

/// Extracts the bytes `part` of a word, shifted down.
#[inline(always)]
fn cut(word: u32, part: u32, at: u64) -> u32 {
    if part == 15 {
        return word;
    }
    let narrow = if part.count_ones() == 1 { 0xff } else { 0xffff };
    word >> ((at & 3) * 8) & narrow
}

/// Returns a word with its bytes `part` replaced.
#[inline(always)]
fn merged(old: u32, new: u32, part: u32, at: u64) -> u32 {
    if part == 15 {
        return new;
    }
    let shift = (at & 3) * 8;
    let narrow = if part.count_ones() == 1 { 0xff } else { 0xffff } << shift;
    old & !narrow | new << shift & narrow
}
