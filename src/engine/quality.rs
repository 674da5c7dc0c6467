//! How good a search is, measured on recorded spaces: after N unique evaluations, how close is the
//! best found time to the best there is?

use crate::device::replay::{Outcome, Recording};
use crate::evolve::{self, Told, UnknownStrategy};
use crate::units::{Micros, Seed};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// What to measure on every file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Study {
    /// Strategies by name.
    pub strategies: Vec<String>,
    /// Numbers of unique evaluations after which runs are scored.
    pub evals: Vec<usize>,
    /// Seeds 1 to this.
    pub seeds: u64,
    /// Candidates in flight: 1 tells every result before the next question.
    pub in_flight: usize,
}

/// The scores of one strategy on one file after one number of evaluations.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// Index of the recording.
    pub file: usize,
    /// The strategy.
    pub strategy: String,
    /// Number of unique evaluations.
    pub evals: usize,
    /// One score a seed: optimum time / best found time, 0 when nothing was found.
    pub scores: Vec<f64>,
    /// Mean cost of an evaluation beside the recorded one (ask, look up, tell), microseconds.
    pub overhead_us_per_eval: f64,
}

impl Quality {
    /// Mean score.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.scores.iter().sum::<f64>() / self.scores.len().max(1) as f64
    }

    /// Median score.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.scores.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (n, half) = (sorted.len(), sorted.len() / 2);
        match n {
            0 => 0.0,
            _ if n % 2 == 1 => sorted[half],
            _ => sorted[half - 1].midpoint(sorted[half]),
        }
    }

    /// The worst run's score.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.scores.iter().copied().fold(1.0, f64::min)
    }

    /// Share of runs with a score of at least 0.95.
    #[must_use]
    pub fn hit95(&self) -> f64 {
        let hits = self.scores.iter().filter(|&&score| score >= 0.95).count();
        hits as f64 / self.scores.len().max(1) as f64
    }
}

/// The scores of one run, by number of evaluations, and what an evaluation cost.
struct Run {
    scores: Vec<f64>,
    overhead_us: f64,
}

/// Runs every strategy on every recording with every seed, on all cores. Rows come by file, then
/// strategy, then number of evaluations, and do not depend on the number of cores but for the
/// overhead.
///
/// # Errors
/// [`UnknownStrategy`].
pub fn measure(recordings: &[Recording], study: &Study) -> Result<Vec<Quality>, UnknownStrategy> {
    let seeds = usize::try_from(study.seeds).unwrap_or(usize::MAX);
    let pairs = recordings.len() * study.strategies.len();
    let total = pairs * seeds;
    let runs: Mutex<Vec<Option<Run>>> = Mutex::new((0..total).map(|_| None).collect());
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= total {
                            return Ok(());
                        }
                        let pair = at / seeds;
                        let recording = &recordings[pair / study.strategies.len()];
                        let strategy = &study.strategies[pair % study.strategies.len()];
                        let seed = Seed(1 + (at % seeds) as u64);
                        let run = one(recording, strategy, seed, study)?;
                        runs.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(run);
                    }
                })
            })
            .collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .collect::<Result<Vec<()>, UnknownStrategy>>()
    })?;
    let runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((0..pairs)
        .flat_map(|pair| {
            let runs: Vec<&Run> = runs[pair * seeds..(pair + 1) * seeds]
                .iter()
                .flatten()
                .collect();
            rows(pair, &runs, study)
        })
        .collect())
}

fn rows(pair: usize, runs: &[&Run], study: &Study) -> Vec<Quality> {
    let overhead = runs.iter().map(|run| run.overhead_us).sum::<f64>() / runs.len().max(1) as f64;
    study
        .evals
        .iter()
        .enumerate()
        .map(|(at, &evals)| Quality {
            file: pair / study.strategies.len(),
            strategy: study.strategies[pair % study.strategies.len()].clone(),
            evals,
            scores: runs.iter().map(|run| run.scores[at]).collect(),
            overhead_us_per_eval: overhead,
        })
        .collect()
}

fn one(
    recording: &Recording,
    strategy: &str,
    seed: Seed,
    study: &Study,
) -> Result<Run, UnknownStrategy> {
    let began = Instant::now();
    let mut search = evolve::strategy(strategy, recording.space(), seed, &[])?;
    let most = study.evals.iter().copied().max().unwrap_or(0);
    let mut found: Vec<Option<Micros>> = Vec::with_capacity(most);
    let mut flying = VecDeque::new();
    let mut best: Option<Micros> = None;
    let mut asked = 0;
    loop {
        while asked < most && flying.len() < study.in_flight.max(1) {
            let Some(proposal) = search.ask() else { break };
            flying.push_back(proposal);
            asked += 1;
        }
        let Some(proposal) = flying.pop_front() else {
            break;
        };
        let told = match recording.lookup(&proposal.config).outcome {
            Outcome::Timed { time, .. } => Told::Time(time),
            Outcome::Failed { verdict, .. } => Told::Failed(verdict),
        };
        if let Told::Time(time) = told {
            best = Some(best.map_or(time, |best| best.min(time)));
        }
        search.tell(proposal.id, told);
        found.push(best);
    }
    let overhead_us = began.elapsed().as_secs_f64() * 1e6 / found.len().max(1) as f64;
    let optimum = recording.optimum();
    let score = |evals: usize| {
        // A search that ran out of configurations has its last result for ever.
        let best = found
            .get(evals.min(found.len()).wrapping_sub(1))
            .copied()
            .flatten();
        match (optimum, best) {
            (Some(optimum), Some(best)) => optimum.get() / best.get(),
            _ => 0.0,
        }
    };
    Ok(Run {
        scores: study.evals.iter().map(|&evals| score(evals)).collect(),
        overhead_us,
    })
}
