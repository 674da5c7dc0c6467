use super::*;
use tuner_core::units::Micros;
use tuner_judge::explanation::Explanation;

fn forecast(us: f64) -> Forecast {
    let time = Micros::new(us).unwrap();
    let explanation = Explanation {
        bound: "dram".to_owned(),
        occupancy: 0.1,
        waves: 0.2,
        blocks: 3,
        metrics: [("a.sum".to_owned(), 1.0 / 3.0)].into(),
        ..Explanation::default()
    };
    Forecast { time, explanation }
}

#[test]
fn what_is_kept_comes_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let kept = PredictionCache::new(folder.path().to_owned()).unwrap();
    let key = ContentHash::from_parts([b"one".as_slice()]);
    assert_eq!(kept.read(&key), None);
    let first = forecast(0.1 + 0.2);
    kept.write(&key, &first);
    assert_eq!(kept.read(&key), Some(first));
}

#[test]
fn predictions_that_others_may_have_written_or_swapped_are_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let kept = PredictionCache::new(folder.path().to_owned()).unwrap();
    let [one, two] = [b"one", b"two"].map(|name| ContentHash::from_parts([name.as_slice()]));
    kept.write(&one, &forecast(1.0));
    kept.write(&two, &forecast(2.0));
    std::fs::copy(kept.folder.path(&two), kept.folder.path(&one)).unwrap();
    assert_eq!(kept.read(&one), None);
    assert_eq!(kept.read(&two), Some(forecast(2.0)));
    let predictions = folder.path().join("predictions");
    std::fs::set_permissions(&predictions, PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(kept.read(&two), None);
}
