//! Generational genetic algorithm with the settings of Kernel Tuner: 20 members, parents drawn by
//! rank, uniform crossover. Every gene mutates with probability 1/10, and the best member is kept.

use super::classic::{Method, repair};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use tuner_space::{Config, Space};

const MEMBERS: usize = 20;
const MUTATION_PROBABILITY: f64 = 0.1;

/// Generational genetic algorithm.
#[derive(Debug, Default)]
pub(crate) struct Genetic {
    /// Members of the present generation that are not proposed yet.
    unborn: Vec<Config>,
    waiting: Vec<Config>,
    judged: Vec<(Config, f64)>,
    first: bool,
}

impl Genetic {
    fn breed(&mut self, space: &Space, rng: &mut ChaCha8Rng) {
        let mut parents = std::mem::take(&mut self.judged);
        parents.sort_by(|a, b| a.1.total_cmp(&b.1));
        parents.truncate(MEMBERS);
        // One slot is for the best member, which already has a result.
        while self.unborn.len() + 1 < MEMBERS {
            let [a, b] = [0, 1].map(|_| draw_by_rank(&parents, rng));
            let mut wanted: Vec<u32> = a.choices().to_vec();
            for (at, gene) in wanted.iter_mut().enumerate() {
                if rng.random_bool(0.5) {
                    *gene = b.choices()[at];
                }
                if rng.random_bool(MUTATION_PROBABILITY) {
                    *gene = rng.random_range(0..space.parameters()[at].values.len() as u32);
                }
            }
            match repair(&wanted, space, rng) {
                Some(child) => self.unborn.push(child),
                None => break,
            }
        }
        // The best survives, so that a generation is never worse than its predecessor.
        self.judged.extend(parents.into_iter().next());
    }
}

/// Draws by rank: the fittest of `n` is `n` times as likely as the last.
fn draw_by_rank<'a>(ranked: &'a [(Config, f64)], rng: &mut ChaCha8Rng) -> &'a Config {
    let count = ranked.len();
    let mut left = rng.random_range(0..count * (count + 1) / 2);
    for (rank, (config, _)) in ranked.iter().enumerate() {
        let weight = count - rank;
        if left < weight {
            return config;
        }
        left -= weight;
    }
    &ranked[0].0
}

impl Method for Genetic {
    fn next_config(&mut self, space: &Space, rng: &mut ChaCha8Rng) -> Option<Config> {
        if self.unborn.is_empty() {
            // Only a complete generation has children.
            if !self.waiting.is_empty() {
                return None;
            }
            if self.first && self.judged.len() >= 2 {
                self.breed(space, rng);
            } else {
                self.unborn = (0..MEMBERS).filter_map(|_| space.draw(rng)).collect();
                self.first = true;
            }
        }
        let config = self.unborn.pop()?;
        self.waiting.push(config.clone());
        Some(config)
    }

    fn judge(&mut self, config: &Config, cost: f64, _space: &Space, _rng: &mut ChaCha8Rng) {
        if let Some(index) = self.waiting.iter().position(|waiting| waiting == config) {
            self.waiting.swap_remove(index);
            self.judged.push((config.clone(), cost));
        }
    }
}
