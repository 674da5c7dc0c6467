use super::*;
use proptest::prelude::*;
use rand::SeedableRng as _;

fn summarise(samples: &[Micros]) -> Option<Measurement> {
    super::summarise(TimingKind::Measured, "test", samples)
}

fn times(values: &[f64]) -> Vec<Micros> {
    values.iter().filter_map(|&us| Micros::new(us)).collect()
}

#[test]
fn nothing_has_no_summary() {
    assert_eq!(summarise(&[]), None);
}

#[test]
fn one_sample_is_its_own_interval() {
    let one = times(&[7.5]);
    let summary = summarise(&one).unwrap();
    assert_eq!((summary.p50, summary.p90), (one[0], one[0]));
    assert_eq!(summary.ci95, [one[0], one[0]]);
}

#[test]
fn quantiles_agree_with_numpy() {
    // numpy.percentile([3, 1, 4, 1.5, 9, 2.6], [50, 90]) = [2.8, 6.5]
    let summary = summarise(&times(&[3.0, 1.0, 4.0, 1.5, 9.0, 2.6])).unwrap();
    assert!((summary.p50.get() - 2.8).abs() < 1e-12);
    assert!((summary.p90.get() - 6.5).abs() < 1e-12);
}

#[test]
fn two_groups_are_found_and_one_is_not() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(8);
    let mut noise = || (0..8).map(|_| rng.random::<f64>() - 0.5).sum::<f64>() * 0.01;
    let mut found = 0;
    for _ in 0..200 {
        let one: Vec<f64> = (0..30).map(|_| 10.0 * (1.0 + noise())).collect();
        found += usize::from(bimodal(&one));
        let two: Vec<f64> = (0..30)
            .map(|at| 10.0 * (1.0 + noise() * 0.3 + 0.06 * f64::from(u8::from(at % 3 == 0))))
            .collect();
        assert!(bimodal(&two), "{two:?}");
    }
    assert!(found <= 4, "{found} of 200 single groups look like two");
    assert!(!bimodal(&[5.0; 20]) && !bimodal(&[1.0, 2.0]));
}

#[test]
fn the_exact_interval_is_what_resampling_converges_to() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let samples: Vec<f64> = (0..31).map(|_| 10.0 + rng.random::<f64>()).collect();
    let mut sorted = times(&samples);
    sorted.sort_unstable();
    let exact = interval_of_median(&samples).unwrap();
    let mut medians: Vec<f64> = (0..20_000)
        .map(|_| {
            let mut draw: Vec<f64> = (0..31)
                .map(|_| sorted[rng.random_range(0..31)].get())
                .collect();
            draw.sort_unstable_by(f64::total_cmp);
            draw[15]
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    // The bootstrap distribution is discrete; allow one order statistic on either side.
    let place = |us: f64| sorted.partition_point(|sample| sample.get() < us) as i64;
    assert!((place(medians[500]) - place(exact[0])).abs() <= 1);
    assert!((place(medians[19_500]) - place(exact[1])).abs() <= 1);
}

proptest! {
    #[test]
    fn the_interval_holds_the_median_and_lies_within_the_samples(
        values in proptest::collection::vec(0.001_f64..1e6, 1..200)
    ) {
        let mut sorted = times(&values);
        sorted.sort_unstable();
        let summary = summarise(&sorted).unwrap();
        prop_assert!(summary.ci95[0] <= summary.p50 && summary.p50 <= summary.ci95[1]);
        prop_assert!(sorted[0] <= summary.ci95[0]);
        prop_assert!(summary.ci95[1] <= sorted[sorted.len() - 1]);
    }
}

#[test]
fn a_ratio_of_exact_times_is_exact_and_noise_widens_it() {
    assert_eq!(
        ratio_of_medians((4.0, 4.0, 4.0), (2.0, 2.0, 2.0)),
        [2.0, 2.0, 2.0]
    );
    let [middle, low, high] = ratio_of_medians((4.0, 3.8, 4.2), (2.0, 1.9, 2.1));
    assert!((middle - 2.0).abs() < 1e-12 && low > 1.85 && low < 1.9 && high > 2.1 && high < 2.16);
}
