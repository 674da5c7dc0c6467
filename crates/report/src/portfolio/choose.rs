//! Choice of a set of configurations: the smallest worst loss for a size, and the smallest size for a loss.
//!
//! Both are set covers: a configuration covers the shapes on which its loss is at most a threshold. A cover
//! is searched for by branch and bound. After [`SEARCH_STEPS`] steps the best cover so far, initially the
//! greedy one, is returned with the proven lower bound.

use super::Losses;
use std::collections::BTreeMap;

/// Limit of the steps of one exact search.
pub const SEARCH_STEPS: u64 = 2_000_000;

/// Set of configurations of at most a given size.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Configurations, by index; the one that serves most shapes first.
    pub members: Vec<usize>,
    /// Worst loss over the shapes.
    pub worst: f64,
    /// Mean loss over the shapes.
    pub mean: f64,
    /// Proven: no set of that size has a lower worst loss. Equals `worst` if the search was exact.
    pub bound: f64,
}

impl Choice {
    /// Reports whether no set of that size is better in the worst shape.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.bound >= self.worst
    }
}

/// Smallest set within a loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Smallest {
    /// The set.
    pub choice: Choice,
    /// Proven: no smaller set stays within the loss. Equals the size if the search was exact.
    pub least: usize,
}

/// Cover of all shapes.
struct Cover {
    members: Vec<usize>,
    /// Proven lower bound of its size.
    least: usize,
}

/// Chooses at most `size` configurations with the smallest worst loss, and among those a set with a low
/// mean loss; `None` if no set of that size works on all shapes.
#[must_use]
pub fn best_of_size(losses: &Losses, size: usize, steps: u64) -> Option<Choice> {
    let mut thresholds: Vec<f64> = losses.0.iter().flatten().filter_map(|loss| *loss).collect();
    thresholds.sort_by(f64::total_cmp);
    thresholds.dedup();
    let mut found: Option<(f64, Vec<usize>)> = None;
    // The largest threshold without a set of that size is below every attainable loss.
    let mut unproven = 0;
    let (mut low, mut high) = (0, thresholds.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let threshold = *thresholds.get(middle)?;
        let cover = cover(losses, threshold, steps);
        match cover {
            Some(cover) if cover.members.len() <= size => {
                found = Some((threshold, cover.members));
                high = middle;
            }
            other => {
                // An interrupted search may have missed a set: only a proven size excludes one.
                if other.is_none_or(|cover| cover.least > size) {
                    unproven = unproven.max(middle + 1);
                }
                low = middle + 1;
            }
        }
    }
    let (threshold, members) = found?;
    let members = polish(losses, members, size, threshold);
    let (worst, mean) = losses.worst_and_mean(&members);
    let bound = thresholds
        .get(unproven)
        .copied()
        .unwrap_or(worst)
        .min(worst);
    Some(Choice {
        members,
        worst,
        mean,
        bound,
    })
}

/// Chooses the smallest set whose worst loss is at most `loss`; `None` if a shape has no configuration
/// within it.
#[must_use]
pub fn smallest(losses: &Losses, loss: f64, steps: u64) -> Option<Smallest> {
    let cover = cover(losses, loss, steps)?;
    let size = cover.members.len();
    // The best set of this size is required, not the first one within the loss.
    let choice = best_of_size(losses, size, steps)
        .filter(|choice| choice.worst <= loss)
        .or_else(|| {
            let members = polish(losses, cover.members, size, loss);
            let (worst, mean) = losses.worst_and_mean(&members);
            let bound = 0.0;
            Some(Choice {
                members,
                worst,
                mean,
                bound,
            })
        })?;
    let least = cover.least.min(choice.members.len());
    Some(Smallest { choice, least })
}

/// Lowers the mean loss by single additions and exchanges that keep the worst loss within a
/// threshold, and orders the set by the number of shapes that each member serves.
fn polish(losses: &Losses, mut members: Vec<usize>, size: usize, threshold: f64) -> Vec<usize> {
    members.sort_unstable();
    while let Some(better) = improved(losses, &members, size, threshold) {
        members = better;
    }
    let served = |member: usize| {
        let shapes = 0..losses.shapes();
        let best = |shape: &usize| losses.best_member(&members, *shape);
        shapes
            .filter(|shape| best(shape).is_some_and(|(best, _)| best == member))
            .count()
    };
    let mut counted: Vec<(usize, usize)> = members.iter().map(|&m| (served(m), m)).collect();
    // A member that is best on no shape would only be compiled.
    counted.retain(|(served, _)| *served > 0);
    counted.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    counted.into_iter().map(|(_, member)| member).collect()
}

/// Returns the best exchange of one member; `None` if no exchange lowers the mean loss.
fn improved(losses: &Losses, members: &[usize], size: usize, threshold: f64) -> Option<Vec<usize>> {
    let (_, mean) = losses.worst_and_mean(members);
    let mut best: Option<(f64, Vec<usize>)> = None;
    for candidate in 0..losses.0.len() {
        if members.contains(&candidate) {
            continue;
        }
        // Below the size, adding a member is never worse than exchanging one for it.
        let places = if members.len() < size {
            members.len()..members.len() + 1
        } else {
            0..members.len()
        };
        for place in places {
            let mut changed = members.to_vec();
            match changed.get_mut(place) {
                Some(member) => *member = candidate,
                None => changed.push(candidate),
            }
            let (worst, lower) = losses.worst_and_mean(&changed);
            // Means that differ only by rounding would be exchanged forever.
            let target = best.as_ref().map_or(mean - 1e-12, |(mean, _)| *mean);
            if worst <= threshold && lower < target {
                changed.sort_unstable();
                best = Some((lower, changed));
            }
        }
    }
    best.map(|(_, members)| members)
}

