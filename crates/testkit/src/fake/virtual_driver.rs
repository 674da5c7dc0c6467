//! State of the stand-in: memory, modules, streams, and launches seen.

use super::Settings;
use super::cache::Cache;
use super::clock::{Clock, Costs};
use super::execute::Queued;
use super::memo::Outcome;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use tuner_device::gpu::driver::*;
use vgpu::{Arch, BufferId, GlobalMemory, Module as Ptx};

/// L2 cache, bytes: small, so that cold timing rotates few buffers.
const L2_BYTES: u64 = 1 << 10;
/// Memory, bytes.
pub(super) const MEMORY_BYTES: u64 = 2 << 30;

/// A kernel of a loaded module.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    pub(super) module: Arc<Ptx>,
    pub(super) name: String,
    /// The module reads the clock, so that two launches may differ.
    pub(super) reads_clock: bool,
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.module, &other.module) && self.name == other.name
    }
}

/// The stand-in for the driver.
pub struct VirtualDriver {
    pub(super) arch: &'static Arch,
    pub(super) memory: GlobalMemory,
    pub(super) clock: Clock,
    /// A kernel corrupted the context: every call fails with this code.
    pub(super) poisoned: Option<u32>,
    pub(super) living: BTreeMap<u64, (BufferId, u64)>,
    /// By handle: the module, and whether it reads the clock.
    pub(super) modules: HashMap<u64, (Arc<Ptx>, bool)>,
    pub(super) kernels: HashMap<u64, (u64, Kernel)>,
    pub(super) events: HashMap<u64, f64>,
    pub(super) recording: Option<Vec<Queued>>,
    pub(super) graphs: HashMap<u64, Vec<Queued>>,
    /// Graph launches that were executed since the host last wrote, with their time without noise:
    /// with noise, an entry would never equal another launch.
    pub(super) ran: Vec<(Queued, f64)>,
    pub(super) outcomes: VecDeque<Outcome>,
    scratch: Vec<u8>,
    /// Buffer of the kernel that reads the clock.
    pub(super) stamps: Option<BufferId>,
    pub(super) streams: HashSet<u64>,
    next: u64,
    pub(super) costs: Costs,
    /// Contents of shared memory that a launch has not written.
    pub(super) shared_fill: u32,
    /// The L2 cache.
    pub(super) cache: Cache,
    /// Duration of every other kernel, microseconds, if the test sets it.
    pub(super) kernel_us: Option<f64>,
}

impl VirtualDriver {
    /// Creates a machine with two GPUs.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let mut driver = Self::with_arch(&vgpu::arch::list_gpus()[0]);
        driver.clock = Clock::slower(settings.slower);
        driver
    }

    /// Creates a machine with two GPUs of that architecture.
    #[must_use]
    pub fn with_arch(arch: &'static Arch) -> Self {
        Self {
            arch,
            memory: GlobalMemory::new(MEMORY_BYTES),
            clock: Clock::new(),
            poisoned: None,
            living: BTreeMap::new(),
            modules: HashMap::new(),
            kernels: HashMap::new(),
            events: HashMap::new(),
            recording: None,
            graphs: HashMap::new(),
            ran: Vec::new(),
            outcomes: VecDeque::new(),
            scratch: Vec::new(),
            stamps: None,
            streams: HashSet::new(),
            next: 1,
            costs: Costs::NONE,
            shared_fill: 0,
            cache: Cache::new(L2_BYTES),
            kernel_us: None,
        }
    }

    pub(super) fn handle(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Fails with the error of a corrupted context, if a kernel has corrupted it.
    pub(super) fn sound(&self, call: &'static str) -> Answer<()> {
        match self.poisoned {
            Some(code) => Err(CudaError::new(call, code)),
            None => Ok(()),
        }
    }

    pub(super) fn locate(
        &self,
        call: &'static str,
        at: DevicePointer,
        bytes: u64,
    ) -> Answer<(BufferId, u64)> {
        let found = self.living.range(..=at.0).next_back();
        let inside = found.filter(|(base, (_, size))| at.0 - **base + bytes <= *size);
        match inside {
            Some((base, (id, _))) => Ok((*id, at.0 - base)),
            None => Err(CudaError::new(call, code::INVALID_VALUE)),
        }
    }

    /// Writes like a kernel or a copy.
    pub(super) fn write(&mut self, at: DevicePointer, bytes: &[u8]) -> Answer<()> {
        let (id, offset) = self.locate("cuMemcpyHtoD_v2", at, bytes.len() as u64)?;
        self.cache.touch(at.0 - offset, bytes.len() as u64);
        self.memory.write(id, offset, bytes);
        Ok(())
    }

    /// Writes `bytes` bytes that `make` produces in reused memory: reallocating a buffer costs more
    /// than filling it.
    pub(super) fn write_made(
        &mut self,
        at: DevicePointer,
        bytes: u64,
        make: impl FnOnce(&mut Self, &mut [u8]),
    ) -> Answer<()> {
        let mut all = std::mem::take(&mut self.scratch);
        all.resize(bytes as usize, 0);
        make(self, &mut all);
        let answer = self.write(at, &all);
        self.scratch = all;
        answer
    }

    pub(super) fn kernel(&self, call: &'static str, function: Function) -> Answer<&Kernel> {
        let found = self.kernels.get(&function.0).map(|(_, kernel)| kernel);
        found.ok_or_else(|| CudaError::new(call, code::INVALID_HANDLE))
    }
}
