//! One lane's access to memory: where it lands, whether it may, who else was there.

use ptx::structs::Unwritten;
use std::sync::atomic::Ordering::Relaxed;

use super::cta::{Cta, EXISTS};
use super::warp::Warp;
use crate::hazard::shadow::Access;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{
    Area, LOCAL_WINDOW, NONE, Op, PARAM_WINDOW, SHARED_WINDOW, STACK, WINDOW,
};
use crate::memory::{Allocation, Lookup};
use crate::module::plain_name;

/// A checked access.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    pub(super) lane: usize,
    pub(super) bytes: u32,
    pub(super) write: bool,
    /// Whether bytes must have been written before.
    pub(super) needs_written: bool,
    pub(super) strong: bool,
    /// Atomic towards its own block only.
    pub(super) narrow: bool,
    pub(super) in_flight: bool,
    /// For plain stores, the words to be stored: equal stores may be allowed.
    pub(super) same_value: bool,
    /// See [`Access::observes`].
    pub(super) observes: bool,
    /// Not zero: see [`Access::commutes`].
    pub(super) commutes: u8,
}

impl Touch {
    pub(super) fn read(lane: usize, bytes: u32) -> Touch {
        Touch {
            lane,
            bytes,
            write: false,
            needs_written: true,
            strong: false,
            narrow: false,
            in_flight: false,
            same_value: false,
            observes: false,
            commutes: 0,
        }
    }

    pub(super) fn write(lane: usize, bytes: u32) -> Touch {
        Touch {
            write: true,
            needs_written: false,
            ..Touch::read(lane, bytes)
        }
    }
}

/// Where an access lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Global(Lookup),
    Shared(u32),
    /// Byte of the warp's local memory.
    Local(usize),
    Param(usize),
}

/// The bytes of a word that an access covers, as four bits.
#[inline(always)]
pub(super) fn word_mask(offset: u64, bytes: u32) -> u32 {
    match bytes {
        1 => 1 << (offset & 3),
        2 => 3 << (offset & 3),
        _ => 15,
    }
}

/// Splits a generic address into space and offset.
pub(super) fn split(address: u64) -> (Area, u64) {
    if address < SHARED_WINDOW {
        return (Area::Global, address);
    }
    match address {
        a if a < SHARED_WINDOW + WINDOW => (Area::Shared, a - SHARED_WINDOW),
        a if (LOCAL_WINDOW..LOCAL_WINDOW + WINDOW).contains(&a) => (Area::Local, a - LOCAL_WINDOW),
        a if (PARAM_WINDOW..PARAM_WINDOW + WINDOW).contains(&a) => {
            (Area::KernelParam, a - PARAM_WINDOW)
        }
        a => (Area::Global, a),
    }
}

