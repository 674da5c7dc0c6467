//! Register operations that do not fit the row loops.

use super::access::split;
use super::cta::Cta;
use super::regs::{Lane, U32, U64};
use super::transfer::lanes;
use super::warp::Warp;
use crate::lower::CARRY;
use crate::lower::program::{Area, CarryOp, Data, Op};

/// Executes the rarer register operations; returns `false` for any other.
pub(super) fn registers(cta: &mut Cta<'_>, w: &mut Warp, op: &Op, mask: u32) -> bool {
    match op {
        Op::Carry(c) => carry(w, c, mask),
        Op::Fetch(_) | Op::Surface(_) | Op::ImageQuery(_) => images(cta, w, op, mask),
        Op::Unpack { from, to, width } if unpack_row(w, *from, to, *width, mask) => {}
        Op::Pack { from, to, width } if pack_row(w, from, *to, *width, mask) => {}
        Op::Unpack { from, to, width } => {
            for lane in lanes(mask) {
                let value = w.value(*from, lane);
                for (i, d) in to.iter().enumerate() {
                    w.set(*d, lane, extract_part(value, i, *width));
                }
            }
        }
        Op::Pack { from, to, width } => {
            for lane in lanes(mask) {
                let mut value = 0;
                for (i, s) in from.iter().enumerate() {
                    value |= extract_part(w.value(*s, lane), 0, *width) << (i as u32 * width * 8);
                }
                w.set(*to, lane, value);
            }
        }
        Op::SetpCombine {
            p,
            q,
            compare,
            with,
            negated,
            how,
        } => {
            let c = w.regs.preds[*compare as usize];
            let other = w.regs.preds[*with as usize];
            let other = if *negated { !other } else { other };
            let join = |x: u32| match how {
                0 => x & other,
                1 => x | other,
                _ => x ^ other,
            };
            for (row, value) in [(*p, join(c)), (*q, join(!c))] {
                let d = &mut w.regs.preds[row as usize];
                *d = (*d & !mask) | (value & mask);
            }
        }
        Op::Clock { dest } => {
            // The clock is private to the block: instructions of other blocks must not show in it.
            let now = cta.clock;
            let cycles = cta.context.placement.cycles(now, cta.clock_reads);
            cta.clock = now.wrapping_add(cycles);
            cta.clock_reads = cta.clock_reads.saturating_add(1);
            lanes(mask).for_each(|l| w.set(*dest, l, now));
        }
        Op::IsSpace { area, dest, source } => {
            let mut hits = 0;
            for lane in lanes(mask) {
                let at = w.regs.r64[*source as usize][lane];
                let (is, at) = split(w.cluster.placed(Area::Generic, at));
                let hit = match area {
                    Area::Global => is == Area::Global && cta.context.memory.find(at).is_some(),
                    Area::CallParam => is == Area::KernelParam,
                    // The window of a cluster contains that of the block.
                    Area::Cluster => is == Area::Shared,
                    Area::Shared => is == Area::Shared && !cta.leaves_block(w, at),
                    area => is == *area,
                };
                hits |= u32::from(hit) << lane;
            }
            let d = &mut w.regs.preds[*dest as usize];
            *d = (*d & !mask) | hits;
        }
        Op::MapAddress { .. } | Op::BlockRank { .. } => cluster_addresses(cta, w, op, mask),
        Op::ActiveMask { dest } => lanes(mask).for_each(|l| w.regs.r32[*dest as usize][l] = mask),
        _ => return false,
    }
    true
}

/// Executes `mapa` and `getctarank`.
fn cluster_addresses(cta: &mut Cta<'_>, w: &mut Warp, op: &Op, mask: u32) {
    match op {
        Op::MapAddress {
            dest,
            address,
            rank,
            generic,
        } => {
            for lane in lanes(mask) {
                let rank = w.regs.r32[*rank as usize][lane];
                let at = cta.map_address(w, lane, w.value(*address, lane), rank, *generic);
                w.set(*dest, lane, at);
            }
        }
        Op::BlockRank {
            dest,
            address,
            generic,
        } => {
            for lane in lanes(mask) {
                let at = w.value(*address, lane);
                let at = w.cluster.place_of(if *generic { split(at).1 } else { at });
                w.regs.r32[*dest as usize][lane] = cta.context.cluster.rank_of_address(at) as u32;
            }
        }
        _ => {}
    }
}

