//! Traffic of a warp access: bytes, sectors, wavefronts, bank conflicts.

use super::access::split;
use super::cta::Cta;
use super::regs::FULL;
use super::rows::Row;
use super::transfer::lanes;
use super::warp::Warp;
use crate::lower::program::{Address, Area};
use gpu_arithmetic::host::vectorised;

impl Cta<'_> {
    /// Counts an access that is in bounds and aligned.
    pub(super) fn count_row(&mut self, row: &Row, mask: u32, bytes: u32, write: bool) {
        let Some(allocation) = row.allocation else {
            return self.count_shared(&row.at, mask, bytes, write);
        };
        if self.trace.is_some() {
            let base = self.context.memory.allocations[allocation].base;
            self.trace_global(&row.at, base, mask, bytes, write);
        }
        let sectors = distinct(&row.at, mask, 32);
        let total = u64::from(bytes) * u64::from(mask.count_ones());
        self.count_global(total, sectors, write);
    }

    fn count_global(&mut self, bytes: u64, sectors: u64, write: bool) {
        let c = &mut self.counters;
        if write {
            c.global_store_bytes += bytes;
            c.global_store_sectors += sectors;
        } else {
            c.global_load_bytes += bytes;
            c.global_load_sectors += sectors;
        }
    }

    /// Counts bytes, sectors and bank conflicts of one warp access.
    pub(super) fn count(&mut self, w: &Warp, a: &Address, mask: u32, bytes: u32, write: bool) {
        let total = u64::from(bytes) * u64::from(mask.count_ones());
        // Without an active lane this would be 32.
        let first = mask.trailing_zeros() as usize & 31;
        let mut area = a.area;
        let start = w.address(a, first);
        if area == Area::Generic {
            area = split(start).0;
        }
        match area {
            Area::Global | Area::Generic => {
                if self.trace.is_some() {
                    let at = std::array::from_fn(|l| w.address(a, l));
                    self.trace_global(&at, 0, mask, bytes, write);
                }
                let sectors = self.sectors(w, a, mask, bytes);
                self.count_global(total, sectors, write);
            }
            Area::Shared | Area::Cluster => {
                let addresses = std::array::from_fn(|l| w.address(a, l));
                self.count_shared(&addresses, mask, bytes, write);
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
            for sector in at / 32..=at.saturating_add(u64::from(bytes) - 1) / 32 {
                // Neighbours mostly share a sector; otherwise search all seen so far.
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

    /// Counts the wavefronts of a shared access. Lanes go in groups that move up to 128 bytes, and
    /// each bank serves one word per wavefront. Loads of the same word by neighbouring lanes need
    /// fewer groups.
    pub(super) fn count_shared(&mut self, at: &[u64; 32], mask: u32, bytes: u32, write: bool) {
        self.counters.shared_bytes += u64::from(bytes) * u64::from(mask.count_ones());
        let (groups, extra) = shared_wavefronts(at, mask, bytes, write);
        self.counters.shared_wavefronts += groups + extra;
        self.counters.bank_conflicts += extra;
        if self.trace.is_some() {
            self.trace_shared(groups + extra, extra, mask, bytes, write);
        }
    }
}

/// Returns the number of lane groups of a shared access, and the wavefronts beyond one per group.
pub fn shared_wavefronts(at: &[u64; 32], mask: u32, bytes: u32, write: bool) -> (u64, u64) {
    match bytes {
        8 if !write && merges(at, mask) => wavefronts::<8, 32>(at, mask),
        8 => wavefronts::<8, 16>(at, mask),
        16 if !write => quads(at, mask),
        16 => wavefronts::<16, 8>(at, mask),
        _ => wavefronts::<4, 32>(at, mask),
    }
}

/// Reports whether two groups of lanes are served at once: every lane wants the same as its
/// neighbour, or as the lane two further. (Measured on 17 956 recorded kernels on a 2080 Ti, whose
/// broadcasts of 8 and 16 bytes take half the time of contiguous loads.)
fn merges(at: &[u64; 32], mask: u32) -> bool {
    [1, 2].into_iter().any(|step| {
        lanes(mask).all(|lane| mask >> (lane ^ step) & 1 == 0 || at[lane] == at[lane ^ step])
    })
}

/// Counts the wavefronts of a load of 16 bytes per lane: each half of the warp goes at once, or in
/// two groups.
fn quads(at: &[u64; 32], mask: u32) -> (u64, u64) {
    let (mut groups, mut extra) = (0, 0);
    for half in [mask & 0xffff, mask & 0xffff_0000] {
        let (g, e) = if merges(at, half) {
            wavefronts::<16, 16>(at, half)
        } else {
            wavefronts::<16, 8>(at, half)
        };
        groups += g;
        extra += e;
    }
    (groups, extra)
}

/// Returns the groups of `G` lanes with active lanes, and the wavefronts beyond one each. A lane
/// moves `UNIT` bytes, or fewer of one word.
fn wavefronts<const UNIT: u64, const G: usize>(at: &[u64; 32], mask: u32) -> (u64, u64) {
    // 128 consecutive bytes use each of the 32 banks once: no search for conflicts.
    if mask == FULL && UNIT * G as u64 == 128 && in_order::<UNIT>(at) {
        return (32 / G as u64, 0);
    }
    let (mut groups, mut extra) = (0, 0);
    for (i, at) in at.as_chunks::<G>().0.iter().enumerate() {
        let part = mask >> (i * G) & (u32::MAX >> (32 - G));
        if part != 0 {
            groups += 1;
            if !without_conflict::<UNIT, G>(at, part) {
                extra += u64::from(worst_bank(at, part, UNIT / 4)) - 1;
            }
        }
    }
    (groups, extra)
}

/// Reports whether each lane reads the unit after that of the previous lane.
#[inline(always)]
fn in_order<const UNIT: u64>(at: &[u64; 32]) -> bool {
    vectorised(
        #[inline(always)]
        || {
            let mut next = 0;
            for (lane, x) in at.iter().enumerate() {
                next |= x ^ at[0].wrapping_add(lane as u64 * UNIT);
            }
            next == 0 && at[0].is_multiple_of(UNIT)
        },
    )
}

/// Reports whether the aligned units of a group of lanes are all in different banks, or the same.
#[inline(always)]
fn without_conflict<const UNIT: u64, const G: usize>(at: &[u64; G], part: u32) -> bool {
    let mut held = [u64::MAX; G];
    for (lane, at) in at.iter().enumerate() {
        if part >> lane & 1 == 0 {
            continue;
        }
        let place = at / UNIT;
        let slot = &mut held[place as usize % G];
        if UNIT > 4 && at % UNIT != 0 || *slot != u64::MAX && *slot != place {
            return false;
        }
        *slot = place;
    }
    true
}

/// Returns the number of distinct words in the busiest bank.
fn worst_bank(at: &[u64], lanes_in: u32, words: u64) -> u8 {
    let mut used = [0u8; 32];
    let mut held = [[u64::MAX; 4]; 32];
    let mut worst = 1;
    for lane in lanes(lanes_in) {
        let word = at[lane] / 4;
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
    worst
}

/// Counts the distinct blocks of `size` bytes that contain the addresses.
fn distinct(at: &[u64; 32], mask: u32, size: u64) -> u64 {
    let (mut count, mut last, mut rising) = (0, u64::MAX, true);
    for lane in lanes(mask) {
        let block = at[lane] / size;
        if block != last {
            rising &= last == u64::MAX || block > last;
            last = block;
            count += 1;
        }
    }
    // Ascending addresses, the common case, repeat no block: they need no sort.
    if rising {
        return count;
    }
    let mut blocks = [u64::MAX; 32];
    lanes(mask).for_each(|l| blocks[l] = at[l] / size);
    blocks.sort_unstable();
    let mut count = u64::from(blocks[0] != u64::MAX);
    for pair in blocks.windows(2) {
        count += u64::from(pair[0] != pair[1] && pair[1] != u64::MAX);
    }
    count
}
