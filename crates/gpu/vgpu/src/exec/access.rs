//! Memory accesses of one lane: address resolution, bounds and race checks.

use super::cta::{Cta, EXISTS_SHIFT};
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::shadow::{Access, Strength};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{
    Area, LOCAL_WINDOW, NONE, Op, PARAM_WINDOW, SHARED_WINDOW, STACK, WINDOW,
};
use crate::memory::Lookup;

/// An access to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    pub(super) lane: usize,
    pub(super) bytes: u32,
    pub(super) write: bool,
    /// The bytes must have been written before.
    pub(super) needs_written: bool,
    pub(super) strength: Strength,
    /// See [`Access::sets_flag`].
    pub(super) sets_flag: bool,
    /// Atomic within its own block only.
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
            strength: Strength::Plain,
            sets_flag: false,
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

/// Memory location of a checked access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckedLocation {
    Global(Lookup),
    Shared(u32),
    /// Byte offset in the warp's local memory.
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
    /// Checks an access; returns `None` when it must not be executed.
    #[inline]
    pub(super) fn touch(
        &mut self,
        w: &mut Warp,
        area: Area,
        at: u64,
        t: Touch,
    ) -> Option<CheckedLocation> {
        let (area, at) = match area {
            // A generic address may be one in any block of the cluster.
            Area::Generic => match split(at) {
                (Area::Shared, at) => (Area::Cluster, at),
                other => other,
            },
            area => (area, at),
        };
        match area {
            Area::Global | Area::Generic => self.touch_global(w, at, t),
            Area::Shared if self.leaves_block(w, at) => {
                self.shared_out_of_bounds(w, at, &t);
                None
            }
            Area::Shared | Area::Cluster => self.touch_shared(w, at, t),
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
            strength: t.strength,
            sets_flag: t.sets_flag,
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
            Location::new(space, at),
            NONE,
            || format!("{space} address 0x{at:x} is not a multiple of the access size {bytes}"),
        );
        false
    }

    /// Records an atomic read and write of the same 8 bytes of shared memory by each lane of
    /// `mask`,
    /// as one access where that is equivalent. Otherwise returns `false` and changes nothing.
    pub(super) fn touch_atomic_row(&mut self, w: &Warp, at: u64, mask: u32) -> bool {
        let first = (at / 4) as usize;
        let Some(states) = self.shared_state.get(first..first + 2) else {
            return false;
        };
        let there = |state: &u8| u32::from(*state) & 15 == 15 && *state >> EXISTS_SHIFT & 15 == 15;
        let whole = at.is_multiple_of(8) && states.iter().all(there);
        if !whole || mask == 0 {
            return false;
        }
        if self.context.checks.races {
            // Each lane observes the write of the lane before it, so the last one represents them
            // all.
            let last = 31 - mask.leading_zeros() as usize;
            let touch = Touch {
                strength: Strength::Strong,
                observes: true,
                ..Touch::write(last, 8)
            };
            let access = self.access_of(Self::thread(w, last), &touch);
            return self.shadow.observed(first, &access);
        }
        true
    }

    /// Reports whether an address is in the shared memory of another block of the cluster.
    #[inline]
    pub(super) fn leaves_block(&self, w: &Warp, at: u64) -> bool {
        let cluster = &self.context.cluster;
        cluster.blocks > 1 && at.wrapping_sub(w.shared_base) >= u64::from(cluster.stride)
    }

    fn touch_shared(&mut self, w: &Warp, at: u64, t: Touch) -> Option<CheckedLocation> {
        let mask = word_mask(at, t.bytes);
        // A wrapped end would pass the comparison with the size, and the slice below would panic.
        let end = at.saturating_add(u64::from(t.bytes));
        let first = (at / 4) as usize;
        let words = t.bytes.div_ceil(4) as usize;
        let exists = end <= self.shared.len() as u64 * 4
            && self.shared_state[first..first + words]
                .iter()
                .all(|s| u32::from(*s) >> EXISTS_SHIFT & mask == mask);
        if !exists {
            // A misaligned access inside an array is reported as misaligned, not as out of bounds.
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
        if self.leaves_block(w, at) && !self.access_remote(thread, at, &t) {
            return None;
        }
        let access = self.access_of(thread, &t);
        for word in first..first + words {
            let state = &mut self.shared_state[word];
            let written = u32::from(*state) & mask == mask;
            if t.write {
                *state |= mask as u8;
                if self.have_products_read() && self.context.checks.races {
                    self.check_product_reads(thread, word);
                }
            }
            if t.needs_written && !written && self.context.checks.uninitialized {
                self.unwritten(thread, Space::Shared, word as u64 * 4);
            }
            if self.context.checks.races
                && let Some(c) = self.shadow.access(word, mask, &access, &self.clocks)
            {
                self.race(thread, Location::new(Space::Shared, at), t.write, c);
            }
        }
        Some(CheckedLocation::Shared(at as u32))
    }

    /// Reports a misaligned access; the bytes of a store count as written, to avoid follow-up
    /// hazards.
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
            .is_some_and(|s| u32::from(*s) >> (EXISTS_SHIFT + (at & 3) as u32) & 1 == 1)
    }

    /// Reports whether the current instruction may access other blocks of the cluster.
    fn names_cluster(&self) -> bool {
        let reaches = |area: Area| matches!(area, Area::Cluster | Area::Generic);
        match &self.context.program.code[self.pc as usize].op {
            Op::Load(m) | Op::Store(m) => reaches(m.at.area),
            Op::Atom(a) => reaches(a.at.area),
            Op::Mbar(at, _) => reaches(at.area),
            _ => true,
        }
    }

    #[cold]
    fn shared_out_of_bounds(&mut self, w: &Warp, at: u64, t: &Touch) {
        let act = if t.write { "write" } else { "read" };
        let bytes = t.bytes;
        let p = self.context.program;
        let dynamic = (p.dynamic_at, self.context.dynamic_shared);
        // `ld.shared` reaches the own block only.
        let own = !self.names_cluster();
        let foreign = own && self.leaves_block(w, at) && self.byte_exists(at);
        let cluster = &self.context.cluster;
        let block = self.block_name(cluster.rank_of_address(at));
        let offset = match own {
            true => at.wrapping_sub(w.shared_base),
            false => cluster.offset(at),
        };
        self.hazard(
            HazardKind::OutOfBounds,
            Self::thread(w, t.lane),
            Location::new(Space::Shared, at),
            NONE,
            || {
                if foreign {
                    return text_of_foreign(act, bytes, &block);
                }
                let at = offset;
                let extents = p.shared.iter().map(|e| (e.start, e.bytes)).chain([dynamic]);
                let mut extents: Vec<_> = extents.filter(|(_, bytes)| *bytes > 0).collect();
                extents.sort_unstable();
                // Shared addresses have 32 bits: an address before the first array is negative.
                let at = i64::from(at as u32 as i32);
                // The message names the array that begins last before the address: an index that is
                // a little too large leaves that one.
                let before = extents.iter().rfind(|(start, _)| i64::from(*start) <= at);
                match before.or(extents.first()) {
                    Some((start, size)) => format!(
                        "a {act} of {bytes} bytes at byte {} of a shared array of {size} bytes",
                        at - i64::from(*start)
                    ),
                    None => {
                        format!(
                            "a {act} of {bytes} bytes at shared address {at}, outside all arrays"
                        )
                    }
                }
            },
        );
    }

    fn touch_local(
        &mut self,
        w: &mut Warp,
        at: u64,
        t: Touch,
        param: bool,
    ) -> Option<CheckedLocation> {
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
                Location::new(Space::Local, at),
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
        // Local memory is laid out lane after lane, with the call parameters after the locals.
        let start = t.lane * w.stride + base as usize + at as usize;
        let written = &mut w.local_written[start..start + t.bytes as usize];
        if t.write {
            written.fill(true);
        } else if !param
            && self.context.checks.uninitialized
            && !written.iter().all(|b| *b)
            && !super::unwritten::excused(&p.code[self.pc as usize].op, written)
        {
            let open = |(at, bytes): &(u64, &[bool])| {
                let written = bytes
                    .iter()
                    .rev()
                    .fold(0, |all, b| all << 1 | u32::from(*b));
                bytes.contains(&false) && !self.is_unused(*at, written)
            };
            let words = (at..).step_by(4).zip(written.chunks(4));
            let open: Vec<u64> = words.filter(open).map(|(at, _)| at).collect();
            for word in open {
                self.unwritten(thread, Space::Local, word);
                if !self.is_deferred() {
                    break;
                }
            }
        }
        Some(CheckedLocation::Local(start))
    }

    fn touch_param(&mut self, w: &Warp, at: u64, t: Touch) -> Option<CheckedLocation> {
        let size = self.context.params.len() as u64;
        // The parameters of a kernel are read-only (PTX ISA, "Kernel Function Parameters").
        if t.write || at.saturating_add(u64::from(t.bytes)) > size {
            let thread = Self::thread(w, t.lane);
            self.hazard(
                HazardKind::OutOfBounds,
                thread,
                Location::new(Space::Param, at),
                NONE,
                || format!("an access at byte {at} of the kernel's {size} parameter bytes"),
            );
            return None;
        }
        Some(CheckedLocation::Param(at as usize))
    }
}

#[cold]
fn text_of_foreign(act: &str, bytes: u32, block: &str) -> String {
    format!(
        "a {act} of {bytes} bytes at a shared address of {block}: memory of another block of the \
         cluster is reached by `shared::cluster` or a generic address of it only"
    )
}
