use super::*;
use crate::timing::predict::{Explanation, Prediction};
use tuner_core::units::Micros;

fn forecast(us: f64) -> Forecast {
    let time = Micros::new(us).unwrap();
    let prediction = Prediction {
        time,
        occupancy: 0.1,
        waves: 0.2,
        blocks: 3,
        bound: "dram",
    };
    let mut explanation = Explanation::new(&prediction, &[]);
    explanation.metrics.insert("a.sum".to_owned(), 1.0 / 3.0);
    Forecast { time, explanation }
}

#[test]
fn what_is_kept_comes_back_bit_for_bit_and_damage_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::new(folder.path().join("predictions")).unwrap();
    let key = ContentHash::of([b"one".as_slice()]);
    assert_eq!(kept.read(&key), None);
    let first = forecast(0.1 + 0.2);
    kept.write(&key, &first);
    assert_eq!(kept.read(&key), Some(first));
    let path = kept.path(&key);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(kept.read(&key), None);
}

#[test]
fn a_full_folder_loses_its_older_half() {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..=MAX_ENTRIES {
        std::fs::write(folder.path().join(index.to_string()), "x").unwrap();
    }
    make_room(folder.path()).unwrap();
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, MAX_ENTRIES + 1 - MAX_ENTRIES / 2);
}
