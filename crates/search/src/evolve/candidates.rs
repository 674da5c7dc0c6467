//! Generation of candidates for the pool.

use super::refit::weighted_features;
use super::{CROSSOVER_SHARE, Evolve};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use surrogate::Input;
use tuner_space::{Config, Neighbourhood};

/// Origin name of uniform draws.
pub(super) const UNIFORM: &str = "explore";

impl Evolve {
    pub(super) fn fill_pool(&mut self) {
        self.pool.clear();
        for rank in 0..self.settings.near_elites.min(self.archive.elites()) {
            self.add_neighbours(rank);
        }
        self.add_known();
        for _ in 0..self.settings.pool_uniform {
            self.add_uniform();
        }
        for _ in 0..self.settings.pool_bred {
            self.add_bred();
        }
    }

    fn add(&mut self, config: Config, origin: &'static str) {
        // Duplicates would distort the estimate of the remaining gain, which counts the pool.
        if self.pool.holds(&config) || !self.fresh.is_new(&config) {
            return;
        }
        let point = if self.archive.uses_knowledge {
            self.process.point(self.inputs.get(&config, &self.encoder))
        } else {
            let input = Input::new(self.encoder.encode(&config));
            self.process.point(&input)
        };
        self.pool.add(config, origin, point);
    }

    /// Adds the configurations that the weighted sources expect to be fastest.
    fn add_known(&mut self) {
        if !self.archive.uses_knowledge {
            return;
        }
        let expected = |input: &Input| input.mean + weighted_features(&self.weights, input);
        let known = self.known_best.iter().enumerate();
        let mut ranked: Vec<(f64, usize)> = known
            .map(|(at, (_, input))| (expected(input), at))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut left = self.settings.pool_known;
        for (_, at) in ranked {
            if left == 0 {
                break;
            }
            let config = &self.known_best[at].0;
            if self.fresh.is_new(config) {
                self.add(config.clone(), "known");
                left -= 1;
            }
        }
    }

    pub(super) fn add_uniform(&mut self) {
        if let Some(config) = self.fresh.space().draw(&mut self.rng) {
            self.add(config, UNIFORM);
        }
    }

    pub(super) fn add_neighbours(&mut self, rank: usize) {
        let elite = self.archive.elite(rank);
        let mut near = self.fresh.space().neighbours(elite, Neighbourhood::Hamming);
        if near.len() > self.settings.near_each {
            near.shuffle(&mut self.rng);
            near.truncate(self.settings.near_each);
        }
        for config in near {
            self.add(config, "neighbour");
        }
    }

    pub(super) fn add_bred(&mut self) {
        let Some(rank) = self.pick_rank() else { return };
        let parent = self.archive.elite(rank).clone();
        let partner = self
            .rng
            .random_bool(CROSSOVER_SHARE)
            .then(|| self.pick_rank())
            .flatten()
            .map(|rank| self.archive.elite(rank).clone());
        let (space, rng) = (self.fresh.space(), &mut self.rng);
        let (child, origin) = match partner {
            Some(partner) => (
                self.variation.cross(space, &parent, &partner, rng),
                "crossover",
            ),
            None => (self.variation.mutate(space, &parent, rng), "mutate"),
        };
        if let Some(child) = child {
            self.add(child, origin);
        }
    }

    /// Draws a rank with a preference for the fastest: the square of a uniform number.
    fn pick_rank(&mut self) -> Option<usize> {
        let elites = self.archive.elites();
        // The square prefers the fastest parents without excluding the others.
        let rank = self.rng.random::<f64>().powi(2) * elites as f64;
        (elites > 0).then(|| (rank as usize).min(elites - 1))
    }
}
