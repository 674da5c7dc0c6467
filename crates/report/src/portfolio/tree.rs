//! Decision tree over the sizes: the fewest leaves that stay within a loss.
//!
//! A leaf is a box of shapes served by one variant. The smallest tree of a box is that of the best cut of
//! one axis, by dynamic programming over the boxes. Sizes between two tuned ones use the nearer one by
//! ratio, and have the measured losses of all tuned shapes around them.

mod text;

pub use text::{TreeText, percent};

use super::{AxisValues, Losses, Table};
use std::collections::BTreeMap;

/// Node of a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// One variant for all shapes in the box.
    Leaf(Leaf),
    /// Two branches by the value on an axis.
    Split {
        /// Index of the axis.
        axis: usize,
        /// Index of the first value in the box.
        from: usize,
        /// Index of the first value of the second branch.
        first: usize,
        /// Shapes with a smaller value.
        below: Box<Node>,
        /// The others.
        above: Box<Node>,
    },
}

/// Decision for the shapes of a box.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// Place of the variant in the portfolio.
    pub variant: usize,
    /// Number of tuned shapes.
    pub shapes: usize,
    /// Worst loss over the tuned shapes.
    pub worst: f64,
    /// Loss on the untuned sizes in the box.
    pub untuned: Untuned,
}

/// Loss of a variant on untuned sizes, from the tuned shapes around them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Untuned {
    /// No untuned size arrives.
    None,
    /// Worst loss over the surrounding tuned shapes.
    UpTo(f64),
    /// The variant does not work on one of the surrounding tuned shapes.
    Unknown,
}

/// Tree over the shapes of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionTree {
    /// The root.
    pub root: Node,
    /// Number of leaves.
    pub leaves: usize,
    /// Worst loss over the tuned shapes.
    pub worst: f64,
}

/// Variant for requested sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lookup {
    /// Place of the variant in the portfolio.
    pub variant: usize,
    /// Tuned shapes around the sizes, with the loss of the variant on each; `None`: it does not work.
    pub neighbours: Vec<(usize, Option<f64>)>,
}

/// Reason why sizes have no variant.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LookupError {
    /// A size beyond the tuned ones.
    #[error(
        "{name}={value} is outside of the tuned sizes, {low} to {high}: no loss is known there"
    )]
    Outside {
        /// Name of the size.
        name: String,
        /// Its value.
        value: i64,
        /// Smallest tuned value.
        low: i64,
        /// Largest tuned value.
        high: i64,
    },
    /// A value of a name axis that was not tuned.
    #[error("`{0}` was not tuned")]
    Unknown(String),
    /// An axis without a value.
    #[error("`{0}` has no value; type {0}=VALUE")]
    Missing(String),
    /// No tuned shape around the sizes.
    #[error("no tuned shape is around these sizes")]
    Nothing,
}

/// Inclusive range of indices on each axis.
type Region = Vec<(usize, usize)>;

/// Smallest tree of a box.
#[derive(Debug, Clone, Copy)]
struct Plan {
    leaves: usize,
    worst: f64,
    /// Axis and first index of the second branch; `None`: a leaf.
    cut: Option<(usize, usize)>,
}

/// Search for the smallest tree.
struct TreeSearch<'a> {
    table: &'a Table,
    losses: &'a Losses,
    members: &'a [usize],
    /// Maximum loss of every leaf.
    loss: f64,
    plans: BTreeMap<Region, Plan>,
}

impl DecisionTree {
    /// Builds the tree with the fewest leaves whose worst loss is at most `loss`; among those, the one with
    /// the smallest worst loss. `None` if no variant stays within it on some shape.
    #[must_use]
    pub fn new(table: &Table, losses: &Losses, members: &[usize], loss: f64) -> Option<Self> {
        let mut search = TreeSearch {
            table,
            losses,
            members,
            loss,
            plans: BTreeMap::new(),
        };
        // Shrunk boxes of the same shapes are equal, so each is planned once.
        let whole = search.shrunk(&table.whole())?;
        let plan = search.plan(&whole);
        if !plan.worst.is_finite() {
            return None;
        }
        // The branches' regions extend to the cuts, not to the last shapes inside.
        let root = search.node(&table.whole());
        Some(Self {
            root,
            leaves: plan.leaves,
            worst: plan.worst,
        })
    }

