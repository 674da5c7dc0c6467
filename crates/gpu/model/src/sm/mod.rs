//! One multiprocessor: schedulers, pipes, the memory path, and the warps of its resident blocks.
//!
//! The simulation is event-driven: a scheduler looks for a warp that can issue and sleeps until one
//! can. A warp can issue once the stall cycles of its last instruction are over, the barriers of
//! its next instruction are clear, and the unit is free.

mod bulk;
mod constants;
mod fetch;
mod outcome;
mod paths;
mod phases;
mod ports;
mod products;
mod queue;
mod share;
mod tally;
mod tensor_memory;

use super::cache::Cache;
use super::code::{Instr, TensorCore};
use super::cursor::Cursor;
use super::sectors::{BySector, Sectors};
use super::units::{FMA, FMA_SECOND, PIPES, Rates};
use bulk::CopyEngine;
use constants::{Constants, MISS_STALL_CYCLES};
use fetch::{Fetch, LINE};
pub(crate) use outcome::Outcome;
use outcome::Wave;
use paths::Issue;
use phases::{PhaseStates, Phases, SignalTimes};
use ports::Ports;
use products::TensorQueue;
use queue::{Queue, SerialResource};
use sass::Unit;
use share::Share;
pub(crate) use tally::{Stall, Tally};
use vgpu::Arch;
use vgpu::exec::trace::BlockTrace;

/// Workload of one multiprocessor.
pub(super) struct Work<'a> {
    pub(super) arch: &'a Arch,
    pub(super) code: &'a [Instr],
    /// Trace of the sampled block.
    pub(super) trace: &'a BlockTrace,
    /// Number of multiprocessors with blocks.
    pub(super) active: f64,
    /// Number of resident blocks.
    pub(super) resident: usize,
    /// Number of blocks for this multiprocessor.
    pub(super) blocks: usize,
    /// Instruction limit of the replay.
    pub(super) budget: u64,
    /// Size of the L1 cache, bytes.
    pub(super) l1_bytes: u64,
    /// Largest L2 bandwidth of one multiprocessor, bytes per clock; the next fields are its share of the L2
    /// bandwidth and of memory bandwidth.
    pub(super) l2_port_rate: f64,
    pub(super) l2_rate: f64,
    pub(super) dram_rate: f64,
    /// Memory share of the first accesses to a block's private sectors. The L2 cache serves the
    /// other first accesses and all later ones.
    pub(super) first_miss: f64,
    /// The same share for sectors that blocks have in common.
    pub(super) cold: f64,
    /// Time of a written byte in memory as a multiple of a read one's.
    pub(super) write_cost: f64,
    /// L2 hit share of local memory.
    pub(super) local_hit_share: f64,
}

struct Warp {
    cursor: Cursor,
    /// Index in the block; the next field is the number of the block's replica.
    index: usize,
    replica: u64,
    slot: usize,
    /// First issue cycle of the next instruction regardless of units, with the stall reason until
    /// then.
    ready: u64,
    why: Stall,
    /// Clear cycle and stall reason of each barrier.
    barriers: [(u64, Stall); 6],
    /// End cycles of the groups of asynchronous copies.
    groups: Vec<u64>,
    copies: u64,
    /// End of all products of the warp, and of its groups of products.
    product_end: u64,
    products: Vec<u64>,
    /// Phase that the warp waits for, and the cycles from its end to the next instruction.
    waits: Option<(u32, u64)>,
    /// First cycle after the last wait for a phase, with the stall reason.
    hold: (u64, Stall),
}

struct Core {
    warps: Vec<usize>,
    pipes: [u64; PIPES],
    ports: Ports,
    queue: Queue,
    tensor: TensorQueue,
    /// End of the last transfer between registers and tensor memory.
    tensor_memory: u64,
    next: u64,
    /// Warp that issued last, if still resident.
    last: Option<usize>,
    /// Cycle and stall reason since which nothing was issued.
    asleep: Option<(u64, Stall)>,
}

pub(super) struct Sm<'a> {
    work: &'a Work<'a>,
    rates: Rates,
    cores: Vec<Core>,
    warps: Vec<Warp>,
    /// Remaining warps of the resident blocks, by slot.
    slots: Vec<usize>,
    phases: Phases,
    /// Phases of the resident blocks, by slot.
    phases_of: Vec<PhaseStates>,
    copies: CopyEngine,
    /// End of the last product in tensor memory, and its cycles.
    products_end: u64,
    product_cycles: u64,
    free: Vec<usize>,
    l1: Cache,
    fetch: Fetch,
    constants: Constants,
    /// Sectors that the L2 cache has served.
    seen: Sectors,
    lsu: SerialResource,
    /// Cycle at which the sources of the present instruction are read.
    read: u64,
    l2: Share,
    dram: Share,
    misses: f64,
    /// Words updated by atomics: end of the last update, and cycles of all updates.
    words: BySector<(f64, f64)>,
    /// End of the last atomic update.
    changed: u64,
    started: usize,
    /// Number of blocks to start: all, until the waves are steady.
    limit: usize,
    /// Last wave that ended while blocks were still started.
    wave: Option<Wave>,
    out: Outcome,
}

