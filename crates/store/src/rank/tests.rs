use super::*;

fn check(times: &[(f64, f64, f64)], expected: &[(u32, bool)]) {
    let times: Vec<Timed> = times
        .iter()
        .map(|(p50, low, high)| Timed {
            class: 0,
            sampled: false,
            p50: *p50,
            low: *low,
            high: *high,
            search: None,
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
    // Intervals of ±2 % at 3.5 % distance overlap, but the ratio's interval does not contain 1.
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
            class: 0,
            sampled: false,
            p50: ratio * unit,
            low: ends[0] * unit,
            high: ends[1] * unit,
            search: None,
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

#[test]
fn a_time_of_the_search_ties_with_a_final_one_by_the_times_of_the_search() {
    let timed = |p50: f64, search| Timed {
        sampled: false,
        class: 0,
        p50,
        low: p50 * 0.99,
        high: p50 * 1.01,
        search,
        relative: None,
    };
    let best = timed(222.0, Some(197.0));
    assert!(ties(&best, &timed(197.5, None)));
    assert!(!ties(&best, &timed(221.0, None)));
    assert!(ties(&best, &timed(223.0, Some(150.0))));
    assert!(!ties(&timed(100.0, None), &timed(101.0, Some(150.0))));
    // Equal times of two protocols share no rank.
    let ranks = places(&[
        timed(50.0, None),
        timed(222.0, Some(197.0)),
        timed(222.0, None),
    ]);
    let ranks: Vec<u32> = ranks.iter().map(|place| place.rank).collect();
    assert_eq!(ranks, [1, 2, 3]);
}

#[test]
fn a_sample_is_no_equal_of_what_was_compared_whole() {
    let timed = |sampled, p50| Timed {
        class: 0,
        sampled,
        p50,
        low: p50 * 0.9,
        high: p50 * 1.1,
        search: None,
        relative: None,
    };
    let ranks = |times: &[Timed]| -> Vec<(u32, bool)> {
        let all = places(times).into_iter();
        all.map(|place| (place.rank, place.tied_with_best))
            .collect()
    };
    let (whole, sampled) = (timed(false, 10.0), timed(true, 10.0));
    assert_eq!(
        ranks(&[whole.clone(), sampled.clone()]),
        [(1, true), (2, false)]
    );
    assert_eq!(ranks(&[sampled.clone(), sampled]), [(1, true), (1, true)]);
    assert_eq!(ranks(&[whole.clone(), whole]), [(1, true), (1, true)]);
}