    /// Returns the largest value of the first branch of a cut of numbers.
    #[must_use]
    pub fn limit(&self, table: &Table, node: &Node) -> Option<i64> {
        let Node::Split { axis, first, .. } = node else {
            return None;
        };
        match &table.axes.get(*axis)?.values {
            AxisValues::Numbers(numbers) => cut_value(numbers, *first),
            AxisValues::Names(_) => None,
        }
    }

    /// Returns the variant for sizes, with the losses that were measured around them.
    ///
    /// # Errors
    /// A size beyond the tuned ones, or one that is missing.
    pub fn lookup(
        &self,
        table: &Table,
        losses: &Losses,
        members: &[usize],
        sizes: &BTreeMap<String, String>,
    ) -> Result<Lookup, LookupError> {
        let mut around: Region = Vec::with_capacity(table.axes.len());
        let mut nearest = Vec::with_capacity(table.axes.len());
        for axis in &table.axes {
            let missing = || LookupError::Missing(axis.name.clone());
            let (range, near) = match sizes.get(&axis.name) {
                Some(text) => bracket(&axis.name, &axis.values, text)?,
                // An axis with one value has no effect and may be omitted.
                None if axis.values.len() == 1 => ((0, 0), 0),
                None => return Err(missing()),
            };
            around.push(range);
            nearest.push(near);
        }
        let mut node = &self.root;
        let leaf = loop {
            match node {
                Node::Leaf(leaf) => break leaf,
                Node::Split {
                    axis,
                    first,
                    below,
                    above,
                    ..
                } => {
                    let place = nearest.get(*axis).copied().unwrap_or(0);
                    node = if place < *first { below } else { above };
                }
            }
        };
        let member = members.get(leaf.variant).copied().unwrap_or(0);
        let known = |shape: usize| Some(losses.loss(member, shape)).filter(|loss| loss.is_finite());
        let inside = table.inside(&around).map(|shape| (shape, known(shape)));
        let neighbours: Vec<_> = inside.collect();
        match neighbours.is_empty() {
            true => Err(LookupError::Nothing),
            false => Ok(Lookup {
                variant: leaf.variant,
                neighbours,
            }),
        }
    }
}

/// Finds the values of an axis around a text, and the nearer one.
fn bracket(
    name: &str,
    values: &AxisValues,
    text: &str,
) -> Result<((usize, usize), usize), LookupError> {
    let unknown = || LookupError::Unknown(format!("{name}={text}"));
    match values {
        AxisValues::Names(names) => {
            let place = names.iter().position(|known| known == text);
            let place = place.ok_or_else(unknown)?;
            Ok(((place, place), place))
        }
        AxisValues::Numbers(numbers) => {
            let value: i64 = text.parse().map_err(|_| unknown())?;
            let below = numbers.partition_point(|known| *known < value);
            let outside = || LookupError::Outside {
                name: name.to_owned(),
                value,
                low: numbers.first().copied().unwrap_or(0),
                high: numbers.last().copied().unwrap_or(0),
            };
            let upper = *numbers.get(below).ok_or_else(outside)?;
            if upper == value {
                return Ok(((below, below), below));
            }
            let lower = below.checked_sub(1).ok_or_else(outside)?;
            let limit = cut_value(numbers, below).ok_or_else(unknown)?;
            let near = if value <= limit { lower } else { below };
            Ok(((lower, below), near))
        }
    }
}