/// Covers all shapes with configurations of at most that loss; `None` if a shape has none.
fn cover(losses: &Losses, threshold: f64, steps: u64) -> Option<Cover> {
    let all = match losses.shapes() {
        // A shift by all 128 bits would overflow.
        0 => 0,
        shapes => u128::MAX >> (128 - shapes.min(128)),
    };
    let mut sets: BTreeMap<u128, usize> = BTreeMap::new();
    for (config, row) in losses.0.iter().enumerate() {
        let within = row.iter().take(128).enumerate();
        let within = within.filter(|(_, loss)| loss.is_some_and(|loss| loss <= threshold));
        let mask = within.fold(0, |mask, (shape, _)| mask | 1_u128 << shape);
        // Configurations that cover the same shapes are equivalent for the search.
        sets.entry(mask).or_insert(config);
    }
    // A set inside another one is never needed.
    let masks: Vec<u128> = sets.keys().copied().collect();
    let inside = |mask: u128| {
        masks
            .iter()
            .any(|other| *other != mask && mask & !other == 0)
    };
    let kept = sets.into_iter().filter(|(mask, _)| !inside(*mask));
    let mut kept: Vec<(u128, usize)> = kept.collect();
    kept.sort_by_key(|(mask, config)| (std::cmp::Reverse(mask.count_ones()), *config));
    if kept.iter().fold(0, |union, (mask, _)| union | mask) != all {
        return None;
    }
    let least = independent_shapes(&kept, all).max(by_size(&kept, all));
    let mut search = CoverSearch {
        best: greedy(&kept, all),
        sets: kept,
        steps,
    };
    if search.best.len() > least {
        search.branch(all, &mut Vec::new());
    }
    let exact = search.steps > 0;
    Some(Cover {
        least: if exact { search.best.len() } else { least },
        members: search.best,
    })
}

/// Covers by the largest gain.
fn greedy(sets: &[(u128, usize)], all: u128) -> Vec<usize> {
    let mut open = all;
    let mut chosen = Vec::new();
    while open != 0 {
        let gain = |set: &&(u128, usize)| ((set.0 & open).count_ones(), std::cmp::Reverse(set.1));
        let Some(best) = sets.iter().max_by_key(gain) else {
            break;
        };
        open &= !best.0;
        chosen.push(best.1);
    }
    chosen
}

/// Returns a lower bound: the open shapes over the largest gain.
fn by_size(sets: &[(u128, usize)], open: u128) -> usize {
    let most = sets.iter().map(|(mask, _)| (mask & open).count_ones());
    let most = most.max().unwrap_or(0).max(1);
    open.count_ones().div_ceil(most) as usize
}

/// Returns a lower bound: shapes of which no set covers two need a set each.
fn independent_shapes(sets: &[(u128, usize)], all: u128) -> usize {
    let neighbours = |shape: u128| {
        let with = sets.iter().filter(|(mask, _)| mask & shape != 0);
        with.fold(0, |union, (mask, _)| union | mask)
    };
    let mut open = all;
    let mut count = 0;
    while open != 0 {
        let bits = (0..128).map(|bit| 1_u128 << bit);
        let free = bits.filter(|bit| open & bit != 0);
        let Some(least) = free.min_by_key(|bit| (neighbours(*bit) & open).count_ones()) else {
            break;
        };
        open &= !neighbours(least);
        open &= !least;
        count += 1;
    }
    count
}

/// Branch and bound over the sets that cover an open shape.
struct CoverSearch {
    /// Masks with their configurations, the largest first.
    sets: Vec<(u128, usize)>,
    best: Vec<usize>,
    /// Remaining steps; 0: the search was interrupted.
    steps: u64,
}

impl CoverSearch {
    fn branch(&mut self, open: u128, chosen: &mut Vec<usize>) {
        if open == 0 {
            if chosen.len() < self.best.len() {
                self.best.clone_from(chosen);
            }
            return;
        }
        if self.steps == 0 || chosen.len() + by_size(&self.sets, open) >= self.best.len() {
            return;
        }
        self.steps -= 1;
        let covering = |bit: u128| self.sets.iter().filter(move |(mask, _)| mask & bit != 0);
        let bits = (0..128).map(|bit| 1_u128 << bit);
        let free = bits.filter(|bit| open & bit != 0);
        // The shape with the fewest sets has the fewest branches.
        let Some(shape) = free.min_by_key(|bit| covering(*bit).count()) else {
            return;
        };
        let mut branches: Vec<(u128, usize)> = covering(shape).copied().collect();
        branches.sort_by_key(|(mask, _)| std::cmp::Reverse((mask & open).count_ones()));
        for (mask, config) in branches {
            chosen.push(config);
            self.branch(open & !mask, chosen);
            chosen.pop();
        }
    }
}

#[cfg(test)]
mod tests;
