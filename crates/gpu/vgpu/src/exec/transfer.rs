//! Loads and stores of a warp.

use super::access::{CheckedLocation, Touch, split};
use super::cta::Cta;
use super::order::Publishing;
use super::regs::{Lane, U32, U64};
use super::rows::{Kind, Words};
use super::warp::Warp;
use crate::hazard::shadow::Strength;
use crate::lower::program::{Address, Area, Data, Mem, Order, SHARED_WINDOW, WINDOW};

impl Warp {
    /// Returns the base of an address without a register: that of the own block for shared
    /// variables.
    #[inline(always)]
    pub(super) fn base_of(&self, a: &Address) -> u64 {
        if self.shared_base == 0 {
            return 0;
        }
        let window = SHARED_WINDOW..SHARED_WINDOW + WINDOW;
        let shared = match a.area {
            Area::Shared | Area::Cluster => true,
            Area::Generic => window.contains(&(a.offset as u64)),
            _ => false,
        };
        if shared { self.shared_base } else { 0 }
    }

    /// Returns the address of one lane.
    #[inline(always)]
    pub(super) fn address(&self, a: &Address, lane: usize) -> u64 {
        let base = match a.base {
            Data::R64(row) => self.regs.r64[row as usize][lane],
            Data::R32(row) => self.regs.r32[row as usize][lane].into(),
            Data::Nothing => self.base_of(a),
        };
        let at = base.wrapping_add(a.offset as u64);
        // Shared addresses have 32 bits, to which those of wider registers are truncated (PTX ISA, "Addresses as
        // Operands"): a negative index wraps to a large offset, and a generic address is one in the window.
        if matches!(a.area, Area::Shared | Area::Cluster) {
            self.placed(a, at & 0xffff_ffff)
        } else {
            self.placed(a, at)
        }
    }

    /// Returns the place in shared memory that an address names, in its own space or in the generic one.
    pub(super) fn shared_place(&self, a: &Address, lane: usize) -> u64 {
        match (a.area, self.address(a, lane)) {
            (Area::Generic, address) => split(address).1,
            (_, address) => address,
        }
    }

    /// Returns the place of a shared address that a register has; every other address as it is.
    #[inline(always)]
    pub(super) fn placed(&self, a: &Address, at: u64) -> u64 {
        if self.cluster.blocks > 1 && a.base != Data::Nothing {
            self.cluster.placed(a.area, at)
        } else {
            at
        }
    }

    #[inline(always)]
    pub(super) fn value(&self, d: Data, lane: usize) -> u64 {
        match d {
            Data::R64(row) => self.regs.r64[row as usize][lane],
            Data::R32(row) => self.regs.r32[row as usize][lane].into(),
            Data::Nothing => 0,
        }
    }

    #[inline(always)]
    pub(super) fn set(&mut self, d: Data, lane: usize, value: u64) {
        match d {
            Data::R64(row) => self.regs.r64[row as usize][lane] = value,
            Data::R32(row) => self.regs.r32[row as usize][lane] = value as u32,
            Data::Nothing => {}
        }
    }
}

impl Mem {
    fn publishing(&self) -> Publishing {
        Publishing {
            order: self.order,
            device_wide: self.device_wide,
            modifies: false,
        }
    }

    /// Extends a loaded element to its register's width.
    #[inline(always)]
    pub(super) fn extended(&self, raw: u64, dest: Data) -> u64 {
        if !self.signed {
            return raw;
        }
        let unused = 64 - self.width * 8;
        let wide = ((raw << unused) as i64 >> unused) as u64;
        // A 16-bit register keeps its upper half clear.
        if self.width == 1 && matches!(dest, Data::R32(_)) {
            wide & 0xffff_ffff
        } else {
            wide
        }
    }
}

/// Iterates over the lanes of a mask.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros() as usize;
        (rest != 0).then(|| {
            rest &= rest - 1;
            lane
        })
    })
}

