//! What an instruction asks of the memory path, and when its result is there.

use super::queue::{HANDED, sources_read};
use super::{PRIVATE, Sm, Stall};
use crate::code::{Instr, constant_line};
use crate::cursor::Found;
use sass::Unit;
use sass_machine::CONSTANT;
use vgpu::exec::trace::{Access, LOCAL, Target, WarpTrace};

/// Cycles until the sources of an instruction that waits in no queue were read.
const READ_CYCLES: u64 = 10;

/// Cycles until what is loaded from constant memory is there, and until its address was read: from a place
/// that the instruction names and from one in a register (table 2 of the paper in `queue`).
const CONSTANT_CYCLES: [(u64, u64); 2] = [(26, 10), (29, 29)];

/// Where and when an instruction was issued.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issue {
    /// The scheduler.
    pub(super) core: usize,
    /// The warp's place.
    pub(super) place: usize,
    pub(super) now: u64,
}

impl<'a> Sm<'a> {
    /// When the result of an instruction is there, what it waits for, and when its sources were read.
    pub(super) fn latency(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall, u64) {
        self.read = issue.now + READ_CYCLES;
        let (end, why) = self.result(issue, instr);
        (end, why, self.read)
    }

    fn result(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall) {
        let arch = self.work.arch;
        let shared = u64::from(arch.shared_cycles);
        let Issue { place, now, .. } = issue;
        match instr.unit {
            Unit::Shared => self.shared(issue, instr),
            Unit::Global | Unit::CopyAsync | Unit::Atomic => self.global(issue, instr),
            Unit::Local => self.local(issue, instr),
            Unit::SharedAtomic => {
                let (end, why) = self.shared(issue, instr);
                (end + shared, why)
            }
            Unit::Constant => self.constant(issue, instr),
            Unit::Shuffle => {
                let done = self.take_lsu(issue, instr, 1);
                (self.after(done, shared), Stall::ShortScoreboard)
            }
            Unit::Special => (now + self.rates.special + 14, Stall::ShortScoreboard),
            Unit::Misc if instr.commits => {
                let warp = &mut self.warps[place];
                warp.groups.push(warp.copies);
                (now + 2, Stall::LongScoreboard)
            }
            Unit::Misc | Unit::Double => (now + shared, Stall::ShortScoreboard),
            Unit::Texture => (now + u64::from(arch.l1_cycles) * 3, Stall::LongScoreboard),
            Unit::Tensor => (now + u64::from(arch.tensor_cycles), Stall::MathPipe),
            _ => (now + 6, Stall::Wait),
        }
    }

    /// Takes the load and store unit for an instruction of so many wavefronts; gives the cycle at
    /// which the last was taken in.
    fn take_lsu(&mut self, issue: Issue, instr: &Instr, wavefronts: u64) -> u64 {
        let busy = wavefronts.max(self.rates.lanes);
        self.out.tally.lsu_cycles += busy;
        let queue = &mut self.cores[issue.core].queue;
        let handed = self.lsu.take(issue.now, queue.soonest(issue.now), busy);
        queue.hand(handed);
        self.read = sources_read(instr, handed);
        handed + busy
    }

    /// When the result of an instruction is there whose last wavefront was taken in at `done`, where
    /// the result of one that nothing holds up is there `cycles` after it was issued.
    fn after(&self, done: u64, cycles: u64) -> u64 {
        (done + cycles).saturating_sub(HANDED + self.rates.lanes)
    }

    fn found(&mut self, place: usize) -> (Found<'a>, &'a WarpTrace) {
        let trace = &self.work.trace.warps[self.warps[place].index];
        (self.warps[place].cursor.access(trace), trace)
    }

    fn shared(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall) {
        let least = u64::from(instr.bytes.div_ceil(4));
        let (wavefronts, conflicts) = match self.found(issue.place).0 {
            Found::Access(access, _) => wavefronts(access),
            Found::Nothing => (0, 0),
            Found::Unknown => (least, 0),
        };
        self.out.tally.shared_wavefronts += wavefronts;
        self.out.tally.shared_conflicts += conflicts;
        // A word is read and written back.
        let passes = if instr.unit == Unit::SharedAtomic {
            2
        } else {
            1
        };
        let done = self.take_lsu(issue, instr, passes * wavefronts * self.rates.wavefront);
        let end = self.after(done, u64::from(self.work.arch.shared_cycles));
        (end, Stall::ShortScoreboard)
    }

