use super::{beyond, in_the_way};
use tuner_adopt::{Adopted, DataFile};

#[test]
fn data_of_a_capture_is_not_replaced_either() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let adopted = Adopted {
        kernel: "scale".to_owned(),
        template: String::new(),
        space: String::new(),
        notes: Vec::new(),
        files: vec![DataFile {
            path: "scale.data/run/x.bin".to_owned(),
            bytes: vec![1],
        }],
    };
    assert_eq!(in_the_way(place, &adopted), None);
    let data = place.join("scale.data/run/x.bin");
    std::fs::create_dir_all(data.parent().unwrap()).unwrap();
    assert_eq!(in_the_way(place, &adopted), None);
    std::fs::write(&data, "mine").unwrap();
    assert_eq!(in_the_way(place, &adopted), Some(data));
    std::fs::write(place.join("scale.yaml"), "mine").unwrap();
    assert_eq!(in_the_way(place, &adopted), Some(place.join("scale.yaml")));
}

#[test]
fn how_far_an_access_goes_is_read_from_the_message() {
    let said = |at: i64| {
        beyond(&format!(
            "k.cu:7: a read of 4 bytes at byte {at} of `x`, which has 1024 bytes"
        ))
    };
    assert_eq!(said(1024), Some(("x".to_owned(), 2)));
    assert_eq!(said(2047), Some(("x".to_owned(), 4)));
    assert_eq!(said(3000), Some(("x".to_owned(), 4)));
    assert_eq!(said(-4), None);
    assert_eq!(said(1 << 40), None);
    assert_eq!(beyond("a read of shared memory"), None);
}
