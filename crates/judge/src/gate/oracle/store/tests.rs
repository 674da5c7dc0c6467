use super::*;

fn answer(first: f64) -> Vec<Expected> {
    let expected = |at: u32| Expected {
        value: first + f64::from(at) / 3.0,
        tolerance: f64::MIN_POSITIVE,
        rms: f64::INFINITY,
    };
    (0..100).map(expected).collect()
}

#[test]
fn an_answer_reads_back_bit_for_bit_and_a_damaged_one_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path().join("new"), 1 << 20);
    assert_eq!(folder.read("a", 100), None);
    folder.write("a", &answer(1.0));
    assert_eq!(folder.read("a", 100), Some(answer(1.0)));
    assert_eq!(folder.read("a", 99), None);
    let path = folder.file("a");
    let whole = std::fs::read(&path).unwrap();
    for at in [0, 8, 80, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(folder.read("a", 100), None, "byte {at}");
    }
    std::fs::write(&path, &whole[..50]).unwrap();
    assert_eq!(folder.read("a", 100), None);
}

#[test]
fn the_folder_does_not_grow_beyond_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path().to_owned(), 8000);
    for number in 0..10 {
        folder.write(&format!("{number}"), &answer(f64::from(number)));
    }
    let files = std::fs::read_dir(&folder.path).unwrap();
    let bytes: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= 8000 + 100, "{bytes}");
    assert!(folder.read("9", 100).is_some(), "the latest one is there");
}
