use super::{SEARCH_STEPS, best_of_size, cover, smallest};
use crate::portfolio::Losses;

/// A table of losses from a fixed generator; some pairs do not work.
fn table(seed: u64, configs: usize, shapes: usize) -> Losses {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let mut rows: Vec<Vec<Option<f64>>> = (0..configs)
        .map(|_| {
            (0..shapes)
                .map(|_| (next() > 0.1).then(&mut next))
                .collect()
        })
        .collect();
    // Each shape has a best configuration, with a loss of 0.
    (0..shapes).for_each(|shape| {
        let best = (next() * configs as f64) as usize;
        rows[best][shape] = Some(0.0);
    });
    Losses(rows)
}

/// All subsets of at most that size.
fn subsets(configs: usize, size: usize) -> Vec<Vec<usize>> {
    let members = |bits: &u32| (0..configs).filter(|at| bits >> at & 1 == 1).collect();
    let all = 1..1_u32 << configs;
    all.filter(|bits| bits.count_ones() as usize <= size)
        .map(|bits| members(&bits))
        .collect()
}

#[test]
fn the_worst_loss_of_a_size_is_that_of_brute_force() {
    for seed in 1..60 {
        let losses = table(seed, 9, 7);
        for size in 1..=5 {
            let worst = |members: &Vec<usize>| losses.worst_and_mean(members).0;
            let all = subsets(9, size);
            let least = all.iter().map(worst).fold(f64::INFINITY, f64::min);
            match best_of_size(&losses, size, SEARCH_STEPS) {
                Some(choice) => {
                    assert_eq!(choice.worst, least, "seed {seed}, size {size}");
                    assert!(choice.members.len() <= size && choice.is_exact());
                }
                None => assert_eq!(least, f64::INFINITY, "seed {seed}, size {size}"),
            }
        }
    }
}

#[test]
fn the_smallest_set_is_that_of_brute_force() {
    for seed in 1..60 {
        let losses = table(seed, 9, 7);
        for loss in [0.0, 0.05, 0.2, 0.5] {
            let within = |members: &Vec<usize>| losses.worst_and_mean(members).0 <= loss;
            let all = subsets(9, 9);
            let fitting = all.iter().filter(|members| within(members));
            let least = fitting.map(Vec::len).min();
            let found = smallest(&losses, loss, SEARCH_STEPS);
            assert_eq!(
                found.as_ref().map(|found| found.choice.members.len()),
                least,
                "seed {seed}, loss {loss}"
            );
            assert!(
                found.is_none_or(|found| Some(found.least) == least && found.choice.worst <= loss)
            );
        }
    }
}

#[test]
fn a_search_that_is_cut_off_has_a_true_bound() {
    let mut cut_off = 0;
    for seed in 1..60 {
        let losses = table(seed, 24, 20);
        for size in [2, 3, 4, 6] {
            let (Some(exact), Some(greedy)) = (
                best_of_size(&losses, size, SEARCH_STEPS),
                best_of_size(&losses, size, 1),
            ) else {
                continue;
            };
            assert!(
                greedy.bound <= exact.worst,
                "seed {seed}: {greedy:?} {exact:?}"
            );
            assert!(exact.worst <= greedy.worst && greedy.members.len() <= size);
            cut_off += usize::from(!greedy.is_exact());
        }
        for threshold in [0.1, 0.3] {
            let (exact, greedy) = (
                cover(&losses, threshold, SEARCH_STEPS),
                cover(&losses, threshold, 1),
            );
            if let (Some(exact), Some(greedy)) = (exact, greedy) {
                assert!(greedy.least <= exact.members.len() && exact.least == exact.members.len());
                assert!(exact.members.len() <= greedy.members.len());
            }
        }
    }
    assert!(cut_off > 20, "{cut_off} of the searches were cut off");
}

#[test]
fn a_shape_that_no_configuration_serves_has_no_set() {
    let losses = Losses(vec![vec![Some(0.0), None], vec![Some(0.5), None]]);
    assert_eq!(best_of_size(&losses, 2, SEARCH_STEPS), None);
    assert_eq!(smallest(&losses, 1.0, SEARCH_STEPS), None);
}
