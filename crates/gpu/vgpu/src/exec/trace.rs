//! Traces of warps for the timing model: the control flow of each warp, and its memory accesses.

mod texels;

use super::transfer::lanes;
use std::ops::Range;

/// Accesses that the warps of a block record at most, in equal shares; longer warps are known by
/// their beginning.
const MAX_ACCESSES: usize = 1 << 19;

/// Bit that marks a sector number as local memory.
pub const LOCAL_SECTOR: u64 = 1 << 50;

/// Times that each load of a warp is recorded where only the addresses of first loads are
/// requested.
pub const FIRST_LOADS: u8 = 4;

/// Instructions executed in sequence, without a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First instruction.
    pub start: u32,
    /// Instruction after the last.
    pub end: u32,
    /// Instructions that the warp executed before.
    pub(crate) at: u64,
}

/// Destination of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Global or local memory: a range of [`WarpTrace::sectors`].
    Global {
        /// Index of the first sector.
        first: u32,
        /// Number of sectors.
        count: u16,
        /// Lines of 128 bytes that the parts of the warp look up one after the other.
        lookups: u8,
    },
    /// Shared memory: wavefronts.
    Shared {
        /// All wavefronts.
        wavefronts: u16,
        /// Those caused by bank conflicts.
        conflicts: u16,
    },
    /// A product in tensor memory, a copy to it, or an allocation.
    TensorCore {
        /// Columns of tensor memory that the result or the allocation has in one block; none of a copy.
        columns: u32,
        /// Bytes of shared memory that are read in one block.
        bytes: u32,
    },
}

/// One memory access of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The instruction.
    pub pc: u32,
    /// Instructions that the warp executed before this one.
    pub at: u64,
    /// Bytes per lane.
    pub bytes: u8,
    /// Lanes that took part.
    pub lanes: u8,
    /// A store or an atomic.
    pub write: bool,
    /// Destination.
    pub target: Target,
}

/// Part of a warp in a phase of a barrier in shared memory (`mbarrier`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalKind {
    /// Waits for the end of the phase.
    Waits,
    /// Arrives.
    Arrives,
    /// Arrives when the asynchronous copies before it are complete.
    ArrivesAfterCopies,
    /// Arrives when the products in tensor memory before it are complete.
    ArrivesAfterProducts,
    /// A bulk copy, whose bytes the phase expects.
    Copies,
}

/// A signal of a warp to a phase of a barrier, or its wait for the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Instructions that the warp executed before this one.
    pub at: u64,
    /// Number of the phase among all phases of all barriers of the block.
    pub phase: u32,
    /// Its kind.
    pub kind: SignalKind,
}

/// Trace of one warp.
#[derive(Debug, Clone, Default)]
pub struct WarpTrace {
    /// Executed runs, in order.
    pub runs: Vec<Run>,
    /// Its accesses to memory, in order.
    pub accesses: Vec<Access>,
    /// Numbers of 32-byte sectors.
    pub sectors: Vec<u64>,
    /// For atomics on global memory: index in `sectors`, the word there that most lanes change, and
    /// the number of those lanes. In order of index.
    changed: Vec<(u32, u64, u8)>,
    /// Its signals to barriers in shared memory, in order; of machine code only.
    pub signals: Vec<Signal>,
    /// Number of executed instructions.
    pub executed: u64,
    /// Accesses beyond the recorded ones.
    pub dropped: u64,
    /// Numbers of the words of global memory that it stored to as PTX, in the order of the stores.
    pub stored: Vec<u64>,
    /// Maximum number of recorded accesses.
    room: usize,
    /// First instruction of the current run.
    open: u32,
    /// Number of times that each global load was recorded, by instruction.
    noted: Vec<u8>,
}

/// Trace of the warps of one block.
#[derive(Debug, Clone)]
pub struct BlockTrace {
    /// Linear index of the block.
    pub block: u32,
    /// Its warps, by their index.
    pub warps: Vec<WarpTrace>,
}

