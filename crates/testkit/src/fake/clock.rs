//! Synthetic time of the stand-in: a host that queues and a device that works, with a little
//! reproducible noise.

use std::sync::atomic::{AtomicU16, Ordering};

/// Slowdown of all devices of this process from now on, in thousandths.
static THROTTLE: AtomicU16 = AtomicU16::new(0);

/// Slows all devices of this process down by `thousandths`, as a power limit does.
pub fn throttle(thousandths: u16) {
    THROTTLE.store(thousandths, Ordering::Relaxed);
}

/// Clock of the multiprocessors, MHz.
pub(super) const MHZ: f64 = 1500.0;

/// Costs of calls on the host, microseconds, and rates of copies, bytes per microsecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Queueing a kernel.
    pub launch_us: f64,
    /// Queueing a graph.
    pub graph_us: f64,
    /// Copies between the device and ordinary memory of the host.
    pub copy_rate: f64,
    /// Loading an image.
    pub load_us: f64,
    /// Allocating or freeing memory.
    pub alloc_us: f64,
    /// Capturing and instantiating a graph, per node.
    pub node_us: f64,
}

impl Costs {
    /// No costs, for functional tests.
    pub const NONE: Self = Self {
        launch_us: 0.0,
        graph_us: 0.0,
        copy_rate: f64::INFINITY,
        load_us: 0.0,
        alloc_us: 0.0,
        node_us: 0.0,
    };
    /// Costs of a server: a launch in 3 µs, copies of pageable memory at 12 GB/s, an image in 0.3
    /// ms.
    pub const REALISTIC: Self = Self {
        launch_us: 3.0,
        graph_us: 10.0,
        copy_rate: 12e3,
        load_us: 300.0,
        alloc_us: 5.0,
        node_us: 1.5,
    };
}

/// Time of a device and of its host.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    /// Time at which the device finishes all queued work, microseconds since the start.
    now: f64,
    /// Time of the host.
    host: f64,
    /// Total busy time of the device.
    busy: f64,
    /// Factor of all durations.
    pace: f64,
    state: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self::slower(0)
    }

    /// Creates the clock of a device on which everything takes `thousandths` thousandths longer.
    pub(super) fn slower(thousandths: u16) -> Self {
        Self {
            pace: 1.0 + f64::from(thousandths) / 1e3,
            now: 1000.0,
            host: 1000.0,
            busy: 0.0,
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Returns the time at which the device finishes all queued work.
    pub(super) fn micros(&self) -> f64 {
        self.now.max(self.host)
    }

    pub(super) fn host(&self) -> f64 {
        self.host
    }

    pub(super) fn busy(&self) -> f64 {
        self.busy
    }

    pub(super) fn nanoseconds(&self) -> u64 {
        (self.micros() * 1e3) as u64
    }

    pub(super) fn cycles(&self) -> u64 {
        (self.micros() * MHZ) as u64
    }

    /// Advances the host by `micros`.
    pub(super) fn spend(&mut self, micros: f64) {
        self.host += micros;
    }

    /// Makes the host wait for the device.
    pub(super) fn wait(&mut self) {
        self.host = self.micros();
    }

    /// Makes the device busy for `micros`, give or take half a per cent, starting when it and the
    /// host are ready.
    pub(super) fn advance(&mut self, micros: f64) {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let unit = (self.state >> 11) as f64 / (1u64 << 53) as f64;
        let throttled = 1.0 + f64::from(THROTTLE.load(Ordering::Relaxed)) / 1e3;
        let micros = micros * self.pace * throttled * (1.0 + 0.01 * (unit - 0.5));
        self.now = self.micros() + micros;
        self.busy += micros;
    }
}
