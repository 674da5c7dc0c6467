//! Warp-wide operations: shuffles, votes, matches, reductions, warp barriers.

use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::WATCHED;
use crate::lower::program::{Data, NONE, ReduxNumbers, Shuffle, WarpOp};
use gpu_arithmetic::atomic::AtomOp;
use gpu_arithmetic::single;

impl Cta<'_> {
    /// Groups the active lanes by member mask; `None` when named lanes have not arrived yet.
    /// `here` are the lanes at the instruction.
    pub(super) fn groups(w: &Warp, mask_row: u32, here: u32) -> Option<Vec<u32>> {
        let rows = &w.regs.r32[mask_row as usize];
        let first = rows[here.trailing_zeros() as usize & 31];
        // In most kernels all lanes name the same mask.
        if lanes(here).all(|l| rows[l] == first) {
            // Exited lanes are not waited for, as on hardware.
            return (first & w.alive & !here == 0).then(|| vec![here & first]);
        }
        let mut groups = Vec::new();
        let mut rest = here;
        while rest != 0 {
            let members = rows[rest.trailing_zeros() as usize];
            let group: u32 = lanes(rest)
                .filter(|l| rows[*l] == members)
                .map(|l| 1 << l)
                .sum();
            if members & w.alive & !here != 0 {
                return None;
            }
            groups.push(group);
            rest &= !group;
        }
        Some(groups)
    }

    /// Executes a warp-wide operation for one group of lanes.
    pub(super) fn collective(
        &mut self,
        w: &mut Warp,
        mask_row: u32,
        op: &WarpOp,
        group: u32,
        here: u32,
    ) {
        self.refuse_absent_callers(w, mask_row, here & !group);
        let marks = self.context.program.code[self.pc as usize].marks;
        let watched = marks & WATCHED != 0 && w.undefined_registers != 0;
        match op {
            WarpOp::Shfl {
                mode,
                dest,
                pred,
                a,
                b,
                c,
            } => {
                let rows = ShuffleRows {
                    dest: *dest,
                    pred: *pred,
                    a: *a,
                    b: *b,
                    c: *c,
                };
                let shadows = w.shadows_of(*a);
                let (stray, from) = shuffle(w, *mode, &rows, group);
                if let Some(shadows) = shadows {
                    w.shuffle_shadows(*dest, &shadows, &from, group);
                }
                if let Some(stray) = stray {
                    self.stray_shuffle(w, *mode, stray, mask_row);
                }
                if watched {
                    self.watch_group(w, group, &from);
                }
            }
            WarpOp::Vote {
                mode,
                dest,
                source,
                negated,
            } => {
                let p = w.regs.preds[*source as usize];
                let votes = (if *negated { !p } else { p }) & group;
                vote(w, *mode, *dest, votes, group);
            }
            WarpOp::Match { all, dest, pred, a } => matching(w, *all, *dest, *pred, *a, group),
            WarpOp::Redux {
                op,
                numbers,
                dest,
                a,
            } => {
                let total = match numbers {
                    ReduxNumbers::Floats { nan, absolute } => {
                        float_extreme(w, *op, *nan, *absolute, *a, group)
                    }
                    numbers => redux(w, *op, *numbers == ReduxNumbers::Signed, *a, group),
                };
                lanes(group).for_each(|l| w.regs.r32[*dest as usize][l] = total);
            }
            WarpOp::Elect { dest, pred } => {
                let leader = group.trailing_zeros();
                lanes(group).for_each(|l| w.regs.r32[*dest as usize][l] = leader);
                if *pred != NONE {
                    let p = &mut w.regs.preds[*pred as usize];
                    *p = (*p & !group) | 1 << leader;
                }
            }
            WarpOp::Barrier => self.warp_barrier(w, group),
        }
        if watched && !matches!(op, WarpOp::Shfl { .. }) {
            self.watch_group(w, group, &[0; 32]);
        }
    }

    /// Reports the calling lanes that are not in their own member mask.
    fn refuse_absent_callers(&mut self, w: &Warp, mask_row: u32, lanes_outside: u32) {
        for lane in lanes(lanes_outside) {
            let members = w.regs.r32[mask_row as usize][lane];
            if members >> lane & 1 == 0 {
                self.hazard(
                    HazardKind::Crashed,
                    w.index * 32 + lane,
                    Location::NONE,
                    NONE,
                    || format!("the thread is not in its own member mask 0x{members:08x}"),
                );
            }
        }
    }

    /// Reports a lane that took its value from a lane outside the group. Sums by `down` and scans
    /// by `up` do so at the ends of the warp and discard the value.
    #[cold]
    fn stray_shuffle(&mut self, w: &Warp, mode: Shuffle, stray: StrayRead, mask_row: u32) {
        if matches!(mode, Shuffle::Up | Shuffle::Down) {
            return;
        }
        let StrayRead { lane, from } = stray;
        let members = w.regs.r32[mask_row as usize][lane];
        self.hazard(
            HazardKind::Uninitialized,
            w.index * 32 + lane,
            Location::NONE,
            NONE,
            || {
                let why = if members >> from & 1 == 0 {
                    format!("is not in the member mask 0x{members:08x}")
                } else {
                    "has exited or never was".to_owned()
                };
                format!("a shuffle gives lane {lane} the value of lane {from}, which {why}")
            },
        );
    }

    /// Implements `bar.warp.sync`, which orders the named lanes.
    pub(super) fn warp_barrier(&mut self, w: &Warp, group: u32) {
        let threads: Vec<usize> = lanes(group).map(|l| w.index * 32 + l).collect();
        threads.iter().for_each(|t| self.apply_pending(*t, false));
        // The warp floor is valid only where all live lanes take part.
        if group == w.alive {
            self.clocks.full_warp(w.index, &threads);
        } else {
            self.clocks.subset(&[], &threads);
        }
        self.spread_fences(&threads);
    }
}

