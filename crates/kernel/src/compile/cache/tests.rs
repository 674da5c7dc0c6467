use super::{DiskCache, RawResult};
use crate::compile::image::{RawHead, RawStatus};
use tuner_core::units::ContentHash;

fn key(number: u64) -> ContentHash {
    ContentHash::from_parts([&number.to_le_bytes()[..]])
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
fn an_entry_that_is_no_compile_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(dir.path().into(), 1 << 20);
    cache.entries.store(&key(1), b"tuner-image-3\n");
    assert_eq!(cache.load(&key(1)), None);
}