impl Cta<'_> {
    /// Returns the strength of an access by its order.
    pub(super) fn strength(&self, order: Order) -> Strength {
        let program = &self.context.program;
        match order {
            Order::Weak => Strength::Plain,
            // Without atomics and polled flags, volatile is the old warp-synchronous style. (Polling
            // loads are relaxed already.)
            Order::Volatile if program.polls || program.has_strong => Strength::Volatile,
            Order::Volatile => Strength::Plain,
            _ => Strength::Strong,
        }
    }

    pub(super) fn load(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        if m.at.area == Area::KernelParam && self.load_parameter(w, m, mask) {
            return;
        }
        let bytes = m.width * m.data.len() as u32;
        let strength = self.strength(m.order);
        let strong = strength != Strength::Plain;
        let partly = m.used != u32::MAX && !m.uses_all();
        if !strong
            && !partly
            && let Some(row) = self.row(w, &m.at, mask, bytes)
        {
            self.count_row(&row, mask, bytes, false);
            if m.read_only && self.may_have_changed(&row) {
                self.read_only_load(w, m, mask);
            }
            // `row` has checked the addresses: only order and definedness are left to check.
            let words = self.read_row(w, &row, mask, bytes);
            return deliver(w, m, mask, &words);
        }
        self.count(w, &m.at, mask, bytes, false);
        if m.read_only {
            self.read_only_load(w, m, mask);
        }
        if partly {
            return self.load_partly(w, m, mask);
        }
        for lane in lanes(mask) {
            let at = w.address(&m.at, lane);
            let touch = Touch {
                strength,
                narrow: !m.device_wide,
                ..Touch::read(lane, bytes)
            };
            let Some(place) = self.touch(w, m.at.area, at, touch) else {
                m.data.iter().for_each(|d| w.set(*d, lane, 0));
                continue;
            };
            for (i, d) in m.data.iter().enumerate() {
                let raw = self.get(w, place, i as u32 * m.width, m.width);
                w.set(*d, lane, m.extended(raw, *d));
            }
            if strong {
                let thread = w.index * 32 + lane;
                self.observe(thread, generic(m.at.area, at), m.publishing());
            }
        }
    }

    /// Loads a parameter at a constant address, which is the same for all lanes. Returns `false` if
    /// the address is computed or out of bounds.
    fn load_parameter(&self, w: &mut Warp, m: &Mem, mask: u32) -> bool {
        let Data::Nothing = m.at.base else {
            return false;
        };
        let start = m.at.offset as u64;
        let end = start.saturating_add(u64::from(m.width) * m.data.len() as u64);
        // Out of bounds: the path lane by lane reports it (`touch_param`).
        if end > self.context.params.len() as u64 {
            return false;
        }
        let place = CheckedLocation::Param(start as usize);
        for (i, d) in m.data.iter().enumerate() {
            let value = m.extended(self.get(w, place, i as u32 * m.width, m.width), *d);
            match *d {
                Data::R32(row) => U32::put(&mut w.regs, row, mask, &[value as u32; 32]),
                Data::R64(row) => U64::put(&mut w.regs, row, mask, &[value; 32]),
                Data::Nothing => {}
            }
        }
        true
    }

    pub(super) fn store(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        let bytes = m.width * m.data.len() as u32;
        let strength = self.strength(m.order);
        let strong = strength != Strength::Plain;
        let allow_same = self.context.checks.same_value_writes_allowed;
        if !strong
            && !allow_same
            && let Some(row) = self.row(w, &m.at, mask, bytes)
        {
            self.count_row(&row, mask, bytes, true);
            let mut words = collect(w, m);
            self.write_row(w, &row, mask, Kind::write(bytes), &mut words);
            return;
        }
        self.count(w, &m.at, mask, bytes, true);
        // Between the comparison with the old value, the shadow and the store, no other block may
        // intervene: it would find this store in the shadow, but not yet its value.
        let context = self.context;
        let _alone = (allow_same && !strong).then(|| context.wide.lock());
        for lane in lanes(mask) {
            let at = w.address(&m.at, lane);
            let thread = w.index * 32 + lane;
            if strong {
                // Before the value is stored, so that a reader of the value finds the release.
                self.publish(thread, generic(m.at.area, at), m.publishing());
            }
            let mut touch = Touch {
                strength,
                sets_flag: strength == Strength::Volatile && context.program.polls,
                narrow: !m.device_wide,
                ..Touch::write(lane, bytes)
            };
            if allow_same && !strong {
                touch.same_value = self.same_value(w, m, lane, at);
            }
            let Some(place) = self.touch(w, m.at.area, at, touch) else {
                continue;
            };
            for (i, d) in m.data.iter().enumerate() {
                let value = w.value(*d, lane);
                self.put(w, place, i as u32 * m.width, m.width, value);
            }
        }
    }

    /// Reports whether global or shared memory already holds the value to store.
    fn same_value(&self, w: &Warp, m: &Mem, lane: usize, at: u64) -> bool {
        let (area, at) = if m.at.area == Area::Generic {
            split(at)
        } else {
            (m.at.area, at)
        };
        let bytes = u64::from(m.width) * m.data.len() as u64;
        let place = match area {
            Area::Shared | Area::Cluster
                if at.saturating_add(bytes) <= self.shared.len() as u64 * 4 =>
            {
                CheckedLocation::Shared(at as u32)
            }
            Area::Global => match self.context.memory.find(at) {
                Some(l) if l.offset + bytes <= self.context.memory.allocations[l.index].bytes => {
                    CheckedLocation::Global(l)
                }
                _ => return false,
            },
            _ => return false,
        };
        let cut = if m.width == 8 {
            u64::MAX
        } else {
            (1 << (m.width * 8)) - 1
        };
        at % bytes == 0
            && m.data.iter().enumerate().all(|(i, d)| {
                self.get(w, place, i as u32 * m.width, m.width) == w.value(*d, lane) & cut
            })
    }
}

