//! One multiprocessor: schedulers, pipes, the memory path, and the warps of its resident blocks.
//!
//! Time goes by the events: each scheduler looks for a warp that may issue, and sleeps until one
//! may. A warp may when its last instruction's stall cycles are over, the barriers that its next
//! one waits for are clear, and the unit is free.

mod constants;
mod fetch;
mod outcome;
mod paths;
mod ports;
mod queue;
mod share;
mod tally;

use super::cache::Cache;
use super::code::Instr;
use super::cursor::Cursor;
use super::sectors::{BySector, Sectors};
use super::units::{FMA, FMA_SECOND, PIPES, Rates};
use constants::{Constants, HELD};
use fetch::{Fetch, LINE};
pub(crate) use outcome::Outcome;
use outcome::Wave;
use paths::Issue;
use ports::Ports;
use queue::{Queue, Unshared};
use sass::Unit;
use share::Share;
pub(crate) use tally::{Stall, Tally};
use vgpu::Arch;
use vgpu::exec::trace::BlockTrace;

/// What one multiprocessor is given.
pub(super) struct Work<'a> {
    pub(super) arch: &'a Arch,
    pub(super) code: &'a [Instr],
    /// What the warps of the sampled block did.
    pub(super) trace: &'a BlockTrace,
    /// Multiprocessors that have blocks.
    pub(super) active: f64,
    /// Blocks resident at once.
    pub(super) resident: usize,
    /// Blocks that the multiprocessor has to execute.
    pub(super) blocks: usize,
    /// Instructions after which the replay stops.
    pub(super) budget: u64,
    /// First-level cache, bytes.
    pub(super) l1_bytes: u64,
    /// Share of the L2 cache's and of the memory's bytes a clock.
    pub(super) l2_rate: f64,
    pub(super) dram_rate: f64,
    /// Share of a block's own sectors that come from (or go to) memory when it first asks for
    /// them; the L2 cache has the others, and all of them from then on.
    pub(super) first_miss: f64,
    /// Share of the sectors of local memory that the L2 cache has.
    pub(super) local_hit_share: f64,
}

struct Warp {
    cursor: Cursor,
    /// Its index in the block, and the block's number here.
    index: usize,
    replica: u64,
    slot: usize,
    /// Cycle from which the next instruction may issue, units aside, and what holds it until then.
    ready: u64,
    why: Stall,
    /// When each barrier clears, and what clears it.
    barriers: [(u64, Stall); 6],
    /// Ends of the groups of asynchronous copies.
    groups: Vec<u64>,
    copies: u64,
    waiting: bool,
}

struct Core {
    warps: Vec<usize>,
    pipes: [u64; PIPES],
    ports: Ports,
    queue: Queue,
    next: u64,
    /// The warp that issued last, if it is still there.
    last: Option<usize>,
    /// Since when it has had nothing to issue, and why.
    asleep: Option<(u64, Stall)>,
}

pub(super) struct Sm<'a> {
    work: &'a Work<'a>,
    rates: Rates,
    cores: Vec<Core>,
    warps: Vec<Warp>,
    /// Blocks by slot: warps left, warps at the barrier.
    slots: Vec<(usize, usize)>,
    free: Vec<usize>,
    l1: Cache,
    fetch: Fetch,
    constants: Constants,
    /// Sectors that were asked of the L2 cache.
    seen: Sectors,
    lsu: Unshared,
    /// When the sources of the instruction at hand were read.
    read: u64,
    l2: Share,
    dram: Share,
    misses: f64,
    /// Words that atomics change: when the last change is made, and the cycles of all.
    words: BySector<(f64, f64)>,
    /// When the last change of all is made.
    changed: u64,
    started: usize,
    /// Blocks to start: all, until the waves are steady.
    limit: usize,
    /// The last wave that ended while blocks were still started.
    wave: Option<Wave>,
    out: Outcome,
}