impl WarpTrace {
    /// Returns the numbers of the 32-byte sectors of an access; none for shared memory.
    pub fn sectors_of(&self, access: &Access) -> &[u64] {
        let Target::Global { first, count, .. } = access.target else {
            return &[];
        };
        let first = first as usize;
        let found = self.sectors.get(first..first + usize::from(count));
        found.unwrap_or_default()
    }

    /// For each sector of an atomic access, returns the number of the word that most lanes change,
    /// and the number of those lanes.
    pub fn changed_by(&self, access: &Access) -> impl Iterator<Item = (u64, u64, u8)> {
        let first = match access.target {
            Target::Global { first, .. } => first,
            Target::Shared { .. } | Target::TensorCore { .. } => 0,
        };
        let from = self.changed.partition_point(|(place, ..)| *place < first);
        let sectors = self.sectors_of(access);
        let here = self.changed.iter().skip(from).take(sectors.len());
        let pairs = sectors.iter().zip(here);
        pairs.map(|(sector, (_, word, lanes))| (*sector, *word, *lanes))
    }

    /// Creates the trace of a warp in a block of `warps`.
    pub fn with_warps(warps: usize) -> WarpTrace {
        WarpTrace {
            room: MAX_ACCESSES / warps.max(1),
            ..WarpTrace::default()
        }
    }

    /// Begins a run at `pc`.
    pub fn open(&mut self, pc: u32) {
        self.open = pc;
    }

    /// Ends the current run before `end`.
    pub fn close(&mut self, end: u32) {
        let length = u64::from(end.saturating_sub(self.open));
        if length == 0 {
            return;
        }
        match self.runs.last_mut() {
            // A split that continues at the next instruction is not a jump.
            Some(last) if last.end == self.open => last.end = end,
            _ => self.runs.push(Run {
                start: self.open,
                end,
                at: self.executed,
            }),
        }
        self.executed += length;
    }

    /// Reports whether the load at `pc` was recorded [`FIRST_LOADS`] times.
    #[inline]
    pub(super) fn knows(&self, pc: u32) -> bool {
        self.noted
            .get(pc as usize)
            .is_some_and(|n| *n >= FIRST_LOADS)
    }

    fn note(&mut self, pc: u32) {
        let pc = pc as usize;
        if pc >= self.noted.len() {
            self.noted.resize(pc + 1, 0);
        }
        self.noted[pc] = self.noted[pc].saturating_add(1);
    }

    /// Returns the number of instructions before the one at `pc` of the current run.
    fn step_of(&self, pc: u32) -> u64 {
        self.executed + u64::from(pc.saturating_sub(self.open))
    }

    /// Records a signal of the instruction at `pc` of the current run.
    pub fn signal(&mut self, pc: u32, phase: u32, kind: SignalKind) {
        self.push_signal(self.step_of(pc), phase, kind);
    }

    /// Records a signal of the last instruction of the run that was closed last.
    pub fn signal_of_last(&mut self, phase: u32, kind: SignalKind) {
        self.push_signal(self.executed.saturating_sub(1), phase, kind);
    }

    fn push_signal(&mut self, at: u64, phase: u32, kind: SignalKind) {
        let signal = Signal { at, phase, kind };
        // Lanes that arrive together are one signal.
        if self.signals.last() != Some(&signal) {
            self.signals.push(signal);
        }
    }

    fn push(&mut self, pc: u32, bytes: u32, mask: u32, write: bool, target: Target) {
        let at = self.step_of(pc);
        self.accesses.push(Access {
            pc,
            at,
            bytes: bytes.min(255) as u8,
            lanes: mask.count_ones() as u8,
            write,
            target,
        });
    }
}

impl WarpTrace {
    /// Reports whether the trace is full, and counts the access as dropped if so.
    fn full(&mut self) -> bool {
        let full = self.accesses.len() >= self.room;
        self.dropped += u64::from(full);
        full
    }

