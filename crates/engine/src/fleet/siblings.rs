//! Several GPUs of one kind: which of them may share a run.
//!
//! Before its first candidate of a task, a GPU times the task's reference and the best candidate so
//! far. One that takes more than 2 % longer or shorter than the first GPU did is no sibling of it:
//! its times would order candidates by where they were timed. What is left of a difference goes out
//! with the reference, which every time is a ratio to.
#![expect(
    clippy::indexing_slicing,
    reason = "the place was found or has just been pushed"
)]

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use tuner_core::units::ContentHash;

/// Difference in time from which on a GPU is in a group of its own, as a share.
const APART_MIN: f64 = 0.02;

/// What stands between a GPU's name and what tells it from others of the name.
const MARK: &str = " (apart: ";

/// A time with its interval, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimeRange {
    /// The median.
    pub us: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
}

/// What a GPU takes for what its siblings were timed with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiblingTimes {
    /// Place of the task in the assignment.
    pub task: usize,
    /// What the reference is.
    pub reference: ContentHash,
    /// What it takes, microseconds.
    pub reference_us: f64,
    /// The best candidate so far, as choices, and what it takes.
    pub incumbent: Option<(Vec<u32>, TimeRange)>,
}

/// A GPU that was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// Its worker.
    pub worker: String,
    /// Place of the task in the assignment.
    pub task: usize,
    /// Why it is in a group of its own; `None` for a sibling.
    pub apart: Option<String>,
}

/// What workers read of a run before their first candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiblingsRecord {
    /// The best candidate of each task, as choices.
    pub incumbents: HashMap<usize, Vec<u32>>,
    /// Who was compared.
    pub placed: Vec<Placed>,
}

/// The GPUs of one run.
#[derive(Debug, Default)]
pub struct Siblings {
    /// The first of each task.
    first: HashMap<usize, (String, SiblingTimes)>,
    best: HashMap<usize, (Vec<u32>, TimeRange)>,
    placed: Vec<Placed>,
}

impl Siblings {
    /// A candidate is the best so far.
    pub fn best(&mut self, task: usize, choices: Vec<u32>, time: TimeRange) {
        self.best.insert(task, (choices, time));
    }

    /// Compares a GPU with its siblings. The first one of a task is what the others are compared with.
    pub fn place(&mut self, worker: &str, times: SiblingTimes) -> &Placed {
        let task = times.task;
        let known = |placed: &Placed| placed.worker == worker && placed.task == task;
        let at = match self.placed.iter().position(known) {
            Some(at) => at,
            None => {
                let apart = self.difference(&times);
                if apart.is_none() {
                    let own = (worker.to_owned(), times);
                    self.first.entry(task).or_insert(own);
                }
                self.placed.push(Placed {
                    worker: worker.to_owned(),
                    task,
                    apart,
                });
                self.placed.len() - 1
            }
        };
        &self.placed[at]
    }

    /// What sets a GPU apart from the first.
    fn difference(&self, times: &SiblingTimes) -> Option<String> {
        let (sibling, first) = self.first.get(&times.task)?;
        if first.reference != times.reference {
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
        // Chance is no difference: the nearest ends of the intervals must be that far apart.
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

    /// What workers read.
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

/// The name of a GPU that is in a group of its own: the same whenever it is there.
#[must_use]
pub fn name_apart(name: &str, host: &str, selector: &str) -> String {
    format!("{}{MARK}{host} {selector})", kind_of(name))
}

/// The name of a GPU's kind, whatever group it is in.
#[must_use]
pub fn kind_of(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(reference_us: f64, incumbent: Option<(u32, f64)>) -> SiblingTimes {
        let range = |us: f64| TimeRange {
            us,
            ci95: [0.998 * us, 1.002 * us],
        };
        SiblingTimes {
            task: 0,
            reference: ContentHash::of([b"reference".as_slice()]),
            reference_us,
            incumbent: incumbent.map(|(choice, us)| (vec![choice], range(us))),
        }
    }

    fn apart(siblings: &mut Siblings, worker: &str, times: SiblingTimes) -> Option<String> {
        siblings.place(worker, times).apart.clone()
    }

    #[test]
    fn a_gpu_that_differs_by_more_than_two_per_cent_is_in_a_group_of_its_own() {
        let mut all = Siblings::default();
        assert_eq!(apart(&mut all, "first", times(10.0, None)), None);
        assert_eq!(apart(&mut all, "near", times(10.15, None)), None);
        let why = apart(&mut all, "slow", times(10.3, None)).unwrap();
        assert!(
            why.contains("10.30 µs") && why.contains("first (+3.0 %)"),
            "{why}"
        );
        assert!(apart(&mut all, "fast", times(9.7, None)).is_some());
        // Once said it stays, whatever the next comparison gives.
        assert!(apart(&mut all, "slow", times(10.0, None)).is_some());
    }

    #[test]
    fn equal_on_the_reference_and_unequal_on_the_best_is_apart_beyond_chance() {
        let mut all = Siblings::default();
        apart(&mut all, "first", times(10.0, None));
        let best = TimeRange {
            us: 5.0,
            ci95: [4.99, 5.01],
        };
        all.best(0, vec![7], best);
        assert_eq!(apart(&mut all, "equal", times(10.0, Some((7, 5.08)))), None);
        assert_eq!(
            apart(&mut all, "another best", times(10.0, Some((8, 9.0)))),
            None
        );
        for (worker, us) in [("slow", 5.2), ("fast", 4.8)] {
            let why = apart(&mut all, worker, times(10.0, Some((7, us)))).unwrap();
            assert!(why.contains("the best candidate"), "{why}");
        }
        assert_eq!(all.record().incumbents[&0], [7]);
        assert_eq!(all.record().placed.len(), 5);
    }

    #[test]
    fn the_name_of_a_group_says_whose_it_is_and_of_which_kind() {
        let name = name_apart("NVIDIA H200", "node7", "cuda:1");
        assert_eq!(name, "NVIDIA H200 (apart: node7 cuda:1)");
        assert_eq!(kind_of(&name), "NVIDIA H200");
        assert_eq!(name_apart(&name, "node7", "cuda:1"), name);
    }
}
