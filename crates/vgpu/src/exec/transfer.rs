//! Loads and stores of a warp.

use super::access::{Touch, split};
use super::team::Team;
use super::warp::Warp;
use crate::lower::program::{Address, Area, Data, Mem, Order, SHARED_WINDOW};

impl Warp {
    /// The address of one lane.
    #[inline(always)]
    pub(super) fn address(&self, a: &Address, lane: usize) -> u64 {
        let base = match a.base {
            Data::R64(row) => self.regs.r64[row as usize][lane],
            Data::R32(row) => self.regs.r32[row as usize][lane].into(),
            Data::Nothing => 0,
        };
        let at = base.wrapping_add(a.offset as u64);
        // Shared addresses have 32 bits: a negative index wraps to a large offset.
        if a.area == Area::Shared && at < SHARED_WINDOW {
            at & 0xffff_ffff
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
    /// A loaded element as its register holds it.
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

/// Lanes of a mask.
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

impl Team<'_> {
    /// Whether an access counts as atomic.
    fn is_strong(&self, order: Order) -> bool {
        match order {
            Order::Weak => false,
            // A volatile store may set a flag that somebody polls; else volatile is the old
            // warp-synchronous style, which is no order. (Loads that poll are relaxed already.)
            Order::Volatile => self.context.program.polls,
            _ => true,
        }
    }

    pub(super) fn load(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        let bytes = m.width * m.data.len() as u32;
        let strong = self.is_strong(m.order);
        self.count(w, &m.at, mask, bytes, false);
        if m.data.len() > 1 && m.data.contains(&Data::Nothing) && !strong {
            return self.load_partly(w, m, mask);
        }
        for lane in lanes(mask) {
            let at = w.address(&m.at, lane);
            let touch = Touch {
                strong,
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
                self.observe(thread, generic(m.at.area, at), m.order, false);
            }
        }
    }

    pub(super) fn store(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        let bytes = m.width * m.data.len() as u32;
        let strong = self.is_strong(m.order);
        self.count(w, &m.at, mask, bytes, true);
        let allow_same = self.context.checks.same_value_writes_allowed;
        for lane in lanes(mask) {
            let at = w.address(&m.at, lane);
            let thread = w.index * 32 + lane;
            if strong {
                self.publish(thread, generic(m.at.area, at), m.order, m.device_wide);
            }
            let mut touch = Touch {
                strong,
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

    /// Whether global or shared memory already holds what a store brings.
    fn same_value(&self, w: &Warp, m: &Mem, lane: usize, at: u64) -> bool {
        use super::access::Place;
        let (area, at) = if m.at.area == Area::Generic {
            split(at)
        } else {
            (m.at.area, at)
        };
        let bytes = u64::from(m.width) * m.data.len() as u64;
        let place = match area {
            Area::Shared if at + bytes <= self.shared.len() as u64 * 4 => Place::Shared(at as u32),
            Area::Global => match self.context.memory.find(at) {
                Some(l) if l.offset + bytes <= self.context.memory.allocations[l.index].bytes => {
                    Place::Global(l)
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

    /// Counts bytes, sectors and bank conflicts of one warp access.
    pub(super) fn count(&mut self, w: &Warp, a: &Address, mask: u32, bytes: u32, write: bool) {
        let total = u64::from(bytes) * u64::from(mask.count_ones());
        let first = mask.trailing_zeros() as usize & 31;
        let mut area = a.area;
        let start = w.address(a, first);
        if area == Area::Generic {
            area = split(start).0;
        }
        match area {
            Area::Global | Area::Generic => {
                let sectors = self.sectors(w, a, mask, bytes);
                let c = &mut self.counters;
                if write {
                    c.global_store_bytes += total;
                    c.global_store_sectors += sectors;
                } else {
                    c.global_load_bytes += total;
                    c.global_load_sectors += sectors;
                }
            }
            Area::Shared => {
                let addresses: [u32; 32] = std::array::from_fn(|l| w.address(a, l) as u32);
                self.count_shared(&addresses, mask, bytes);
            }
            Area::Local => self.counters.local_bytes += total,
            _ => {}
        }
    }

    fn sectors(&self, w: &Warp, a: &Address, mask: u32, bytes: u32) -> u64 {
        let mut count = 0;
        let mut last = u64::MAX;
        let mut seen = [u64::MAX; 32];
        for lane in lanes(mask) {
            let at = w.address(a, lane);
            for sector in at / 32..=(at + u64::from(bytes) - 1) / 32 {
                // Neighbours share a sector most often; else look at all seen so far.
                if sector == last || seen[..count.min(32)].contains(&sector) {
                    continue;
                }
                last = sector;
                seen[count % 32] = sector;
                count += 1;
            }
        }
        count as u64
    }

    /// Wavefronts of a shared access: lanes go in groups that move 128 bytes at best, and each
    /// bank gives one word a wavefront.
    pub(super) fn count_shared(&mut self, addresses: &[u32; 32], mask: u32, bytes: u32) {
        let c = &mut self.counters;
        c.shared_bytes += u64::from(bytes) * u64::from(mask.count_ones());
        let words = bytes.div_ceil(4).max(1);
        let group = (32 / words).max(1);
        for first in (0..32).step_by(group as usize) {
            let part = mask >> first & (((1u64 << group) - 1) as u32);
            if part == 0 {
                continue;
            }
            let mut used = [0u8; 32];
            let mut held = [[u32::MAX; 4]; 32];
            let mut worst = 1;
            for lane in lanes(part) {
                let word = addresses[first as usize + lane] / 4;
                for word in word..word + words {
                    let bank = word as usize % 32;
                    let have = usize::from(used[bank]);
                    if held[bank][..have.min(4)].contains(&word) {
                        continue;
                    }
                    held[bank][have % 4] = word;
                    used[bank] += 1;
                    worst = worst.max(used[bank]);
                }
            }
            c.shared_wavefronts += u64::from(worst);
            c.bank_conflicts += u64::from(worst - 1);
        }
    }
}

/// An address in the generic space: what names a synchronisation variable.
pub(super) fn generic(area: Area, at: u64) -> u64 {
    if area == Area::Shared {
        SHARED_WINDOW + at
    } else {
        at
    }
}
