use super::{DiskCache, RawResult};
use crate::compile::image::{RawHead, RawStatus};
use std::time::{Duration, SystemTime};
use tuner_core::units::ContentHash;

fn key(number: u64) -> ContentHash {
    ContentHash::of([&number.to_le_bytes()[..]])
}

fn result(ptx: &[u8]) -> RawResult {
    let head = RawHead {
        status: RawStatus::Compiled,
        log: "log".into(),
        compile_us: 0,
        lowered: Vec::new(),
    };
    RawResult {
        head,
        ptx: ptx.to_vec(),
        cubin: vec![1, 2, 3],
    }
}

#[test]
fn what_was_stored_is_found_by_another_handle() {
    let dir = tempfile::tempdir().unwrap();
    DiskCache::new(dir.path().into(), 1 << 20).store(&key(1), &result(b"ptx"));
    let other = DiskCache::new(dir.path().into(), 1 << 20);
    assert_eq!(other.load(&key(1)), Some(result(b"ptx")));
    assert_eq!(other.load(&key(2)), None);
}

#[test]
fn a_corrupt_or_truncated_entry_is_a_miss_and_can_be_stored_again() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(dir.path().into(), 1 << 20);
    cache.store(&key(1), &result(b"some ptx"));
    let path = cache.path_of(&key(1));
    let good = std::fs::read(&path).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    for bad in [&flipped[..], &good[..good.len() - 1], b"", b"garbage"] {
        std::fs::write(&path, bad).unwrap();
        assert_eq!(cache.load(&key(1)), None);
        cache.store(&key(1), &result(b"some ptx"));
        assert_eq!(cache.load(&key(1)), Some(result(b"some ptx")));
    }
}

#[test]
fn the_least_recently_used_entries_make_room() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(dir.path().into(), 20_000);
    for number in 0..20 {
        cache.store(&key(number), &result(&[0; 1500]));
        if let Ok(file) = std::fs::File::options()
            .append(true)
            .open(cache.path_of(&key(number)))
        {
            let age = Duration::from_secs(1000 - number * 10);
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        // Number 0 stays in use.
        assert!(cache.load(&key(0)).is_some(), "after {number}");
    }
    let bytes: u64 = cache.entries().iter().map(|entry| entry.bytes).sum();
    assert!(bytes <= 20_000, "{bytes}");
    assert!(cache.load(&key(19)).is_some());
    assert!(cache.load(&key(1)).is_none());
}

#[test]
fn several_writers_and_readers_never_see_half_an_entry() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4_u8 {
            let folder = dir.path().to_owned();
            scope.spawn(move || {
                // A handle each, as separate processes have.
                let cache = DiskCache::new(folder, 200_000);
                for round in 0..50 {
                    let key = key(u64::from(round % 7_u8));
                    cache.store(&key, &result(&vec![writer; 5000]));
                    if let Some(found) = cache.load(&key) {
                        assert!(found.ptx.iter().all(|&byte| byte == found.ptx[0]));
                        assert_eq!(found.ptx.len(), 5000);
                    }
                }
            });
        }
    });
}

#[test]
fn a_folder_that_cannot_be_made_is_only_a_cache_that_never_hits() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let cache = DiskCache::new(file.join("below"), 1 << 20);
    cache.store(&key(1), &result(b"ptx"));
    assert_eq!(cache.load(&key(1)), None);
}

#[test]
fn an_entry_under_another_key_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(dir.path().into(), 1 << 20);
    cache.store(&key(1), &result(b"ptx"));
    cache.store(&key(2), &result(b"other"));
    std::fs::copy(cache.path_of(&key(2)), cache.path_of(&key(1))).unwrap();
    assert_eq!(cache.load(&key(1)), None);
    assert_eq!(cache.load(&key(2)), Some(result(b"other")));
}

#[test]
fn a_folder_that_others_can_change_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let mine = dir.path().join("mine");
    DiskCache::new(mine.clone(), 1 << 20).store(&key(1), &result(b"ptx"));
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&mine, &link).unwrap();
    assert_eq!(DiskCache::new(link, 1 << 20).load(&key(1)), None);
    let cache = DiskCache::new(mine.clone(), 1 << 20);
    assert_eq!(cache.load(&key(1)), Some(result(b"ptx")));
    std::fs::set_permissions(&mine, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(cache.load(&key(1)), None);
}
