//! What is known from elsewhere: the same kernel on another device, at another size, before the
//! last change of its template, or as a model of the device predicts it.
//!
//! Each of these is a source: results of configurations of *some* space, of which a cheap model of
//! the log time over *this* space is made ([`source`]). Parameters are matched by name. The search
//! expects the weighted sum of its sources and learns the weights ([`Knowledge::place`]), and its
//! first trials are chosen so that one is good whichever source is right (`portfolio`).

mod places;
mod portfolio;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use places::Places;
pub(crate) use portfolio::portfolio;

use crate::encode::Encoder;
use source::Source;
use std::sync::Arc;
use surrogate::Place;
use tuner_core::record::ConfigValues;
use tuner_core::units::Micros;
use tuner_space::{Config, Space};

/// Sources beyond this many are left out: each costs time at every proposal.
pub const MAX_SOURCES: usize = 10;

/// Results that the model of one source goes through at most, and those of all together: each is a
/// covariance at every new candidate.
const MODEL_POINTS: usize = 160;
const ALL_POINTS: usize = 400;

/// Results from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Experience {
    /// What they are, for people.
    pub name: String,
    /// Configurations by name, and their times; `None` where one failed.
    pub rows: Vec<(ConfigValues, Option<Micros>)>,
}

/// Sources made ready for one space.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    sources: Arc<[Source]>,
}

impl Knowledge {
    /// Makes ready what says something about this space, at most [`MAX_SOURCES`], in the order
    /// given. An experience that shares no parameter with the space, or holds no time, is left out.
    #[must_use]
    pub fn new(space: &Space, experiences: &[Experience]) -> Self {
        // Sources are smooth: told apart, values that a source has not would say nothing.
        let encoder = Encoder::new(space, true, false);
        let count = experiences.len().clamp(1, MAX_SOURCES);
        let points = (ALL_POINTS / count).min(MODEL_POINTS);
        let sources = experiences
            .iter()
            .filter_map(|experience| Source::new(space, &encoder, experience, points));
        Self {
            sources: sources.take(MAX_SOURCES).collect(),
        }
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The names of the sources, in the order of their weights.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.name.as_str())
    }

    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Where a configuration lies, and what is believed of it beforehand: the mean of all sources,
    /// whose weights may be corrected by `doubt` standard deviations of the signal for each
    /// standard deviation of the source.
    pub(crate) fn place(&self, encoder: &Encoder, config: &Config, doubt: f64) -> Place {
        let at = encoder.encode(config);
        if self.sources.is_empty() {
            return Place::of(at);
        }
        let mut features = Vec::with_capacity(self.sources.len() + 1);
        let mut mean = 0.0;
        for source in self.sources.iter() {
            let expected = source.expected(config, &at);
            mean += expected / self.sources.len() as f64;
            features.push(doubt * expected / source.spread);
        }
        features.push(1.0);
        Place { at, features, mean }
    }

    /// The best configurations of all sources, each once.
    pub(crate) fn best(&self, each: usize) -> Vec<Config> {
        let mut best: Vec<Config> = Vec::new();
        for source in self.sources.iter() {
            best.extend(source.best.iter().take(each).cloned());
        }
        best.sort_unstable();
        best.dedup();
        best
    }
}