    /// Records a global access at `base` plus the offsets `at`.
    pub fn global(
        &mut self,
        pc: u32,
        at: &[u64; 32],
        base: u64,
        mask: u32,
        bytes: u32,
        write: bool,
    ) {
        if self.full() {
            return;
        }
        let first = self.sectors.len();
        for lane in lanes(mask) {
            let start = at[lane].wrapping_add(base);
            for sector in start / 32..=start.saturating_add(u64::from(bytes) - 1) / 32 {
                if !self.sectors[first..].contains(&sector) {
                    self.sectors.push(sector);
                }
            }
        }
        let count = (self.sectors.len() - first).min(u16::MAX.into()) as u16;
        let first = first as u32;
        let lookups = lookups(at, base, mask, bytes);
        let target = Target::Global {
            first,
            count,
            lookups,
        };
        self.push(pc, bytes, mask, write, target);
        if !write {
            self.note(pc);
        }
    }

    /// Records a bulk copy from or to ranges of global memory.
    pub fn bulk(&mut self, pc: u32, ranges: impl Iterator<Item = Range<u64>>, write: bool) {
        if self.full() {
            return;
        }
        let first = self.sectors.len();
        for range in ranges.filter(|range| !range.is_empty()) {
            // Rows of a box that follow each other may share the sector at their border, which is
            // one request.
            let after = self.sectors.get(first..).and_then(<[u64]>::last).copied();
            let sectors = range.start / 32..=(range.end - 1) / 32;
            self.sectors
                .extend(sectors.filter(|sector| after != Some(*sector)));
        }
        let count = (self.sectors.len() - first).min(u16::MAX.into()) as u16;
        let target = Target::Global {
            first: first as u32,
            count,
            lookups: 1,
        };
        self.push(pc, 16, 1, write, target);
        if !write {
            self.note(pc);
        }
    }

    /// Records an atomic operation on global memory.
    pub fn atomic(&mut self, pc: u32, at: &[u64; 32], mask: u32, bytes: u32) {
        let kept = self.accesses.len();
        self.global(pc, at, 0, mask, bytes, true);
        let Some(access) = self.accesses.get(kept) else {
            return;
        };
        let Target::Global { first, .. } = access.target else {
            return;
        };
        let fullest = |sector: &u64| {
            let here = || lanes(mask).filter(|lane| at[*lane] / 32 == *sector);
            // Updates of one word are serialised: the largest group of lanes decides the time.
            let same = |of: &usize| here().filter(|lane| at[*lane] == at[*of]).count();
            let most = here().max_by_key(|lane| (same(lane), std::cmp::Reverse(*lane)));
            most.map_or((0, 0), |lane| (at[lane] / 4, same(&lane) as u8))
        };
        let found: Vec<(u64, u8)> = self.sectors_of(access).iter().map(fullest).collect();
        let places = (first..).zip(found);
        self.changed
            .extend(places.map(|(place, (word, lanes))| (place, word, lanes)));
    }

    /// Records an access to local memory at these offsets of the lanes' frames. Local memory is
    /// interleaved by lane: one word of all lanes is a line.
    pub fn local(&mut self, pc: u32, at: &[u64; 32], mask: u32, bytes: u32, write: bool) {
        if self.full() {
            return;
        }
        let first = self.sectors.len();
        let mut lines = 0u8;
        let mut last = u64::MAX;
        for lane in lanes(mask) {
            for word in at[lane] / 4..=at[lane].saturating_add(u64::from(bytes) - 1) / 4 {
                let line = LOCAL_SECTOR | ((word & 0x3_ffff) * 4);
                let sector = line + lane as u64 / 8;
                if word == last && self.sectors.last() == Some(&sector) {
                    continue;
                }
                last = word;
                let known = &self.sectors[first..];
                if !known.contains(&sector) {
                    lines += u8::from(known.iter().all(|s| s / 4 != line / 4));
                    self.sectors.push(sector);
                }
            }
        }
        let target = Target::Global {
            first: first as u32,
            count: (self.sectors.len() - first).min(u16::MAX.into()) as u16,
            lookups: lines,
        };
        self.push(pc, bytes, mask, write, target);
    }

