//! Reference data of a worker on the host: its size, and its storage between processes.

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

/// Divisor of the machine's memory for reference data on the host.
const HOST_SHARE: u64 = 4;
/// Minimum and maximum memory for reference data, bytes.
const HOST_BYTES: (u64, u64) = (1 << 30, 32 << 30);
/// Maximum size of float64 results on disk, bytes.
const DISK_BYTES: u64 = 4 << 30;
/// Interval of progress messages to the host while these are computed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Creates the reference data of this process. Float64 results are computed on all cores, with progress
/// messages to the host, which would otherwise mistake a large problem for a hanging kernel.
pub(super) fn references(replies: &Replies) -> References {
    let (least, most) = HOST_BYTES;
    let bytes = free_memory().map_or(least, |free| (free / HOST_SHARE).clamp(least, most));
    let (replies, told) = (replies.clone(), Mutex::new(Instant::now()));
    let references = References::bounded(bytes).watched(Arc::new(move || {
        let mut told = lock(&told);
        if told.elapsed() >= PROGRESS_INTERVAL {
            *told = Instant::now();
            // A broken pipe is detected at the next answer.
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
