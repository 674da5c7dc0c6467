//! The opening: the first configurations, proposed without the model.

use super::Evolve;
use surrogate::{Input, Point, Process, squared_distance};
use tuner_space::Config;

impl Evolve {
    /// Returns the number of proposed configurations.
    pub(super) fn proposed(&self) -> usize {
        self.archive.entries.len() + self.waiting.list.len()
    }

    /// Returns the model inputs of all proposed configurations.
    fn inputs(&self) -> impl Iterator<Item = &Input> {
        let waiting = self.waiting.list.iter().map(|each| &each.input);
        let entries = self.archive.entries.iter().map(|entry| &entry.input);
        entries.chain(waiting)
    }

    /// Returns the next configuration of the opening.
    pub(super) fn open(&mut self) -> Option<Config> {
        if self.proposed() < self.settings.typical {
            self.draw_typical()
        } else {
            self.draw_distant()
        }
    }

    /// Selects the uniform draw that reduces the variance of the other draws most (active learning
    /// after Cohn, 1996). A maximum-distance choice would pick extreme configurations, which are
    /// slow on many kernels.
    pub(super) fn draw_typical(&mut self) -> Option<Config> {
        // Before any result only the prior's shape is known.
        let mut process = Process::new(self.scales[0].shape());
        let proposed: Vec<Point> = self
            .inputs()
            .map(|input| process.point(&Input::new(input.coordinates.clone())))
            .collect();
        for point in proposed {
            process.push(point);
        }
        let mut drawn: Vec<(Config, Point)> = Vec::with_capacity(self.settings.typical_draws);
        for _ in 0..self.settings.typical_draws {
            let config = self.fresh.space().draw(&mut self.rng)?;
            let point = process.point(&Input::new(self.encoder.encode(&config)));
            drawn.push((config, point));
        }
        let gain = |one: &Point| -> f64 {
            let others = drawn.iter();
            let common = others.map(|(_, other)| process.covariance(one, other).powi(2));
            // The total variance that a result here would remove from all draws.
            common.sum::<f64>() / (one.variance.max(0.0) + process.noise())
        };
        let new = drawn.iter().filter(|(config, _)| self.fresh.is_new(config));
        let best = new
            .map(|(config, point)| (gain(point), config))
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, config)| config.clone());
        self.claim_or_draw(best)
    }

    /// Selects the uniform draw farthest from all proposed configurations.
    pub(super) fn draw_distant(&mut self) -> Option<Config> {
        let mut best: Option<(f64, Config)> = None;
        for _ in 0..self.settings.opening_draws {
            let config = self.fresh.space().draw(&mut self.rng)?;
            if !self.fresh.is_new(&config) {
                continue;
            }
            let here = self.encoder.encode(&config);
            let proposed = self
                .inputs()
                // The distance to the nearest proposal, including pending ones, so that concurrent
                // proposals spread out.
                .map(|input| squared_distance(&here, &input.coordinates));
            let distance = proposed.fold(f64::INFINITY, f64::min);
            if best.as_ref().is_none_or(|(most, _)| distance > *most) {
                best = Some((distance, config));
            }
        }
        self.claim_or_draw(best.map(|(_, config)| config))
    }

    /// Claims this configuration, or draws another one if there is none.
    fn claim_or_draw(&mut self, wanted: Option<Config>) -> Option<Config> {
        match wanted {
            Some(config) if self.fresh.claim(&config) => Some(config),
            _ => self.fresh.draw(&mut self.rng),
        }
    }
}
