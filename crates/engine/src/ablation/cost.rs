//! Cost of a change: its time over that of the base, and the statements that it supports.

use tuner_core::judgement::Judgement;
use tuner_core::record::{Measurement, Verdict};
use tuner_core::statistics::{interval_of_median, median};

/// Maximum changes in a round.
const MAX_TOGETHER: usize = 16;
/// Maximum length of a round, microseconds: longer ones drift.
const ROUND_US: f64 = 100e3;
/// Minimum length of a sample, microseconds.
const SAMPLE_US: f64 = 1500.0;

/// A time over that of the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Median.
    pub ratio: f64,
    /// 95 % interval.
    pub interval: [f64; 2],
    /// Time of the base in that session, microseconds.
    pub base_us: Option<f64>,
    /// Caveats of the time.
    pub flags: Vec<String>,
}

impl Cost {
    /// Derives the cost from a time whose reference was the base; `None` without a round.
    pub(super) fn from_measurement(measurement: &Measurement) -> Option<Self> {
        let evidence = measurement.evidence.as_ref()?;
        let ratios = &evidence.reference_ratios;
        Some(Self {
            ratio: median(ratios)?,
            interval: interval_of_median(ratios)?,
            base_us: evidence.reference_us,
            flags: evidence.flags.clone(),
        })
    }

    /// Reports that no difference was shown: the interval contains 1, or overlaps the base's
    /// difference from itself. Equal code in other buffers can differ slightly as long as the
    /// buffers stay in place.
    pub(super) fn same(&self, control: &Self) -> bool {
        let [low, high] = control.interval;
        self.interval[0] <= high.max(1.0) && low.min(1.0) <= self.interval[1]
    }
}

/// A cost, or the reason why there is none.
pub(super) type Timed = Result<Cost, Judgement>;

/// Returns the judgement of a comparison with neither a time nor a reason.
pub(super) fn untimed() -> Judgement {
    Judgement::new(Verdict::Crashed, "it was not timed")
}

/// Returns the number of changes that share a round.
pub(super) fn together(base_us: Option<f64>) -> usize {
    // A sample has at least one launch, so a slower base makes the samples longer.
    let sample = base_us.unwrap_or(SAMPLE_US).max(SAMPLE_US);
    // Two samples of each round are the base's.
    ((ROUND_US / sample) as usize)
        .saturating_sub(2)
        .clamp(1, MAX_TOGETHER)
}

/// Describes the resolution of the clock, in lines: the base timed against itself.
pub(super) fn of_the_clock(control: &Cost) -> Vec<String> {
    let [low, high] = control.interval;
    let mut lines = vec![format!("the base against itself: {low:.4} to {high:.4}")];
    if low > 1.0 || high < 1.0 {
        lines.push(
            "note: it differs from itself by more than noise; changes within that are called the \
             same"
                .to_owned(),
        );
    }
    lines
}

/// Counts the changes with a cost.
pub(super) fn summary(control: &Cost, costs: &[Option<Cost>]) -> String {
    let timed: Vec<&Cost> = costs.iter().flatten().collect();
    let (same, other): (Vec<&Cost>, Vec<&Cost>) =
        timed.iter().copied().partition(|cost| cost.same(control));
    let slower = other.iter().filter(|cost| cost.ratio > 1.0).count();
    format!(
        "{} timed: {slower} slower than the base, {} faster, {} the same as far as 95 % intervals \
         tell (one equal change in twenty lies outside by chance)",
        timed.len(),
        other.len() - slower,
        same.len()
    )
}

#[cfg(test)]
mod tests;
