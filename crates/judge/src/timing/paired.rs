//! Paired comparisons: two subjects in A B B A and B A A B blocks until their ratio is known or
//! cannot be resolved.

use super::blocks::{Block, Blocks, ExpectedReference, RetryStats};
use super::plan::{Plan, Runner, Settings, Step};
use crate::stopwatch::Sample;
use serde::{Deserialize, Serialize};
use tuner_core::statistics::{interval_of_median, median};

/// Outcome of a challenger against an incumbent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Faster by more than the margin, in time and in cycles.
    Faster,
    /// Slower by more than the margin.
    Slower,
    /// Neither could be shown.
    Tie,
}

/// Result of a paired comparison. Ratios are challenger over incumbent: below 1 is faster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairedResult {
    /// The decision.
    pub decision: Decision,
    /// Median ratio of times.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    pub interval: [f64; 2],
    /// 95 % interval of the ratio of cycles, if the device reports cycles.
    pub cycles: Option<[f64; 2]>,
    /// Time shows faster, cycles do not.
    pub cycles_disagree: bool,
    /// The ratio of each block, two pairs each.
    pub ratios: Vec<f64>,
    /// Repeated blocks.
    pub trouble: RetryStats,
}

/// A paired comparison in progress.
#[derive(Debug, Clone)]
pub struct PairedComparison {
    settings: Settings,
    challenger: Runner,
    incumbent: Runner,
    blocks: Blocks,
    /// The challenger is the inner subject.
    inside: bool,
    times: Vec<f64>,
    cycles: Vec<Option<f64>>,
    done: bool,
}

/// Minimum pairs, even if they take long.
const PAIRS_AT_LEAST: usize = 8;

impl PairedComparison {
    /// Starts a comparison of two warmed-up subjects.
    #[must_use]
    pub fn new(settings: Settings, challenger: Runner, incumbent: Runner) -> Self {
        Self {
            settings,
            challenger,
            incumbent,
            blocks: Blocks::new(
                settings,
                incumbent,
                challenger,
                2,
                ExpectedReference::default(),
            ),
            inside: true,
            times: Vec::new(),
            cycles: Vec::new(),
            done: false,
        }
    }

    /// Returns the result so far; `None` before the first block.
    #[must_use]
    pub fn result(&self) -> Option<PairedResult> {
        let ratio = median(&self.times)?;
        let interval = interval_of_median(&self.times)?;
        let cycles: Option<Vec<f64>> = self.cycles.iter().copied().collect();
        let cycles = cycles.and_then(|ratios| interval_of_median(&ratios));
        // A gain in time but not in cycles is a gain of the clock, not of the kernel.
        let disagree = cycles.is_some_and(|[_, high]| high >= 1.0);
        let faster = interval[1] < self.settings.win;
        let decision = if faster && !disagree {
            Decision::Faster
        // The same margin in the other direction, so that swapping the subjects swaps the outcome.
        } else if interval[0] > 1.0 / self.settings.win {
            Decision::Slower
        } else {
            Decision::Tie
        };
        Some(PairedResult {
            decision,
            ratio,
            interval,
            cycles,
            cycles_disagree: faster && disagree,
            ratios: self.times.clone(),
            trouble: self.blocks.trouble(),
        })
    }

    fn keep(&mut self, block: &Block) {
        let upright = |ratio: f64| if self.inside { ratio } else { 1.0 / ratio };
        self.times.push(upright(block.ratio()));
        self.cycles.push(block.cycles_ratio().map(upright));
        // Subjects alternate between inside and outside, so that an effect of the position cancels.
        self.inside = !self.inside;
        let (outer, inner) = if self.inside {
            (self.incumbent, self.challenger)
        } else {
            (self.challenger, self.incumbent)
        };
        self.blocks.reshape(outer, inner, 2);
        self.done = self.decided();
    }

    /// Reports whether the outcome is clear, or clearly cannot be resolved.
    fn decided(&self) -> bool {
        let pairs = 2 * self.times.len();
        let late = self.blocks.gpu_us() > self.settings.duel_us;
        if pairs >= self.settings.duel_pairs_max || (late && pairs >= PAIRS_AT_LEAST) {
            return true;
        }
        // Stopping at the first clear interval would favour chance: a minimum limits this bias.
        if pairs < self.settings.duel_pairs_min {
            return false;
        }
        let Some(result) = self.result() else {
            return false;
        };
        let [low, high] = result.interval;
        let margin = self.settings.win;
        result.decision != Decision::Tie
            // The interval lies within the margin: more pairs cannot produce a winner.
            || (low > margin && high < 1.0 / margin)
            || result.cycles_disagree
    }
}

impl Plan for PairedComparison {
    fn next(&self) -> Step {
        if self.done {
            Step::Done
        } else {
            self.blocks.next()
        }
    }

    fn tell(&mut self, sample: Option<Sample>) {
        if let Some(block) = self.blocks.tell(sample) {
            self.keep(&block);
        }
    }
}
