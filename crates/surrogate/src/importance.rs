//! How much each parameter matters: the functional analysis of variance of a random forest.
//!
//! Hutter, Hoos, Leyton-Brown, *An Efficient Approach for Assessing Hyperparameter Importance* (ICML
//! 2014): each regression tree divides the grid of all settings into boxes, so the mean over all other
//! parameters is a sum over boxes, and the share of the tree's variance that one parameter explains by
//! itself is exact for that tree. What no parameter explains alone is owed to parameters together.

/// Trees of a forest.
const TREES: usize = 48;

/// A box with fewer points than this is not divided.
const MIN_SPLIT: usize = 4;

/// Boxes are divided so often at most, one inside another.
const MAX_DEPTH: usize = 24;

/// What the parameters are worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Importance {
    /// The share of the variance that each parameter explains alone, 0 to 1.
    pub alone: Vec<f64>,
    /// The share that is owed to parameters together, 0 to 1.
    pub together: f64,
}

/// The importance of parameters that have so many `levels` each, from `points` (the level of each
/// parameter, by number) and their `values` (times are best given as logarithms). The same input gives
/// the same answer. `None` where there are too few points, or their values do not differ.
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

/// Numbers that look random and are the same each time: splitmix64 (Steele, Lea, Flood 2014).
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

/// A part of the grid in which a tree predicts one value.
struct Leaf {
    /// Levels from and to (excluded), for each parameter.
    ranges: Vec<(usize, usize)>,
    value: f64,
}

/// Divides the grid into the boxes of one tree.
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

    /// The parameter and first upper level whose division leaves the least squared error. Each time one
    /// parameter in six is left out, so that trees differ.
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
            for (place, slot) in counts.iter().enumerate().take(to - from - 1) {
                low = (low.0 + slot.0, low.1 + slot.1);
                let high = (all.0 - low.0, all.1 - low.1);
                if low.0 < 1.0 || high.0 < 1.0 {
                    continue;
                }
                // The sum of squares within both parts is least where this is greatest.
                let gain = low.1 * low.1 / low.0 + high.1 * high.1 / high.0 - all.1 * all.1 / all.0;
                if gain > best.map_or(1e-12, |(most, ..)| most) {
                    best = Some((gain, parameter, from + place + 1));
                }
            }
        }
        best.map(|(_, parameter, at)| (parameter, at))
    }
}

/// The share of a tree's variance that each parameter explains; `None` for a tree without any.
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
    let of = |(parameter, count): (usize, &usize)| {
        let mut means = vec![0.0; *count];
        for (leaf, volume) in parts() {
            let range = leaf.ranges[parameter];
            let share = leaf.value * volume / width(range, *count);
            for mean in &mut means[range.0..range.1] {
                *mean += share;
            }
        }
        let spread: f64 = means.iter().map(|at| (at - mean).powi(2)).sum();
        spread / *count as f64 / variance
    };
    Some(levels.iter().enumerate().map(of).collect())
}

#[cfg(test)]
mod tests;
