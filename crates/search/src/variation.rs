//! Operators that vary a configuration without leaving the space.
//!
//! An operator states a preferred value for each parameter, in order of importance.
//! [`Space::nearest`] returns a valid configuration that keeps as many of them as possible. A
//! change that breaks a constraint thus changes as few other parameters as possible: halving one
//! tile edge doubles another if the constraints require it.

use rand::seq::SliceRandom as _;
use rand::{Rng, RngExt as _};
use rand_distr::{Distribution as _, Geometric};
use tuner_space::{Config, Space};

/// The operators, with the data of the space that they use.
#[derive(Debug)]
pub(super) struct Variation {
    /// Parameters with more than one value.
    free: Vec<usize>,
    /// Distribution of the steps along an ordered parameter beyond the first: short steps are
    /// common, long steps are rare.
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
        // Mostly one change, rarely several, to leave local optima.
        let extra = self.step.sample(rng) as usize;
        let changes = (1 + extra).min(order.len());
        for &parameter in &order[..changes] {
            wanted[parameter] = self.other_value(space, parameter, wanted[parameter], rng);
        }
        order.extend(self.fixed(space));
        space.nearest(&wanted, &order, rng)
    }

    /// Takes whole independent groups of parameters, or single parameters, from either parent.
    pub(super) fn cross(
        &self,
        space: &Space,
        first: &Config,
        second: &Config,
        rng: &mut impl Rng,
    ) -> Option<Config> {
        let (a, b) = (first.choices(), second.choices());
        let mut wanted = a.to_vec();
        // Values of one group depend on each other, so half of the time groups are inherited whole.
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
        // Equal parents could only produce copies of themselves.
        if wanted == a || wanted == b {
            let parameter = *order.first()?;
            wanted[parameter] = self.other_value(space, parameter, wanted[parameter], rng);
        }
        order.extend(self.fixed(space));
        space.nearest(&wanted, &order, rng)
    }

    /// Draws a value other than `current`: a few steps up or down for an ordered parameter, any
    /// other value for an unordered one.
    fn other_value(
        &self,
        space: &Space,
        parameter: usize,
        current: u32,
        rng: &mut impl Rng,
    ) -> u32 {
        let count = space.parameters()[parameter].values.len() as u32;
        if !space.parameters()[parameter].ordered || count <= 2 {
            // Skipping the current value keeps the distribution uniform over the others.
            let other = rng.random_range(0..count - 1);
            return other + u32::from(other >= current);
        }
        let distance = 1 + self.step.sample(rng).min(u64::from(count)) as u32;
        let (below, above) = (current, count - 1 - current);
        // At either end only one direction remains.
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

    /// Returns the parameters with one value, which come last in an order because they cannot change.
    fn fixed<'a>(&self, space: &'a Space) -> impl Iterator<Item = usize> + 'a {
        space
            .parameters()
            .iter()
            .enumerate()
            .filter(|(_, parameter)| parameter.values.len() <= 1)
            .map(|(index, _)| index)
    }
}
