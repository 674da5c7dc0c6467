//! Instruction caches: one per scheduler, and a larger one shared by the schedulers.
//!
//! Sizes and latencies are those for which the simulator of Huerta et al. is closest to real GPUs
//! ("Dissecting and Modeling the Architecture of Modern GPU Cores", MICRO 2025; arXiv 2503.20481,
//! sections 5.2 and 7.3, and the configurations of upc-arco/modern-gpu-simulator-micro-2025). A
//! scheduler has 32 KiB (RTX 2080 Ti: 16) and a multiprocessor 128 KiB, in lines of 128 bytes. The
//! latency between them is 39 cycles in each direction, and the prefetch covers eight lines. No
//! figures are known for data centre GPUs; the model uses the same ones.

use vgpu::Arch;

/// Instructions per line.
pub(super) const LINE: u32 = 8;
/// Number of prefetched lines.
const PREFETCH_LINES: u32 = 8;
/// Round-trip cycles between a scheduler's cache and the shared one.
const ROUND_TRIP_CYCLES: u64 = 78;
/// Size of the constant banks in instructions of 16 bytes: eight banks of 64 KiB.
const CONSTANT_BANK_INSTRUCTIONS: usize = 8 * 64 * 1024 / 16;

/// A cache of code lines with least-recently-used replacement.
#[derive(Debug)]
struct Lines {
    /// Arrival of each line of the code; [`ABSENT`] if it was not requested.
    there: Vec<u64>,
    /// Number of the last use or request of each line.
    used: Vec<u64>,
    /// Flags of the lines not used since their request.
    fresh: Vec<bool>,
    held: usize,
    most: usize,
    uses: u64,
}

const ABSENT: u64 = u64::MAX;

impl Lines {
    fn new(code: usize, bytes: usize) -> Lines {
        let lines = code.div_ceil(LINE as usize);
        Lines {
            there: vec![ABSENT; lines],
            used: vec![0; lines],
            fresh: vec![false; lines],
            held: 0,
            most: bytes / 128,
            uses: 0,
        }
    }

    fn get(&self, line: u32) -> Option<u64> {
        let time = self.there.get(line as usize).copied();
        time.filter(|time| *time != ABSENT)
    }

    /// Marks a line as used; returns true on the first use since its arrival.
    fn mark(&mut self, line: u32) -> bool {
        self.uses += 1;
        self.used[line as usize] = self.uses;
        std::mem::take(&mut self.fresh[line as usize])
    }

    fn put(&mut self, line: u32, time: u64) {
        if self.held == self.most {
            let held = (0..self.there.len()).filter(|at| self.there[*at] != ABSENT);
            if let Some(oldest) = held.min_by_key(|at| self.used[*at]) {
                self.there[oldest] = ABSENT;
                self.held -= 1;
            }
        }
        self.there[line as usize] = time;
        // For the replacement a request counts as a use, for the prefetch it does not.
        self.mark(line);
        self.fresh[line as usize] = true;
        self.held += 1;
    }
}

/// Instruction caches of a multiprocessor. At the start of a launch the shared one holds the code, if it
/// fits: the same launch came before, as in the warm protocol of timing.
#[derive(Debug)]
pub(super) struct Fetch {
    own: Vec<Lines>,
    /// Lines of the code, followed by those of the constant banks.
    shared: Lines,
    /// Number of code lines.
    code: u32,
    /// First cycle at which the shared cache accepts a request.
    free: u64,
    /// Miss latency of the shared cache, cycles.
    beyond: u64,
}

impl Fetch {
    /// Creates the caches for `code` instructions.
    pub(super) fn new(arch: &Arch, code: usize) -> Fetch {
        let own = if arch.cc < 80 { 16 * 1024 } else { 32 * 1024 };
        let whole = code.next_multiple_of(LINE as usize) + CONSTANT_BANK_INSTRUCTIONS;
        let mut shared = Lines::new(whole, 128 * 1024);
        let lines = code.div_ceil(LINE as usize);
        if lines <= shared.most {
            for line in 0..lines as u32 {
                shared.put(line, 0);
            }
        }
        Fetch {
            own: (0..arch.schedulers)
                .map(|_| Lines::new(code, own))
                .collect(),
            shared,
            code: code.div_ceil(LINE as usize) as u32,
            free: 0,
            beyond: arch.l2_cycles.into(),
        }
    }

    /// Returns the arrival of the instruction that a warp of a scheduler reaches at `now`.
    pub(super) fn request(&mut self, core: usize, instruction: u32, now: u64) -> u64 {
        let line = instruction / LINE;
        let time = match self.own[core].get(line) {
            Some(time) => time,
            None => self.fetch_line(core, line, now),
        };
        if self.own[core].mark(line) {
            for next in (line + 1..self.code).take(PREFETCH_LINES as usize) {
                if self.own[core].get(next).is_none() {
                    self.fetch_line(core, next, now);
                }
            }
        }
        time
    }

    fn fetch_line(&mut self, core: usize, line: u32, now: u64) -> u64 {
        let there = self.shared(line, now) + ROUND_TRIP_CYCLES;
        self.own[core].put(line, there);
        there
    }

    /// Returns the arrival of 64 bytes of a constant bank that a constant cache requests at `now`.
    /// It is one cycle later than a line of code at a scheduler, 79 in all as measured.
    pub(super) fn constant(&mut self, line: u32, now: u64) -> u64 {
        // A line of constants is half as long as one of code.
        let place = self.code + (line / 2).min(CONSTANT_BANK_INSTRUCTIONS as u32 / LINE - 1);
        self.shared(place, now) + ROUND_TRIP_CYCLES + 1
    }

    /// Returns the arrival of a line in the shared cache, requested at `now`.
    fn shared(&mut self, line: u32, now: u64) -> u64 {
        let asked = self.free.max(now);
        self.free = asked + 1;
        let shared = match self.shared.get(line) {
            Some(time) => time.max(asked),
            None => {
                self.shared.put(line, asked + self.beyond);
                asked + self.beyond
            }
        };
        self.shared.mark(line);
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fetch stalls of a single warp for each pass of a loop of `length` instructions.
    fn waited(length: u32, times: usize) -> Vec<u64> {
        let mut fetch = Fetch::new(Arch::by_name("a6000").unwrap(), length as usize);
        let (mut now, mut all) = (0, Vec::new());
        for _ in 0..times {
            let begun = now;
            for instruction in 0..length {
                let there = fetch.request(0, instruction, now);
                now = there.max(now) + 1;
            }
            all.push(now - begun - u64::from(length));
        }
        all
    }

    #[test]
    fn a_loop_that_the_cache_holds_waits_the_first_time_only() {
        let waits = waited(2000, 3);
        assert!(waits[0] > 200, "{waits:?}");
        assert_eq!(waits[1..], [0, 0]);
    }

    #[test]
    fn a_loop_larger_than_the_scheduler_s_cache_waits_every_time_and_less_than_without_looking_ahead()
     {
        let waits = waited(3000, 4);
        let lines = 3000 / u64::from(LINE);
        assert!(
            waits[3] > 0 && waits[3] < lines * ROUND_TRIP_CYCLES / 4,
            "{waits:?}"
        );
        // The loop also exceeds the shared cache.
        assert!(waited(10_000, 3)[2] / 10 > waits[3] / 3);
    }
}
