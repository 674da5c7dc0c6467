//! The calls of the driver, answered from the virtual GPU's memory.

use super::cache::Cache;
use super::clock::{Clock, Costs};
use super::execute::Queued;
use super::memo::Outcome;
use super::{NAME, Settings};
use crate::gpu::driver::*;
use ::vgpu::{Arch, BufferId, GlobalMemory, Module as Ptx};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Second-level cache, bytes: small, so that cold timing rotates few buffers.
const L2_BYTES: u64 = 1 << 10;
/// Memory, bytes.
const MEMORY_BYTES: u64 = 2 << 30;

/// Bytes that are moved at a time: the stack holds them.
pub(super) const CHUNK: usize = 4096;

/// A kernel of a loaded module.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    pub(super) module: Arc<Ptx>,
    pub(super) name: String,
    /// The module reads the clock, so that no two launches need do the same.
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
    /// A kernel spoiled the context: every call answers this.
    pub(super) poisoned: Option<u32>,
    pub(super) living: BTreeMap<u64, (BufferId, u64)>,
    /// By handle: the module, and whether it reads the clock.
    modules: HashMap<u64, (Arc<Ptx>, bool)>,
    kernels: HashMap<u64, (u64, Kernel)>,
    events: HashMap<u64, f64>,
    recording: Option<Vec<Queued>>,
    graphs: HashMap<u64, Vec<Queued>>,
    /// Launches that a graph has run in earnest since the host last wrote, with what they take but
    /// for noise: one that were kept with its noise would differ from its equal for ever.
    ran: Vec<(Queued, f64)>,
    pub(super) outcomes: VecDeque<Outcome>,
    scratch: Vec<u8>,
    /// Where the kernel that reads the clock writes to.
    pub(super) stamps: Option<BufferId>,
    streams: HashSet<u64>,
    next: u64,
    pub(super) costs: Costs,
    /// What launches find in shared memory that they did not write.
    pub(super) shared_fill: u32,
    /// What the second-level cache holds.
    pub(super) cache: Cache,
    /// What every other kernel takes, microseconds, where the test says.
    pub(super) kernel_us: Option<f64>,
}

