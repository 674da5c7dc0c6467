//! Differential evolution (Storn and Price 1997), variant `best1bin` with the settings that SciPy
//! and Kernel Tuner use: 20 members, weight drawn from 0.5 to 1, crossover 0.7. Members are choice
//! indices; a trial is rounded, then repaired to the nearest valid configuration.

use super::classic::{Method, repair};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use tuner_space::{Config, Space};

const MEMBERS: usize = 20;
const CROSSOVER_PROBABILITY: f64 = 0.7;

/// Differential evolution.
#[derive(Debug, Default)]
pub(crate) struct Differential {
    members: Vec<(Config, f64)>,
    turn: usize,
    /// Trials without a result, each with the member that it challenges.
    trials: Vec<(Config, usize)>,
}

impl Differential {
    fn trial(&self, target: usize, space: &Space, rng: &mut ChaCha8Rng) -> Option<Config> {
        let best = self.members.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let [a, b] = [0, 1].map(|_| &self.members[rng.random_range(0..MEMBERS)].0);
        let weight = rng.random_range(0.5..1.0);
        let mut wanted = self.members[target].0.choices().to_vec();
        // Without a forced choice a trial may equal its target.
        let forced = rng.random_range(0..wanted.len());
        for (at, choice) in wanted.iter_mut().enumerate() {
            if at == forced || rng.random_bool(CROSSOVER_PROBABILITY) {
                let top = space.parameters()[at].values.len() as f64 - 1.0;
                let apart = f64::from(a.choices()[at]) - f64::from(b.choices()[at]);
                let goal = f64::from(best.0.choices()[at]) + weight * apart;
                *choice = goal.round().clamp(0.0, top) as u32;
            }
        }
        repair(&wanted, space, rng)
    }
}

impl Method for Differential {
    fn next_config(&mut self, space: &Space, rng: &mut ChaCha8Rng) -> Option<Config> {
        if self.members.len() < MEMBERS || space.parameters().is_empty() {
            return space.draw(rng);
        }
        let target = self.turn % MEMBERS;
        self.turn += 1;
        let trial = self.trial(target, space, rng)?;
        self.trials.push((trial.clone(), target));
        // A trial that equals a pending proposal never gets a result; drop the oldest ones.
        if self.trials.len() > 4 * MEMBERS {
            self.trials.remove(0);
        }
        Some(trial)
    }

    fn judge(&mut self, config: &Config, cost: f64, _space: &Space, _rng: &mut ChaCha8Rng) {
        if self.members.len() < MEMBERS {
            self.members.push((config.clone(), cost));
            return;
        }
        let Some(index) = self.trials.iter().position(|(trial, _)| trial == config) else {
            return;
        };
        let (trial, target) = self.trials.swap_remove(index);
        if cost <= self.members[target].1 {
            self.members[target] = (trial, cost);
        }
    }
}
