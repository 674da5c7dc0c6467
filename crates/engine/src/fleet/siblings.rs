//! Sibling GPUs: GPUs of one kind that may share a run.
//!
//! Before its first candidate of a task, a GPU times the task's reference and the best candidate so
//! far. If a time differs by more than 2 % from that of the first GPU, it is not a sibling: its
//! times would order candidates by their GPU. Smaller differences cancel in the ratio to the
//! reference.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use tuner_core::record::Measurement;
use tuner_core::units::{ContentHash, Micros};

/// Relative difference in time from which a GPU forms a separate group.
const APART_MIN: f64 = 0.02;

/// Separator between a GPU's name and the mark of its separate group.
const GROUP_SEPARATOR: &str = " (apart: ";

/// A time with its interval, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimeRange {
    /// The median.
    pub us: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
}

impl TimeRange {
    /// Returns the range of a measurement.
    pub(crate) fn from_measurement(time: &Measurement) -> Self {
        Self {
            us: time.p50.get(),
            ci95: time.ci95.map(Micros::get),
        }
    }
}

/// Returns the reference that a time was taken with, and its time, microseconds.
pub(crate) fn reference_of(time: &Measurement) -> Option<(ContentHash, f64)> {
    let evidence = time.evidence.as_ref()?;
    evidence.reference.clone().zip(evidence.reference_us)
}

/// Times of a GPU for the reference and the best candidate of its siblings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiblingTimes {
    /// Index of the task in the assignment.
    pub task: usize,
    /// Identity of the reference.
    pub reference: ContentHash,
    /// Time of the reference, microseconds.
    pub reference_us: f64,
    /// The best candidate so far, as choices, and its time.
    pub incumbent: Option<(Vec<u32>, TimeRange)>,
}

/// A GPU that was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedGpu {
    /// Its worker.
    pub worker: String,
    /// Index of the task in the assignment.
    pub task: usize,
    /// Reason of its separate group; `None` for a sibling.
    pub apart: Option<String>,
}

/// Record of a run that workers read before their first candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiblingsRecord {
    /// The best candidate of each task, as choices.
    pub incumbents: HashMap<usize, Vec<u32>>,
    /// Compared GPUs.
    pub placed: Vec<ComparedGpu>,
}

/// The GPUs of one run.
#[derive(Debug, Default)]
pub struct Siblings {
    /// The first GPU of each task.
    first: HashMap<usize, (String, SiblingTimes)>,
    best: HashMap<usize, (Vec<u32>, TimeRange)>,
    placed: Vec<ComparedGpu>,
}

impl Siblings {
    /// Records the best candidate so far.
    pub fn best(&mut self, task: usize, choices: Vec<u32>, time: TimeRange) {
        self.best.insert(task, (choices, time));
    }

    /// Compares a GPU with its siblings. The first GPU of a task is the standard of comparison.
    #[expect(
        clippy::indexing_slicing,
        reason = "the place was found or has just been pushed"
    )]
    pub fn compare(&mut self, worker: &str, times: SiblingTimes) -> &ComparedGpu {
        let task = times.task;
        let known = |placed: &ComparedGpu| placed.worker == worker && placed.task == task;
        let at = match self.placed.iter().position(known) {
            Some(at) => at,
            None => {
                let apart = self.difference(&times);
                if apart.is_none() {
                    let own = (worker.to_owned(), times);
                    self.first.entry(task).or_insert(own);
                }
                self.placed.push(ComparedGpu {
                    worker: worker.to_owned(),
                    task,
                    apart,
                });
                self.placed.len() - 1
            }
        };
        &self.placed[at]
    }

    /// Describes the difference of a GPU from the first.
    fn difference(&self, times: &SiblingTimes) -> Option<String> {
        let (sibling, first) = self.first.get(&times.task)?;
        if first.reference != times.reference {
            // Times relative to different references are not comparable.
            return None;
        }
        let share = times.reference_us / first.reference_us - 1.0;
        if share.abs() > APART_MIN {
            return Some(format!(
                "the reference takes {:.2} µs on it and {:.2} µs on the GPU of {sibling} ({:+.1} %)",
                times.reference_us,
                first.reference_us,
                100.0 * share
            ));
        }
        let (choices, time) = times.incumbent.as_ref()?;
        let (_, best) = self
            .best
            .get(&times.task)
            .filter(|(best, _)| best == choices)?;
        // Only intervals that are further apart than this show a difference beyond noise.
        let beyond = if time.us > best.us {
            time.ci95[0] / best.ci95[1] - 1.0
        } else {
            best.ci95[0] / time.ci95[1] - 1.0
        };
        (beyond > APART_MIN).then(|| {
            format!(
                "the best candidate takes {:.2} µs on it and {:.2} µs on its siblings ({:+.1} %)",
                time.us,
                best.us,
                100.0 * (time.us / best.us - 1.0)
            )
        })
    }

    /// Returns the record for workers.
    #[must_use]
    pub fn record(&self) -> SiblingsRecord {
        let best = self.best.iter();
        SiblingsRecord {
            incumbents: best
                .map(|(task, (choices, _))| (*task, choices.clone()))
                .collect(),
            placed: self.placed.clone(),
        }
    }
}

/// Returns the stable name of a GPU in a separate group.
#[must_use]
pub fn name_apart(name: &str, host: &str, selector: &str) -> String {
    format!("{}{GROUP_SEPARATOR}{host} {selector})", kind_of(name))
}

/// Returns the name of a GPU's kind, without its group.
#[must_use]
pub fn kind_of(name: &str) -> &str {
    name.split_once(GROUP_SEPARATOR)
        .map_or(name, |(kind, _)| kind)
}

#[cfg(test)]
mod tests;
