use super::*;
use crate::timing::predict::Explanation;
use tuner_core::units::Micros;

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
    let kept = Kept::new(folder.path().join("predictions")).unwrap();
    let key = ContentHash::of([b"one".as_slice()]);
    assert_eq!(kept.read(&key), None);
    let first = forecast(0.1 + 0.2);
    kept.write(&key, &first);
    assert_eq!(kept.read(&key), Some(first));
}
