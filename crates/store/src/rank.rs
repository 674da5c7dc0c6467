//! Places and ties, from times alone. Pure.

use tuner_core::statistics::may_be_equal;

/// A candidate's time with its uncertainty, microseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timed {
    pub(super) p50: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The same as a ratio to a fixed reference, where one was timed in between.
    pub(super) relative: Option<Relative>,
}

/// A candidate's time over that of a fixed reference: what drift and other days leave alone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Relative {
    pub(super) reference: String,
    pub(super) p50: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A place, and whether the best cannot be told apart from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rank: u32,
    pub(super) tied_with_best: bool,
}

/// Whether the 95 % interval of the ratio `other / best` contains 1.
///
/// The medians come from separate samples, so the interval is that of
/// [`statistics::ratio_of_medians`](tuner_core::statistics::ratio_of_medians). A single sample has an
/// interval of no width, and so ties only with an equal time.
///
/// Where both were timed against the same fixed reference, the ratios to it are compared instead
/// of the times: they may come from different runs, and clocks are never twice the same.
pub(super) fn ties(best: &Timed, other: &Timed) -> bool {
    match (&best.relative, &other.relative) {
        (Some(a), Some(b)) if a.reference == b.reference => {
            may_be_equal((a.p50, a.high), (b.p50, b.low))
        }
        _ => may_be_equal((best.p50, best.high), (other.p50, other.low)),
    }
}

/// Places of candidates sorted by time. A row shares the place above when the times are equal or
/// when both tie with the best; otherwise its place is its position, so places never decrease.
pub(super) fn places(sorted: &[Timed]) -> Vec<Place> {
    let Some(best) = sorted.first() else {
        return Vec::new();
    };
    let mut places: Vec<Place> = Vec::with_capacity(sorted.len());
    for (index, time) in sorted.iter().enumerate() {
        let tied_with_best = ties(best, time);
        let position = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let rank = match (places.last(), sorted.get(index.wrapping_sub(1))) {
            (Some(above), Some(time_above))
                if time_above.p50.total_cmp(&time.p50).is_eq()
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
mod tests {
    use super::*;

    fn check(times: &[(f64, f64, f64)], expected: &[(u32, bool)]) {
        let times: Vec<Timed> = times
            .iter()
            .map(|(p50, low, high)| Timed {
                p50: *p50,
                low: *low,
                high: *high,
                relative: None,
            })
            .collect();
        let got: Vec<(u32, bool)> = places(&times)
            .iter()
            .map(|place| (place.rank, place.tied_with_best))
            .collect();
        assert_eq!(got, expected, "{times:?}");
    }

    #[test]
    fn single_samples_tie_only_when_equal() {
        check(
            &[
                (1.0, 1.0, 1.0),
                (1.0, 1.0, 1.0),
                (1.1, 1.1, 1.1),
                (1.1, 1.1, 1.1),
            ],
            &[(1, true), (1, true), (3, false), (3, false)],
        );
    }

    #[test]
    fn overlapping_intervals_tie_and_separate_ones_do_not() {
        check(
            &[(10.0, 9.8, 10.2), (10.1, 9.9, 10.3), (11.0, 10.9, 11.1)],
            &[(1, true), (1, true), (3, false)],
        );
    }

    #[test]
    fn intervals_that_touch_may_still_differ() {
        // Each is ±2 %, 3.5 % apart: the intervals overlap, the ratio's does not contain 1.
        check(
            &[(10.0, 9.8, 10.2), (10.35, 10.143, 10.557)],
            &[(1, true), (2, false)],
        );
    }

    #[test]
    fn a_noisy_straggler_ties_without_climbing_over_the_one_between() {
        check(
            &[(10.0, 9.99, 10.01), (10.5, 10.49, 10.51), (11.0, 9.0, 13.0)],
            &[(1, true), (2, false), (3, true)],
        );
    }

    #[test]
    fn times_of_different_runs_are_compared_by_their_ratio_to_the_same_reference() {
        // The second run's clock was 4 % slower: 10.4 µs there are 10.0 µs here.
        let run = |unit: f64, ratio: f64, reference: &str| {
            let ends = [0.998, 1.002].map(|end| ratio * end);
            Timed {
                p50: ratio * unit,
                low: ends[0] * unit,
                high: ends[1] * unit,
                relative: Some(Relative {
                    reference: reference.into(),
                    p50: ratio,
                    low: ends[0],
                    high: ends[1],
                }),
            }
        };
        let best = run(100.0, 0.1, "r");
        assert!(ties(&best, &run(104.0, 0.1, "r")));
        assert!(!ties(&best, &run(100.0, 0.104, "r")));
        assert!(!ties(&best, &run(104.0, 0.1, "another")));
    }

    #[test]
    fn nothing_has_no_places() {
        check(&[], &[]);
    }
}