/// Returns the largest value of the first branch of a cut: the geometric mean of the adjacent tuned values,
/// or the arithmetic one if a value is not positive.
#[must_use]
pub(super) fn cut_value(numbers: &[i64], first: usize) -> Option<i64> {
    let upper = *numbers.get(first)?;
    let lower = *numbers.get(first.checked_sub(1)?)?;
    let middle = if lower > 0 {
        ((lower as f64) * (upper as f64)).sqrt().floor() as i64
    } else {
        lower + (upper - lower) / 2
    };
    // Rounding must not move a tuned value to the other branch.
    Some(middle.clamp(lower, upper - 1))
}

impl Table {
    /// Orders names by the best variant of each, so that one cut separates the variants.
    pub fn group_names(&mut self, losses: &Losses, members: &[usize]) {
        for (at, axis) in self.axes.iter_mut().enumerate() {
            let AxisValues::Names(names) = &mut axis.values else {
                continue;
            };
            let variant = |name: usize| {
                let shapes = self.shapes.iter().enumerate();
                let shapes = shapes.filter(|(_, shape)| shape.place.get(at) == Some(&name));
                let shapes: Vec<usize> = shapes.map(|(index, _)| index).collect();
                let worst = |member: &usize| {
                    let losses = shapes.iter().map(|shape| losses.loss(*member, *shape));
                    losses.fold(0.0, f64::max)
                };
                let all = members.iter().enumerate();
                let all = all.map(|(place, member)| (worst(member), place));
                all.min_by(|a, b| a.0.total_cmp(&b.0))
                    .map(|(_, place)| place)
            };
            let mut order: Vec<usize> = (0..names.len()).collect();
            order.sort_by_key(|name| (variant(*name), *name));
            let sorted = order.iter().filter_map(|old| names.get(*old).cloned());
            *names = sorted.collect();
            for shape in &mut self.shapes {
                if let Some(place) = shape.place.get_mut(at)
                    && let Some(new) = order.iter().position(|old| old == place)
                {
                    *place = new;
                }
            }
        }
    }

    /// Returns the box of all shapes.
    fn whole(&self) -> Region {
        let axes = self.axes.iter();
        axes.map(|axis| (0, axis.values.len().saturating_sub(1)))
            .collect()
    }

    /// Returns the shapes of a box.
    fn inside<'a>(&'a self, region: &'a Region) -> impl Iterator<Item = usize> + 'a {
        let shapes = self.shapes.iter().enumerate();
        shapes.filter_map(move |(index, shape)| {
            let mut places = shape.place.iter().zip(region);
            places
                .all(|(place, (low, high))| (low..=high).contains(&place))
                .then_some(index)
        })
    }

    /// Returns the box with the tuned values next to it whose gap untuned sizes can fill.
    fn widened(&self, region: &Region) -> Region {
        let axes = self.axes.iter().zip(region);
        axes.map(|(axis, &(low, high))| {
            let AxisValues::Numbers(numbers) = &axis.values else {
                return (low, high);
            };
            let gap = |first: usize, below: bool| {
                let cut = cut_value(numbers, first)?;
                let lower = numbers.get(first.checked_sub(1)?)?;
                let upper = numbers.get(first)?;
                Some(if below {
                    cut > *lower
                } else {
                    cut + 1 < *upper
                })
            };
            let gap = |first, below| gap(first, below).unwrap_or(false);
            let low = if gap(low, false) { low - 1 } else { low };
            let high = if gap(high + 1, true) { high + 1 } else { high };
            (low, high)
        })
        .collect()
    }
}

impl Table {
    /// Reports whether untuned sizes are between the tuned ones of a box.
    fn has_gap(&self, region: &Region) -> bool {
        let mut axes = self.axes.iter().zip(region);
        axes.any(|(axis, &(low, high))| match &axis.values {
            AxisValues::Names(_) => false,
            AxisValues::Numbers(numbers) => {
                let inside = numbers.get(low..=high).unwrap_or_default();
                inside
                    .windows(2)
                    .any(|pair| matches!(pair, [a, b] if b - a > 1))
            }
        })
    }
}

