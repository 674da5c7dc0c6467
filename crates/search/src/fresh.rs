//! Configurations nobody has proposed yet.

use rand::{Rng, RngExt as _};
use std::collections::{HashSet, VecDeque};
use tuner_space::{Config, Space};

/// The part of a space that was not proposed yet, with exact uniform draws from it.
///
/// Draws by rejection while the proposed share is below a half, so at most two draws are expected
/// each; after that lists what is left, which is no more than was already proposed. So memory is
/// bounded by the number of proposals, whatever the size of the space.
#[derive(Debug)]
pub(super) struct Fresh {
    space: Space,
    seen: HashSet<Config>,
    rest: Option<Vec<Config>>,
    start: VecDeque<Config>,
    next_id: u64,
}

impl Fresh {
    pub(super) fn new(space: &Space, start: &[Config]) -> Self {
        Self {
            space: space.clone(),
            seen: HashSet::new(),
            rest: None,
            start: start.iter().cloned().collect(),
            next_id: 0,
        }
    }

    pub(super) fn space(&self) -> &Space {
        &self.space
    }

    /// The next configuration of the start list that is valid and new; it counts as proposed.
    pub(super) fn take_start(&mut self) -> Option<Config> {
        while let Some(config) = self.start.pop_front() {
            if self.claim(&config) {
                return Some(config);
            }
        }
        None
    }

    /// Marks a configuration as proposed; `false` when it is invalid or was proposed before.
    pub(super) fn claim(&mut self, config: &Config) -> bool {
        self.is_new(config) && self.seen.insert(config.clone())
    }

    /// Takes back a claim: the configuration may be proposed again.
    pub(super) fn release(&mut self, config: &Config) {
        if self.seen.remove(config)
            && let Some(rest) = &mut self.rest
        {
            rest.push(config.clone());
        }
    }

    pub(super) fn is_new(&self, config: &Config) -> bool {
        !self.seen.contains(config) && self.space.contains(config)
    }

    pub(super) fn exhausted(&self) -> bool {
        self.seen.len() as u128 >= self.space.count()
    }

    /// An identifier for the next proposal.
    pub(super) fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// A configuration drawn uniformly from those not proposed yet; it counts as proposed.
    pub(super) fn draw(&mut self, rng: &mut impl Rng) -> Option<Config> {
        if self.exhausted() {
            return None;
        }
        if self.seen.len() as u128 * 2 > self.space.count() {
            return self.draw_rest(rng);
        }
        loop {
            let config = self.space.draw(rng)?;
            if self.claim(&config) {
                return Some(config);
            }
        }
    }

    fn draw_rest(&mut self, rng: &mut impl Rng) -> Option<Config> {
        let rest = match &mut self.rest {
            Some(rest) => rest,
            None => {
                let (space, seen) = (&self.space, &self.seen);
                self.rest.insert(
                    (0..space.count())
                        .filter_map(|index| space.config_at(index))
                        .filter(|config| !seen.contains(config))
                        .collect(),
                )
            }
        };
        // Other operators may have claimed some of the list meanwhile; those are dropped here.
        while !rest.is_empty() {
            let config = rest.swap_remove(rng.random_range(0..rest.len()));
            if self.seen.insert(config.clone()) {
                return Some(config);
            }
        }
        None
    }
}
