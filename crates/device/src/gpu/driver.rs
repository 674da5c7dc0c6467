//! The CUDA driver calls of the tuner, as a safe trait.
//!
//! [`crate::cuda`] implements it with the driver library; the fakes of `tuner_testkit::fake` replace it in
//! tests. Nothing on this side of the trait is `unsafe`, and its implementations make no decisions: an
//! error is returned with its name, and [`CudaError`] defines its meaning for the candidate.

pub use super::error::{Blame, CudaError, code};
pub use cudarc::driver::sys::CUdevice_attribute as DeviceAttribute;
pub use cudarc::driver::sys::CUfunction_attribute as FunctionAttribute;
use vgpu::{TENSOR_MAP_BYTES, TensorMap};

/// Result of a driver call.
pub type Answer<T> = Result<T, CudaError>;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// Number by which the driver identifies it.
            pub u64,
        );)*
    };
}

handles! {
    /// A context: the process's state on one GPU.
    Context
    /// Loaded code.
    Module
    /// A kernel of a module.
    Function
    /// A queue of work.
    Stream
    /// A position in a queue, with its time.
    Event
    /// Captured work.
    Graph
    /// Captured work, ready to run.
    GraphExec
    /// An address in device memory.
    DevicePointer
}

impl DevicePointer {
    /// Returns the address `bytes` bytes further.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Returns the address as a kernel argument.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0
    }
}

/// A GPU by its ordinal, as in driver calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device(
    /// Its ordinal.
    pub i32,
);

/// One kernel launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
    /// The kernel's parameters in order, little endian, each in its own size.
    pub parameters: Vec<Vec<u8>>,
    /// Blocks of a cluster in x, y, z, if the launch specifies them.
    pub cluster: Option<[u32; 3]>,
    /// All blocks are resident at once and may wait for each other.
    pub cooperative: bool,
}

/// The CUDA driver calls of the tuner. Every method is the call of that name in the driver API, and
/// fails with the driver's error.
#[expect(
    clippy::missing_errors_doc,
    reason = "every method fails with the driver's answer, as the trait says"
)]
pub trait Driver {
    /// `cuInit`: must be the first call.
    fn init(&mut self) -> Answer<()>;
    /// `cuDriverGetVersion`: the newest CUDA supported, 1000 × major + 10 × minor.
    fn version(&mut self) -> Answer<i32>;
    /// `cuDeviceGetCount`.
    fn device_count(&mut self) -> Answer<i32>;
    /// `cuDeviceGet`.
    fn device(&mut self, ordinal: i32) -> Answer<Device>;
    /// `cuDeviceGetName`.
    fn device_name(&mut self, device: Device) -> Answer<String>;
    /// `cuDeviceGetUuid_v2`: for a MIG instance its own UUID, not that of the whole GPU.
    fn device_uuid(&mut self, device: Device) -> Answer<[u8; 16]>;
    /// `cuDeviceTotalMem`: bytes.
    fn device_memory(&mut self, device: Device) -> Answer<u64>;
    /// `cuDeviceGetAttribute`.
    fn device_attribute(&mut self, device: Device, attribute: DeviceAttribute) -> Answer<i32>;

    /// `cuDevicePrimaryCtxRetain`.
    fn context_retain(&mut self, device: Device) -> Answer<Context>;
    /// `cuCtxSetCurrent`, for the calling thread.
    fn context_set_current(&mut self, context: Context) -> Answer<()>;
    /// `cuCtxSynchronize`: waits for all work of the context, on any stream.
    fn context_synchronize(&mut self) -> Answer<()>;
    /// `cuDevicePrimaryCtxRelease`: frees all resources of the process on the GPU.
    fn context_release(&mut self, device: Device) -> Answer<()>;

    /// `cuMemGetInfo`: free and total bytes.
    fn memory_info(&mut self) -> Answer<(u64, u64)>;
    /// `cuMemAlloc`.
    fn memory_alloc(&mut self, bytes: u64) -> Answer<DevicePointer>;
    /// `cuMemFree`.
    fn memory_free(&mut self, at: DevicePointer) -> Answer<()>;
    /// `cuMemcpyHtoD`.
    fn copy_to_device(&mut self, to: DevicePointer, from: &[u8]) -> Answer<()>;
    /// `cuMemcpyDtoH`.
    fn copy_from_device(&mut self, to: &mut [u8], from: DevicePointer) -> Answer<()>;
    /// `cuMemcpyDtoDAsync`.
    fn copy_on_device(
        &mut self,
        to: DevicePointer,
        from: DevicePointer,
        bytes: u64,
        stream: Stream,
    ) -> Answer<()>;
    /// `cuMemsetD8Async`.
    fn fill_bytes(
        &mut self,
        at: DevicePointer,
        value: u8,
        count: u64,
        stream: Stream,
    ) -> Answer<()>;
    /// `cuMemsetD32Async`; the address is a multiple of four.
    fn fill_words(
        &mut self,
        at: DevicePointer,
        value: u32,
        count: u64,
        stream: Stream,
    ) -> Answer<()>;

