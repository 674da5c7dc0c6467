//! Memory accesses, in the widths and at the addresses of SASS instructions.

use std::sync::atomic::Ordering::Relaxed;

use super::phases::Phases;
use super::registers::{Dest, Pred, Registers, Source};
use super::tensor_cells::TensorMemory;
use super::warp::Warp;
use gpu_arithmetic::Lanes as Row;
use gpu_arithmetic::layout;
use vgpu::exec::others::Others;
use vgpu::memory::GlobalMemory;

/// Start of the shared window of generic addresses.
pub(super) const SHARED_WINDOW: u64 = 0x7f00 << 32;
/// Start of the local window of generic addresses.
pub(super) const LOCAL_WINDOW: u64 = 0x7f01 << 32;
/// Start of the window of generic addresses of constant bank 0, which holds the parameters.
pub(super) const CONSTANT_WINDOW: u64 = 0x7f04 << 32;

/// Shift of the rank of a block in the shared addresses of a cluster.
pub(super) const RANK_SHIFT: u32 = 24;

/// State space that `isspacep` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateSpace {
    /// Not shared memory.
    Global,
    /// Shared memory of the own block.
    Block,
    /// Shared memory of any block of the cluster.
    Cluster,
}

/// Memory window of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Window {
    Global,
    Shared,
    Local,
    Generic,
}

/// Address operand.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressOp {
    pub(super) window: Window,
    pub(super) base: Option<u8>,
    /// True for a 64-bit base in two registers.
    pub(super) wide: bool,
    pub(super) shift: u8,
    pub(super) uniform: Option<u8>,
    pub(super) uniform_wide: bool,
    pub(super) offset: i64,
}

/// Operation of a load or a store.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Load {
        dest: Dest,
        signed: bool,
    },
    Store {
        source: Source,
    },
    /// Loads those of eight words that have their bit set.
    LoadPair {
        dest: [Dest; 2],
        words: u8,
    },
    /// Stores eight words.
    StorePair {
        source: [Source; 2],
    },
    LoadMatrices {
        dest: Dest,
        count: u8,
        rows: layout::MatrixRows,
    },
    StoreMatrices {
        source: Source,
        count: u8,
        trans: bool,
    },
}

/// A load or a store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub at: AddressOp,
    /// Bytes per lane.
    pub(super) bytes: u8,
    pub(super) kind: Kind,
}

/// A copy from global to shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copy {
    pub(super) to: AddressOp,
    pub(super) from: AddressOp,
    pub(super) bytes: u8,
    /// True if the lowest bits of the source address hold the number of valid bytes; the rest is
    /// zero-filled.
    pub(super) partial: bool,
    /// Predicate; where it is false, zeros are stored.
    pub(super) present: Pred,
}

/// A stored word with its previous value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) allocation: u32,
    pub(super) word: u32,
    pub(super) old: u32,
}

/// Memory visible to a block.
pub(super) struct Memory<'a> {
    pub(super) global: &'a GlobalMemory,
    /// Shared memory of the blocks of a cluster.
    pub(super) shared: Vec<u8>,
    /// Bytes of that of one block.
    pub(super) stride: u64,
    /// True if barriers in shared memory also count bytes: from compute capability 9.0 on.
    pub(super) barriers_count_bytes: bool,
    /// The blocks that do not run, for a block that runs alone.
    pub(super) others: Others,
    pub(super) journal: Vec<Written>,
    /// Allocation of the last access, which is the likeliest for the next one.
    pub(super) last: usize,
    /// Phases of the barriers in shared memory.
    pub(super) phases: Phases,
    /// That of each block of a cluster.
    pub(super) tensor: Vec<TensorMemory>,
}

/// Returns the mask of lanes for which `f` holds.
#[inline(always)]
pub(super) fn lanes_where(f: impl Fn(usize) -> bool) -> u32 {
    gpu_arithmetic::host::vectorised(
        #[inline(always)]
        || (0..32).fold(0, |all, lane| all | u32::from(f(lane)) << lane),
    )
}

