//! A change's time over that of the base, and what may be said of it.

use tuner_core::judgement::Judgement;
use tuner_core::record::{Measurement, Verdict};
use tuner_core::statistics::{interval_of_median, median};

/// Most changes in a round.
const MAX_TOGETHER: usize = 16;
/// What a round should last at most, microseconds: longer ones drift.
const ROUND_US: f64 = 100e3;
/// What a sample lasts at least, microseconds.
const SAMPLE_US: f64 = 1500.0;

/// A time over that of the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Median.
    pub ratio: f64,
    /// 95 % interval.
    pub interval: [f64; 2],
    /// What the base took in that session, microseconds.
    pub base_us: Option<f64>,
    /// What a reader should know of the time.
    pub flags: Vec<String>,
}

impl Cost {
    /// From a time whose reference was the base. `None` without a round.
    pub(super) fn of(measurement: &Measurement) -> Option<Self> {
        let evidence = measurement.evidence.as_ref()?;
        let ratios = &evidence.reference_ratios;
        Some(Self {
            ratio: median(ratios)?,
            interval: interval_of_median(ratios)?,
            base_us: evidence.reference_us,
            flags: evidence.flags.clone(),
        })
    }

    /// No difference was shown: the interval reaches 1, or what the base differs from itself by.
    /// Equal code in other buffers can differ by a little for as long as they stay where they are.
    pub(super) fn same(&self, control: &Self) -> bool {
        let [low, high] = control.interval;
        self.interval[0] <= high.max(1.0) && low.min(1.0) <= self.interval[1]
    }
}

/// A cost, or why there is none.
pub(super) type Timed = Result<Cost, Judgement>;

/// A comparison that gave neither a time nor a reason.
pub(super) fn untimed() -> Judgement {
    Judgement::new(Verdict::Crashed, "it was not timed")
}

/// How many changes share a round.
pub(super) fn together(base_us: Option<f64>) -> usize {
    let sample = base_us.unwrap_or(SAMPLE_US).max(SAMPLE_US);
    // Two of a round's samples are the base's.
    ((ROUND_US / sample) as usize)
        .saturating_sub(2)
        .clamp(1, MAX_TOGETHER)
}

/// What the base timed against itself says of the clock, a line each.
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

/// How many changes cost something.
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