    /// `cuModuleLoadDataEx`: a cubin, or PTX text. The log of the driver's compiler is in the
    /// error.
    fn module_load(&mut self, image: &[u8]) -> Answer<Module>;
    /// `cuModuleUnload`; invalidates its functions.
    fn module_unload(&mut self, module: Module) -> Answer<()>;
    /// `cuModuleGetFunction`.
    fn function(&mut self, module: Module, name: &str) -> Answer<Function>;
    /// `cuModuleGetGlobal`: address and size of a `__constant__` or `__device__` variable.
    fn variable(&mut self, module: Module, name: &str) -> Answer<(DevicePointer, u64)>;
    /// `cuFuncGetAttribute`.
    fn function_attribute(
        &mut self,
        function: Function,
        attribute: FunctionAttribute,
    ) -> Answer<i32>;
    /// `cuFuncSetAttribute`.
    fn function_set_attribute(
        &mut self,
        function: Function,
        attribute: FunctionAttribute,
        value: i32,
    ) -> Answer<()>;
    /// `cuTensorMapEncodeTiled`: the bytes of a `CUtensorMap` argument. Requires a driver of CUDA 12 or
    /// newer.
    fn tensor_map(&mut self, map: &TensorMap) -> Answer<[u8; TENSOR_MAP_BYTES]>;
    /// `cuOccupancyMaxActiveBlocksPerMultiprocessor`.
    fn occupancy(&mut self, function: Function, threads: i32, shared_bytes: u64) -> Answer<i32>;
    /// `cuLaunchKernel`, `cuLaunchCooperativeKernel` for a cooperative launch, or `cuLaunchKernelEx` for
    /// one with clusters. Parameters that do not match the kernel's are rejected before the call
    /// (`cuFuncGetParamInfo`, if the driver has it).
    fn launch(&mut self, function: Function, stream: Stream, launch: &LaunchConfig) -> Answer<()>;

    /// `cuStreamCreate`, ordered with the null stream, on which plain copies run.
    fn stream_create(&mut self) -> Answer<Stream>;
    /// `cuStreamSynchronize`: reports errors of the kernels.
    fn stream_synchronize(&mut self, stream: Stream) -> Answer<()>;
    /// `cuStreamDestroy`.
    fn stream_destroy(&mut self, stream: Stream) -> Answer<()>;
    /// `cuEventCreate`, with timing.
    fn event_create(&mut self) -> Answer<Event>;
    /// `cuEventRecord`.
    fn event_record(&mut self, event: Event, stream: Stream) -> Answer<()>;
    /// `cuEventQuery`: reports whether everything before the event has ended.
    fn event_is_over(&mut self, event: Event) -> Answer<bool>;
    /// `cuEventSynchronize`.
    fn event_synchronize(&mut self, event: Event) -> Answer<()>;
    /// `cuEventElapsedTime`: milliseconds from one event to the other.
    fn event_elapsed(&mut self, from: Event, to: Event) -> Answer<f32>;
    /// `cuEventDestroy`.
    fn event_destroy(&mut self, event: Event) -> Answer<()>;

    /// `cuStreamBeginCapture`: further work on the stream is captured, not run.
    fn capture_begin(&mut self, stream: Stream) -> Answer<()>;
    /// `cuStreamEndCapture`.
    fn capture_end(&mut self, stream: Stream) -> Answer<Graph>;
    /// `cuGraphInstantiateWithFlags`.
    fn graph_instantiate(&mut self, graph: Graph) -> Answer<GraphExec>;
    /// `cuGraphUpload`: the setup that a first launch would otherwise do.
    fn graph_upload(&mut self, exec: GraphExec, stream: Stream) -> Answer<()>;
    /// `cuGraphLaunch`.
    fn graph_launch(&mut self, exec: GraphExec, stream: Stream) -> Answer<()>;
    /// `cuGraphDestroy`.
    fn graph_destroy(&mut self, graph: Graph) -> Answer<()>;
    /// `cuGraphExecDestroy`.
    fn exec_destroy(&mut self, exec: GraphExec) -> Answer<()>;
}
