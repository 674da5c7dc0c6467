//! Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) over single-parameter moves, with the
//! settings of Kernel Tuner: temperature 1 to 0.001, factor 0.995 per step, worsening relative to
//! the current time. Restarts from a new draw at the final temperature.

use super::classic::{Method, random_neighbour};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use tuner_space::{Config, Space};

const INITIAL_TEMPERATURE: f64 = 1.0;
const FINAL_TEMPERATURE: f64 = 0.001;
const COOLING_FACTOR: f64 = 0.995;

/// Simulated annealing.
#[derive(Debug)]
pub(crate) struct Annealing {
    current: Option<(Config, f64)>,
    temperature: f64,
}

impl Default for Annealing {
    fn default() -> Self {
        Self {
            current: None,
            temperature: INITIAL_TEMPERATURE,
        }
    }
}

impl Method for Annealing {
    fn next_config(&mut self, space: &Space, rng: &mut ChaCha8Rng) -> Option<Config> {
        if self.temperature < FINAL_TEMPERATURE {
            *self = Self::default();
        }
        let near = self
            .current
            .as_ref()
            .and_then(|(config, _)| random_neighbour(config, space, rng));
        near.or_else(|| space.draw(rng))
    }

    fn judge(&mut self, config: &Config, cost: f64, _space: &Space, rng: &mut ChaCha8Rng) {
        let Some((_, current)) = &self.current else {
            if cost.is_finite() {
                self.current = Some((config.clone(), cost));
            }
            return;
        };
        self.temperature *= COOLING_FACTOR;
        // Relative, so that the temperature does not depend on the kernel's time scale.
        let gain = (current - cost) / current;
        if gain >= 0.0 || rng.random::<f64>() < (gain / self.temperature).exp() {
            self.current = Some((config.clone(), cost));
        }
    }
}
