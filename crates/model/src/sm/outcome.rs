//! How far a replay came, and at which rate its waves went.

use super::Tally;

/// Relative difference between the rates of two successive waves below which they are steady.
const STEADY: f64 = 0.02;

/// How far the replay came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Cycles until the end, or until the budget was spent.
    pub(crate) cycles: u64,
    /// When as many blocks had ended as are resident at once.
    pub(crate) first_wave: Option<u64>,
    /// Cycles a block of the last wave that ended while blocks were still started, beginning with the
    /// second wave.
    pub(crate) cycles_per_block: Option<f64>,
    /// The budget was spent before the blocks that were started had ended.
    pub(crate) cut_short: bool,
    /// Blocks done.
    pub(crate) done: usize,
    /// Instructions issued, in units of a block's.
    pub(crate) progress: f64,
    pub(crate) tally: Tally,
}

/// The end of a wave: as many blocks have ended since the one before as are resident at once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wave {
    /// When.
    cycle: u64,
    /// Instructions issued by then, in units of a block's. (The youngest warps go first, so blocks of the
    /// next wave are far from their beginning.)
    progress: f64,
    /// Cycles a block since the end of the wave before.
    pub(super) cycles_per_block: f64,
}

impl Wave {
    /// The wave that ends at `cycle`, after the one before.
    pub(super) fn new(cycle: u64, progress: f64, before: Option<Self>) -> Self {
        let before = before.unwrap_or_default();
        let blocks = (progress - before.progress).max(0.5);
        Wave {
            cycle,
            progress,
            cycles_per_block: (cycle - before.cycle) as f64 / blocks,
        }
    }

    /// Whether it went at the rate of the one before.
    pub(super) fn is_steady(self, before: Self) -> bool {
        (self.cycles_per_block / before.cycles_per_block - 1.0).abs() <= STEADY
    }
}
