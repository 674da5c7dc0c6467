use super::*;

fn key(name: &str) -> ContentHash {
    ContentHash::of([name.as_bytes()])
}

#[test]
fn an_entry_reads_back_and_a_damaged_one_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path().join("new"), 1 << 20);
    assert_eq!(folder.read(&key("a")), None);
    folder.write(&key("a"), &[7; 1000]);
    assert_eq!(folder.read(&key("a")), Some(vec![7; 1000]));
    let path = folder.file(&key("a"));
    let whole = std::fs::read(&path).unwrap();
    for at in [0, 8, 80, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(folder.read(&key("a")), None, "byte {at}");
    }
    std::fs::write(&path, &whole[..50]).unwrap();
    assert_eq!(folder.read(&key("a")), None);
}

#[test]
fn the_folder_does_not_grow_beyond_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path().to_owned(), 8000);
    for number in 0..10 {
        folder.write(&key(&number.to_string()), &[number; 2400]);
    }
    let files = std::fs::read_dir(&folder.path).unwrap();
    let bytes: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= 8000 + 100, "{bytes}");
    assert!(folder.read(&key("9")).is_some(), "the latest one is there");
}
