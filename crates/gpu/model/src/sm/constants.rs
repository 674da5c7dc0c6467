//! Constant caches: one per scheduler for constant operands, one per multiprocessor for loads of
//! constants. Both are filled from the cache that also serves instructions.
//!
//! Behaviour after NVIDIA's Nsight Compute documentation ("Metrics decoder": IMC, IDC) and Huerta
//! et al. (MICRO 2025; arXiv 2503.20481, sections 5.1.1 and 5.4). A missing operand blocks its
//! scheduler for four cycles and its warp until it arrives, 79 cycles later on a hit in the next
//! cache. A load is issued once per distinct address of its lanes (CUDA C++ Programming Guide,
//! constant memory). The size, 2 KiB in lines of 64 bytes, is the T4's (Jia et al., arXiv
//! 1903.07486). The same size for both caches is an assumption.

use super::fetch::Fetch;
use super::queue::SerialResource;

/// Number of 64-byte lines per cache.
const LINES: usize = 32;
/// Cycles for which a missing operand blocks its scheduler.
pub(super) const MISS_STALL_CYCLES: u64 = 4;
/// Cycles between the addresses of a load: the service time of the multiprocessor's shared
/// structures for a memory instruction (table 1 of the paper).
const ADDRESS_CYCLES: u64 = 2;

/// Cached lines with least-recently-used replacement.
#[derive(Debug, Default)]
struct Lines {
    /// Line number, arrival cycle, and number of the last use.
    held: Vec<(u32, u64, u64)>,
    uses: u64,
}

impl Lines {
    /// Returns the arrival of a line, which is requested at `now` if missing.
    fn request(&mut self, line: u32, now: u64, beyond: &mut Fetch) -> u64 {
        self.uses += 1;
        if let Some(found) = self.held.iter_mut().find(|held| held.0 == line) {
            found.2 = self.uses;
            return found.1;
        }
        let there = beyond.constant(line, now);
        if self.held.len() == LINES
            && let Some(oldest) = (0..LINES).min_by_key(|place| self.held[*place].2)
        {
            self.held.swap_remove(oldest);
        }
        self.held.push((line, there, self.uses));
        there
    }
}

/// Constant caches of a multiprocessor, empty at the start of a launch.
#[derive(Debug)]
pub(super) struct Constants {
    immediate: Vec<Lines>,
    indexed: Lines,
    unit: SerialResource,
}

impl Constants {
    pub(super) fn new(schedulers: usize) -> Constants {
        Constants {
            immediate: (0..schedulers).map(|_| Lines::default()).collect(),
            indexed: Lines::default(),
            unit: SerialResource::default(),
        }
    }

    /// Returns the arrival of the line of an operand that a scheduler requests at `now`.
    pub(super) fn operand(&mut self, core: usize, line: u32, now: u64, beyond: &mut Fetch) -> u64 {
        self.immediate[core].request(line, now, beyond)
    }

    /// Returns the completion of a load issued at `now`, for the lines and the number of distinct
    /// addresses of its lanes.
    pub(super) fn load(
        &mut self,
        lines: impl Iterator<Item = u32>,
        addresses: u64,
        now: u64,
        beyond: &mut Fetch,
    ) -> u64 {
        let busy = addresses.max(1) * ADDRESS_CYCLES;
        let begun = self.unit.take(now, now, busy);
        let there = lines
            .map(|line| self.indexed.request(line, now, beyond))
            .max();
        // The last address begins one interval before the unit is free.
        (begun + busy - ADDRESS_CYCLES).max(there.unwrap_or(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgpu::Arch;

    fn caches() -> (Constants, Fetch) {
        let arch = Arch::by_name("a6000").unwrap();
        (Constants::new(4), Fetch::new(arch, 100))
    }

    #[test]
    fn an_operand_whose_line_the_next_cache_has_comes_as_late_as_was_measured() {
        let (mut constants, mut fetch) = caches();
        let first = constants.operand(0, 5, 0, &mut fetch);
        assert!(first > 200, "from beyond: {first}");
        assert_eq!(constants.operand(0, 5, 1000, &mut fetch), first);
        // Another scheduler and the cache of loads miss: the paper's 79 cycles.
        assert_eq!(constants.operand(1, 5, 2000, &mut fetch), 2079);
        assert_eq!(constants.load([5].into_iter(), 1, 3000, &mut fetch), 3079);
    }

    #[test]
    fn what_does_not_fit_misses_every_time() {
        let (mut constants, mut fetch) = caches();
        let mut pass = |lines: u32, now: u64| {
            let late = (0..lines).filter(|line| {
                let at = now + u64::from(*line) * 100;
                constants.operand(0, *line, at, &mut fetch) > at
            });
            late.count()
        };
        pass(32, 0);
        assert_eq!(pass(32, 10_000), 0);
        assert_eq!(pass(33, 20_000), 1);
        assert_eq!(pass(33, 30_000), 33);
    }

    #[test]
    fn lanes_that_ask_for_different_addresses_are_served_one_after_the_other() {
        let (mut constants, mut fetch) = caches();
        let _ = constants.load([0, 1].into_iter(), 1, 0, &mut fetch);
        assert_eq!(constants.load([0].into_iter(), 1, 1000, &mut fetch), 1000);
        assert_eq!(
            constants.load([0, 1].into_iter(), 32, 2000, &mut fetch),
            2062
        );
        assert_eq!(constants.load([0].into_iter(), 1, 2000, &mut fetch), 2064);
    }
}
