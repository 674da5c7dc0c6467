//! Scores of searches on spaces of which every time is known.

use std::thread::{available_parallelism, scope};
use tuner_core::record::Verdict;
use tuner_core::units::{Micros, Seed};
use tuner_search::{Observation, Strategy};
use tuner_space::{Config, Space};

/// Evaluations after which a search is scored.
pub(crate) const SCORED: [usize; 6] = [10, 25, 50, 100, 200, 400];

/// Which evaluations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// All of them.
    All,
    /// Those that worked, up to twenty tries for each.
    Working,
}

/// The time of a configuration; none where it fails.
type Time<'a> = dyn Fn(&Config) -> Option<Micros> + Sync + 'a;

/// A space with the time of every configuration; none where it fails.
pub(crate) struct Problem<'a> {
    pub(crate) name: &'a str,
    pub(crate) space: &'a Space,
    pub(crate) time: Box<Time<'a>>,
    /// The least time of all, microseconds.
    pub(crate) best: f64,
}

impl Problem<'_> {
    /// The best time of the space divided by the best found, after each of [`SCORED`]; 0 where
    /// nothing was found.
    fn scores(&self, search: &mut dyn Strategy, counted: Counted) -> [f64; 6] {
        let mut found = f64::INFINITY;
        let (mut done, mut tries) = (0, 0);
        SCORED.map(|evals| {
            while done < evals && tries < 20 * evals {
                let Some(proposal) = search.ask() else { break };
                let time = (self.time)(&proposal.config);
                found = found.min(time.map_or(f64::INFINITY, Micros::get));
                let told = time.map_or(
                    Observation::Failed(Verdict::LaunchFailed),
                    Observation::exactly,
                );
                search.tell(proposal.id, told);
                tries += 1;
                done += usize::from(counted == Counted::All || time.is_some());
            }
            self.best / found
        })
    }

    /// The mean of the scores over seeds from 1 on, on all processors.
    pub(crate) fn mean(
        &self,
        seeds: u64,
        counted: Counted,
        make: impl Fn(Seed) -> Box<dyn Strategy> + Sync,
    ) -> [f64; 6] {
        let threads = available_parallelism().map_or(1, |count| count.get() as u64);
        let (make, this) = (&make, self);
        let parts = scope(|scope| {
            let started: Vec<_> = (0..threads)
                .map(|thread| {
                    let own = (1..=seeds).filter(move |seed| seed % threads == thread);
                    scope.spawn(move || {
                        let each = own.map(|seed| this.scores(make(Seed(seed)).as_mut(), counted));
                        each.fold([0.0; 6], sum)
                    })
                })
                .collect();
            let joined = started.into_iter().map(|part| {
                part.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.fold([0.0; 6], sum)
        });
        parts.map(|sum| sum / seeds as f64)
    }
}

/// The sums of two rows.
pub(crate) fn sum(mut a: [f64; 6], b: [f64; 6]) -> [f64; 6] {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
    a
}

/// A table of means: a row for each problem and way of searching, and the means over all problems.
pub(crate) struct Table {
    ways: Vec<(String, [f64; 6])>,
    problems: usize,
}

impl Table {
    pub(crate) fn new(ways: impl IntoIterator<Item = String>) -> Self {
        let cells = SCORED.map(|evals| format!("@{evals}"));
        println!("| space | search | {} |", cells.join(" | "));
        println!("|---|---|{}", "--:|".repeat(SCORED.len()));
        Self {
            ways: ways.into_iter().map(|way| (way, [0.0; 6])).collect(),
            problems: 0,
        }
    }

    /// Prints a problem's rows.
    pub(crate) fn add(&mut self, problem: &str, mut of: impl FnMut(&str) -> [f64; 6]) {
        for (way, all) in &mut self.ways {
            let means = of(way);
            row(problem, way, means);
            *all = sum(*all, means);
        }
        self.problems += 1;
    }

    /// Prints the means.
    pub(crate) fn finish(self) {
        for (way, all) in self.ways {
            row("**mean**", &way, all.map(|sum| sum / self.problems as f64));
        }
    }
}

fn row(problem: &str, way: &str, means: [f64; 6]) {
    let cells = means.map(|mean| format!("{mean:.3}"));
    println!("| {problem} | {way} | {} |", cells.join(" | "));
}
