//! Contents of the stand-in's L2 cache: whole buffers, the most recently used ones.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Counters of a stand-in that can be read while it is in use.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// Buffers of graph launches that were still in the cache.
    hits: Rc<Cell<u64>>,
    /// Time of the host, microseconds.
    host_us: Rc<Cell<f64>>,
    /// Busy time of the device, microseconds.
    busy_us: Rc<Cell<f64>>,
}

impl Gauges {
    /// Returns the number of buffers that launches found in the cache as a whole.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.get()
    }

    /// Returns the elapsed time of the host, microseconds.
    #[must_use]
    pub fn host_us(&self) -> f64 {
        self.host_us.get()
    }

    /// Returns the busy time of the device, microseconds.
    #[must_use]
    pub fn busy_us(&self) -> f64 {
        self.busy_us.get()
    }
}

/// The cache.
pub(super) struct Cache {
    bytes: u64,
    /// Buffers by their first byte, the most recently used first.
    held: VecDeque<(u64, u64)>,
    gauges: Gauges,
}

impl Cache {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            bytes,
            held: VecDeque::new(),
            gauges: Gauges::default(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn gauges(&self) -> Gauges {
        self.gauges.clone()
    }

    pub(super) fn note(&self, host_us: f64, busy_us: f64) {
        self.gauges.host_us.set(host_us);
        self.gauges.busy_us.set(busy_us);
    }

    /// Records the use of `bytes` bytes of a buffer.
    pub(super) fn touch(&mut self, buffer: u64, bytes: u64) {
        self.held.retain(|(held, _)| *held != buffer);
        self.held.push_front((buffer, bytes));
        let mut room = self.bytes;
        self.held.retain(|(_, bytes)| {
            let fits = *bytes <= room;
            // Buffers after one that does not fit were evicted by it.
            room = if fits { room - bytes } else { 0 };
            fits
        });
    }

    /// Records the use of a buffer by a launch.
    pub(super) fn launch_touches(&mut self, buffer: u64, bytes: u64) {
        if self.held.iter().any(|(held, _)| *held == buffer) {
            self.gauges.hits.set(self.gauges.hits.get() + 1);
        }
        self.touch(buffer, bytes);
    }
}
