//! Work of the blocks of a grid, compared with that of one of them.

/// Instruction limit, skipped ones included, after which no more paths are followed. A limit in
/// instructions instead of time keeps predictions deterministic.
pub(super) const MAX_FOLLOWED_INSTRUCTIONS: u64 = 8_000_000;

/// Work of a grid's blocks, in units of the traced block's work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Imbalance {
    /// Mean of all blocks.
    pub(crate) mean: f64,
    /// Maximum of all blocks.
    pub(crate) most: f64,
    /// True if some blocks could not be followed.
    pub(crate) unknown: bool,
    /// Share of the blocks that exit at once.
    pub(crate) idle: f64,
}

/// Chooses the block nearest to the mean of `paths`, and compares it with all `count` blocks of which
/// those not among the paths do nothing.
pub(super) fn nearest_to_mean(
    paths: &[(u64, f64)],
    count: f64,
    middle: u64,
) -> Option<(u64, Imbalance)> {
    let total = paths.iter().map(|(_, work)| work).sum::<f64>();
    let mean = total / paths.len() as f64;
    let most = paths.iter().map(|(_, work)| *work).fold(0.0, f64::max);
    // Among the blocks nearest to the mean, prefer the middle of the grid, away from border cases.
    let key =
        |(block, work): &(u64, f64)| ((work / mean - 1.0).abs() * 100.0, block.abs_diff(middle));
    let order = |a: &(f64, u64), b: &(f64, u64)| (a.0 as u64, a.1).cmp(&(b.0 as u64, b.1));
    let nearest = paths.iter().min_by(|a, b| order(&key(a), &key(b)));
    let (chosen, work) = nearest.copied()?;
    let imbalance = Imbalance {
        mean: total / count / work,
        most: most / work,
        unknown: false,
        idle: 1.0 - paths.len() as f64 / count,
    };
    Some((chosen, imbalance))
}