/// Returns the lanes of a mask, ascending.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            lane
        })
    })
}

impl AddressOp {
    /// Computes the address of each lane.
    pub(super) fn addresses(&self, r: &Registers) -> [u64; 32] {
        let uniform = self.uniform.map_or(0, |u| {
            let low = u64::from(r.uniform[usize::from(u)]);
            match self.uniform_wide {
                true => low | u64::from(r.uniform[usize::from(u.saturating_add(1))]) << 32,
                false => low,
            }
        });
        let fixed = uniform.wrapping_add(self.offset as u64);
        let mut at = [fixed; 32];
        if let Some(base) = self.base {
            let low = &r.rows[usize::from(base)];
            let high = &r.rows[usize::from(base.saturating_add(1))];
            for (l, at) in at.iter_mut().enumerate() {
                let base = match self.wide {
                    true => u64::from(low[l]) | u64::from(high[l]) << 32,
                    false => u64::from(low[l]),
                };
                *at = fixed.wrapping_add(base << self.shift);
            }
        }
        // Shared and local addresses have 32 bits: a negative offset wraps.
        if matches!(self.window, Window::Shared | Window::Local) {
            at = at.map(|at| u64::from(at as u32));
        }
        at
    }
}

/// Splits a generic address into a window and an offset.
pub(super) fn split(window: Window, at: u64) -> (Window, u64) {
    if window != Window::Generic {
        return (window, at);
    }
    match at & !0xffff_ffff {
        SHARED_WINDOW => (Window::Shared, at & 0xffff_ffff),
        LOCAL_WINDOW => (Window::Local, at & 0xffff_ffff),
        _ => (Window::Global, at),
    }
}

/// Refuses an address that is no multiple of the bytes of an access.
pub(super) fn check_alignment(at: u64, bytes: u8) -> Result<(), String> {
    if at.is_multiple_of(u64::from(bytes)) {
        return Ok(());
    }
    Err(format!("address {at:#x} is not a multiple of {bytes}"))
}

