//! The first configurations, which no model chooses.

use super::Guided;
use surrogate::{Place, Point, Process, squared_distance};
use tuner_space::Config;

impl Guided {
    /// How many configurations have been proposed.
    pub(super) fn proposed(&self) -> usize {
        self.archive.entries.len() + self.waiting.list.len()
    }

    /// Where all of these lie.
    fn places(&self) -> impl Iterator<Item = &Place> {
        let waiting = self.waiting.list.iter().map(|each| &each.lies);
        let entries = self.archive.entries.iter().map(|entry| &entry.lies);
        entries.chain(waiting)
    }

    /// The next configuration of the opening.
    pub(super) fn open(&mut self) -> Option<Config> {
        if self.proposed() < self.settings.typical {
            self.typical()
        } else {
            self.far()
        }
    }

    /// That of some uniform draws which tells most of the others: it takes most of their variance
    /// away (active learning after Cohn, 1996). Configurations far apart are extreme ones, and extreme
    /// ones are slow on many kernels.
    pub(super) fn typical(&mut self) -> Option<Config> {
        let mut process = Process::new(self.scales[0].shape());
        let proposed: Vec<Point> = self
            .places()
            .map(|lies| process.point(&Place::of(lies.at.clone())))
            .collect();
        for point in proposed {
            process.push(point);
        }
        let mut drawn: Vec<(Config, Point)> = Vec::with_capacity(self.settings.typical_draws);
        for _ in 0..self.settings.typical_draws {
            let config = self.fresh.space().draw(&mut self.rng)?;
            let point = process.point(&Place::of(self.encoder.encode(&config)));
            drawn.push((config, point));
        }
        let told = |one: &Point| -> f64 {
            let others = drawn.iter();
            let common = others.map(|(_, other)| process.covariance(one, other).powi(2));
            common.sum::<f64>() / (one.variance.max(0.0) + process.noise())
        };
        let new = drawn.iter().filter(|(config, _)| self.fresh.is_new(config));
        let best = new
            .map(|(config, point)| (told(point), config))
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, config)| config.clone());
        self.claimed(best)
    }

    /// The farthest of some uniform draws from everything proposed so far.
    pub(super) fn far(&mut self) -> Option<Config> {
        let mut best: Option<(f64, Config)> = None;
        for _ in 0..self.settings.opening_draws {
            let config = self.fresh.space().draw(&mut self.rng)?;
            if !self.fresh.is_new(&config) {
                continue;
            }
            let here = self.encoder.encode(&config);
            let proposed = self.places().map(|lies| squared_distance(&here, &lies.at));
            let distance = proposed.fold(f64::INFINITY, f64::min);
            if best.as_ref().is_none_or(|(most, _)| distance > *most) {
                best = Some((distance, config));
            }
        }
        self.claimed(best.map(|(_, config)| config))
    }

    /// That one, or any draw where there is none.
    fn claimed(&mut self, wanted: Option<Config>) -> Option<Config> {
        match wanted {
            Some(config) if self.fresh.claim(&config) => Some(config),
            _ => self.fresh.draw(&mut self.rng),
        }
    }
}
