//! One knowledge source: expected times for all configurations of a space.

use super::Experience;
use crate::encode::Encoder;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use surrogate::Mean;
use tuner_core::record::value_of;
use tuner_space::{Config, Space};

/// Number of draws that determine a source's centre and spread.
const SCALE_DRAWS: usize = 256;
/// Number of best configurations kept as candidates.
const MAX_BEST: usize = 300;
/// Typical log length scale, as in the settings of `evolve`.
const LOG_LENGTH: f64 = -0.5;
/// Compression factor of log times above the median, as in the settings of `evolve`.
const SLACK: f64 = 0.5;
/// Lower bound of the spread, for a source with equal times.
const MIN_SPREAD: f64 = 1e-6;

/// A model of the log time over a space, from results of another run.
#[derive(Debug)]
pub(crate) struct Source {
    pub(super) name: String,
    /// Parameters of the space that the source has and varies.
    shared: Vec<usize>,
    /// Log times of the source's own results, by choices of the shared parameters.
    exact: HashMap<Box<[u32]>, f64>,
    /// Coordinates of the model, which covers the other configurations.
    coordinates: Vec<usize>,
    model: Option<Mean>,
    /// Log time of a typical configuration.
    median: f64,
    /// Mean of the expectation over the space.
    centre: f64,
    /// Standard deviation of the expectation over the space.
    pub(super) spread: f64,
    /// Best configurations, fastest first.
    pub(super) best: Vec<Config>,
}

/// Results of the source in terms of the space.
#[derive(Default)]
struct Rows {
    /// Coordinates of the shared parameters, and log times.
    points: Vec<(Vec<f64>, f64)>,
    exact: HashMap<Box<[u32]>, f64>,
}

impl Source {
    /// Fits a source; `points` limits the number of results in its model.
    pub(super) fn new(
        space: &Space,
        encoder: &Encoder,
        from: &Experience,
        points: usize,
    ) -> Option<Self> {
        let columns = Columns::new(space, from)?;
        let (coordinates, dimensions) = encoder.coordinates_of(&columns.shared);
        let rows = columns.rows(space, encoder, &coordinates, from);
        if rows.points.is_empty() && rows.exact.is_empty() {
            return None;
        }
        let mut source = Self {
            name: from.name.clone(),
            exact: rows.exact,
            coordinates,
            model: None,
            median: 0.0,
            centre: 0.0,
            spread: 1.0,
            best: Vec::new(),
            shared: columns.shared,
        };
        // Exact results for the whole space make a model unnecessary.
        let covers = source.exact.len() as u128 >= space.count();
        if !covers {
            source.model = Some(fit_model(rows.points, points, &dimensions)?);
        }
        // A fixed seed, so that equal knowledge produces equal sources in every run.
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        source.standardise(space, encoder, &mut rng)?;
        source.best = source.fastest(space, &mut rng);
        Some(source)
    }

    /// Returns the log time that the source expects.
    fn log_time(&self, config: &Config, coordinates: &[f64]) -> Option<f64> {
        let choices = config.choices();
        let key: Vec<u32> = self.shared.iter().map(|each| choices[*each]).collect();
        if let Some(log) = self.exact.get(key.as_slice()) {
            return Some(*log);
        }
        let model = self.model.as_ref()?;
        let point: Vec<f64> = self
            .coordinates
            .iter()
            .map(|index| coordinates[*index])
            .collect();
        Some(model.predict(&point))
    }

    /// Returns the expectation on the search's scale: mean 0, slow times compressed.
    pub(super) fn expected(&self, config: &Config, coordinates: &[f64]) -> f64 {
        // Without a model an unknown configuration counts as average.
        let log = self.log_time(config, coordinates).unwrap_or(self.median);
        self.bend(log) - self.centre
    }

    fn bend(&self, log: f64) -> f64 {
        if log > self.median {
            self.median + SLACK * (log - self.median)
        } else {
            log
        }
    }

    fn standardise(
        &mut self,
        space: &Space,
        encoder: &Encoder,
        rng: &mut ChaCha8Rng,
    ) -> Option<()> {
        let mut logs: Vec<f64> = (0..SCALE_DRAWS)
            .filter_map(|_| {
                let config = space.draw(rng)?;
                self.log_time(&config, &encoder.encode(&config))
            })
            .collect();
        if logs.is_empty() {
            return None;
        }
        let half = logs.len() / 2;
        self.median = *logs.select_nth_unstable_by(half, f64::total_cmp).1;
        let bent: Vec<f64> = logs.iter().map(|log| self.bend(*log)).collect();
        let count = bent.len() as f64;
        self.centre = bent.iter().sum::<f64>() / count;
        let squares = bent.iter().map(|log| (log - self.centre).powi(2));
        self.spread = (squares.sum::<f64>() / count).sqrt().max(MIN_SPREAD);
        Some(())
    }

