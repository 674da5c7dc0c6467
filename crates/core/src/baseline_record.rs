//! Record of a baseline: the answers of its command, with device drift removed.

use crate::record::TaskKey;
use crate::statistics::median;
use crate::units::ContentHash;
use serde::{Deserialize, Serialize};

/// Relative difference of two visits, after drift was removed, above which they are unsteady.
const MAX_VISIT_DIFFERENCE: f64 = 0.05;

/// Moment of a call of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before the run.
    Before,
    /// After it.
    After,
}

/// One answer of a command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Moment of the call.
    pub moment: Moment,
    /// Median, microseconds.
    pub p50_us: f64,
    /// 90th percentile, microseconds.
    pub p90_us: f64,
    /// Time of the fixed reference at that moment, microseconds.
    pub reference_us: Option<f64>,
}

/// Record of a baseline after a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BaselineRecord {
    /// The command.
    pub command: Vec<String>,
    /// The name that it reported.
    pub name: Option<String>,
    /// The version that it reported.
    pub version: Option<String>,
    /// Its answers.
    pub visits: Vec<Visit>,
    /// Identity of the visits' reference.
    pub reference: Option<ContentHash>,
    /// Reason why there is no figure.
    pub failure: Option<String>,
}

impl BaselineRecord {
    /// Returns the median time of the reference over the visits, microseconds; `None` unless all
    /// have one.
    #[must_use]
    pub fn reference_us(&self) -> Option<f64> {
        let times: Option<Vec<f64>> = self.visits.iter().map(|visit| visit.reference_us).collect();
        median(&times?)
    }

    /// Returns the visits' figures scaled to the same speed of the device.
    fn level(&self, figure: fn(&Visit) -> f64) -> Vec<f64> {
        let unit = self.reference_us();
        let scaled = |visit: &Visit| {
            let factor = unit
                .zip(visit.reference_us)
                .map_or(1.0, |(unit, now)| unit / now);
            figure(visit) * factor
        };
        self.visits.iter().map(scaled).collect()
    }

    /// Returns the time, microseconds; `None` if the command failed.
    #[must_use]
    pub fn p50_us(&self) -> Option<f64> {
        let figure = median(&self.level(|visit| visit.p50_us));
        figure.filter(|_| self.failure.is_none())
    }

    /// Returns the 90th percentile, microseconds.
    #[must_use]
    pub fn p90_us(&self) -> Option<f64> {
        let figure = median(&self.level(|visit| visit.p90_us));
        figure.filter(|_| self.failure.is_none())
    }

    /// Reports whether the visits differ more than drift explains.
    #[must_use]
    pub fn unsteady(&self) -> bool {
        let times = self.level(|visit| visit.p50_us);
        let low = times.iter().copied().fold(f64::INFINITY, f64::min);
        let high = times.iter().copied().fold(0.0, f64::max);
        high > low * (1.0 + MAX_VISIT_DIFFERENCE)
    }

    /// Returns the speedup of a row that took `row_us`, with the reference `row_reference`
    /// (identity and microseconds) in its session.
    #[must_use]
    pub fn speedup(&self, row_us: f64, row_reference: Option<(&str, f64)>) -> Option<f64> {
        let own = self.reference.as_ref().zip(self.reference_us());
        let drift = match (own, row_reference) {
            (Some((mine, then)), Some((theirs, now))) if mine.as_str() == theirs => now / then,
            _ => 1.0,
        };
        Some(self.p50_us()? * drift / row_us)
    }

    /// Returns a display line.
    #[must_use]
    pub fn describe(&self, key: &TaskKey) -> String {
        let task = format!("{} {}", key.kernel, key.problem);
        let name = self.name.as_deref().unwrap_or("the command");
        match (&self.failure, self.p50_us()) {
            (Some(why), _) => format!("baseline of {task}: none, {why}"),
            (None, Some(us)) if self.unsteady() => format!(
                "baseline of {task}: {name} {us:.2} µs, unsteady: its answers differ by more than 5 %"
            ),
            (None, Some(us)) => format!("baseline of {task}: {name} {us:.2} µs"),
            (None, None) => format!("baseline of {task}: none, it was never asked"),
        }
    }
}

#[cfg(test)]
mod tests;