impl Cta<'_> {
    /// Checks an access; `None` when it must not happen.
    #[inline]
    pub(super) fn touch(&mut self, w: &mut Warp, area: Area, at: u64, t: Touch) -> Option<Place> {
        let (area, at) = if area == Area::Generic {
            split(at)
        } else {
            (area, at)
        };
        match area {
            Area::Global | Area::Generic => self.touch_global(w, at, t),
            Area::Shared => self.touch_shared(w, at, t),
            Area::Local => self.touch_local(w, at, t, false),
            Area::CallParam => self.touch_local(w, at, t, true),
            Area::KernelParam => self.touch_param(w, at, t),
        }
    }

    pub(super) fn thread(w: &Warp, lane: usize) -> usize {
        w.index * 32 + lane
    }

    #[inline(always)]
    pub(super) fn access_of(&self, thread: usize, t: &Touch) -> Access {
        Access {
            thread,
            segment: self.clocks.segment[thread],
            pc: self.pc,
            write: t.write,
            strong: t.strong,
            narrow: t.narrow,
            in_flight: t.in_flight,
            same_value: t.same_value,
            observes: t.observes,
            commutes: t.commutes,
        }
    }

    #[inline]
    pub(super) fn aligned(&mut self, w: &Warp, space: Space, at: u64, t: &Touch) -> bool {
        if at & u64::from(t.bytes - 1) == 0 {
            return true;
        }
        let bytes = t.bytes;
        self.hazard(
            HazardKind::Misaligned,
            Self::thread(w, t.lane),
            (space, at),
            NONE,
            || format!("{space} address 0x{at:x} is not a multiple of the access size {bytes}"),
        );
        false
    }

    #[cold]
    pub(super) fn unwritten(&mut self, thread: usize, space: Space, at: u64) {
        if space == Space::Shared && self.is_padding(at) {
            return;
        }
        self.hazard(HazardKind::Uninitialized, thread, (space, at), NONE, || {
            format!("a load of {space} memory that nobody wrote")
        });
    }

    /// Reports a read of bytes of global memory that nobody wrote.
    #[cold]
    pub(super) fn unwritten_global(&mut self, thread: usize, word: usize, from: &Allocation) {
        let place = (Space::Global, from.base + word as u64 * 4);
        let name = &from.name;
        if from.unset {
            self.hazard(HazardKind::Uninitialized, thread, place, NONE, || {
                format!(
                    "reads the variable `{}` of the module, which has no initializer and was never \
                     set: give its value under `variables`",
                    plain_name(name)
                )
            });
            return;
        }
        if from.module.is_none() {
            self.hazard(HazardKind::Uninitialized, thread, place, NONE, || {
                format!("a load of global memory of `{name}` that nobody wrote")
            });
            return;
        }
        self.hazard(HazardKind::ModuleState, thread, place, NONE, || {
            let name = plain_name(name);
            format!(
                "module_state: reads the variable `{name}` of the module, in which an earlier run \
                 left another value than it is loaded with"
            )
        });
    }

    /// Whether the load at hand copies a struct of which the word at `at` holds padding, or sets a
    /// bit field in it.
    fn is_padding(&self, at: u64) -> bool {
        let Op::Load(m) = &self.context.program.code[self.pc as usize].op else {
            return false;
        };
        let copied = u64::from((m.width * m.data.len() as u32).max(4));
        let start = at / copied * copied;
        match m.unwritten {
            Unwritten::Hazard => false,
            Unwritten::BitField => true,
            Unwritten::Padding => (start..start + copied).step_by(4).any(|a| {
                self.shared_state
                    .get((a / 4) as usize)
                    .is_some_and(|s| s & 15 != 0)
            }),
        }
    }

    /// Records that each lane of `mask` reads and writes the same 8 bytes of shared memory atomically,
    /// as one access where that comes to the same. Else `false`, and nothing is changed.
    pub(super) fn touch_atomic_row(&mut self, w: &Warp, at: u64, mask: u32) -> bool {
        let first = (at / 4) as usize;
        let Some(states) = self.shared_state.get(first..first + 2) else {
            return false;
        };
        let there = |state: &u8| u32::from(*state) & 15 == 15 && *state >> EXISTS & 15 == 15;
        let whole = at.is_multiple_of(8) && states.iter().all(there);
        if !whole || mask == 0 {
            return false;
        }
        if self.context.checks.races {
            let last = 31 - mask.leading_zeros() as usize;
            let touch = Touch {
                strong: true,
                observes: true,
                ..Touch::write(last, 8)
            };
            let access = self.access_of(Self::thread(w, last), &touch);
            return self.shadow.observed(first, &access);
        }
        true
    }

    fn touch_shared(&mut self, w: &Warp, at: u64, t: Touch) -> Option<Place> {
        let mask = word_mask(at, t.bytes);
        let end = at.saturating_add(u64::from(t.bytes));
        let first = (at / 4) as usize;
        let words = t.bytes.div_ceil(4) as usize;
        let exists = end <= self.shared.len() as u64 * 4
            && self.shared_state[first..first + words]
                .iter()
                .all(|s| u32::from(*s) >> EXISTS & mask == mask);
        if !exists {
            // A misaligned access inside is misaligned, not out of bounds.
            if at & u64::from(t.bytes - 1) != 0 && self.byte_exists(at) && self.byte_exists(end - 1)
            {
                self.misaligned_shared(w, at, &t);
            } else {
                self.shared_out_of_bounds(w, at, &t);
            }
            return None;
        }
        if at & u64::from(t.bytes - 1) != 0 {
            self.misaligned_shared(w, at, &t);
            return None;
        }
        let thread = Self::thread(w, t.lane);
        let access = self.access_of(thread, &t);
        for word in first..first + words {
            let state = &mut self.shared_state[word];
            let written = u32::from(*state) & mask == mask;
            if t.write {
                *state |= mask as u8;
            }
            if t.needs_written && !written && self.context.checks.uninitialized {
                self.unwritten(thread, Space::Shared, word as u64 * 4);
            }
            if self.context.checks.races
                && let Some(c) = self.shadow.access(word, mask, &access, &self.clocks)
            {
                self.race(thread, (Space::Shared, at), t.write, c);
            }
        }
        Some(Place::Shared(at as u32))
    }

    /// Reports it; the bytes of a store count as written, so that nothing else is said of them.
    #[cold]
    fn misaligned_shared(&mut self, w: &Warp, at: u64, t: &Touch) {
        self.aligned(w, Space::Shared, at, t);
        for byte in at..at + u64::from(t.bytes) {
            if t.write && self.byte_exists(byte) {
                self.shared_state[(byte / 4) as usize] |= 1 << (byte % 4);
            }
        }
    }

    fn byte_exists(&self, at: u64) -> bool {
        self.shared_state
            .get((at / 4) as usize)
            .is_some_and(|s| u32::from(*s) >> (EXISTS + (at & 3) as u32) & 1 == 1)
    }

    #[cold]
    fn shared_out_of_bounds(&mut self, w: &Warp, at: u64, t: &Touch) {
        let act = if t.write { "write" } else { "read" };
        let bytes = t.bytes;
        let p = self.context.program;
        let dynamic = (p.dynamic_at, self.context.dynamic_shared);
        self.hazard(
            HazardKind::OutOfBounds,
            Self::thread(w, t.lane),
            (Space::Shared, at),
            NONE,
            || {
                let extents = p.shared.iter().map(|e| (e.start, e.bytes)).chain([dynamic]);
                let mut extents: Vec<_> = extents.filter(|(_, bytes)| *bytes > 0).collect();
                extents.sort_unstable();
                // Shared addresses have 32 bits: what lies below the first array has a sign.
                let at = i64::from(at as u32 as i32);
                let before = extents.iter().rfind(|(start, _)| i64::from(*start) <= at);
                match before.or(extents.first()) {
                    Some((start, size)) => format!(
                        "a {act} of {bytes} bytes at byte {} of a shared array of {size} bytes",
                        at - i64::from(*start)
                    ),
                    None => {
                        format!("a {act} of {bytes} bytes at shared address {at}, where nothing is")
                    }
                }
            },
        );
    }

    fn touch_local(&mut self, w: &mut Warp, at: u64, t: Touch, param: bool) -> Option<Place> {
        let p = self.context.program;
        let (base, size, at) = match param {
            true => (p.local_bytes, p.param_bytes, at),
            // A frame on the stack.
            false if (STACK..2 * STACK).contains(&at) => {
                let used = w.stack[t.lane] as u32;
                (p.local_bytes + p.param_bytes, used, at - STACK)
            }
            false => (0, p.local_bytes, at),
        };
        let thread = Self::thread(w, t.lane);
        if at.saturating_add(u64::from(t.bytes)) > u64::from(size) {
            let act = if t.write { "write" } else { "read" };
            self.hazard(
                HazardKind::OutOfBounds,
                thread,
                (Space::Local, at),
                NONE,
                || {
                    format!(
                        "a {act} of {} bytes at byte {} of a thread's {size} local bytes",
                        t.bytes, at as i64
                    )
                },
            );
            return None;
        }
        if !param && !self.aligned(w, Space::Local, at, &t) {
            return None;
        }
        let start = t.lane * w.stride + base as usize + at as usize;
        let written = &mut w.local_written[start..start + t.bytes as usize];
        if t.write {
            written.fill(true);
        } else if !param
            && self.context.checks.uninitialized
            && !written.iter().all(|b| *b)
            && !excused(&p.code[self.pc as usize].op, written)
        {
            self.unwritten(thread, Space::Local, at);
        }
        Some(Place::Local(start))
    }

    fn touch_param(&mut self, w: &Warp, at: u64, t: Touch) -> Option<Place> {
        let size = self.context.params.len() as u64;
        if t.write || at.saturating_add(u64::from(t.bytes)) > size {
            let thread = Self::thread(w, t.lane);
            self.hazard(
                HazardKind::OutOfBounds,
                thread,
                (Space::Param, at),
                NONE,
                || format!("an access at byte {at} of the kernel's {size} parameter bytes"),
            );
            return None;
        }
        Some(Place::Param(at as usize))
    }

    /// Up to 8 bytes at a checked place.
    #[inline]
    pub(super) fn get(&self, w: &Warp, place: Place, offset: u32, bytes: u32) -> u64 {
        match place {
            Place::Global(l) => {
                let words = &self.context.memory.allocations[l.index].words;
                let at = l.offset + u64::from(offset);
                from_words(at, bytes, |i| words[i].load(Relaxed))
            }
            Place::Shared(at) => from_words(u64::from(at + offset), bytes, |i| self.shared[i]),
            Place::Local(at) => little(&w.local[at + offset as usize..], bytes),
            Place::Param(at) => little(&self.context.params[at + offset as usize..], bytes),
        }
    }

    /// Stores up to 8 bytes at a checked place.
    #[inline]
    pub(super) fn put(&mut self, w: &mut Warp, place: Place, offset: u32, bytes: u32, value: u64) {
        if !matches!(place, Place::Local(_)) {
            let cut = if bytes == 8 {
                u64::MAX
            } else {
                (1 << (bytes * 8)) - 1
            };
            self.version += u64::from(self.get(w, place, offset, bytes) != value & cut);
        }
        match place {
            Place::Global(l) => {
                let words = &self.context.memory.allocations[l.index].words;
                let at = l.offset + u64::from(offset);
                let word = (at / 4) as usize;
                match bytes {
                    4 => words[word].store(value as u32, Relaxed),
                    8 => {
                        words[word].store(value as u32, Relaxed);
                        words[word + 1].store((value >> 32) as u32, Relaxed);
                    }
                    _ => {
                        let (mask, shift) = part(at, bytes);
                        // Neighbouring bytes may be stored by another block at the same time.
                        let _ = words[word].fetch_update(Relaxed, Relaxed, |old| {
                            Some((old & !mask) | ((value as u32) << shift & mask))
                        });
                    }
                }
            }
            Place::Shared(at) => {
                let at = u64::from(at + offset);
                let word = (at / 4) as usize;
                match bytes {
                    4 => self.shared[word] = value as u32,
                    8 => {
                        self.shared[word] = value as u32;
                        self.shared[word + 1] = (value >> 32) as u32;
                    }
                    _ => {
                        let (mask, shift) = part(at, bytes);
                        let old = self.shared[word];
                        self.shared[word] = (old & !mask) | ((value as u32) << shift & mask);
                    }
                }
            }
            Place::Local(at) => {
                let at = at + offset as usize;
                let bytes = bytes as usize;
                w.local[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
            Place::Param(_) => {}
        }
    }
}

/// Whether a load of local memory copies a struct with padding, or sets a bit field.
#[cold]
fn excused(op: &Op, written: &[bool]) -> bool {
    let Op::Load(m) = op else { return false };
    match m.unwritten {
        Unwritten::Hazard => false,
        Unwritten::BitField => true,
        Unwritten::Padding => written.contains(&true),
    }
}

#[inline(always)]
fn part(at: u64, bytes: u32) -> (u32, u32) {
    let shift = (at & 3) as u32 * 8;
    (((1u64 << (bytes * 8)) - 1) as u32)
        .checked_shl(shift)
        .map_or((0, 0), |m| (m, shift))
}

#[inline(always)]
fn from_words(at: u64, bytes: u32, word: impl Fn(usize) -> u32) -> u64 {
    let i = (at / 4) as usize;
    match bytes {
        4 => word(i).into(),
        8 => u64::from(word(i)) | u64::from(word(i + 1)) << 32,
        2 => u64::from(word(i) >> ((at & 3) * 8) & 0xffff),
        _ => u64::from(word(i) >> ((at & 3) * 8) & 0xff),
    }
}

fn little(bytes: &[u8], n: u32) -> u64 {
    let mut out = [0; 8];
    out[..n as usize].copy_from_slice(&bytes[..n as usize]);
    u64::from_le_bytes(out)
}
