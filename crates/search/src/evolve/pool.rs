//! Pool of candidates that the model chooses from. Candidates are drawn lazily, so the cost does not depend
//! on the size of the space, and stay while their scores are good.

use std::collections::HashSet;
use surrogate::{Point, Process};
use tuner_space::Config;

/// A configuration that may be proposed.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) config: Config,
    pub(super) origin: &'static str,
    pub(super) point: Point,
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

    /// Returns true if the pool contains the configuration.
    pub(super) fn holds(&self, config: &Config) -> bool {
        self.members.contains(config)
    }

    /// Adds a candidate that the pool does not contain.
    pub(super) fn add(&mut self, config: Config, origin: &'static str, point: Point) {
        self.members.insert(config.clone());
        self.candidates.push(Candidate {
            config,
            origin,
            point,
            score: f64::NEG_INFINITY,
        });
    }

    /// Returns the origin and the point of every candidate.
    pub(super) fn points(&self) -> impl Iterator<Item = (&'static str, &Point)> {
        let all = self.candidates.iter();
        all.map(|candidate| (candidate.origin, &candidate.point))
    }

    /// Updates all points to the present process and scores them.
    pub(super) fn score(&mut self, process: &Process, score: impl Fn(&Point) -> f64) {
        for candidate in &mut self.candidates {
            process.catch_up(&mut candidate.point);
            candidate.score = score(&candidate.point);
        }
    }

    /// Scores the `count` best candidates again and caps the other scores at the lowest of these.
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
            // An approximate score must not overtake an exact one.
            candidate.score = candidate.score.min(worst);
        }
    }

    /// Removes and returns the candidate with the highest score.
    pub(super) fn take_best(&mut self) -> Option<Candidate> {
        let scores = self.candidates.iter().map(|candidate| candidate.score);
        let (best, _) = scores
            .enumerate()
            .reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        let candidate = self.candidates.swap_remove(best);
        self.members.remove(&candidate.config);
        Some(candidate)
    }

    /// Drops the candidates with low scores down to half of `limit`, once there are more than
    /// `limit`.
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
