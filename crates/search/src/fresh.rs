//! Unproposed configurations of a space.

use rand::{Rng, RngExt as _};
use std::collections::{HashSet, VecDeque};
use tuner_space::{Config, Space};

/// The unproposed part of a space, with exact uniform draws from it.
///
/// Draws by rejection while less than half of the space is proposed, so a draw takes at most two tries on
/// average. After that it lists the rest, which is not larger than the proposed part. Memory is therefore
/// bounded by the number of proposals, not by the size of the space.
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

    /// Returns the next valid and new configuration of the start list and marks it as proposed.
    pub(super) fn take_start(&mut self) -> Option<Config> {
        while let Some(config) = self.start.pop_front() {
            if self.claim(&config) {
                return Some(config);
            }
        }
        None
    }

    /// Marks a configuration as proposed; `false` if it is invalid or was proposed before.
    pub(super) fn claim(&mut self, config: &Config) -> bool {
        self.is_new(config) && self.seen.insert(config.clone())
    }

    /// Releases a claimed configuration, which may then be proposed again.
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

    /// Returns an identifier for the next proposal.
    pub(super) fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Draws uniformly from the unproposed configurations and marks the result as proposed.
    pub(super) fn draw(&mut self, rng: &mut impl Rng) -> Option<Config> {
        if self.exhausted() {
            return None;
        }
        // Rejection would need more than two draws on average; a list of the rest is now
        // affordable.
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
        // Other operators may have claimed configurations of the list since it was built; these are dropped
        // here.
        while !rest.is_empty() {
            let config = rest.swap_remove(rng.random_range(0..rest.len()));
            if self.seen.insert(config.clone()) {
                return Some(config);
            }
        }
        None
    }
}
