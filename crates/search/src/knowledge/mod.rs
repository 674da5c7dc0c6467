//! Prior knowledge: results of the same kernel on another device, at another size, before the last change
//! of its template, or predicted by a device model.
//!
//! Each of these is a source: results for configurations of *some* space, from which a cheap model of the
//! log time over *this* space is built ([`source`]). Parameters are matched by name. The search expects the
//! weighted sum of its sources and learns the weights ([`Knowledge::input`]). Its first trials are selected
//! so that, whichever source is accurate, one of them is good (`portfolio`).

mod input_cache;
mod portfolio;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use input_cache::InputCache;
pub(crate) use portfolio::portfolio;

use crate::encode::Encoder;
use source::Source;
use std::sync::Arc;
use surrogate::Input;
use tuner_core::record::ConfigValues;
use tuner_core::units::Micros;
use tuner_space::{Config, Space};

/// Largest number of sources: each costs time at every proposal.
pub const MAX_SOURCES: usize = 10;

/// Largest number of results in the model of one source. Each costs a covariance per candidate.
const MAX_SOURCE_POINTS: usize = 160;
/// Largest total number of results in the models of all sources.
const MAX_TOTAL_POINTS: usize = 400;

/// Results of another run or prediction, as input of [`Knowledge`].
#[derive(Debug, Clone, PartialEq)]
pub struct Experience {
    /// Display name.
    pub name: String,
    /// Configurations as parameter names and values, with their times; `None` for a failure.
    pub rows: Vec<(ConfigValues, Option<Micros>)>,
}

/// Knowledge sources, fitted to one space.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    sources: Arc<[Source]>,
}

impl Knowledge {
    /// Fits the sources to this space, at most [`MAX_SOURCES`], in the order of the input. Skips an
    /// experience that shares no parameter with the space or has no time.
    #[must_use]
    pub fn new(space: &Space, experiences: &[Experience]) -> Self {
        // Without separate coordinates for single values: a source has no data for values that it lacks.
        let encoder = Encoder::new(space, true, false);
        let count = experiences.len().clamp(1, MAX_SOURCES);
        let points = (MAX_TOTAL_POINTS / count).min(MAX_SOURCE_POINTS);
        let sources = experiences
            .iter()
            .filter_map(|experience| Source::new(space, &encoder, experience, points));
        Self {
            sources: sources.take(MAX_SOURCES).collect(),
        }
    }

    /// Returns true without any source.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns the names of the sources, in the order of their weights.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.name.as_str())
    }

    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Returns the model input of a configuration with its prior mean, the mean of all sources. The
    /// search may correct a source's weight by `doubt` standard deviations of the signal for each
    /// standard deviation of the source.
    pub(crate) fn input(&self, encoder: &Encoder, config: &Config, doubt: f64) -> Input {
        let coordinates = encoder.encode(config);
        if self.sources.is_empty() {
            return Input::new(coordinates);
        }
        let mut features = Vec::with_capacity(self.sources.len() + 1);
        let mut mean = 0.0;
        for source in self.sources.iter() {
            let expected = source.expected(config, &coordinates);
            mean += expected / self.sources.len() as f64;
            features.push(doubt * expected / source.spread);
        }
        // The weight of this constant is the level of the times.
        features.push(1.0);
        Input {
            coordinates,
            features,
            mean,
        }
    }

    /// Returns the `each` best configurations of every source, without duplicates.
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