    fn constant(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall) {
        let Issue { place, now, .. } = issue;
        let (found, trace) = self.found(place);
        let (sectors, addresses) = match found {
            Found::Access(access, _) => (trace.sectors_of(access), lookups(access)),
            _ => (&[][..], 1),
        };
        // Sectors are marked as a block's own, and as those of constants.
        let lines = sectors
            .iter()
            .map(|s| constant_line((s & !PRIVATE & !CONSTANT) * 32));
        let lines = instr.constant.into_iter().chain(lines);
        let served = self.constants.load(lines, addresses, now, &mut self.fetch);
        let (result, read) = CONSTANT_CYCLES[usize::from(instr.constant.is_none())];
        self.read = served + read;
        (served + result, Stall::ShortScoreboard)
    }

    fn global(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall) {
        let Issue { place, now, .. } = issue;
        let (found, trace) = self.found(place);
        let sectors: &[u64] = match found {
            Found::Access(access, _) => trace.sectors_of(access),
            Found::Nothing => return (now + 4, Stall::LongScoreboard),
            Found::Unknown => &[],
        };
        let write = instr.write || instr.unit == Unit::Atomic;
        let all = match found {
            Found::Access(access, _) => u64::from(instr.bytes) * u64::from(access.lanes),
            _ => u64::from(instr.bytes) * 32,
        };
        // A copy to shared memory moves each byte once; loads give every lane its own.
        let all = match instr.unit {
            Unit::CopyAsync => all.min(sectors.len() as u64 * 32),
            _ => all,
        };
        let end = if sectors.is_empty() {
            // Beyond what the trace kept: the usual, all lanes side by side.
            let usual = [PRIVATE, PRIVATE | 1, PRIVATE | 2, PRIVATE | 3];
            self.sectors(&usual, issue, instr, (all.div_ceil(128), all, write))
        } else {
            let lookups = match found {
                Found::Access(access, _) => lookups(access),
                _ => 1,
            };
            self.sectors(sectors, issue, instr, (lookups, all, write))
        };
        if let (Found::Access(access, _), Unit::Atomic) = (found, instr.unit) {
            let changed = self.change(trace, access, (now, self.warps[place].replica));
            return (end.max(changed), Stall::LongScoreboard);
        }
        if instr.unit == Unit::CopyAsync {
            let least = u64::from(instr.bytes.div_ceil(4));
            let into = match found {
                Found::Access(_, Some(pair)) => wavefronts(pair).0,
                _ => least,
            };
            let busy = into * self.rates.wavefront;
            self.out.tally.lsu_cycles += busy;
            self.lsu.take(now, now + HANDED, busy);
            let warp = &mut self.warps[place];
            warp.copies = warp.copies.max(end);
        }
        (end, Stall::LongScoreboard)
    }

    /// When the L2 cache has changed all words of an atomic operation: one word is changed once a
    /// clock (NVIDIA, Kepler GK110 whitepaper, 2012), and what neighbouring blocks change too all
    /// multiprocessors change.
    fn change(&mut self, trace: &WarpTrace, access: &Access, (now, replica): (u64, u64)) -> u64 {
        let mut last = 0.0f64;
        for (sector, word, lanes) in trace.changed_by(access) {
            let (others, own) = match sector & PRIVATE {
                0 => (self.work.active, word),
                _ => (1.0, word + (replica << 40)),
            };
            let word = self.words.entry(own).or_default();
            let work = f64::from(lanes) * others;
            word.0 = word.0.max((now + HANDED) as f64) + work;
            word.1 += work;
            last = last.max(word.0);
            let tally = &mut self.out.tally;
            tally.atomic_cycles = tally.atomic_cycles.max(word.1);
        }
        self.changed = self.changed.max(last as u64);
        self.after(last as u64, self.work.arch.l2_cycles.into())
    }