impl VirtualDriver {
    /// A machine with two GPUs.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let mut driver = Self::of(&::vgpu::arch::all()[0]);
        driver.clock = Clock::slower(settings.slower);
        driver
    }

    /// A machine with two GPUs of that architecture.
    #[must_use]
    pub fn of(arch: &'static Arch) -> Self {
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

    fn handle(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// What every call answers once a kernel has spoiled the context.
    fn sound(&self, call: &'static str) -> Answer<()> {
        match self.poisoned {
            Some(code) => Err(CudaError::new(call, code)),
            None => Ok(()),
        }
    }

    fn place(&self, call: &'static str, at: DevicePointer, bytes: u64) -> Answer<(BufferId, u64)> {
        let found = self.living.range(..=at.0).next_back();
        let inside = found.filter(|(base, (_, size))| at.0 - **base + bytes <= *size);
        match inside {
            Some((base, (id, _))) => Ok((*id, at.0 - base)),
            None => Err(CudaError::new(call, code::INVALID_VALUE)),
        }
    }

    /// Writes as a kernel or a copy does.
    pub(super) fn write(&mut self, at: DevicePointer, bytes: &[u8]) -> Answer<()> {
        let (id, offset) = self.place("cuMemcpyHtoD_v2", at, bytes.len() as u64)?;
        self.cache.touch(at.0 - offset, bytes.len() as u64);
        self.memory.write(id, offset, bytes);
        Ok(())
    }

    /// Writes so many bytes that `make` puts into memory kept for it: taking and giving back that of
    /// a buffer costs more than filling it.
    fn write_made(
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

    fn kernel(&self, call: &'static str, function: Function) -> Answer<&Kernel> {
        let found = self.kernels.get(&function.0).map(|(_, kernel)| kernel);
        found.ok_or_else(|| CudaError::new(call, code::INVALID_HANDLE))
    }

    /// Replays a launch of a graph: in earnest the first time, then by its time alone, because
    /// the same launch on the same data gives the same.
    fn replay(&mut self, queued: &Queued) -> Answer<()> {
        self.touch(queued);
        if let Some((_, micros)) = self.ran.iter().find(|(known, _)| known == queued) {
            let micros = *micros;
            self.clock.advance(micros);
            return Ok(());
        }
        let micros = self.execute(queued)?;
        if self.ran.len() > 512 {
            self.ran.clear();
        }
        self.ran.push((queued.clone(), micros));
        Ok(())
    }
}

impl Driver for VirtualDriver {
    fn init(&mut self) -> Answer<()> {
        Ok(())
    }

    fn version(&mut self) -> Answer<i32> {
        Ok(13_000)
    }

    fn device_count(&mut self) -> Answer<i32> {
        Ok(2)
    }

    fn device(&mut self, ordinal: i32) -> Answer<Device> {
        Ok(Device(ordinal))
    }

    fn device_name(&mut self, _: Device) -> Answer<String> {
        Ok(NAME.to_owned())
    }

    fn device_uuid(&mut self, _: Device) -> Answer<[u8; 16]> {
        Ok([0; 16])
    }

    fn device_memory(&mut self, _: Device) -> Answer<u64> {
        Ok(MEMORY_BYTES)
    }

    fn device_attribute(&mut self, _: Device, attribute: DeviceAttribute) -> Answer<i32> {
        use DeviceAttribute as A;
        let arch = self.arch;
        let value = match attribute {
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => arch.cc / 10,
            A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => arch.cc % 10,
            A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => arch.sm_count,
            A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
            A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => arch.shared_bytes_optin,
            A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => arch.shared_bytes_per_sm,
            A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => arch.registers_per_sm,
            A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => {
                return Ok(i32::try_from(self.cache.bytes()).unwrap_or(i32::MAX));
            }
            _ => 0,
        };
        Ok(i32::try_from(value).unwrap_or(i32::MAX))
    }

    fn context_retain(&mut self, _: Device) -> Answer<Context> {
        Ok(Context(1))
    }

    fn context_set_current(&mut self, _: Context) -> Answer<()> {
        self.sound("cuCtxSetCurrent")
    }

    fn context_synchronize(&mut self) -> Answer<()> {
        self.clock.wait();
        self.sound("cuCtxSynchronize")
    }

    fn context_release(&mut self, _: Device) -> Answer<()> {
        self.sound("cuDevicePrimaryCtxRelease_v2")
    }

    fn memory_info(&mut self) -> Answer<(u64, u64)> {
        self.sound("cuMemGetInfo_v2")?;
        let used: u64 = self.living.values().map(|(_, bytes)| bytes).sum();
        Ok((MEMORY_BYTES - used, MEMORY_BYTES))
    }

    fn memory_alloc(&mut self, bytes: u64) -> Answer<DevicePointer> {
        self.sound("cuMemAlloc_v2")?;
        self.clock.spend(self.costs.alloc_us);
        let id = self
            .memory
            .alloc(bytes, "device memory")
            .map_err(|_| CudaError::new("cuMemAlloc_v2", code::OUT_OF_MEMORY))?;
        let base = self.memory.address(id);
        self.living.insert(base, (id, bytes));
        Ok(DevicePointer(base))
    }

    fn memory_free(&mut self, at: DevicePointer) -> Answer<()> {
        self.sound("cuMemFree_v2")?;
        self.clock.spend(self.costs.alloc_us);
        match self.living.remove(&at.0) {
            Some((id, _)) => {
                self.memory.free(id);
                Ok(())
            }
            None => Err(CudaError::new("cuMemFree_v2", code::INVALID_VALUE)),
        }
    }

    fn copy_to_device(&mut self, to: DevicePointer, from: &[u8]) -> Answer<()> {
        self.sound("cuMemcpyHtoD_v2")?;
        self.ran.clear();
        self.copied(from.len());
        self.write(to, from)
    }

    fn copy_from_device(&mut self, to: &mut [u8], from: DevicePointer) -> Answer<()> {
        self.sound("cuMemcpyDtoH_v2")?;
        let (id, offset) = self.place("cuMemcpyDtoH_v2", from, to.len() as u64)?;
        self.memory.read_at(id, offset, to);
        self.copied(to.len());
        Ok(())
    }

    fn copy_on_device(
        &mut self,
        to: DevicePointer,
        from: DevicePointer,
        bytes: u64,
        _: Stream,
    ) -> Answer<()> {
        self.sound("cuMemcpyDtoDAsync_v2")?;
        let (id, offset) = self.place("cuMemcpyDtoDAsync_v2", from, bytes)?;
        self.ran.clear();
        self.moves(2 * bytes);
        self.write_made(to, bytes, |driver, all| {
            driver.memory.read_at(id, offset, all)
        })
    }

    fn fill_bytes(&mut self, at: DevicePointer, value: u8, count: u64, _: Stream) -> Answer<()> {
        self.sound("cuMemsetD8Async")?;
        self.ran.clear();
        self.moves(count);
        self.write_made(at, count, |_, all| all.fill(value))
    }

    fn fill_words(&mut self, at: DevicePointer, value: u32, count: u64, _: Stream) -> Answer<()> {
        self.sound("cuMemsetD32Async")?;
        self.ran.clear();
        self.moves(4 * count);
        self.write_made(at, 4 * count, |_, all| {
            for word in all.chunks_exact_mut(4) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        })
    }

    fn module_load(&mut self, image: &[u8]) -> Answer<Module> {
        self.sound("cuModuleLoadDataEx")?;
        self.clock.spend(self.costs.load_us);
        let refused =
            |why: &str| CudaError::new("cuModuleLoadDataEx", code::INVALID_IMAGE).noting(why);
        let text = std::str::from_utf8(image).map_err(|_| refused("not PTX"))?;
        let module = Ptx::load(text).map_err(|error| refused(&error.to_string()))?;
        let handle = self.handle();
        let reads_clock = ["%clock", "%globaltimer"]
            .iter()
            .any(|name| text.contains(name));
        self.modules.insert(handle, (Arc::new(module), reads_clock));
        Ok(Module(handle))
    }

    fn module_unload(&mut self, module: Module) -> Answer<()> {
        self.sound("cuModuleUnload")?;
        self.kernels.retain(|_, (of, _)| *of != module.0);
        match self.modules.remove(&module.0) {
            Some(_) => Ok(()),
            None => Err(CudaError::new("cuModuleUnload", code::INVALID_HANDLE)),
        }
    }

    fn function(&mut self, module: Module, name: &str) -> Answer<Function> {
        self.sound("cuModuleGetFunction")?;
        let failed = |code| CudaError::new("cuModuleGetFunction", code);
        let known = self.modules.get(&module.0).cloned();
        let (ptx, reads_clock) = known.ok_or_else(|| failed(code::INVALID_HANDLE))?;
        if ptx.entry(name).is_none() {
            return Err(failed(code::NOT_FOUND).noting(name));
        }
        let handle = self.handle();
        let kernel = Kernel {
            module: ptx,
            name: name.to_owned(),
            reads_clock,
        };
        self.kernels.insert(handle, (module.0, kernel));
        Ok(Function(handle))
    }

    fn variable(&mut self, module: Module, name: &str) -> Answer<(DevicePointer, u64)> {
        self.sound("cuModuleGetGlobal_v2")?;
        let failed = |code| CudaError::new("cuModuleGetGlobal_v2", code);
        let known = self.modules.get(&module.0).cloned();
        let (ptx, _) = known.ok_or_else(|| failed(code::INVALID_HANDLE))?;
        let found = ptx.place_variable(&mut self.memory, name);
        let found = found.map_err(|_| failed(code::OUT_OF_MEMORY))?;
        let (id, bytes) = found.ok_or_else(|| failed(code::NOT_FOUND).noting(name))?;
        let base = self.memory.address(id);
        // Copies to it find it among what is allocated.
        self.living.insert(base, (id, bytes));
        Ok((DevicePointer(base), bytes))
    }

    fn function_attribute(
        &mut self,
        function: Function,
        attribute: FunctionAttribute,
    ) -> Answer<i32> {
        use FunctionAttribute as F;
        self.sound("cuFuncGetAttribute")?;
        let kernel = self.kernel("cuFuncGetAttribute", function)?;
        let entry = kernel.module.entry(&kernel.name);
        Ok(match attribute {
            F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => {
                entry.map_or(0, |entry| entry.static_shared_bytes as i32)
            }
            F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
            F::CU_FUNC_ATTRIBUTE_NUM_REGS => 32,
            _ => 0,
        })
    }

    fn function_set_attribute(
        &mut self,
        function: Function,
        _: FunctionAttribute,
        value: i32,
    ) -> Answer<()> {
        self.sound("cuFuncSetAttribute")?;
        self.kernel("cuFuncSetAttribute", function)?;
        if i64::from(value) > i64::from(self.arch.shared_bytes_optin) {
            return Err(CudaError::new("cuFuncSetAttribute", code::INVALID_VALUE));
        }
        Ok(())
    }

    fn occupancy(&mut self, function: Function, threads: i32, _: u64) -> Answer<i32> {
        self.sound("cuOccupancyMaxActiveBlocksPerMultiprocessor")?;
        self.kernel("cuOccupancyMaxActiveBlocksPerMultiprocessor", function)?;
        Ok(2048 / threads.max(1))
    }

    fn launch(&mut self, function: Function, _: Stream, launch: &LaunchConfig) -> Answer<()> {
        self.sound("cuLaunchKernel")?;
        let queued = Queued {
            kernel: self.kernel("cuLaunchKernel", function)?.clone(),
            config: launch.clone(),
        };
        match &mut self.recording {
            Some(queue) => {
                queue.push(queued);
                Ok(())
            }
            None => {
                self.clock.spend(self.costs.launch_us);
                self.execute(&queued)?;
                self.tick();
                Ok(())
            }
        }
    }

    fn stream_create(&mut self) -> Answer<Stream> {
        let handle = self.handle();
        self.streams.insert(handle);
        Ok(Stream(handle))
    }

    fn stream_synchronize(&mut self, _: Stream) -> Answer<()> {
        self.sound("cuStreamSynchronize")?;
        self.clock.wait();
        Ok(())
    }

    fn stream_destroy(&mut self, stream: Stream) -> Answer<()> {
        self.streams.remove(&stream.0);
        Ok(())
    }

    fn event_create(&mut self) -> Answer<Event> {
        self.sound("cuEventCreate")?;
        Ok(Event(self.handle()))
    }

    fn event_record(&mut self, event: Event, _: Stream) -> Answer<()> {
        self.sound("cuEventRecord")?;
        self.events.insert(event.0, self.clock.micros());
        Ok(())
    }

    fn event_is_over(&mut self, event: Event) -> Answer<bool> {
        self.sound("cuEventQuery")?;
        let at = self.events.get(&event.0).copied();
        // Without costs the host is never late.
        Ok(self.costs != Costs::NONE && at.is_some_and(|at| at <= self.clock.host()))
    }

    fn event_synchronize(&mut self, _: Event) -> Answer<()> {
        self.sound("cuEventSynchronize")?;
        self.clock.wait();
        Ok(())
    }

    fn event_elapsed(&mut self, from: Event, to: Event) -> Answer<f32> {
        self.sound("cuEventElapsedTime")?;
        let time = |event: Event| {
            let found = self.events.get(&event.0).copied();
            found.ok_or_else(|| CudaError::new("cuEventElapsedTime", code::INVALID_HANDLE))
        };
        Ok(((time(to)? - time(from)?) / 1e3) as f32)
    }

    fn event_destroy(&mut self, event: Event) -> Answer<()> {
        self.sound("cuEventDestroy_v2")?;
        self.events.remove(&event.0);
        Ok(())
    }

    fn capture_begin(&mut self, _: Stream) -> Answer<()> {
        self.sound("cuStreamBeginCapture_v2")?;
        self.recording = Some(Vec::new());
        Ok(())
    }

    fn capture_end(&mut self, _: Stream) -> Answer<Graph> {
        self.sound("cuStreamEndCapture")?;
        let queue = self.recording.take().unwrap_or_default();
        let handle = self.handle();
        self.graphs.insert(handle, queue);
        Ok(Graph(handle))
    }

    fn graph_instantiate(&mut self, graph: Graph) -> Answer<GraphExec> {
        self.sound("cuGraphInstantiateWithFlags")?;
        let queue = self.graphs.get(&graph.0).cloned().unwrap_or_default();
        self.clock.spend(self.costs.node_us * queue.len() as f64);
        let handle = self.handle();
        self.graphs.insert(handle, queue);
        Ok(GraphExec(handle))
    }

    fn graph_upload(&mut self, _: GraphExec, _: Stream) -> Answer<()> {
        self.sound("cuGraphUpload")
    }

    fn graph_launch(&mut self, exec: GraphExec, _: Stream) -> Answer<()> {
        self.sound("cuGraphLaunch")?;
        let queue = self.graphs.get(&exec.0).cloned().unwrap_or_default();
        self.clock.spend(self.costs.graph_us);
        queue.iter().try_for_each(|queued| self.replay(queued))?;
        self.tick();
        Ok(())
    }

    fn graph_destroy(&mut self, graph: Graph) -> Answer<()> {
        self.graphs.remove(&graph.0);
        self.sound("cuGraphDestroy")
    }

    fn exec_destroy(&mut self, exec: GraphExec) -> Answer<()> {
        self.graphs.remove(&exec.0);
        self.sound("cuGraphExecDestroy")
    }
}
