//! Reference data of a worker on the host: how much of it, and where it lies between processes.

use super::reply;
use crate::step::Step;
use crate::worker::protocol::Response;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tuner_core::cache::CacheFolder;
use tuner_core::panics::lock;
use tuner_judge::gate::references::References;
use tuner_kernel::compile::DiskCache;
use tuner_process::{Replies, free_memory};

/// Share of the machine's memory that reference data may take on the host: one in so many.
const HOST_SHARE: u64 = 4;
/// The same, bytes, at least and at most.
const HOST_BYTES: (u64, u64) = (1 << 30, 32 << 30);
/// Bytes of float64 results kept on disk.
const DISK_BYTES: u64 = 4 << 30;
/// While these are worked out, the host is told that often.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Reference data of this process: float64 results are worked out on all cores, and the host hears of
/// it, or it would take a large problem for a kernel that hangs.
pub(super) fn references(replies: &Replies) -> References {
    let (least, most) = HOST_BYTES;
    let bytes = free_memory().map_or(least, |free| (free / HOST_SHARE).clamp(least, most));
    let (replies, told) = (replies.clone(), Mutex::new(Instant::now()));
    let references = References::bounded(bytes).watched(Arc::new(move || {
        let mut told = lock(&told);
        if told.elapsed() >= TELL_EVERY {
            *told = Instant::now();
            // A pipe that is gone shows at the next answer.
            let _ = reply(&replies, &Response::Begins(Step::Gate));
        }
    }));
    match DiskCache::default_folder() {
        Some(folder) => {
            let oracles = CacheFolder::new(folder, "oracles", DISK_BYTES);
            references.on_disk(Arc::new(oracles))
        }
        None => references,
    }
}
