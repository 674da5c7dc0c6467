//! Cache of recently created random buffers. Problems of a run share seeds, so one buffer is often a prefix
//! of another.

use super::Fill;
use crate::element::Element;
use crate::panics::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Maximum cached bytes of the process.
const MAX_BYTES: usize = 256 << 20;

/// Identity of the values of a buffer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub(super) fill: Fill,
    pub(super) element: Element,
    pub(super) seed: u64,
    pub(super) buffer: u64,
}

/// Cached buffers, the most recently used first.
static RECENT: Mutex<VecDeque<(Key, Arc<[u8]>)>> = Mutex::new(VecDeque::new());

/// Returns a buffer with at least this many bytes, which `make` fills if none is cached.
pub(super) fn at_least(key: Key, bytes: usize, make: impl FnOnce() -> Arc<[u8]>) -> Arc<[u8]> {
    let mut recent = lock(&RECENT);
    let kept = recent.iter().position(|(other, _)| *other == key);
    let kept = kept.and_then(|place| recent.remove(place));
    if let Some((_, kept)) = kept.filter(|(_, kept)| kept.len() >= bytes) {
        recent.push_front((key, Arc::clone(&kept)));
        return kept;
    }
    // Another thread may need a different buffer meanwhile.
    drop(recent);
    let made = make();
    let mut recent = lock(&RECENT);
    recent.push_front((key, Arc::clone(&made)));
    let mut total = 0;
    recent.retain(|(_, kept)| {
        total += kept.len();
        total <= MAX_BYTES
    });
    made
}
