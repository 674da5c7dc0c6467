//! Traffic of a warp access: bytes, sectors, wavefronts, bank conflicts.

use super::access::split;
use super::regs::FULL;
use super::rows::Row;
use super::team::Team;
use super::transfer::lanes;
use super::warp::Warp;
use crate::lower::program::{Address, Area};
use crate::num::host::vectorised;

impl Team<'_> {
    /// Counts an access that is in bounds and aligned.
    pub(super) fn count_row(&mut self, row: &Row, mask: u32, bytes: u32, write: bool) {
        if row.allocation.is_none() {
            return self.count_shared(&row.at, mask, bytes);
        }
        let sectors = distinct(&row.at, mask, 32);
        let c = &mut self.counters;
        let total = u64::from(bytes) * u64::from(mask.count_ones());
        if write {
            c.global_store_bytes += total;
            c.global_store_sectors += sectors;
        } else {
            c.global_load_bytes += total;
            c.global_load_sectors += sectors;
        }
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
                let addresses = std::array::from_fn(|l| w.address(a, l));
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
    pub(super) fn count_shared(&mut self, at: &[u64; 32], mask: u32, bytes: u32) {
        let c = &mut self.counters;
        c.shared_bytes += u64::from(bytes) * u64::from(mask.count_ones());
        let unit = bytes.max(4);
        let group = (128 / unit).max(1);
        if mask == FULL && in_order(at, unit) {
            c.shared_wavefronts += u64::from(32 / group);
            return;
        }
        for first in (0..32).step_by(group as usize) {
            let part = mask >> first & (((1u64 << group) - 1) as u32);
            if part == 0 {
                continue;
            }
            let at = &at[first as usize..];
            if without_conflict(at, part, unit, group) {
                c.shared_wavefronts += 1;
                continue;
            }
            let worst = worst_bank(at, part, unit / 4);
            c.shared_wavefronts += u64::from(worst);
            c.bank_conflicts += u64::from(worst - 1);
        }
    }
}

/// Whether all lanes read one place, or each the unit behind the lane before.
#[inline(always)]
fn in_order(at: &[u64; 32], unit: u32) -> bool {
    vectorised(
        #[inline(always)]
        || {
            let (mut same, mut next) = (0, 0);
            for (lane, x) in at.iter().enumerate() {
                same |= x ^ at[0];
                next |= x ^ at[0].wrapping_add(lane as u64 * u64::from(unit));
            }
            same == 0 || next == 0 && at[0] % u64::from(unit) == 0
        },
    )
}

/// Whether the aligned units of a group of lanes are all in banks of their own, or the same.
fn without_conflict(at: &[u64], lanes_in: u32, unit: u32, group: u32) -> bool {
    let mut held = [u64::MAX; 32];
    for lane in lanes(lanes_in) {
        let place = at[lane] / u64::from(unit);
        let slot = &mut held[(place % u64::from(group)) as usize & 31];
        if unit > 4 && at[lane] % u64::from(unit) != 0 || *slot != u64::MAX && *slot != place {
            return false;
        }
        *slot = place;
    }
    true
}

/// Distinct words in the busiest bank.
fn worst_bank(at: &[u64], lanes_in: u32, words: u32) -> u8 {
    let mut used = [0u8; 32];
    let mut held = [[u64::MAX; 4]; 32];
    let mut worst = 1;
    for lane in lanes(lanes_in) {
        let word = at[lane] / 4;
        for word in word..word + u64::from(words) {
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

/// Distinct blocks of `size` bytes that hold the addresses.
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