/// Rows of a shuffle; `pred` may be `NONE`.
struct ShuffleRows {
    dest: u32,
    pred: u32,
    a: u32,
    b: u32,
    c: u32,
}

/// A lane that read from a lane outside its group.
#[derive(Clone, Copy)]
struct StrayRead {
    lane: usize,
    from: u32,
}

/// Value read from a lane outside the group: a NaN, and not a plausible integer.
const STRAY_VALUE: u32 = 0x7fc5_7a11;

/// Executes a shuffle. Returns the first lane that read from a lane outside the group, with that
/// lane; and the source lane of each lane of the group.
fn shuffle(
    w: &mut Warp,
    mode: Shuffle,
    rows: &ShuffleRows,
    group: u32,
) -> (Option<StrayRead>, [u8; 32]) {
    let mut stray = None;
    let mut sources = [0; 32];
    let (values, amounts, clamps) = (
        w.regs.r32[rows.a as usize],
        w.regs.r32[rows.b as usize],
        w.regs.r32[rows.c as usize],
    );
    let mut in_range = 0;
    for lane in lanes(group) {
        // PTX ISA, `shfl.sync`: `c` holds the clamp value in bits 0 to 4 and the segment mask in
        // bits 8 to 12.
        let (amount, clamp) = (amounts[lane] & 31, clamps[lane] & 31);
        let segment = clamps[lane] >> 8 & 31;
        let l = lane as u32;
        let most = (l & segment) | (clamp & !segment);
        let least = l & segment;
        let (from, ok) = match mode {
            Shuffle::Up => (
                l.wrapping_sub(amount),
                // For `up` the bound is a lowest lane: the comparison is signed and reversed.
                l as i32 - amount as i32 >= most as i32,
            ),
            Shuffle::Down => (l + amount, l + amount <= most),
            Shuffle::Bfly => (l ^ amount, l ^ amount <= most),
            Shuffle::Idx => {
                let j = least | (amount & !segment);
                (j, j <= most)
            }
        };
        // Out of range, a lane keeps its own value.
        let from = if ok { from & 31 } else { l };
        in_range |= u32::from(ok) << lane;
        sources[lane] = from as u8;
        let takes_part = group >> from & 1 == 1;
        if !takes_part && stray.is_none() {
            stray = Some(StrayRead { lane, from });
        }
        w.regs.r32[rows.dest as usize][lane] = if takes_part {
            values[from as usize]
        } else {
            STRAY_VALUE
        };
    }
    if rows.pred != NONE {
        let p = &mut w.regs.preds[rows.pred as usize];
        *p = (*p & !group) | in_range;
    }
    (stray, sources)
}

/// Writes the result of a vote: one predicate for all lanes, or (`ballot`) the votes themselves.
fn vote(w: &mut Warp, mode: u8, dest: u32, votes: u32, group: u32) {
    let truth = match mode {
        // 0 is `all`, 1 `any`, 2 `uni`; the rest is `ballot`.
        0 => votes == group,
        1 => votes != 0,
        2 => votes == group || votes == 0,
        _ => {
            lanes(group).for_each(|l| w.regs.r32[dest as usize][l] = votes);
            return;
        }
    };
    let d = &mut w.regs.preds[dest as usize];
    *d = if truth { *d | group } else { *d & !group };
}

fn matching(w: &mut Warp, all: bool, dest: u32, pred: u32, a: Data, group: u32) {
    let values: [u64; 32] = std::array::from_fn(|l| w.value(a, l));
    let mut agree = 0;
    for lane in lanes(group) {
        let same: u32 = lanes(group)
            .filter(|l| values[*l] == values[lane])
            .map(|l| 1 << l)
            .sum();
        let ok = !all || same == group;
        agree |= u32::from(ok) << lane;
        // PTX ISA, `match.sync`: `all` returns 0 unless every lane has the same value.
        w.regs.r32[dest as usize][lane] = if ok { same } else { 0 };
    }
    if pred != NONE {
        let p = &mut w.regs.preds[pred as usize];
        *p = (*p & !group) | agree;
    }
}

/// Returns the minimum or maximum of the floats of a group, or of their
/// absolute values; `nan`: a NaN is the result.
fn float_extreme(w: &Warp, op: AtomOp, nan: bool, absolute: bool, a: u32, group: u32) -> u32 {
    let values = w.regs.r32[a as usize];
    let sign = if absolute { u32::MAX >> 1 } else { u32::MAX };
    let total = lanes(group)
        .map(|l| f32::from_bits(values[l] & sign))
        .reduce(|a, b| single::extreme(a, b, op == AtomOp::Max, nan));
    total.unwrap_or(0.0).to_bits()
}

/// Returns what an operation makes of the integers of a group.
fn redux(w: &Warp, op: AtomOp, signed: bool, a: u32, group: u32) -> u32 {
    let values = w.regs.r32[a as usize];
    let total = lanes(group)
        .map(|l| values[l])
        .reduce(|x, y| match (op, signed) {
            (AtomOp::Min, true) => (x as i32).min(y as i32) as u32,
            (AtomOp::Max, true) => (x as i32).max(y as i32) as u32,
            (AtomOp::Min, false) => x.min(y),
            (AtomOp::Max, false) => x.max(y),
            (AtomOp::And, _) => x & y,
            (AtomOp::Or, _) => x | y,
            (AtomOp::Xor, _) => x ^ y,
            _ => x.wrapping_add(y),
        });
    total.unwrap_or(0)
}
