use super::*;
use tuner_core::element::Element::{Bf16, F8e4m3, F16, F32, F64, I32};

fn bytes(element: Element, values: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        element.encode(*value, &mut bytes);
    }
    bytes
}

/// Returns the sizes of elements whose runs have this standard deviation around the written values.
fn sizes(element: Element, values: &[f64], spreads: &[f64]) -> Vec<f64> {
    let moved = |by: f64| -> Vec<u8> {
        let both = values.iter().zip(spreads);
        bytes(element, &both.map(|(v, s)| v + by * s).collect::<Vec<_>>())
    };
    let (low, high, want) = (moved(-0.5f64.sqrt()), moved(0.5f64.sqrt()), moved(0.0));
    let all = std::iter::once(0..values.len() as u64).collect::<Vec<_>>();
    let runs = FurtherRuns {
        rounded: vec![low.as_slice(), high.as_slice()],
        shadow_errors: None,
    };
    let spread = Spread::new(element, &want, &runs, &all, 256);
    (0..values.len() as u64).map(|i| spread.size(i)).collect()
}

#[test]
fn results_keep_the_bits_of_the_output() {
    let kept = [F16, Bf16, F32, F64, F8e4m3, I32].map(precision);
    assert_eq!(kept, [Some(11), Some(8), Some(24), Some(53), None, None]);
}

#[test]
fn no_element_owes_an_allowance_to_larger_ones() {
    // Elements that are not sums: their spreads are proportional to them.
    let values: Vec<f64> = (0..256).map(|i| (f64::from(i) - 128.0).exp2()).collect();
    let spreads: Vec<f64> = values.iter().map(|v| v * 1e-6).collect();
    let sizes = sizes(F64, &values, &spreads);
    for (value, size) in values.iter().zip(sizes) {
        let relative = size * F64.unit_roundoff() / value;
        assert!(
            relative <= 1e-6 * (1.0 + SMALLEST_RATIO),
            "{value}: {relative}"
        );
    }
}

#[test]
fn a_spread_that_is_small_by_chance_is_that_of_its_neighbours() {
    // Sums that cancel: one spread, independent of the remainder.
    let values: Vec<f64> = (1..=256).map(f64::from).collect();
    let mut spreads = vec![1e-3; 256];
    for lucky in [20, 100, 255] {
        spreads[lucky] = 0.0;
    }
    let sizes = sizes(F64, &values, &spreads);
    for lucky in [20, 100, 255] {
        let spread = sizes[lucky] * F64.unit_roundoff();
        assert!((0.9e-3..1.1e-3).contains(&spread), "{lucky}: {spread}");
    }
}

#[test]
fn one_step_of_a_narrow_type_is_no_sign_of_more() {
    let all = std::iter::once(0..32).collect::<Vec<_>>();
    let rounded = |steps: f64| bytes(F16, &[1.5 + steps * 2f64.powi(-10); 32]);
    let (want, one, four) = (rounded(0.0), rounded(1.0), rounded(4.0));
    let size = |run: &[u8]| {
        let runs = FurtherRuns {
            rounded: vec![want.as_slice(), run],
            shadow_errors: None,
        };
        Spread::new(F16, &want, &runs, &all, 256).size(7)
    };
    assert_eq!(size(&one), 0.0);
    assert!(size(&four) > 1.0);
}

/// Returns shadow value and spread of 32 equal elements of 1, with runs and a shadow value at these
/// distances.
fn spread_of_ones(element: Element, runs: [f64; 2], shadow: Option<f64>) -> [f64; 2] {
    let all = std::iter::once(0..32).collect::<Vec<_>>();
    let moved = |by: f64| bytes(element, &[1.0 + by; 32]);
    let (want, low, high) = (moved(0.0), moved(runs[0]), moved(runs[1]));
    let errors = shadow.map(|by| bytes(shadow_error_type(element).unwrap_or(F64), &[by; 32]));
    let runs = FurtherRuns {
        rounded: vec![low.as_slice(), high.as_slice()],
        shadow_errors: errors.as_deref(),
    };
    let spread = Spread::new(element, &want, &runs, &all, 256);
    let unit = element.unit_roundoff();
    [spread.shadow(7, 1.0), spread.size(7) * unit]
}

#[test]
fn the_error_of_the_reference_counts_once_around_a_shadow() {
    // Roundings to nearest go one way, and random ones go the other way on average.
    let runs = [2.49e-4, 2.51e-4];
    let [shadow, spread] = spread_of_ones(F32, runs, Some(1e-4));
    assert!((shadow - (1.0 + 1e-4)).abs() < 1e-9, "{shadow}");
    assert!((0.35e-4..0.38e-4).contains(&spread), "{spread}");
    let [shadow, spread] = spread_of_ones(F32, runs, None);
    assert_eq!(shadow, 1.0);
    assert!((1.25e-4..1.28e-4).contains(&spread), "{spread}");
}

#[test]
fn a_shadow_that_shows_no_error_hides_none() {
    // An instruction on bits has ended it: the mean of the runs remains.
    let [shadow, spread] = spread_of_ones(F32, [2.49e-4, 2.51e-4], Some(1e-7));
    assert!(shadow != 1.0);
    assert!((1.25e-4..1.28e-4).contains(&spread), "{spread}");
}

#[test]
fn a_shadow_that_the_runs_contradict_does_not_count() {
    let [shadow, _] = spread_of_ones(F32, [-1e-6, 1e-6], Some(1e-3));
    assert_eq!(shadow, 1.0);
    let [shadow, _] = spread_of_ones(F32, [-1e-6, 1e-6], Some(f64::INFINITY));
    assert_eq!(shadow, 1.0);
}

#[test]
fn only_singles_have_shadows() {
    assert_eq!(shadow_error_type(F32), Some(F32));
    assert_eq!(
        [F16, Bf16, F64, F8e4m3, I32].map(shadow_error_type),
        [None; 5]
    );
}
