//! Portfolio: a small set of configurations for many shapes, and the rule that chooses among them.
//!
//! [`Table`] has a time for each configuration and shape, [`best_of_size`] and [`smallest`] choose a set,
//! [`DecisionTree`] dispatches over the sizes. Pure.

mod choose;
mod document;
mod tree;

pub use choose::{Choice, SEARCH_STEPS, Smallest, best_of_size, smallest};
pub use document::{PortfolioInput, write_portfolio};
pub use tree::{DecisionTree, Leaf, Lookup, LookupError, Node, TreeText, Untuned, percent};

use tuner_core::record::{ConfigValues, TimingKind};

/// Maximum number of shapes: the number of bits of a mask.
pub const MAX_SHAPES: usize = 128;

/// Quantity in which shapes differ: a size, or the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Name of the size, or `device`.
    pub name: String,
    /// Values in ascending order.
    pub values: AxisValues,
}

/// Values of an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum AxisValues {
    /// Whole numbers, ascending: other numbers between them may occur.
    Numbers(Vec<i64>),
    /// Names without an order: other names never occur.
    Names(Vec<String>),
}

impl AxisValues {
    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Names(values) => values.len(),
        }
    }

    /// Reports whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Problem size on a device, as a point on the axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Display name.
    pub name: String,
    /// Index of its value on each axis.
    pub place: Vec<usize>,
}

/// Times of configurations on shapes.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Axes of the shapes.
    pub axes: Vec<Axis>,
    /// Shapes, at most [`MAX_SHAPES`].
    pub shapes: Vec<Shape>,
    /// Configurations.
    pub configs: Vec<ConfigValues>,
    /// Time in microseconds by configuration and shape; `None`: it is invalid or failed there.
    pub times: Vec<Vec<Option<f64>>>,
    /// Kind of the times.
    pub timing: TimingKind,
}

impl Table {
    /// Returns the best time of each shape; `None` for a shape without any time.
    #[must_use]
    pub fn best_times(&self) -> Vec<Option<f64>> {
        let best = |shape: usize| {
            let times = self.times.iter().filter_map(|times| *times.get(shape)?);
            times.min_by(f64::total_cmp)
        };
        (0..self.shapes.len()).map(best).collect()
    }

    /// Returns the losses against the best of each shape: 0.02 is 2 % slower.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let best = self.best_times();
        let row = |times: &Vec<Option<f64>>| {
            let pairs = times.iter().zip(&best);
            pairs
                .map(|(time, best)| Some((*time)? / (*best)? - 1.0))
                .collect()
        };
        Losses(self.times.iter().map(row).collect())
    }
}

/// Losses by configuration and shape; `None`: the configuration does not work there.
#[derive(Debug, Clone, PartialEq)]
pub struct Losses(pub Vec<Vec<Option<f64>>>);

impl Losses {
    /// Returns the number of shapes.
    fn shapes(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }

    /// Returns the loss of a configuration on a shape, infinite if it does not work there.
    #[must_use]
    pub fn loss(&self, config: usize, shape: usize) -> f64 {
        let row = self.0.get(config);
        let loss = row.and_then(|row| row.get(shape).copied().flatten());
        loss.unwrap_or(f64::INFINITY)
    }

    /// Returns the member with the least loss on a shape, and that loss; `None` without a member.
    #[must_use]
    pub fn best_member(&self, members: &[usize], shape: usize) -> Option<(usize, f64)> {
        let losses = members
            .iter()
            .map(|&member| (member, self.loss(member, shape)));
        losses.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the worst and the mean loss of a set over all shapes.
    #[must_use]
    pub fn worst_and_mean(&self, members: &[usize]) -> (f64, f64) {
        let shapes = self.shapes();
        let loss = |shape| {
            let best = self.best_member(members, shape);
            best.map_or(f64::INFINITY, |(_, loss)| loss)
        };
        let losses: Vec<f64> = (0..shapes).map(loss).collect();
        let worst = losses.iter().copied().fold(0.0, f64::max);
        (worst, losses.iter().sum::<f64>() / shapes.max(1) as f64)
    }
}

/// Part of a variant in a portfolio.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Index of its configuration in the table.
    pub config: usize,
    /// Number of shapes that it serves.
    pub shapes: usize,
    /// Worst loss over these shapes.
    pub worst: f64,
    /// Mean loss over these shapes.
    pub mean: f64,
    /// Worst loss of the portfolio without it; infinite if no other one works on a shape.
    pub without: f64,
}

/// Returns the parts of the variants if each shape is served by the best of them.
#[must_use]
pub fn variants(losses: &Losses, members: &[usize]) -> Vec<Variant> {
    let served: Vec<(usize, f64)> = (0..losses.shapes())
        .filter_map(|shape| losses.best_member(members, shape))
        .collect();
    let one = |&config: &usize| {
        let own = || served.iter().filter(|(member, _)| *member == config);
        let others: Vec<usize> = members.iter().copied().filter(|m| *m != config).collect();
        let shapes = own().count();
        let sum: f64 = own().map(|(_, loss)| loss).sum();
        Variant {
            config,
            shapes,
            worst: own().map(|(_, loss)| *loss).fold(0.0, f64::max),
            mean: sum / shapes.max(1) as f64,
            without: losses.worst_and_mean(&others).0,
        }
    };
    members.iter().map(one).collect()
}

/// Sizes of a portfolio that the curve of losses shows.
const CURVE: [usize; 5] = [1, 2, 3, 4, 6];

/// Chooses the best set of each size of the curve, and of one further size; omits sizes for which no set
/// works on all shapes.
#[must_use]
pub fn loss_curve(losses: &Losses, further: usize, steps: u64) -> Vec<(usize, Choice)> {
    let mut sizes = CURVE.to_vec();
    sizes.push(further);
    sizes.sort_unstable();
    sizes.dedup();
    let sizes = sizes.into_iter();
    sizes
        .filter_map(|size| Some((size, best_of_size(losses, size, steps)?)))
        .collect()
}
