//! The instruction caches: one for each scheduler, a larger one that the schedulers share.
//!
//! Sizes and times are those with which Huerta et al., "Dissecting and Modeling the Architecture of
//! Modern GPU Cores" (MICRO 2025; arXiv 2503.20481, sections 5.2 and 7.3, and the configurations of
//! their simulator, upc-arco/modern-gpu-simulator-micro-2025), are closest to real GPUs: 32 KiB a
//! scheduler (RTX 2080 Ti: 16) and 128 KiB a multiprocessor in lines of 128 bytes, 39 cycles each way
//! between them, and eight lines asked for ahead of the one that is executed. Of data centre GPUs no
//! figures are known: they are taken to be the same.

use vgpu::Arch;

/// Instructions of a line.
pub(super) const LINE: u32 = 8;
/// Lines asked for ahead of the one that is executed.
const AHEAD: u32 = 8;
/// Cycles from a scheduler's cache to the shared one and back.
const AWAY: u64 = 78;
/// Instructions' worth of bytes of the constant banks: eight of 64 KiB.
const BANKS: usize = 8 * 64 * 1024 / 16;

/// A cache of lines of a kernel's code, least recently used out first.
#[derive(Debug)]
struct Lines {
    /// When each line of the code is or will be there; [`ABSENT`] where it was not asked for.
    there: Vec<u64>,
    /// When each was used or asked for last, in such events.
    used: Vec<u64>,
    /// Which of them were not used since they were asked for.
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

    /// Marks a line as used; whether it is the first time since it came.
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
        self.mark(line);
        self.fresh[line as usize] = true;
        self.held += 1;
    }
}

/// The instruction caches of a multiprocessor, empty when a launch begins.
#[derive(Debug)]
pub(super) struct Fetch {
    own: Vec<Lines>,
    /// Lines of the code, and behind them those of the constant banks.
    shared: Lines,
    /// Lines of the code.
    code: u32,
    /// The first cycle at which the shared cache can be asked again.
    free: u64,
    /// Cycles until a line that it has not is there.
    beyond: u64,
}

impl Fetch {
    /// The caches for code of so many instructions.
    pub(super) fn new(arch: &Arch, code: usize) -> Fetch {
        let own = if arch.cc < 80 { 16 * 1024 } else { 32 * 1024 };
        let shared = 128 * 1024;
        Fetch {
            own: (0..arch.schedulers)
                .map(|_| Lines::new(code, own))
                .collect(),
            shared: Lines::new(code.next_multiple_of(LINE as usize) + BANKS, shared),
            code: code.div_ceil(LINE as usize) as u32,
            free: 0,
            beyond: arch.l2_cycles.into(),
        }
    }

    /// When a scheduler has the instruction that one of its warps comes to at `now`.
    pub(super) fn at(&mut self, core: usize, instruction: u32, now: u64) -> u64 {
        let line = instruction / LINE;
        let time = match self.own[core].get(line) {
            Some(time) => time,
            None => self.bring(core, line, now),
        };
        if self.own[core].mark(line) {
            for next in (line + 1..self.code).take(AHEAD as usize) {
                if self.own[core].get(next).is_none() {
                    self.bring(core, next, now);
                }
            }
        }
        time
    }

    fn bring(&mut self, core: usize, line: u32, now: u64) -> u64 {
        let there = self.shared(line, now) + AWAY;
        self.own[core].put(line, there);
        there
    }

    /// When a constant cache has 64 bytes of a constant bank that it asks for at `now`: one cycle after
    /// a scheduler would have a line of code, 79 in all, as measured.
    pub(super) fn constant(&mut self, line: u32, now: u64) -> u64 {
        let place = self.code + (line / 2).min(BANKS as u32 / LINE - 1);
        self.shared(place, now) + AWAY + 1
    }

    /// When the shared cache, asked at `now`, has a line.
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

    /// Cycles that a warp alone waits for instructions in a loop of so many, passed so many times.
    fn waited(length: u32, times: usize) -> Vec<u64> {
        let mut fetch = Fetch::new(Arch::by_name("a6000").unwrap(), length as usize);
        let (mut now, mut all) = (0, Vec::new());
        for _ in 0..times {
            let begun = now;
            for instruction in 0..length {
                let there = fetch.at(0, instruction, now);
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
        assert!(waits[3] > 0 && waits[3] < lines * AWAY / 4, "{waits:?}");
        // Beyond the shared cache as well.
        assert!(waited(10_000, 3)[2] / 10 > waits[3] / 3);
    }
}
