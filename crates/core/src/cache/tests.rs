use super::CacheFolder;
use crate::units::ContentHash;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn key(number: u64) -> ContentHash {
    ContentHash::from_parts([&number.to_le_bytes()[..]])
}

fn cache(root: &Path) -> CacheFolder {
    CacheFolder::new(root.to_owned(), "things", 1 << 20)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_was_stored_is_found_by_another_handle() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new");
    cache(&root).store(&key(1), b"one");
    assert_eq!(cache(&root).load(&key(1)), Some(b"one".to_vec()));
    assert_eq!(cache(&root).load(&key(2)), None);
    for path in [&root, &root.join("things"), &cache(&root).path(&key(1))] {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn a_damaged_entry_is_a_miss_and_can_be_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path());
    cache.store(&key(1), b"some content");
    let path = cache.path(&key(1));
    let good = std::fs::read(&path).unwrap();
    let mut bad = vec![
        Vec::new(),
        b"garbage".to_vec(),
        good[..good.len() - 1].to_vec(),
    ];
    for at in 0..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        bad.push(flipped);
    }
    for bytes in bad {
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(cache.load(&key(1)), None, "{bytes:?}");
        cache.store(&key(1), b"some content");
        assert_eq!(cache.load(&key(1)), Some(b"some content".to_vec()));
    }
}

#[test]
fn an_entry_of_another_key_or_cache_is_a_miss() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path());
    cache.store(&key(1), b"one");
    cache.store(&key(2), b"two");
    std::fs::copy(cache.path(&key(2)), cache.path(&key(1))).unwrap();
    assert_eq!(cache.load(&key(1)), None);
    assert_eq!(cache.load(&key(2)), Some(b"two".to_vec()));
    let other = CacheFolder::new(folder.path().to_owned(), "others", 1 << 20);
    other.store(&key(2), b"other");
    std::fs::copy(cache.path(&key(2)), other.path(&key(2))).unwrap();
    assert_eq!(other.load(&key(2)), None);
}

#[test]
fn what_others_can_change_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    cache(&root).store(&key(1), b"one");
    let found = || cache(&root).load(&key(1));
    let path = cache(&root).path(&key(1));
    let shard = path.parent().unwrap().to_owned();
    for (folder, mode) in [
        (&root, 0o777),
        (&root.join("things"), 0o770),
        (&shard, 0o707),
        (&path, 0o622),
    ] {
        let before = std::fs::metadata(folder).unwrap().permissions().mode();
        set_mode(folder, mode);
        assert_eq!(found(), None, "{} {mode:o}", folder.display());
        set_mode(folder, before);
        assert_eq!(found(), Some(b"one".to_vec()));
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&root, &link).unwrap();
    assert_eq!(cache(&link).load(&key(1)), None);
    // A link in place of a folder or a file is neither followed nor used for writing.
    for place in [&root.join("things"), &shard, &path] {
        let moved = folder.path().join("moved");
        std::fs::rename(place, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, place).unwrap();
        assert_eq!(found(), None, "{}", place.display());
        std::fs::remove_file(place).unwrap();
        std::fs::rename(&moved, place).unwrap();
    }
}

#[test]
fn the_entries_not_used_for_longest_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheFolder::new(folder.path().to_owned(), "things", 20_000);
    for number in 0..20 {
        cache.store(&key(number), &[0; 1500]);
        if let Ok(file) = std::fs::File::open(cache.path(&key(number))) {
            let age = Duration::from_secs(1000 - number * 10);
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        // Number 0 remains in use.
        assert!(cache.load(&key(0)).is_some(), "after {number}");
    }
    let bytes: u64 = cache.entries().iter().map(|entry| entry.bytes).sum();
    assert!(bytes <= 20_000, "{bytes}");
    assert!(cache.load(&key(19)).is_some());
    assert!(cache.load(&key(1)).is_none());
}

#[test]
fn several_writers_and_readers_never_see_half_an_entry() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4_u8 {
            let root = folder.path().to_owned();
            scope.spawn(move || {
                // A handle for each, as separate processes have.
                let cache = CacheFolder::new(root, "things", 200_000);
                for round in 0..50 {
                    let key = key(u64::from(round % 7_u8));
                    cache.store(&key, &vec![writer; 5000]);
                    if let Some(found) = cache.load(&key) {
                        assert!(found.iter().all(|&byte| byte == found[0]));
                        assert_eq!(found.len(), 5000);
                    }
                }
            });
        }
    });
}

#[test]
fn a_folder_that_cannot_be_made_is_only_a_cache_that_never_hits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let cache = cache(&file.join("below"));
    cache.store(&key(1), b"one");
    assert_eq!(cache.load(&key(1)), None);
}
