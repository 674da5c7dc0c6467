//! How a configuration is varied without leaving the space.
//!
//! An operator says what it wants, parameter by parameter and in order of importance;
//! [`Space::nearest`] keeps as many of those wishes as a valid configuration can. So a change that
//! breaks a constraint takes the smallest set of other parameters with it: halving one tile edge
//! doubles another, where the rules ask for it.

use rand::seq::SliceRandom as _;
use rand::{Rng, RngExt as _};
use rand_distr::{Distribution as _, Geometric};
use tuner_space::{Config, Space};

/// The operators and what they need to know of a space.
#[derive(Debug)]
pub(super) struct Variation {
    /// Parameters with more than one value.
    free: Vec<usize>,
    /// Steps along an ordered parameter, beyond the first: short ones are common, long ones
    /// happen.
    step: Geometric,
}

impl Variation {
    pub(super) fn new(space: &Space) -> Self {
        let free = space
            .parameters()
            .iter()
            .enumerate()
            .filter(|(_, parameter)| parameter.values.len() > 1)
            .map(|(index, _)| index)
            .collect();
        #[expect(clippy::expect_used, reason = "a constant that is a probability")]
        let step = Geometric::new(0.6).expect("0.6 is a probability");
        Self { free, step }
    }

    /// Changes a few parameters of `parent`.
    pub(super) fn mutate(
        &self,
        space: &Space,
        parent: &Config,
        rng: &mut impl Rng,
    ) -> Option<Config> {
        if self.free.is_empty() {
            return None;
        }
        let mut wanted = parent.choices().to_vec();
        let mut order = self.shuffled(rng);
        let extra = self.step.sample(rng) as usize;
        let changes = (1 + extra).min(order.len());
        for &parameter in &order[..changes] {
            wanted[parameter] = self.other_value(space, parameter, wanted[parameter], rng);
        }
        order.extend(self.fixed(space));
        space.nearest(&wanted, &order, rng)
    }

    /// Takes each independent group of parameters, or within the only group each parameter, from
    /// one of the parents.
    pub(super) fn cross(
        &self,
        space: &Space,
        first: &Config,
        second: &Config,
        rng: &mut impl Rng,
    ) -> Option<Config> {
        let (a, b) = (first.choices(), second.choices());
        let mut wanted = a.to_vec();
        // Values of one group belong together more often than not, so whole groups travel half of
        // the time.
        let by_group = space.groups().len() > 1 && rng.random_bool(0.5);
        for group in space.groups() {
            let whole = rng.random_bool(0.5);
            for &parameter in group {
                let take = if by_group {
                    whole
                } else {
                    rng.random_bool(0.5)
                };
                if take {
                    wanted[parameter] = b[parameter];
                }
            }
        }
        let mut order = self.shuffled(rng);
        // Parents that agree have only copies for children.
        if wanted == a || wanted == b {
            let parameter = *order.first()?;
            wanted[parameter] = self.other_value(space, parameter, wanted[parameter], rng);
        }
        order.extend(self.fixed(space));
        space.nearest(&wanted, &order, rng)
    }

    /// A value other than `current`: a few steps up or down where the values have an order, any
    /// where they have none.
    fn other_value(
        &self,
        space: &Space,
        parameter: usize,
        current: u32,
        rng: &mut impl Rng,
    ) -> u32 {
        let count = space.parameters()[parameter].values.len() as u32;
        if !space.parameters()[parameter].ordered || count <= 2 {
            let other = rng.random_range(0..count - 1);
            return other + u32::from(other >= current);
        }
        let distance = 1 + self.step.sample(rng).min(u64::from(count)) as u32;
        let (below, above) = (current, count - 1 - current);
        let up = if below == 0 || above == 0 {
            below == 0
        } else {
            rng.random_bool(0.5)
        };
        if up {
            current + distance.min(above)
        } else {
            current - distance.min(below)
        }
    }

    fn shuffled(&self, rng: &mut impl Rng) -> Vec<usize> {
        let mut order = self.free.clone();
        order.shuffle(rng);
        order
    }

    /// Parameters with one value: they come last in an order, having nothing to wish for.
    fn fixed<'a>(&self, space: &'a Space) -> impl Iterator<Item = usize> + 'a {
        space
            .parameters()
            .iter()
            .enumerate()
            .filter(|(_, parameter)| parameter.values.len() <= 1)
            .map(|(index, _)| index)
    }
}
