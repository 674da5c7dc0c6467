//! Memory path: requests of an instruction, and the cycle at which its result is available.

use super::queue::{MIN_DISPATCH_CYCLES, sources_read};
use super::{PRIVATE, Sm, Stall};
use crate::code::{Instr, TensorCore, constant_line};
use crate::cursor::AccessLookup;
use sass::Unit;
use sass_machine::CONSTANT;
use vgpu::exec::trace::{Access, LOCAL_SECTOR, Target, WarpTrace};

/// Cycles until the sources of an unqueued instruction are read.
const READ_CYCLES: u64 = 10;

/// Cycles until a constant is loaded and until its address is read: with an immediate address, and
/// with an address in a register (table 2 of the paper in `queue`).
const CONSTANT_CYCLES: [(u64, u64); 2] = [(26, 10), (29, 29)];

/// Data movement of one memory instruction.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    /// Lookups of L1 lines.
    lookups: u64,
    /// Bytes requested by all lanes.
    bytes: u64,
    write: bool,
}

impl Transfer {
    fn new(lookups: u64, bytes: u64, write: bool) -> Transfer {
        Transfer {
            lookups,
            bytes,
            write,
        }
    }
}

/// Scheduler, warp and cycle of an issued instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issue {
    /// Index of the scheduler.
    pub(super) core: usize,
    /// Index of the warp.
    pub(super) warp_index: usize,
    pub(super) now: u64,
}

impl<'a> Sm<'a> {
    /// Returns the result cycle of an instruction, its stall reason, and the cycle of its source
    /// reads.
    pub(super) fn latency(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall, u64) {
        self.read = issue.now + READ_CYCLES;
        let (end, why) = self.result(issue, instr);
        (end, why, self.read)
    }