    /// Returns the fastest results of the source as configurations of the space.
    fn fastest(&self, space: &Space, rng: &mut ChaCha8Rng) -> Vec<Config> {
        let mut ranked: Vec<(&Box<[u32]>, f64)> =
            self.exact.iter().map(|(key, log)| (key, *log)).collect();
        // By key among equal times, since the order of a hash map is random.
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(b.0)));
        let mut fastest = Vec::new();
        let mut others: Vec<usize> = (0..space.parameters().len())
            .filter(|at| !self.shared.contains(at))
            .collect();
        let mut order = self.shared.clone();
        order.append(&mut others);
        for (key, _) in ranked.into_iter().take(MAX_BEST) {
            let mut wanted = space.default_config().choices().to_vec();
            for (parameter, choice) in self.shared.iter().zip(key) {
                wanted[*parameter] = *choice;
            }
            if let Some(config) = space.nearest(&wanted, &order, rng)
                && !fastest.contains(&config)
            {
                fastest.push(config);
            }
        }
        fastest
    }
}

/// Fits a model to the fastest half and a sample of the others.
fn fit_model(mut points: Vec<(Vec<f64>, f64)>, most: usize, dimensions: &[usize]) -> Option<Mean> {
    if points.is_empty() {
        return None;
    }
    points.sort_by(|a, b| a.1.total_cmp(&b.1));
    if points.len() > most {
        // The fast half is kept whole and the slow half thinned out: the optimum is in the fast half.
        let half = most / 2;
        let step = (points.len() - half) as f64 / half as f64;
        let spaced = (0..half).map(|at| half + (at as f64 * step) as usize);
        points = (0..half)
            .chain(spaced)
            .map(|at| points[at].clone())
            .collect();
    }
    let median = points[points.len() / 2].1;
    let (points, values): (Vec<Vec<f64>>, Vec<f64>) = points
        .into_iter()
        // The second number is smaller only for slow times, which it compresses.
        .map(|(point, log)| (point, median + (log - median).min(SLACK * (log - median))))
        .unzip();
    // The source lacks some dimensions, but the fit needs consecutive numbers.
    let mut dense = Vec::with_capacity(dimensions.len());
    for (at, dimension) in dimensions.iter().enumerate() {
        let next = match (at.checked_sub(1), dense.last()) {
            (Some(before), Some(last)) => last + usize::from(dimensions[before] != *dimension),
            _ => 0,
        };
        dense.push(next);
    }
    Some(Mean::fit(&points, &values, &dense, LOG_LENGTH))
}

/// Match of the source's columns with the parameters of the space.
struct Columns {
    shared: Vec<usize>,
    /// Parameters with a single value in the space that also occurs in the source.
    fixed: Vec<usize>,
}

impl Columns {
    fn new(space: &Space, from: &Experience) -> Option<Self> {
        let (mut shared, mut fixed) = (Vec::new(), Vec::new());
        for (at, parameter) in space.parameters().iter().enumerate() {
            let mut values = from
                .rows
                .iter()
                .filter_map(|(row, _)| value_of(row, &parameter.name));
            if let [only] = &*parameter.values {
                if values.any(|value| value == only) {
                    fixed.push(at);
                }
            } else if let Some(first) = values.next()
                // A parameter that does not vary provides no information about its effect.
                && values.any(|value| value != first)
            {
                shared.push(at);
            }
        }
        (!shared.is_empty()).then_some(Self { shared, fixed })
    }

    fn rows(
        &self,
        space: &Space,
        encoder: &Encoder,
        coordinates: &[usize],
        from: &Experience,
    ) -> Rows {
        let mut rows = Rows::default();
        let parameters = space.parameters();
        let slowest = from.rows.iter().filter_map(|(_, time)| *time).max();
        let Some(slowest) = slowest else { return rows };
        let mut merged: HashMap<Vec<u64>, usize> = HashMap::new();
        for (row, time) in &from.rows {
            let value_at = |at: &usize| value_of(row, &parameters[*at].name);
            let constant = |at: &usize| value_at(at) == Some(&parameters[*at].values[0]);
            if !self.fixed.iter().all(constant) {
                continue;
            }
            // A failure counts as slow: not an initial candidate, but not excluded from this space.
            let log = time.unwrap_or(slowest).get().ln();
            let choices = self
                .shared
                .iter()
                .map(|at| parameters[*at].index_of(value_at(at)?));
            if let Some(key) = choices.collect::<Option<Box<[u32]>>>() {
                let known = rows.exact.entry(key).or_insert(f64::INFINITY);
                // Of rows that differ only in parameters unknown to this space, the fastest counts.
                *known = known.min(log);
            }
            let position = |at: &usize| {
                let value = value_of(row, &parameters[encoder.parameter_of(*at)].name)?;
                encoder.position_of(space, *at, value)
            };
            let Some(point) = coordinates
                .iter()
                .map(position)
                .collect::<Option<Vec<f64>>>()
            else {
                continue;
            };
            let key = point.iter().map(|x| x.to_bits()).collect();
            match merged.get(&key) {
                Some(at) => rows.points[*at].1 = rows.points[*at].1.min(log),
                None => {
                    merged.insert(key, rows.points.len());
                    rows.points.push((point, log));
                }
            }
        }
        rows
    }
}