/// Bytes a clock that a multiprocessor takes from the L2 cache at most.
pub(crate) const PORT: f64 = 64.0;
/// Bit of a sector's number: each block has its own in that place.
pub(super) const PRIVATE: u64 = 1 << 63;

impl<'a> Sm<'a> {
    pub(super) fn new(work: &'a Work<'a>) -> Sm<'a> {
        let core = || Core {
            warps: Vec::new(),
            pipes: [0; PIPES],
            ports: Ports::default(),
            queue: Queue::default(),
            next: 0,
            last: None,
            asleep: None,
        };
        Sm {
            work,
            rates: Rates::of(work.arch),
            cores: (0..work.arch.schedulers).map(|_| core()).collect(),
            warps: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            l1: Cache::new(work.l1_bytes),
            fetch: Fetch::new(work.arch, work.code.len()),
            constants: Constants::new(work.arch.schedulers as usize),
            seen: Sectors::default(),
            lsu: Unshared::default(),
            read: 0,
            l2: Share::new(work.l2_rate, PORT),
            dram: Share::new(work.dram_rate, PORT),
            misses: 0.0,
            words: BySector::default(),
            changed: 0,
            started: 0,
            limit: work.blocks,
            wave: None,
            out: Outcome::default(),
        }
    }

    /// Runs until all blocks are done or the budget is spent. Once two successive waves went at the same
    /// rate no more blocks are started.
    pub(super) fn run(mut self) -> Outcome {
        for slot in 0..self.work.resident.min(self.limit) {
            self.slots.push((0, 0));
            self.start(slot, 0);
        }
        while let Some(now) = self.cores.iter().map(|c| c.next).min() {
            if now == u64::MAX {
                if !self.release_stuck() {
                    break;
                }
                continue;
            }
            self.out.cycles = now;
            for core in 0..self.cores.len() {
                if self.cores[core].next <= now {
                    self.issue(core, now);
                }
            }
            if self.out.tally.issued >= self.work.budget {
                break;
            }
        }
        self.finish()
    }

    /// Instructions issued, in units of a block's. (Not a mean of the warps' progress: one of them may do
    /// most of a block's work.)
    fn progress(&self) -> f64 {
        let runs = self.work.trace.warps.iter().flat_map(|warp| &warp.runs);
        let block: u64 = runs.map(|run| u64::from(run.end - run.start)).sum();
        self.out.tally.issued as f64 / block.max(1) as f64
    }

    fn finish(mut self) -> Outcome {
        self.out.progress = self.progress();
        for core in &self.cores {
            if let Some((since, why)) = core.asleep {
                self.out.tally.stalled[why as usize] += self.out.cycles.saturating_sub(since);
            }
        }
        // What is still on its way to memory.
        let drained = (self.l2.end.max(self.dram.end) as u64)
            .max(self.lsu.end)
            .max(self.changed);
        self.out.cut_short = self.out.done < self.limit;
        if !self.out.cut_short {
            self.out.cycles = self.out.cycles.max(drained);
        }
        self.out
    }

    /// Puts the next block into a slot.
    fn start(&mut self, slot: usize, now: u64) {
        self.started += 1;
        let count = self.work.trace.warps.len();
        self.slots[slot] = (count, 0);
        for index in 0..count {
            let warp = Warp {
                cursor: Cursor::new(&self.work.trace.warps[index]),
                index,
                replica: self.started as u64,
                slot,
                ready: now,
                why: Stall::Idle,
                barriers: [(0, Stall::Wait); 6],
                groups: Vec::new(),
                copies: 0,
                waiting: false,
            };
            let place = match self.free.pop() {
                Some(place) => {
                    self.warps[place] = warp;
                    place
                }
                None => {
                    self.warps.push(warp);
                    self.warps.len() - 1
                }
            };
            // The scheduler with the fewest warps.
            let core = (0..self.cores.len()).min_by_key(|c| self.cores[*c].warps.len());
            let core = core.unwrap_or(0);
            let warp = &mut self.warps[place];
            (warp.ready, warp.why) = (
                self.fetch.at(core, warp.cursor.at, now),
                Stall::NoInstruction,
            );
            let core = &mut self.cores[core];
            core.warps.push(place);
            core.next = core.next.min(now);
        }
    }

    /// Lets blocks go on in which all that are left wait at a barrier.
    fn release_stuck(&mut self) -> bool {
        let now = self.out.cycles + 1;
        let mut any = false;
        for slot in 0..self.slots.len() {
            if self.slots[slot].1 > 0 {
                self.release(slot, now);
                any = true;
            }
        }
        any
    }

    fn release(&mut self, slot: usize, now: u64) {
        self.slots[slot].1 = 0;
        for warp in self
            .warps
            .iter_mut()
            .filter(|w| w.slot == slot && w.waiting)
        {
            warp.waiting = false;
            warp.ready = warp.ready.max(now);
        }
        for core in &mut self.cores {
            core.next = core.next.min(now);
        }
    }

    /// One scheduler at one cycle: issues an instruction if it can.
    fn issue(&mut self, core: usize, now: u64) {
        // Booked when it wakes: it may be woken before its time.
        if let Some((since, why)) = self.cores[core].asleep.take() {
            self.out.tally.stalled[why as usize] += now.saturating_sub(since);
        }
        let mut soonest = (u64::MAX, Stall::Idle);
        let count = self.cores[core].warps.len();
        let mut barrier = false;
        // The warp of the last instruction, then from the youngest to the oldest.
        for turn in 0..=count {
            let place = match (turn, self.cores[core].last) {
                (0, None) => continue,
                (0, Some(last)) => last,
                _ => self.cores[core].warps[count - turn],
            };
            let warp = &self.warps[place];
            if warp.waiting {
                barrier = true;
                continue;
            }
            if warp.ready > now {
                soonest = soonest.min((warp.ready, warp.why));
                continue;
            }
            let instr = &self.work.code[warp.cursor.at as usize];
            let (free, why, pipe) = self.unit_free(core, instr);
            if free > now {
                soonest = soonest.min((free, why));
                continue;
            }
            if let Some(there) = self.constant_missing(core, instr.operand, now) {
                let warp = &mut self.warps[place];
                (warp.ready, warp.why) = (there, Stall::ImcMiss);
                soonest = (there.min(now + HELD), Stall::ImcMiss);
                break;
            }
            self.cores[core].last = Some(place);
            self.execute(core, place, now, pipe);
            return;
        }
        let why = if soonest.0 == u64::MAX && barrier {
            Stall::Barrier
        } else {
            soonest.1
        };
        self.cores[core].asleep = Some((now, why));
        self.cores[core].next = soonest.0;
    }

    /// When a constant that is an operand comes, where the scheduler's cache has it not.
    fn constant_missing(&mut self, core: usize, line: Option<u32>, now: u64) -> Option<u64> {
        let there = (self.constants).operand(core, line?, now, &mut self.fetch);
        (there > now).then_some(there)
    }

    /// When the unit of an instruction is free.
    fn unit_free(&self, core: usize, instr: &Instr) -> (u64, Stall, Option<(usize, u64)>) {
        let Some((mut pipe, busy)) = self.rates.pipe(instr) else {
            return (0, Stall::Wait, None);
        };
        let pipes = &self.cores[core].pipes;
        if pipe == FMA && self.rates.either(instr) && pipes[FMA_SECOND] <= pipes[FMA] {
            pipe = FMA_SECOND;
        }
        let mut free = pipes[pipe];
        let mut why = Stall::MathPipe;
        if pipe == super::units::MEMORY {
            why = Stall::Mio;
            free = free.max(self.cores[core].queue.free());
        }
        (free, why, Some((pipe, busy)))
    }

    fn execute(&mut self, core: usize, place: usize, now: u64, pipe: Option<(usize, u64)>) {
        let work = self.work;
        let instr = work.code[self.warps[place].cursor.at as usize];
        let tally = &mut self.out.tally;
        tally.issued += 1;
        tally.by_unit[instr.unit as usize] += 1;
        if let Some((pipe, busy)) = pipe {
            self.cores[core].pipes[pipe] = now + busy;
            tally.pipe_cycles[pipe] += busy;
        }
        // Held until the register file can be read, and what comes behind it too, but for one.
        let begun = self.cores[core].ports.read(place, &instr.reads, now);
        if begun > now + 1 {
            self.cores[core].asleep = Some((now + 1, Stall::Dispatch));
        }
        self.cores[core].next = begun.max(now + 1);
        let (end, why, read) = self.latency(Issue { core, place, now }, &instr);
        let held = begun.saturating_sub(1).max(now);
        let warp = &mut self.warps[place];
        if let Some(index) = instr.write_barrier {
            let barrier = &mut warp.barriers[usize::from(index)];
            *barrier = (*barrier).max((end, why));
        }
        if let Some(index) = instr.read_barrier {
            let barrier = &mut warp.barriers[usize::from(index)];
            *barrier = (*barrier).max((read, Stall::ShortScoreboard));
        }
        let before = warp.cursor.at;
        warp.cursor.step(&work.trace.warps[warp.index]);
        let least = if instr.yields { 2 } else { 1 };
        let mut ready = (held + u64::from(instr.stall.max(least)), Stall::Wait);
        if warp.cursor.done {
            return self.leave(core, place, now);
        }
        let at = warp.cursor.at;
        if at / LINE != before / LINE || at < before {
            let there = self.fetch.at(core, at, now);
            ready = ready.max((there, Stall::NoInstruction));
        }
        let next = &work.code[at as usize];
        for index in 0..6 {
            if next.wait >> index & 1 == 1 {
                ready = ready.max(warp.barriers[index]);
            }
        }
        if next.unit == Unit::Depbar {
            ready = ready.max(warp.copied(next.left));
        }
        if next.unit == Unit::Tensor && instr.unit != Unit::Tensor {
            ready.0 = ready.0.max(now + 1);
        }
        (warp.ready, warp.why) = ready;
        if instr.unit == Unit::Barrier {
            let slot = warp.slot;
            warp.waiting = true;
            self.out.tally.barriers += 1;
            self.slots[slot].1 += 1;
            if self.slots[slot].1 >= self.slots[slot].0 {
                self.release(slot, now + 2);
            }
        }
    }

    /// A warp ends; perhaps its block, perhaps another begins.
    fn leave(&mut self, core: usize, place: usize, now: u64) {
        let slot = self.warps[place].slot;
        self.warps[place].slot = usize::MAX;
        self.cores[core].warps.retain(|w| *w != place);
        self.cores[core].last = None;
        self.free.push(place);
        self.slots[slot].0 -= 1;
        let (left, waiting) = self.slots[slot];
        if left > 0 {
            if waiting >= left {
                self.release(slot, now + 2);
            }
            return;
        }
        self.out.done += 1;
        if self.out.done.is_multiple_of(self.work.resident) {
            self.end_wave(now);
        }
        if self.started < self.limit {
            self.start(slot, now + 1);
        }
    }

    /// Notes the end of a wave.
    fn end_wave(&mut self, cycle: u64) {
        self.out.first_wave.get_or_insert(cycle);
        if self.started >= self.limit {
            // Fewer blocks run together from here on.
            return;
        }
        let wave = Wave::new(cycle, self.progress(), self.wave);
        if let Some(before) = self.wave {
            self.out.cycles_per_block = Some(wave.cycles_per_block);
            if wave.is_steady(before) {
                self.limit = self.started;
            }
        }
        self.wave = Some(wave);
    }
}

impl Warp {
    /// When all but the last `left` groups of copies are there.
    fn copied(&self, left: u8) -> (u64, Stall) {
        let open = self.groups.len().saturating_sub(left.into());
        let end = self.groups[..open].iter().copied().max().unwrap_or(0);
        (end, Stall::LongScoreboard)
    }
}