    fn result(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall) {
        let arch = self.work.arch;
        let shared = u64::from(arch.shared_cycles);
        let Issue {
            warp_index, now, ..
        } = issue;
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
            Unit::Tensor | Unit::Misc if let Some(op) = instr.tensor_core => {
                let end = self.tensor_memory(issue, op);
                match op {
                    TensorCore::Transfer { .. } | TensorCore::Allocate => {
                        (end, Stall::ShortScoreboard)
                    }
                    // The descriptors were read.
                    _ => (now + READ_CYCLES, Stall::MathPipe),
                }
            }
            Unit::Misc if instr.bulk.is_some() => (now + shared, Stall::ShortScoreboard),
            Unit::Misc if instr.commits => {
                // Groups complete in order, so that one ends no sooner than the copies of all
                // before it.
                let warp = &mut self.warps[warp_index];
                warp.groups.push(warp.copies);
                (now + 2, Stall::LongScoreboard)
            }
            Unit::Misc | Unit::Double => (now + shared, Stall::ShortScoreboard),
            Unit::Texture => {
                let (end, why) = self.global(issue, instr);
                (end + u64::from(arch.l1_cycles) * 2, why)
            }
            Unit::Tensor if instr.group.is_some() => (now + READ_CYCLES, Stall::MathPipe),
            Unit::Tensor => (now + u64::from(arch.tensor_cycles), Stall::MathPipe),
            _ => (now + 6, Stall::Wait),
        }
    }

    /// Occupies the load and store unit for `wavefronts` and returns the cycle at which the last
    /// one enters.
    fn take_lsu(&mut self, issue: Issue, instr: &Instr, wavefronts: u64) -> u64 {
        let busy = wavefronts.max(self.rates.lanes);
        self.out.tally.lsu_cycles += busy;
        let queue = &mut self.cores[issue.core].queue;
        let handed = self
            .lsu
            .take(issue.now, queue.first_dispatch(issue.now), busy);
        queue.record_dispatch(handed);
        self.read = sources_read(instr, handed);
        handed + busy
    }

    /// Returns the result cycle of an instruction whose last wavefront enters at `done`. `cycles`
    /// is the latency from issue without contention.
    fn after(&self, done: u64, cycles: u64) -> u64 {
        (done + cycles).saturating_sub(MIN_DISPATCH_CYCLES + self.rates.lanes)
    }

    pub(super) fn lookup_access(&mut self, warp_index: usize) -> (AccessLookup<'a>, &'a WarpTrace) {
        let trace = &self.work.trace.warps[self.warps[warp_index].index];
        (self.warps[warp_index].cursor.access(trace), trace)
    }

    fn shared(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall) {
        let least = u64::from(instr.bytes.div_ceil(4));
        let (wavefronts, conflicts) = match self.lookup_access(issue.warp_index).0 {
            AccessLookup::Access(access, _) => wavefronts(access),
            AccessLookup::Inactive => (0, 0),
            AccessLookup::Unknown => (least, 0),
        };
        self.out.tally.shared_wavefronts += wavefronts;
        self.out.tally.shared_conflicts += conflicts;
        // An atomic reads and writes each word.
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
        let Issue {
            warp_index, now, ..
        } = issue;
        let (found, trace) = self.lookup_access(warp_index);
        let (sectors, addresses) = match found {
            AccessLookup::Access(access, _) => (trace.sectors_of(access), lookups(access)),
            _ => (&[][..], 1),
        };
        // The trace marks the sectors of constants, and so those private to a block.
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
        let Issue {
            warp_index, now, ..
        } = issue;
        let (found, trace) = self.lookup_access(warp_index);
        let sectors: &[u64] = match found {
            AccessLookup::Access(access, _) => trace.sectors_of(access),
            AccessLookup::Inactive => return (now + 4, Stall::LongScoreboard),
            AccessLookup::Unknown => &[],
        };
        // The L2 cache executes atomics, so that they pass the L1 cache like stores.
        let write = instr.write || instr.unit == Unit::Atomic;
        let all = match found {
            AccessLookup::Access(access, _) => u64::from(instr.bytes) * u64::from(access.lanes),
            _ => u64::from(instr.bytes) * 32,
        };
        // A copy to shared memory moves each byte once, past the L1 cache none through it; a load
        // delivers bytes to every lane.
        let all = match instr.unit {
            Unit::CopyAsync if instr.bypasses => 0,
            Unit::CopyAsync => all.min(sectors.len() as u64 * 32),
            _ => all,
        };
        let lookups = match found {
            AccessLookup::Access(access, _) => lookups(access),
            _ => all.div_ceil(128).max(1),
        };
        let end = if sectors.is_empty() {
            // Outside the kept trace, assume the usual pattern: consecutive lanes.
            let usual = [PRIVATE, PRIVATE | 1, PRIVATE | 2, PRIVATE | 3];
            self.sectors(&usual, issue, instr, Transfer::new(lookups, all, write))
        } else {
            self.sectors(sectors, issue, instr, Transfer::new(lookups, all, write))
        };
        if let (AccessLookup::Access(access, _), Unit::Atomic) = (found, instr.unit) {
            let changed = self.update_atomics(trace, access, now, self.warps[warp_index].replica);
            return (end.max(changed), Stall::LongScoreboard);
        }
        if instr.unit == Unit::CopyAsync {
            let least = u64::from(instr.bytes.div_ceil(4));
            let into = match found {
                AccessLookup::Access(_, Some(pair)) => wavefronts(pair).0,
                _ => least,
            };
            // A copy past the L1 cache looks up its lines while the bytes of others are written.
            let looked_up = if instr.bypasses { lookups } else { 0 };
            let busy = (into * self.rates.wavefront).saturating_sub(looked_up);
            self.out.tally.lsu_cycles += busy;
            self.lsu.take(now, now + MIN_DISPATCH_CYCLES, busy);
            let warp = &mut self.warps[warp_index];
            warp.copies = warp.copies.max(end);
        }
        (end, Stall::LongScoreboard)
    }

    /// Returns the cycle at which the L2 cache has updated all words of an atomic operation. A word
    /// is updated once per clock (NVIDIA, Kepler GK110 whitepaper, 2012). All multiprocessors
    /// update words that neighbouring blocks share.
    fn update_atomics(
        &mut self,
        trace: &WarpTrace,
        access: &Access,
        now: u64,
        replica: u64,
    ) -> u64 {
        let mut last = 0.0f64;
        for (sector, word, lanes) in trace.changed_by(access) {
            let (others, own) = match sector & PRIVATE {
                0 => (self.work.active, word),
                // Only its own block updates such a word; the replica keeps the words of two blocks
                // apart.
                _ => (1.0, word + (replica << 40)),
            };
            let word = self.words.entry(own).or_default();
            let work = f64::from(lanes) * others;
            word.0 = word.0.max((now + MIN_DISPATCH_CYCLES) as f64) + work;
            word.1 += work;
            last = last.max(word.0);
            let tally = &mut self.out.tally;
            tally.atomic_cycles = tally.atomic_cycles.max(word.1);
        }
        self.changed = self.changed.max(last as u64);
        self.after(last as u64, self.work.arch.l2_cycles.into())
    }

    /// Accesses local memory, which is interleaved by lane: a word of all lanes is a line.
    fn local(&mut self, issue: Issue, instr: &Instr) -> (u64, Stall) {
        let Issue {
            warp_index, now, ..
        } = issue;
        let (found, trace) = self.lookup_access(warp_index);
        let (lookups, sectors) = match found {
            AccessLookup::Access(access, _) => (lookups(access), trace.sectors_of(access)),
            AccessLookup::Inactive => return (now + 4, Stall::LongScoreboard),
            AccessLookup::Unknown => (u64::from(instr.bytes.div_ceil(4)), &[LOCAL_SECTOR][..]),
        };
        // A block also inherits the local memory of the block that it replaces.
        let slot = self.warps[warp_index].slot as u64;
        let index = self.warps[warp_index].index as u64;
        // Room for the largest local memory: 512 KiB of each of 32 lanes are 2^19 sectors.
        let base = (slot * 64 + index) << 20;
        let own: Vec<u64> = sectors.iter().map(|s| s + base).collect();
        self.out.tally.local_sectors += own.len() as u64;
        let end = self.sectors(
            &own,
            issue,
            instr,
            Transfer::new(lookups, lookups * 128, instr.write),
        );
        (end, Stall::LongScoreboard)
    }

    /// Moves sectors and returns the arrival of the last one. All bytes requested by the lanes pass
    /// to the registers, even if lanes request the same.
    fn sectors(&mut self, sectors: &[u64], issue: Issue, instr: &Instr, transfer: Transfer) -> u64 {
        let Transfer {
            lookups,
            bytes,
            write,
        } = transfer;
        let arch = self.work.arch;
        let line = u64::from(128_u32.div_ceil(arch.l1_bytes_per_clock)).max(1);
        let data = bytes.div_ceil(u64::from(arch.l1_bytes_per_clock));
        let done = self.take_lsu(issue, instr, (lookups * line).max(data));
        let mut missed = 0u64;
        let replica = self.warps[issue.warp_index].replica;
        let local = sectors
            .first()
            .is_some_and(|s| *s & LOCAL_SECTOR != 0 && *s & PRIVATE == 0);
        let mut fetched = 0.0;
        let moved = |sector: &u64| sector_of_replica(*sector, replica);
        let mut under_way = 0;
        for sector in sectors {
            // The L1 cache writes through: a store goes on to the L2 cache even on a hit.
            match self.l1.touch(moved(sector), !write) {
                Some(time) if !write => under_way = under_way.max(time),
                _ => {
                    missed += 1;
                    fetched += match local {
                        true => 1.0 - self.work.local_hit_share,
                        false => self.first_fetch(*sector, replica, write),
                    };
                }
            }
        }
        let tally = &mut self.out.tally;
        if local {
            // Local memory has its own counter.
        } else if write {
            tally.stored_sectors += sectors.len() as u64;
        } else {
            tally.l1_sectors += sectors.len() as u64;
            tally.l1_hits += sectors.len() as u64 - missed;
        }
        let mut end = under_way.max(self.after(done, arch.l1_cycles.into()));
        if missed > 0 {
            end = end.max(self.fetch_sectors(done, missed, fetched, write));
            for sector in sectors.iter().filter(|_| !write) {
                self.l1.arrives(moved(sector), end);
            }
        }
        end
    }

    /// Returns the share of a sector that memory serves; the L2 cache serves all accesses after the first.
    pub(super) fn first_fetch(&mut self, sector: u64, replica: u64, write: bool) -> f64 {
        let own = sector_of_replica(sector, replica);
        match sector & PRIVATE {
            // A sector that is both loaded and stored passes between memory and the L2 cache twice.
            _ if !self.seen.insert(own | u64::from(write) << 62) => 0.0,
            0 => self.work.cold,
            _ => self.work.first_miss,
        }
    }

    /// Fetches missed sectors from L2, a fraction of them from memory, and returns the arrival of
    /// the last one.
    pub(super) fn fetch_sectors(
        &mut self,
        done: u64,
        missed: u64,
        from_memory: f64,
        write: bool,
    ) -> u64 {
        let arch = self.work.arch;
        let bytes = missed as f64 * 32.0;
        let tally = &mut self.out.tally;
        tally.l2_sectors += missed as f64;
        tally.l2_cycles += bytes / self.work.l2_rate;
        let served = self.l2.take(done, bytes);
        let end = self.after(served, arch.l2_cycles.into());
        // Fractions accumulate until they make a whole sector.
        self.misses += from_memory;
        if self.misses < 1.0 {
            return end;
        }
        let whole = self.misses.floor();
        self.misses -= whole;
        let cost = if write { self.work.write_cost } else { 1.0 };
        let bytes = whole * 32.0 * cost;
        let tally = &mut self.out.tally;
        tally.dram_sectors += whole;
        tally.dram_cycles += bytes / self.work.dram_rate;
        let served = self.dram.take(done, bytes);
        end.max(self.after(served, arch.dram_cycles.into()))
    }
}

/// Returns the number of a sector for a replica of the sampled block, each of which has separate sectors in
/// place of the private ones.
fn sector_of_replica(sector: u64, replica: u64) -> u64 {
    match sector & PRIVATE {
        0 => sector,
        _ => (sector & !PRIVATE) + (replica << 40),
    }
}

fn lookups(access: &Access) -> u64 {
    match access.target {
        Target::Global { lookups, .. } => lookups.into(),
        Target::Shared { .. } | Target::TensorCore { .. } => 1,
    }
}

/// Returns the wavefronts and bank conflicts of an access.
fn wavefronts(access: &Access) -> (u64, u64) {
    match access.target {
        Target::Shared {
            wavefronts,
            conflicts,
        } => (wavefronts.into(), conflicts.into()),
        Target::Global { .. } | Target::TensorCore { .. } => (1, 0),
    }
}
