//! Result of a replay: its progress and the rate of its waves.

use super::{Sm, Tally};

/// Relative difference between the rates of two successive waves below which they are steady.
const MAX_STEADY_DIFFERENCE: f64 = 0.02;

/// Result of a replay.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Cycles until the end, or until the budget was spent.
    pub(crate) cycles: u64,
    /// Cycle at which as many blocks had ended as are resident at once.
    pub(crate) first_wave: Option<u64>,
    /// Cycles per block of the last wave that ended while blocks were still started, from the
    /// second wave on.
    pub(crate) cycles_per_block: Option<f64>,
    /// True if the budget was spent before the end of the started blocks.
    pub(crate) cut_short: bool,
    /// Number of finished blocks.
    pub(crate) done: usize,
    /// Issued instructions, in units of a block's instructions.
    pub(crate) progress: f64,
    pub(crate) tally: Tally,
}

/// End of a wave: since the previous one, as many blocks have ended as are resident at once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wave {
    /// Cycle of the end.
    cycle: u64,
    /// Instructions issued until then, in units of a block's instructions. The youngest warps issue
    /// first, so blocks of the next wave are well advanced.
    progress: f64,
    /// Cycles per block since the end of the previous wave.
    pub(super) cycles_per_block: f64,
}

impl Wave {
    /// Creates the wave that ends at `cycle`, after the previous one.
    pub(super) fn new(cycle: u64, progress: f64, before: Option<Self>) -> Self {
        let before = before.unwrap_or_default();
        let blocks = (progress - before.progress).max(0.5);
        Wave {
            cycle,
            progress,
            cycles_per_block: (cycle - before.cycle) as f64 / blocks,
        }
    }

    /// Returns true if its rate equals that of the previous wave.
    pub(super) fn is_steady(self, before: Self) -> bool {
        (self.cycles_per_block / before.cycles_per_block - 1.0).abs() <= MAX_STEADY_DIFFERENCE
    }
}

impl Sm<'_> {
    /// Returns the issued instructions in units of a block's instructions. The mean progress of the
    /// warps would mislead, as one warp may do most of a block's work.
    pub(super) fn progress(&self) -> f64 {
        let runs = self.work.trace.warps.iter().flat_map(|warp| &warp.runs);
        let block: u64 = runs.map(|run| u64::from(run.end - run.start)).sum();
        self.out.tally.issued as f64 / block.max(1) as f64
    }

    pub(super) fn finish(mut self) -> Outcome {
        self.out.progress = self.progress();
        for core in &self.cores {
            if let Some((since, why)) = core.asleep {
                self.out.tally.stalled[why as usize] += self.out.cycles.saturating_sub(since);
            }
        }
        // Pending memory traffic.
        let drained = (self.l2.end.max(self.dram.end) as u64)
            .max(self.lsu.end)
            .max(self.changed);
        self.out.cut_short = self.out.done < self.limit;
        // A replay that was cut short has more to do: its traffic has no end yet.
        if !self.out.cut_short {
            self.out.cycles = self.out.cycles.max(drained);
        }
        self.out
    }

    /// Records the end of a wave.
    pub(super) fn end_wave(&mut self, cycle: u64) {
        self.out.first_wave.get_or_insert(cycle);
        if self.started >= self.limit {
            // Later waves have fewer concurrent blocks, so their rates are not comparable.
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