/// Largest L2 bandwidth of one multiprocessor, bytes per clock of the L2 cache.
pub(crate) const L2_PORT_RATE: f64 = 64.0;
/// Cycles from the last arrival at a block-wide barrier to the next instruction of its warps.
const BARRIER_CYCLES: u64 = 2;
/// Flag in the sector number of sectors private to a block.
pub(super) const PRIVATE: u64 = 1 << 63;

impl<'a> Sm<'a> {
    pub(super) fn new(work: &'a Work<'a>) -> Sm<'a> {
        let core = || Core {
            warps: Vec::new(),
            pipes: [0; PIPES],
            ports: Ports::default(),
            queue: Queue::default(),
            tensor: TensorQueue::default(),
            tensor_memory: 0,
            next: 0,
            last: None,
            asleep: None,
        };
        Sm {
            work,
            rates: Rates::from_arch(work.arch),
            cores: (0..work.arch.schedulers).map(|_| core()).collect(),
            warps: Vec::new(),
            slots: Vec::new(),
            phases: Phases::new(work.trace),
            phases_of: Vec::new(),
            copies: CopyEngine::default(),
            products_end: 0,
            product_cycles: 0,
            free: Vec::new(),
            l1: Cache::new(work.l1_bytes),
            fetch: Fetch::new(work.arch, work.code.len()),
            constants: Constants::new(work.arch.schedulers as usize),
            seen: Sectors::default(),
            lsu: SerialResource::default(),
            read: 0,
            l2: Share::new(work.l2_rate, work.l2_port_rate),
            dram: Share::new(work.dram_rate, work.l2_port_rate),
            misses: 0.0,
            words: BySector::default(),
            changed: 0,
            started: 0,
            limit: work.blocks,
            wave: None,
            out: Outcome::default(),
        }
    }

    /// Runs until all blocks are done or the budget is spent. Starts no more blocks once two
    /// successive waves have the same rate.
    pub(super) fn run(mut self) -> Outcome {
        for slot in 0..self.work.resident.min(self.limit) {
            self.slots.push(0);
            self.phases_of.push(PhaseStates::default());
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

    /// Starts the next block in a slot.
    fn start(&mut self, slot: usize, now: u64) {
        self.started += 1;
        let count = self.work.trace.warps.len();
        self.slots[slot] = count;
        self.phases_of[slot] = self.phases.begin();
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
                product_end: 0,
                products: Vec::new(),
                waits: None,
                hold: (0, Stall::Wait),
            };
            let warp_index = match self.free.pop() {
                Some(warp_index) => {
                    self.warps[warp_index] = warp;
                    warp_index
                }
                None => {
                    self.warps.push(warp);
                    self.warps.len() - 1
                }
            };
            // New warps go to the scheduler with the fewest warps.
            let core = (0..self.cores.len()).min_by_key(|c| self.cores[*c].warps.len());
            let core = core.unwrap_or(0);
            let warp = &mut self.warps[warp_index];
            (warp.ready, warp.why) = (
                self.fetch.request(core, warp.cursor.at, now),
                Stall::NoInstruction,
            );
            let core = &mut self.cores[core];
            core.warps.push(warp_index);
            core.next = core.next.min(now);
        }
    }

    /// Issues an instruction of one scheduler at one cycle, if possible.
    fn issue(&mut self, core: usize, now: u64) {
        // Idle cycles are counted on waking, because a scheduler may be woken early.
        if let Some((since, why)) = self.cores[core].asleep.take() {
            self.out.tally.stalled[why as usize] += now.saturating_sub(since);
        }
        let mut soonest = (u64::MAX, Stall::Idle);
        let count = self.cores[core].warps.len();
        let mut barrier = None;
        // Issue order: the warp of the last instruction, then the youngest first.
        for turn in 0..=count {
            let warp_index = match (turn, self.cores[core].last) {
                (0, None) => continue,
                (0, Some(last)) => last,
                _ => self.cores[core].warps[count - turn],
            };
            let warp = &self.warps[warp_index];
            if warp.waits.is_some() {
                barrier.get_or_insert(warp.hold.1);
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
                // No other warp of the scheduler issues in these cycles either.
                let warp = &mut self.warps[warp_index];
                (warp.ready, warp.why) = (there, Stall::ImcMiss);
                soonest = (there.min(now + MISS_STALL_CYCLES), Stall::ImcMiss);
                break;
            }
            self.cores[core].last = Some(warp_index);
            self.execute(core, warp_index, now, pipe);
            return;
        }
        // Warps at a barrier have no cycle at which they go on; others, if there are any, decide.
        let why = match barrier {
            Some(why) if soonest.0 == u64::MAX => why,
            _ => soonest.1,
        };
        self.cores[core].asleep = Some((now, why));
        self.cores[core].next = soonest.0;
    }

    /// Returns the arrival of a constant operand if the scheduler's cache misses it.
    fn constant_missing(&mut self, core: usize, line: Option<u32>, now: u64) -> Option<u64> {
        let there = (self.constants).operand(core, line?, now, &mut self.fetch);
        (there > now).then_some(there)
    }

    /// Returns the first free cycle of the instruction's unit.
    fn unit_free(&self, core: usize, instr: &Instr) -> (u64, Stall, Option<(usize, u64)>) {
        let Some((mut pipe, busy)) = self.rates.pipe(instr) else {
            return (0, Stall::Wait, None);
        };
        let pipes = &self.cores[core].pipes;
        if pipe == FMA && self.rates.runs_on_second_fma(instr) && pipes[FMA_SECOND] <= pipes[FMA] {
            pipe = FMA_SECOND;
        }
        let mut free = pipes[pipe];
        let mut why = Stall::MathPipe;
        if pipe == super::units::MEMORY {
            why = Stall::Mio;
            free = free.max(self.cores[core].queue.first_free());
        }
        if instr.group.is_some() {
            free = free.max(self.cores[core].tensor.first_free());
        }
        if let Some(TensorCore::Transfer { .. }) = instr.tensor_core {
            free = free.max(self.cores[core].tensor_memory);
        }
        (free, why, Some((pipe, busy)))
    }

    fn execute(&mut self, core: usize, warp_index: usize, now: u64, pipe: Option<(usize, u64)>) {
        let work = self.work;
        let instr = work.code[self.warps[warp_index].cursor.at as usize];
        let tally = &mut self.out.tally;
        tally.issued += 1;
        tally.by_unit[instr.unit as usize] += 1;
        if let Some((pipe, busy)) = pipe {
            self.cores[core].pipes[pipe] = now + busy;
            tally.pipe_cycles[pipe] += busy;
        }
        // Wait for register file ports; the instruction behind it is delayed by all but one cycle.
        let begun = self.cores[core].ports.read(warp_index, &instr.reads, now);
        if begun > now + 1 {
            self.cores[core].asleep = Some((now + 1, Stall::Dispatch));
        }
        self.cores[core].next = begun.max(now + 1);
        let issue = Issue {
            core,
            warp_index,
            now,
        };
        let (end, why, read) = self.latency(issue, &instr);
        self.run_asynchronously(issue, &instr);
        let held = begun.saturating_sub(1).max(now);
        let warp = &mut self.warps[warp_index];
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
            return self.leave(core, warp_index, now);
        }
        let at = warp.cursor.at;
        // Instructions of a line arrive together; a jump back may find the line replaced.
        if at / LINE != before / LINE || at < before {
            let there = self.fetch.request(core, at, now);
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
        if let Some(left) = next.products_left {
            ready = ready.max(warp.products_done(left));
        }
        ready = ready.max(warp.hold);
        if next.unit == Unit::Tensor && instr.unit != Unit::Tensor {
            ready.0 = ready.0.max(now + 1);
        }
        (warp.ready, warp.why) = ready;
    }

    /// Begins what goes on beside the warp, and sends the signals of an instruction.
    fn run_asynchronously(&mut self, issue: Issue, instr: &Instr) {
        let Issue {
            warp_index, now, ..
        } = issue;
        if let Some(product) = &instr.group {
            self.product(issue, product);
        }
        let shared = u64::from(self.work.arch.shared_cycles);
        let mut times = SignalTimes {
            arrives: now + shared,
            copied: now,
            multiplied: self.warps[warp_index].product_end.max(now + shared),
            wakes: shared,
        };
        if let Some(direction) = instr.bulk {
            times.copied = self.bulk(issue, direction);
        }
        if instr.unit == Unit::Barrier {
            self.out.tally.barriers += 1;
            (times.arrives, times.wakes) = (now, BARRIER_CYCLES);
        }
        self.warps[warp_index].hold = (0, Stall::Wait);
        self.send_signals(warp_index, times);
    }

    /// Removes a finished warp; a finished block is replaced by the next one.
    fn leave(&mut self, core: usize, warp_index: usize, now: u64) {
        let slot = self.warps[warp_index].slot;
        // A phase of the next block in the slot must not wake this warp.
        self.warps[warp_index].slot = usize::MAX;
        self.cores[core].warps.retain(|w| *w != warp_index);
        self.cores[core].last = None;
        self.free.push(warp_index);
        self.slots[slot] -= 1;
        if self.slots[slot] > 0 {
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
}

impl Warp {
    /// Returns the completion of all but the last `left` groups of copies.
    fn copied(&self, left: u8) -> (u64, Stall) {
        let open = self.groups.len().saturating_sub(left.into());
        let end = self.groups[..open].iter().copied().max().unwrap_or(0);
        (end, Stall::LongScoreboard)
    }
}