impl Memory<'_> {
    /// Finds the allocation of `bytes` bytes from `at`; returns its index and the offset.
    #[inline]
    fn find(&mut self, at: u64, bytes: u64) -> Result<(usize, u64), String> {
        if let Some((base, size)) = self.global.extent(self.last) {
            let offset = at.wrapping_sub(base);
            if offset < size && size - offset >= bytes {
                return Ok((self.last, offset));
            }
        }
        let found = self.global.find(at).filter(|found| {
            let (_, size) = self.global.extent(found.index).unwrap_or_default();
            size - found.offset >= bytes
        });
        let found = found.ok_or_else(|| format!("no buffer holds address {at:#x}"))?;
        self.last = found.index;
        Ok((found.index, found.offset))
    }

    /// Loads words of global memory, little endian; 1 and 2 bytes are in the first word.
    #[inline]
    pub(super) fn load_global(&mut self, at: u64, bytes: u8) -> Result<[u32; 4], String> {
        check_alignment(at, bytes)?;
        // A vector load may extend past the end of a buffer if the extra elements are unused.
        let (index, offset) = self.find(at, u64::from(bytes.min(4)))?;
        let words = self.global.words(index);
        let first = (offset / 4) as usize;
        let mut out = [0; 4];
        if bytes < 4 {
            let word = words[first].load(Relaxed) >> (offset % 4 * 8);
            out[0] = word & (u32::MAX >> (32 - 8 * u32::from(bytes)));
            return Ok(out);
        }
        let words = words.iter().skip(first).take(usize::from(bytes / 4));
        for (slot, word) in out.iter_mut().zip(words) {
            *slot = word.load(Relaxed);
        }
        Ok(out)
    }

    pub(super) fn store_global(
        &mut self,
        at: u64,
        bytes: u8,
        value: [u32; 4],
    ) -> Result<(), String> {
        check_alignment(at, bytes)?;
        let (index, offset) = self.find(at, bytes.into())?;
        let words = self.global.words(index);
        let first = (offset / 4) as usize;
        let mut put = |word: usize, new: u32, keep: u32| {
            let old = words[word].load(Relaxed);
            // The previous value is needed by `Execution::undo`.
            self.journal.push(Written {
                allocation: index as u32,
                word: word as u32,
                old,
            });
            words[word].store(old & keep | new & !keep, Relaxed);
        };
        if bytes < 4 {
            let shift = (offset % 4 * 8) as u32;
            let cut = (u32::MAX >> (32 - 8 * u32::from(bytes))) << shift;
            put(first, value[0] << shift, !cut);
        } else {
            for (n, value) in value.iter().take(usize::from(bytes / 4)).enumerate() {
                put(first + n, *value, 0);
            }
        }
        Ok(())
    }

    /// Loads bytes of shared or local memory.
    fn load_bytes(memory: &[u8], at: u64, bytes: u8) -> Result<[u32; 4], String> {
        let (first, count) = (at as usize, usize::from(bytes));
        check_alignment(at, bytes)?;
        let part = memory.get(first..first + count);
        let part = part.ok_or_else(|| format!("address {at:#x} is past the end"))?;
        let mut out = [0; 4];
        for (slot, chunk) in out.iter_mut().zip(part.chunks(4)) {
            *slot = chunk
                .iter()
                .rev()
                .fold(0, |all, b| all << 8 | u32::from(*b));
        }
        Ok(out)
    }

    fn store_bytes(memory: &mut [u8], at: u64, bytes: u8, value: [u32; 4]) -> Result<(), String> {
        let (first, count) = (at as usize, usize::from(bytes));
        check_alignment(at, bytes)?;
        let part = memory.get_mut(first..first + count);
        let part = part.ok_or_else(|| format!("address {at:#x} is past the end"))?;
        for (chunk, value) in part.chunks_mut(4).zip(value) {
            let length = chunk.len();
            chunk.copy_from_slice(&value.to_le_bytes()[..length]);
        }
        Ok(())
    }

    pub(super) fn load_shared(&self, at: u64, bytes: u8) -> Result<[u32; 4], String> {
        Self::load_bytes(&self.shared, self.shared_place(at)?, bytes)
    }

    /// Returns the place of a shared address, whose highest byte is the rank of its block.
    #[inline]
    pub(super) fn shared_place(&self, at: u64) -> Result<u64, String> {
        if at < self.stride {
            return Ok(at);
        }
        let (rank, offset) = (at >> RANK_SHIFT, at & ((1 << RANK_SHIFT) - 1));
        let place = rank * self.stride + offset;
        if offset >= self.stride || place >= self.shared.len() as u64 {
            return Err(format!("address {at:#x} is past the end of shared memory"));
        }
        Ok(place)
    }

    pub(super) fn store_shared(
        &mut self,
        at: u64,
        bytes: u8,
        value: [u32; 4],
    ) -> Result<(), String> {
        let place = self.shared_place(at)?;
        Self::store_bytes(&mut self.shared, place, bytes, value)
    }

    pub(super) fn load(
        &mut self,
        w: &Warp,
        window: Window,
        lane: usize,
        at: u64,
        bytes: u8,
    ) -> Result<[u32; 4], String> {
        match split(window, at) {
            (Window::Shared, at) => self.load_shared(at, bytes),
            (Window::Local, at) => Self::load_bytes(w.local_of(lane), at, bytes),
            (_, at) => self.load_global(at, bytes),
        }
    }

    pub(super) fn store(
        &mut self,
        w: &mut Warp,
        window: Window,
        lane: usize,
        at: u64,
        bytes: u8,
        value: [u32; 4],
    ) -> Result<(), String> {
        match split(window, at) {
            (Window::Shared, at) => self.store_shared(at, bytes, value),
            (Window::Local, at) => Self::store_bytes(w.local_of_mut(lane), at, bytes, value),
            (_, at) => self.store_global(at, bytes, value),
        }
    }

    /// Executes a load or a store for the lanes of `mask`.
    pub(super) fn access(&mut self, w: &mut Warp, a: &Access, mask: u32) -> Result<(), String> {
        let at = a.at.addresses(&w.registers);
        match a.kind {
            Kind::Load { dest, signed } => {
                let mut rows: [Row; 4] = [[0; 32]; 4];
                for lane in lanes(mask) {
                    let value = self.load(w, a.at.window, lane, at[lane], a.bytes)?;
                    for (row, value) in rows.iter_mut().zip(value) {
                        row[lane] = value;
                    }
                }
                w.note(&at, a.at.window, mask, a.bytes, false);
                if signed {
                    let unused = 32 - 8 * u32::from(a.bytes);
                    rows[0] = rows[0].map(|v| ((v << unused) as i32 >> unused) as u32);
                }
                for (n, row) in (0u8..).zip(rows.iter().take(usize::from(a.bytes.div_ceil(4)))) {
                    w.registers.set(dest.next(n), mask, row);
                }
            }
            Kind::Store { source } => {
                let mut rows: [Row; 4] = [[0; 32]; 4];
                for (n, row) in (0u8..).zip(rows.iter_mut().take(usize::from(a.bytes.div_ceil(4))))
                {
                    *row = w.registers.raw(source.from.nth(n));
                }
                for lane in lanes(mask) {
                    let value = rows.map(|row| row[lane]);
                    self.store(w, a.at.window, lane, at[lane], a.bytes, value)?;
                }
                w.note(&at, a.at.window, mask, a.bytes, true);
            }
            Kind::LoadPair { dest, words } => self.load_pair(w, &at, dest, words, mask)?,
            Kind::StorePair { source } => self.store_pair(w, &at, source, mask)?,
            Kind::LoadMatrices { dest, count, rows } => {
                self.load_matrices(w, &at, dest, count, rows, mask)?
            }
            Kind::StoreMatrices {
                source,
                count,
                trans,
            } => {
                self.store_matrices(w, &at, source, count, trans)?;
            }
        }
        Ok(())
    }

    /// Tests generic addresses for a state space.
    pub(super) fn space(
        &self,
        w: &mut Warp,
        at: &AddressOp,
        out: Pred,
        space: StateSpace,
        mask: u32,
    ) {
        let at = at.addresses(&w.registers);
        let own = u64::from(w.registers.place.rank);
        let holds = |at: u64| match (split(Window::Generic, at), space) {
            ((Window::Shared, at), StateSpace::Block) => at >> RANK_SHIFT == own,
            ((window, _), StateSpace::Global) => window != Window::Shared,
            ((window, _), StateSpace::Cluster | StateSpace::Block) => window == Window::Shared,
        };
        let inside = lanes(mask)
            .filter(|lane| holds(at[*lane]))
            .fold(0, |all, l| all | 1 << l);
        w.registers.set_truth(out, mask, inside);
    }

    /// Executes the copy of each lane.
    pub(super) fn copy(&mut self, w: &mut Warp, c: &Copy, mask: u32) -> Result<(), String> {
        let (to, from) = (c.to.addresses(&w.registers), c.from.addresses(&w.registers));
        let present = w.registers.truth(c.present);
        for lane in lanes(mask) {
            let mut value = [0; 4];
            if present >> lane & 1 == 1 {
                // The low bits of the source address hold the number of bytes that are not copied.
                let missing = match c.partial {
                    true => from[lane] & u64::from(c.bytes - 1),
                    false => 0,
                };
                let (first, count) = (from[lane] - missing, u64::from(c.bytes) - missing);
                for (n, word) in (0..).zip(value.iter_mut()).take(usize::from(c.bytes / 4)) {
                    if n * 4 + 4 <= count {
                        [*word, ..] = self.load_global(first + n * 4, 4)?;
                        continue;
                    }
                    for byte in n * 4..count {
                        let part = self.load_global(first + byte, 1)?[0];
                        *word |= part << (8 * (byte % 4));
                    }
                }
            }
            self.store_shared(to[lane], c.bytes, value)?;
        }
        w.note(&from, Window::Global, mask & present, c.bytes, false);
        w.note(&to, Window::Shared, mask, c.bytes, true);
        Ok(())
    }
}
