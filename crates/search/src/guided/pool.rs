//! Candidates that the model chooses from: drawn lazily, so that the size of the space is no
//! matter, and kept while they are promising.

use std::collections::HashSet;
use surrogate::{Point, Process};
use tuner_space::Config;

/// A configuration that may be proposed.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) config: Config,
    pub(super) origin: &'static str,
    point: Point,
    score: f64,
}

/// Candidates without repeats.
#[derive(Debug, Default)]
pub(super) struct Pool {
    candidates: Vec<Candidate>,
    members: HashSet<Config>,
}

impl Pool {
    pub(super) fn clear(&mut self) {
        self.candidates.clear();
        self.members.clear();
    }

    /// Whether it is there.
    pub(super) fn holds(&self, config: &Config) -> bool {
        self.members.contains(config)
    }

    /// Adds a candidate that is not there.
    pub(super) fn add(&mut self, config: Config, origin: &'static str, point: Point) {
        self.members.insert(config.clone());
        self.candidates.push(Candidate {
            config,
            origin,
            point,
            score: f64::NEG_INFINITY,
        });
    }

    /// All candidates: where each came from, and its point.
    pub(super) fn points(&self) -> impl Iterator<Item = (&'static str, &Point)> {
        let all = self.candidates.iter();
        all.map(|candidate| (candidate.origin, &candidate.point))
    }

    /// Brings all points up to date and scores them.
    pub(super) fn score(&mut self, process: &Process, score: impl Fn(&Point) -> f64) {
        for candidate in &mut self.candidates {
            process.catch_up(&mut candidate.point);
            candidate.score = score(&candidate.point);
        }
    }

    /// Scores the `count` best anew and leaves the others behind them.
    pub(super) fn score_best(&mut self, count: usize, score: impl Fn(&Point) -> f64) {
        let count = count.min(self.candidates.len());
        if count < self.candidates.len() {
            self.candidates
                .select_nth_unstable_by(count, |a, b| b.score.total_cmp(&a.score));
        }
        let (best, others) = self.candidates.split_at_mut(count);
        let mut worst = f64::INFINITY;
        for candidate in best {
            candidate.score = score(&candidate.point);
            worst = worst.min(candidate.score);
        }
        for candidate in others {
            candidate.score = candidate.score.min(worst);
        }
    }

    /// Takes out the candidate with the highest score.
    pub(super) fn take_best(&mut self) -> Option<Candidate> {
        let scores = self.candidates.iter().map(|candidate| candidate.score);
        let (best, _) = scores
            .enumerate()
            .reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        let candidate = self.candidates.swap_remove(best);
        self.members.remove(&candidate.config);
        Some(candidate)
    }

    /// Drops the less promising half, once there are more than `limit`.
    pub(super) fn trim(&mut self, limit: usize) {
        if self.candidates.len() <= limit {
            return;
        }
        let keep = limit / 2;
        self.candidates
            .select_nth_unstable_by(keep, |a, b| b.score.total_cmp(&a.score));
        for dropped in self.candidates.drain(keep..) {
            self.members.remove(&dropped.config);
        }
    }
}