/// Executes the common splits of a whole row at once; returns `false` for others.
fn unpack_row(w: &mut Warp, from: Data, to: &[Data], width: u32, mask: u32) -> bool {
    let &[first, second] = to else { return false };
    let (low, high) = match (from, width) {
        (Data::R64(row), 4) => {
            let row = &w.regs.r64[row as usize];
            (row.map(|x| x as u32), row.map(|x| (x >> 32) as u32))
        }
        (Data::R32(row), 2) => {
            let row = &w.regs.r32[row as usize];
            (row.map(|x| x & 0xffff), row.map(|x| x >> 16))
        }
        _ => return false,
    };
    for (to, value) in [(first, &low), (second, &high)] {
        match to {
            Data::R32(row) => U32::put(&mut w.regs, row, mask, value),
            Data::Nothing => {}
            Data::R64(_) => return false,
        }
    }
    true
}

/// Executes the common joins of a whole row at once; returns `false` for others.
fn pack_row(w: &mut Warp, from: &[Data], to: Data, width: u32, mask: u32) -> bool {
    let &[Data::R32(first), Data::R32(second)] = from else {
        return false;
    };
    let (low, high) = (&w.regs.r32[first as usize], &w.regs.r32[second as usize]);
    match (to, width) {
        (Data::R64(row), 4) => {
            let both = std::array::from_fn(|i| u64::from(low[i]) | u64::from(high[i]) << 32);
            U64::put(&mut w.regs, row, mask, &both);
        }
        (Data::R32(row), 2) => {
            let both = std::array::from_fn(|i| low[i] & 0xffff | high[i] << 16);
            U32::put(&mut w.regs, row, mask, &both);
        }
        _ => return false,
    }
    true
}

fn extract_part(value: u64, index: usize, width: u32) -> u64 {
    let shifted = value >> (index as u32 * width * 8).min(63);
    if width >= 8 {
        shifted
    } else {
        shifted & ((1 << (width * 8)) - 1)
    }
}

/// Executes the operations on texture and surface objects.
fn images(cta: &mut Cta<'_>, w: &mut Warp, op: &Op, mask: u32) {
    match op {
        Op::Fetch(fetch) => cta.fetch_texels(w, fetch, mask),
        Op::Surface(access) => cta.surface(w, access, mask),
        Op::ImageQuery(query) => cta.query_image(w, query, mask),
        _ => {}
    }
}

fn carry(w: &mut Warp, c: &CarryOp, mask: u32) {
    let wide = matches!(c.dest, Data::R64(_));
    let bits = if wide { 64 } else { 32 };
    // 128 bits hold a 64-bit product and its carry.
    let cut = (1u128 << bits) - 1;
    let mut flags = w.regs.preds[CARRY as usize];
    for lane in lanes(mask) {
        let [a, b, d] = c.sources.map(|s| u128::from(w.value(s, lane)) & cut);
        let carry_in = u128::from(c.carry_in && flags >> lane & 1 == 1);
        let product = if c.signed {
            let extend = |x: u128| ((x << (128 - bits)) as i128) >> (128 - bits);
            extend(a).wrapping_mul(extend(b)) as u128
        } else {
            a.wrapping_mul(b)
        };
        let sum = match c.op {
            0 => a + b + carry_in,
            // Borrow: bit `bits` of the wrapped difference is set when it is negative.
            1 => a.wrapping_sub(b).wrapping_sub(carry_in),
            2 => (product & cut) + d + carry_in,
            _ => (product >> bits & cut) + d + carry_in,
        };
        if c.carry_out {
            flags = (flags & !(1 << lane)) | ((sum >> bits & 1) as u32) << lane;
        }
        w.set(c.dest, lane, (sum & cut) as u64);
    }
    w.regs.preds[CARRY as usize] = flags;
}
