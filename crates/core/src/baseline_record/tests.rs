use super::*;

fn record(visits: &[(f64, Option<f64>)]) -> BaselineRecord {
    BaselineRecord {
        name: Some("peer".into()),
        visits: visits
            .iter()
            .map(|(p50_us, reference_us)| Visit {
                moment: Moment::Before,
                p50_us: *p50_us,
                p90_us: 1.1 * p50_us,
                reference_us: *reference_us,
            })
            .collect(),
        reference: Some(ContentHash::from_stored("r".into())),
        ..BaselineRecord::default()
    }
}

#[test]
fn drift_that_the_reference_shows_is_taken_out() {
    let drifted = record(&[(10.0, Some(100.0)), (11.0, Some(110.0))]);
    assert!(!drifted.unsteady());
    assert!((drifted.p50_us().unwrap() - 10.5).abs() < 1e-9);
    // The row's session ran as fast as the first visit.
    let speedup = drifted.speedup(5.0, Some(("r", 100.0))).unwrap();
    assert!((speedup - 2.0).abs() < 1e-9, "{speedup}");
    let other = drifted.speedup(5.0, Some(("other", 100.0))).unwrap();
    assert!((other - 2.1).abs() < 1e-9, "{other}");
}

#[test]
fn answers_that_drift_does_not_explain_are_unsteady() {
    assert!(record(&[(10.0, Some(100.0)), (11.0, Some(100.0))]).unsteady());
    assert!(record(&[(10.0, None), (11.0, None)]).unsteady());
    assert!(!record(&[(10.0, None)]).unsteady());
}

#[test]
fn a_failed_baseline_has_no_figure() {
    let mut failed = record(&[(10.0, None)]);
    failed.failure = Some("it hung".into());
    assert_eq!((failed.p50_us(), failed.speedup(5.0, None)), (None, None));
}