/// Returns an address in the generic space, which identifies a synchronisation variable.
pub(super) fn generic(area: Area, at: u64) -> u64 {
    if matches!(area, Area::Shared | Area::Cluster) {
        SHARED_WINDOW + at
    } else {
        at
    }
}

/// Writes loaded words to the registers of a load.
fn deliver(w: &mut Warp, m: &Mem, mask: u32, words: &Words) {
    let elements_in_word = (4 / m.width).max(1) as usize;
    for (i, d) in m.data.iter().enumerate() {
        match (*d, m.width) {
            (Data::Nothing, _) => {}
            (Data::R32(row), 4) => U32::put(&mut w.regs, row, mask, &words[i & 3]),
            (Data::R64(row), 8) => {
                let (low, high) = (&words[(2 * i) & 3], &words[(2 * i + 1) & 3]);
                let mut both = [0; 32];
                for ((both, low), high) in both.iter_mut().zip(low).zip(high) {
                    *both = u64::from(*low) | u64::from(*high) << 32;
                }
                U64::put(&mut w.regs, row, mask, &both);
            }
            _ => {
                let shift = i % elements_in_word * m.width as usize * 8;
                let cut = (1u64 << (m.width * 8).min(63)) - 1;
                for lane in lanes(mask) {
                    let word = u64::from(words[(i / elements_in_word) & 3][lane]);
                    w.set(*d, lane, m.extended(word >> shift & cut, *d));
                }
            }
        }
    }
}

/// Collects the words of a store.
fn collect(w: &Warp, m: &Mem) -> Words {
    let mut words = [[0; 32]; 4];
    let elements_in_word = (4 / m.width).max(1) as usize;
    for (i, d) in m.data.iter().enumerate() {
        match (*d, m.width) {
            (Data::Nothing, _) => {}
            (Data::R32(row), 4) => words[i & 3] = w.regs.r32[row as usize],
            (Data::R64(row), 8) => {
                for (lane, value) in w.regs.r64[row as usize].iter().enumerate() {
                    words[(2 * i) & 3][lane] = *value as u32;
                    words[(2 * i + 1) & 3][lane] = (value >> 32) as u32;
                }
            }
            _ => {
                let shift = i % elements_in_word * m.width as usize * 8;
                let cut = (1u64 << (m.width * 8).min(63)) - 1;
                for (lane, word) in words[(i / elements_in_word) & 3].iter_mut().enumerate() {
                    *word |= ((w.value(*d, lane) & cut) << shift) as u32;
                }
            }
        }
    }
    words
}