    /// Removes repeated polls: the passes of a run after the first for which `waits` holds. Their
    /// number depends on the host's schedule and says nothing about the time of a real GPU.
    pub fn without_waits(&mut self, waits: impl Fn(&Run) -> bool) {
        let mut runs: Vec<Run> = Vec::with_capacity(self.runs.len());
        // Start and length of each removed part.
        let mut cuts: Vec<(u64, u64)> = Vec::new();
        let (mut removed, mut before) = (0, None);
        for run in &self.runs {
            let again = before.replace((run.start, run.end)) == Some((run.start, run.end));
            if again && waits(run) {
                let length = u64::from(run.end - run.start);
                cuts.push((run.at, length));
                removed += length;
                continue;
            }
            runs.push(Run {
                at: run.at - removed,
                ..*run
            });
        }
        if cuts.is_empty() {
            return;
        }
        (self.runs, self.executed) = (runs, self.executed - removed);
        self.move_signals(&cuts);
        let (mut next, mut gone) = (0, 0);
        self.accesses.retain_mut(|access| {
            while let Some((at, length)) = cuts.get(next)
                && at + length <= access.at
            {
                gone += length;
                next += 1;
            }
            let inside = cuts.get(next).is_some_and(|(at, _)| *at <= access.at);
            access.at -= gone;
            !inside
        });
    }

    /// Moves the signals of removed passes, by start and length, to the pass that is kept: it was the last one
    /// that ended a wait.
    fn move_signals(&mut self, cuts: &[(u64, u64)]) {
        let (mut next, mut gone) = (0, 0);
        for signal in &mut self.signals {
            while let Some((at, length)) = cuts.get(next)
                && *at <= signal.at
            {
                gone += length;
                next += 1;
            }
            signal.at -= gone;
        }
    }

    /// Records a product in tensor memory, a copy to it, or an allocation, by what it does in one block.
    pub fn tensor_core(&mut self, pc: u32, columns: u32, bytes: u32) {
        if self.full() {
            return;
        }
        let target = Target::TensorCore { columns, bytes };
        self.push(pc, 0, 1, columns == 0, target);
    }

    /// Records a shared access by its wavefronts and those of them caused by conflicts.
    pub fn shared(
        &mut self,
        pc: u32,
        wavefronts: u64,
        conflicts: u64,
        mask: u32,
        bytes: u32,
        write: bool,
    ) {
        if self.full() {
            return;
        }
        let target = Target::Shared {
            wavefronts: wavefronts.min(u64::from(u16::MAX)) as u16,
            conflicts: conflicts.min(u64::from(u16::MAX)) as u16,
        };
        self.push(pc, bytes, mask, write, target);
    }
}

/// Counts the looked-up lines: an access of more than 128 bytes goes in halves, quarters or eighths of
/// the warp, each of which looks up its own lines.
fn lookups(at: &[u64; 32], base: u64, mask: u32, bytes: u32) -> u8 {
    let lanes_at_once = match bytes {
        0..=4 => 32,
        5..=8 => 16,
        9..=16 => 8,
        _ => 4,
    };
    let mut total = 0u8;
    for group in 0..32 / lanes_at_once {
        let mut seen = [u64::MAX; 32];
        let mut count = 0;
        let first = group * lanes_at_once;
        for (lane, at) in at.iter().enumerate().skip(first).take(lanes_at_once) {
            if mask >> lane & 1 == 0 {
                continue;
            }
            let line = at.wrapping_add(base) / 128;
            if !seen[..count].contains(&line) {
                seen[count] = line;
                count += 1;
            }
        }
        total += count as u8;
    }
    total
}

/// Creates the trace of a block.
pub(super) fn begin(block: u32, warps: usize) -> BlockTrace {
    BlockTrace {
        block,
        warps: vec![WarpTrace::with_warps(warps); warps],
    }
}