impl TreeSearch<'_> {
    /// Shrinks a box to the shapes inside; `None` without one.
    fn shrunk(&self, region: &Region) -> Option<Region> {
        let mut shapes = self.table.inside(region);
        let first = self.table.shapes.get(shapes.next()?)?;
        let start: Region = first.place.iter().map(|place| (*place, *place)).collect();
        let all = shapes.filter_map(|shape| self.table.shapes.get(shape));
        Some(all.fold(start, |mut region, shape| {
            for ((low, high), place) in region.iter_mut().zip(&shape.place) {
                *low = (*low).min(*place);
                *high = (*high).max(*place);
            }
            region
        }))
    }

    /// Returns the variant with the least worst loss on a box.
    fn best_variant(&self, region: &Region) -> (usize, f64) {
        let worst = |member: usize| {
            let losses = self.table.inside(region);
            losses
                .map(|shape| self.losses.loss(member, shape))
                .fold(0.0, f64::max)
        };
        let all = self.members.iter().enumerate();
        let all = all.map(|(place, member)| (place, worst(*member)));
        all.min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((0, f64::INFINITY))
    }

    /// Plans the smallest tree of a shrunk box.
    fn plan(&mut self, region: &Region) -> Plan {
        if let Some(plan) = self.plans.get(region) {
            return *plan;
        }
        let (_, worst) = self.best_variant(region);
        let mut best = Plan {
            leaves: if worst <= self.loss { 1 } else { usize::MAX },
            worst: if worst <= self.loss {
                worst
            } else {
                f64::INFINITY
            },
            cut: None,
        };
        if best.leaves > 1 {
            for axis in 0..region.len() {
                let (low, high) = region.get(axis).copied().unwrap_or_default();
                for first in low + 1..=high {
                    let [below, above] = halves(region, axis, first);
                    let (Some(below), Some(above)) = (self.shrunk(&below), self.shrunk(&above))
                    else {
                        continue;
                    };
                    let (below, above) = (self.plan(&below), self.plan(&above));
                    let leaves = below.leaves.saturating_add(above.leaves);
                    let worst = below.worst.max(above.worst);
                    if (leaves, worst) < (best.leaves, best.worst) {
                        best = Plan {
                            leaves,
                            worst,
                            cut: Some((axis, first)),
                        };
                    }
                }
            }
        }
        self.plans.insert(region.clone(), best);
        best
    }

    /// Builds the planned tree of a box.
    fn node(&mut self, region: &Region) -> Node {
        let shrunk = self.shrunk(region).unwrap_or_else(|| region.clone());
        let plan = self.plan(&shrunk);
        let Some((axis, first)) = plan.cut else {
            return Node::Leaf(self.leaf(region, &shrunk));
        };
        let [below, above] = halves(region, axis, first);
        let from = shrunk.get(axis).map_or(0, |(low, _)| *low);
        Node::Split {
            axis,
            from,
            first,
            below: Box::new(self.node(&below)),
            above: Box::new(self.node(&above)),
        }
    }

    fn leaf(&self, region: &Region, shrunk: &Region) -> Leaf {
        let (variant, worst) = self.best_variant(shrunk);
        let member = self.members.get(variant).copied().unwrap_or(0);
        let around = self.table.widened(region);
        let untuned = self.table.inside(&around);
        let untuned = untuned
            .map(|shape| self.losses.loss(member, shape))
            .fold(0.0, f64::max);
        Leaf {
            variant,
            shapes: self.table.inside(shrunk).count(),
            worst,
            untuned: match self.table.has_gap(&around) {
                false => Untuned::None,
                true if untuned.is_finite() => Untuned::UpTo(untuned),
                true => Untuned::Unknown,
            },
        }
    }
}

/// Cuts a box on an axis.
fn halves(region: &Region, axis: usize, first: usize) -> [Region; 2] {
    let mut halves = [region.clone(), region.clone()];
    let [below, above] = &mut halves;
    if let (Some(below), Some(above)) = (below.get_mut(axis), above.get_mut(axis)) {
        below.1 = first.saturating_sub(1);
        above.0 = first;
    }
    halves
}

#[cfg(test)]
mod tests;
