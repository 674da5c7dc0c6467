//! Ranks and ties, from times alone. Pure functions.

use tuner_core::statistics::{MedianEnd, may_be_equal};

/// A candidate's time with its uncertainty, microseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timed {
    /// The rank class of its comparison.
    pub(super) class: u8,
    /// Only a sample of its blocks was compared.
    pub(super) sampled: bool,
    pub(super) p50: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The time of the search, if `p50` is of a final comparison.
    pub(super) search: Option<f64>,
    /// The same as a ratio to a fixed reference, if one was timed between its samples.
    pub(super) relative: Option<Relative>,
}

/// A candidate's time over that of a fixed reference, independent of drift and of the session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Relative {
    pub(super) reference: String,
    pub(super) p50: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A rank, and whether it cannot be distinguished from the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rank: u32,
    pub(super) tied_with_best: bool,
}

/// Reports whether the 95 % interval of the ratio `other / best` contains 1. Times of two rank classes
/// never tie, nor does a sampled one with one that was compared whole.
///
/// The medians are of separate samples, so the interval is that of
/// [`statistics::ratio_of_medians`](tuner_core::statistics::ratio_of_medians). A single sample has an
/// interval of zero width, and so ties only with an equal time.
///
/// If both were timed against the same fixed reference, the ratios to it are compared instead of the times:
/// they may be of different runs with different clocks. If only one has a time of a final comparison, the
/// times of the search are compared.
pub(super) fn ties(best: &Timed, other: &Timed) -> bool {
    // The best was proven if that was affordable: without a proof, others are not its equals.
    if best.class != other.class || !best.sampled && other.sampled {
        return false;
    }
    // Ratios to one reference cancel the clocks of different sessions.
    if let (Some(a), Some(b)) = (&best.relative, &other.relative)
        && a.reference == b.reference
    {
        return may_be_equal(median_end(a.p50, a.high), median_end(b.p50, b.low));
    }
    let (fast, slow) = match (best.search, other.search) {
        (Some(best), None) => (median_end(best, best), median_end(other.p50, other.low)),
        (None, Some(other)) => (median_end(best.p50, best.high), median_end(other, other)),
        _ => (
            median_end(best.p50, best.high),
            median_end(other.p50, other.low),
        ),
    };
    may_be_equal(fast, slow)
}

fn median_end(median: f64, end: f64) -> MedianEnd {
    MedianEnd { median, end }
}

/// Ranks candidates in the order of [`best_times`](super::times::best_times). A row shares the rank above if the times are
/// equal or both tie with the best; otherwise its rank is its position, so ranks never decrease.
pub(super) fn places(sorted: &[Timed]) -> Vec<Place> {
    let Some(best) = sorted.first() else {
        return Vec::new();
    };
    let mut places: Vec<Place> = Vec::with_capacity(sorted.len());
    for (index, time) in sorted.iter().enumerate() {
        let tied_with_best = ties(best, time);
        let position = u32::try_from(index + 1).unwrap_or(u32::MAX);
        // Ties are with the best only: chains of pairwise ties would give one rank to very different times.
        let rank = match (places.last(), sorted.get(index.wrapping_sub(1))) {
            (Some(above), Some(time_above))
                if (time_above.class == time.class
                    && time_above.sampled == time.sampled
                    && time_above.search.is_some() == time.search.is_some()
                    && time_above.p50.total_cmp(&time.p50).is_eq())
                    || (above.rank == 1 && above.tied_with_best && tied_with_best) =>
            {
                above.rank
            }
            _ => position,
        };
        places.push(Place {
            rank,
            tied_with_best,
        });
    }
    places
}

#[cfg(test)]
mod tests;