    /// Local memory lies lane by lane: a word of all lanes is a line.
    fn local(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall) {
        let Issue { place, now, .. } = issue;
        let (found, trace) = self.found(place);
        let (lookups, sectors) = match found {
            Found::Access(access, _) => (lookups(access), trace.sectors_of(access)),
            Found::Nothing => return (now + 4, Stall::LongScoreboard),
            Found::Unknown => (u64::from(instr.bytes.div_ceil(4)), &[LOCAL][..]),
        };
        // A block that takes another's place takes its local memory too.
        let slot = self.warps[place].slot as u64;
        let index = self.warps[place].index as u64;
        let base = (slot * 64 + index) << 20;
        let own: Vec<u64> = sectors.iter().map(|s| s + base).collect();
        self.out.tally.local_sectors += own.len() as u64;
        let end = self.sectors(&own, issue, instr, (lookups, lookups * 128, instr.write));
        (end, Stall::LongScoreboard)
    }

    /// Moves sectors, found by so many lookups of lines; gives the cycle at which the last is
    /// there. `bytes` are those that the lanes ask for: all of them take the way to the registers,
    /// also where lanes ask for the same.
    fn sectors(
        &mut self,
        sectors: &[u64],
        issue: Issue,
        instr: &Instr,
        (lookups, bytes, write): (u64, u64, bool),
    ) -> u64 {
        let arch = self.work.arch;
        let line = u64::from(128_u32.div_ceil(arch.l1_bytes_per_clock)).max(1);
        let data = bytes.div_ceil(u64::from(arch.l1_bytes_per_clock));
        let done = self.take_lsu(issue, instr, (lookups * line).max(data));
        let mut missed = 0u64;
        let replica = self.warps[issue.place].replica;
        let local = sectors
            .first()
            .is_some_and(|s| *s & LOCAL != 0 && *s & PRIVATE == 0);
        let mut fetched = 0.0;
        // Blocks have sectors of their own in the place of those that the sampled one has alone.
        let moved = |sector: &u64| match sector & PRIVATE {
            0 => *sector,
            _ => (sector & !PRIVATE) + (replica << 40),
        };
        let mut under_way = 0;
        for sector in sectors {
            match self.l1.touch(moved(sector), !write) {
                Some(time) if !write => under_way = under_way.max(time),
                _ => {
                    missed += 1;
                    fetched += match sector & PRIVATE {
                        _ if local => 1.0 - self.work.local_hit_share,
                        _ if !self.seen.insert(moved(sector) | u64::from(write) << 62) => 0.0,
                        0 => 1.0,
                        _ => self.work.first_miss,
                    };
                }
            }
        }
        let tally = &mut self.out.tally;
        if local {
            // Counted by itself.
        } else if write {
            tally.stored_sectors += sectors.len() as u64;
        } else {
            tally.l1_sectors += sectors.len() as u64;
            tally.l1_hits += sectors.len() as u64 - missed;
        }
        let mut end = under_way.max(self.after(done, arch.l1_cycles.into()));
        if missed > 0 {
            end = end.max(self.fetch(done, missed, fetched));
            for sector in sectors.iter().filter(|_| !write) {
                self.l1.arrives(moved(sector), end);
            }
        }
        end
    }

    /// Sectors that L1 misses come from L2, and so many of them, a fraction, from memory; gives the
    /// cycle at which the last is there.
    fn fetch(&mut self, done: u64, missed: u64, from_memory: f64) -> u64 {
        let arch = self.work.arch;
        let bytes = missed as f64 * 32.0;
        let tally = &mut self.out.tally;
        tally.l2_sectors += missed as f64;
        tally.l2_cycles += bytes / self.work.l2_rate;
        let served = self.l2.take(done, bytes);
        let end = self.after(served, arch.l2_cycles.into());
        // Fractions are counted off by the whole sector.
        self.misses += from_memory;
        if self.misses < 1.0 {
            return end;
        }
        let whole = self.misses.floor();
        self.misses -= whole;
        let tally = &mut self.out.tally;
        tally.dram_sectors += whole;
        tally.dram_cycles += whole * 32.0 / self.work.dram_rate;
        let served = self.dram.take(done, whole * 32.0);
        end.max(self.after(served, arch.dram_cycles.into()))
    }
}

fn lookups(access: &Access) -> u64 {
    match access.target {
        Target::Global { lookups, .. } => lookups.into(),
        Target::Shared { .. } => 1,
    }
}

/// Wavefronts and conflicts of an access.
fn wavefronts(access: &Access) -> (u64, u64) {
    match access.target {
        Target::Shared {
            wavefronts,
            conflicts,
        } => (wavefronts.into(), conflicts.into()),
        Target::Global { .. } => (1, 0),
    }
}
