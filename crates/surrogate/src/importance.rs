//! Parameter importance by the functional analysis of variance of a random forest.
//!
//! Hutter, Hoos, Leyton-Brown, *An Efficient Approach for Assessing Hyperparameter Importance*
//! (ICML 2014): each regression tree divides the grid of all settings into boxes, so the mean over
//! all other parameters is a sum over boxes. The share of the tree's variance that one parameter
//! explains alone is exact for that tree. The rest of the variance is due to interactions.

/// Number of trees in the forest.
const TREES: usize = 48;

/// Smallest number of points in a box that is divided.
const MIN_SPLIT: usize = 4;

/// Largest nesting depth of boxes.
const MAX_DEPTH: usize = 24;

/// Importance of the parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Importance {
    /// Share of the variance that each parameter explains alone, 0 to 1.
    pub alone: Vec<f64>,
    /// Share of the variance that interactions of parameters explain, 0 to 1.
    pub together: f64,
}

/// Computes the importance of parameters with `levels` values each, from `points` (the level index
/// of each parameter) and their `values` (logarithms for times). The same input produces the same
/// result. `None` if there are too few points, or their values do not differ.
#[must_use]
pub fn importance(levels: &[usize], points: &[Vec<usize>], values: &[f64]) -> Option<Importance> {
    let fits = |point: &Vec<usize>| {
        point.len() == levels.len() && point.iter().zip(levels).all(|(at, count)| at < count)
    };
    let usable = points.len() == values.len()
        && points.iter().all(fits)
        && values.iter().all(|value| value.is_finite());
    if !usable || points.len() < 2 * MIN_SPLIT {
        return None;
    }
    let mut draws = Draws(0x5eed);
    let mut sums = vec![0.0; levels.len()];
    let (mut together, mut trees) = (0.0, 0_u32);
    for _ in 0..TREES {
        // A bootstrap sample, so that each tree has different points.
        let chosen: Vec<usize> = points.iter().map(|_| draws.below(points.len())).collect();
        let mut boxes = Vec::new();
        let whole: Vec<(usize, usize)> = levels.iter().map(|count| (0, *count)).collect();
        let mut grower = Grower {
            points,
            values,
            draws: &mut draws,
            boxes: &mut boxes,
        };
        grower.divide(whole, chosen, 0);
        let Some(shares) = shares(levels, &boxes) else {
            continue;
        };
        trees += 1;
        together += (1.0 - shares.iter().sum::<f64>()).max(0.0);
        for (sum, share) in sums.iter_mut().zip(shares) {
            *sum += share;
        }
    }
    (trees > 0).then(|| Importance {
        alone: sums.iter().map(|sum| sum / f64::from(trees)).collect(),
        together: together / f64::from(trees),
    })
}

/// Deterministic pseudo-random numbers: splitmix64 (Steele, Lea, Flood 2014).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }
}

/// A box of the grid for which a tree predicts one value.
struct Leaf {
    /// Level range of each parameter, end excluded.
    ranges: Vec<(usize, usize)>,
    value: f64,
}

/// Builder of one tree, which divides the grid into boxes.
struct Grower<'a> {
    points: &'a [Vec<usize>],
    values: &'a [f64],
    draws: &'a mut Draws,
    boxes: &'a mut Vec<Leaf>,
}

impl Grower<'_> {
    fn divide(&mut self, ranges: Vec<(usize, usize)>, chosen: Vec<usize>, depth: usize) {
        let split = if chosen.len() < MIN_SPLIT || depth >= MAX_DEPTH {
            None
        } else {
            self.best_split(&ranges, &chosen)
        };
        let Some((parameter, at)) = split else {
            let sum: f64 = chosen.iter().map(|point| self.values[*point]).sum();
            self.boxes.push(Leaf {
                ranges,
                value: sum / chosen.len().max(1) as f64,
            });
            return;
        };
        let (below, above) = chosen
            .into_iter()
            .partition(|point| self.points[*point][parameter] < at);
        let (mut low, mut high) = (ranges.clone(), ranges);
        low[parameter].1 = at;
        high[parameter].0 = at;
        self.divide(low, below, depth + 1);
        self.divide(high, above, depth + 1);
    }

    /// Finds the split with the least squared error: the parameter and the first upper level. Each
    /// call skips one parameter in six at random, so that trees differ.
    fn best_split(
        &mut self,
        ranges: &[(usize, usize)],
        chosen: &[usize],
    ) -> Option<(usize, usize)> {
        let mut best: Option<(f64, usize, usize)> = None;
        for (parameter, (from, to)) in ranges.iter().copied().enumerate() {
            if to - from < 2 || self.draws.below(6) == 0 {
                continue;
            }
            let mut counts = vec![(0.0, 0.0); to - from];
            for point in chosen {
                let slot = &mut counts[self.points[*point][parameter] - from];
                slot.0 += 1.0;
                slot.1 += self.values[*point];
            }
            let all = counts
                .iter()
                .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            let mut low = (0.0, 0.0);
            for (level, slot) in counts.iter().enumerate().take(to - from - 1) {
                low = (low.0 + slot.0, low.1 + slot.1);
                let high = (all.0 - low.0, all.1 - low.1);
                if low.0 < 1.0 || high.0 < 1.0 {
                    continue;
                }
                // The total sum of squares is constant, so the sum within both parts is smallest at the
                // maximum.
                let gain = low.1 * low.1 / low.0 + high.1 * high.1 / high.0 - all.1 * all.1 / all.0;
                // Rounding may leave a tiny gain between equal values.
                if gain > best.map_or(1e-12, |(most, ..)| most) {
                    best = Some((gain, parameter, from + level + 1));
                }
            }
        }
        best.map(|(_, parameter, at)| (parameter, at))
    }
}

/// Computes the share of a tree's variance that each parameter explains; `None` for a constant
/// tree.
fn shares(levels: &[usize], boxes: &[Leaf]) -> Option<Vec<f64>> {
    let width = |(from, to): (usize, usize), count: usize| (to - from) as f64 / count as f64;
    let volume = |leaf: &Leaf| -> f64 {
        let sides = leaf.ranges.iter().zip(levels);
        sides.map(|(range, count)| width(*range, *count)).product()
    };
    let volumes: Vec<f64> = boxes.iter().map(volume).collect();
    let parts = || boxes.iter().zip(&volumes);
    let mean: f64 = parts().map(|(leaf, volume)| leaf.value * volume).sum();
    let variance: f64 = parts()
        .map(|(leaf, volume)| (leaf.value - mean).powi(2) * volume)
        .sum();
    if variance <= 1e-18 {
        return None;
    }
    let explained = |(parameter, count): (usize, &usize)| {
        let mut means = vec![0.0; *count];
        for (leaf, volume) in parts() {
            let range = leaf.ranges[parameter];
            // A box's share of the mean over the other parameters is weighted by its share of their volume.
            let share = leaf.value * volume / width(range, *count);
            for mean in &mut means[range.0..range.1] {
                *mean += share;
            }
        }
        let spread: f64 = means.iter().map(|at| (at - mean).powi(2)).sum();
        spread / *count as f64 / variance
    };
    Some(levels.iter().enumerate().map(explained).collect())
}

#[cfg(test)]
mod tests;
