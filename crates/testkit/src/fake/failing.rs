//! A driver that records every call and fails one of them.

use std::cell::RefCell;
use std::rc::Rc;
use tuner_device::gpu::driver::*;
use vgpu::{TENSOR_MAP_BYTES, TensorMap};

/// Log of a [`Failing`] driver, shared with the test.
#[derive(Debug, Default)]
pub struct Notes {
    /// Names of the calls, in order.
    pub calls: Vec<&'static str>,
    /// The failure has happened.
    pub failed: bool,
}

/// Forwards all calls but one: the first call of a name fails.
pub struct Failing<D> {
    inner: D,
    call: &'static str,
    code: u32,
    notes: Rc<RefCell<Notes>>,
}

impl<D> Failing<D> {
    /// Fails the first `call` with `code`; an empty name fails none.
    pub fn new(inner: D, call: &'static str, code: u32) -> (Self, Rc<RefCell<Notes>>) {
        let notes = Rc::<RefCell<Notes>>::default();
        let driver = Self {
            inner,
            call,
            code,
            notes: Rc::clone(&notes),
        };
        (driver, notes)
    }

    fn note(&self, call: &'static str) -> Answer<()> {
        let mut notes = self.notes.borrow_mut();
        notes.calls.push(call);
        if call == self.call && !notes.failed {
            notes.failed = true;
            return Err(CudaError::new(call, self.code));
        }
        Ok(())
    }
}

macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty = $call:literal;)*) => {
        impl<D: Driver> Driver for Failing<D> {
            fn launch(
                &mut self,
                function: Function,
                stream: Stream,
                launch: &LaunchConfig,
            ) -> Answer<()> {
                self.note(match (launch.cluster, launch.cooperative) {
                    (Some(_), _) => "cuLaunchKernelEx",
                    (None, true) => "cuLaunchCooperativeKernel",
                    (None, false) => "cuLaunchKernel",
                })?;
                self.inner.launch(function, stream, launch)
            }

            $(fn $method(&mut self, $($argument: $type),*) -> Answer<$answer> {
                self.note($call)?;
                self.inner.$method($($argument),*)
            })*
        }
    };
}

pass_on! {
    init() -> () = "cuInit";
    version() -> i32 = "cuDriverGetVersion";
    device_count() -> i32 = "cuDeviceGetCount";
    device(ordinal: i32) -> Device = "cuDeviceGet";
    device_name(device: Device) -> String = "cuDeviceGetName";
    device_uuid(device: Device) -> [u8; 16] = "cuDeviceGetUuid_v2";
    device_memory(device: Device) -> u64 = "cuDeviceTotalMem_v2";
    device_attribute(device: Device, attribute: DeviceAttribute) -> i32 = "cuDeviceGetAttribute";
    context_retain(device: Device) -> Context = "cuDevicePrimaryCtxRetain";
    context_set_current(context: Context) -> () = "cuCtxSetCurrent";
    context_synchronize() -> () = "cuCtxSynchronize";
    context_release(device: Device) -> () = "cuDevicePrimaryCtxRelease_v2";
    memory_info() -> (u64, u64) = "cuMemGetInfo_v2";
    memory_alloc(bytes: u64) -> DevicePointer = "cuMemAlloc_v2";
    memory_free(at: DevicePointer) -> () = "cuMemFree_v2";
    copy_to_device(to: DevicePointer, from: &[u8]) -> () = "cuMemcpyHtoD_v2";
    copy_from_device(to: &mut [u8], from: DevicePointer) -> () = "cuMemcpyDtoH_v2";
    copy_on_device(to: DevicePointer, from: DevicePointer, bytes: u64, stream: Stream) -> ()
        = "cuMemcpyDtoDAsync_v2";
    fill_bytes(at: DevicePointer, value: u8, count: u64, stream: Stream) -> () = "cuMemsetD8Async";
    fill_words(at: DevicePointer, value: u32, count: u64, stream: Stream) -> ()
        = "cuMemsetD32Async";
    module_load(image: &[u8]) -> Module = "cuModuleLoadDataEx";
    module_unload(module: Module) -> () = "cuModuleUnload";
    function(module: Module, name: &str) -> Function = "cuModuleGetFunction";
    function_attribute(function: Function, attribute: FunctionAttribute) -> i32
        = "cuFuncGetAttribute";
    function_set_attribute(function: Function, attribute: FunctionAttribute, value: i32) -> ()
        = "cuFuncSetAttribute";
    tensor_map(map: &TensorMap) -> [u8; TENSOR_MAP_BYTES] = "cuTensorMapEncodeTiled";
    occupancy(function: Function, threads: i32, shared_bytes: u64) -> i32
        = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
    variable(module: Module, name: &str) -> (DevicePointer, u64) = "cuModuleGetGlobal_v2";
    stream_create() -> Stream = "cuStreamCreate";
    stream_synchronize(stream: Stream) -> () = "cuStreamSynchronize";
    stream_destroy(stream: Stream) -> () = "cuStreamDestroy_v2";
    event_create() -> Event = "cuEventCreate";
    event_record(event: Event, stream: Stream) -> () = "cuEventRecord";
    event_is_over(event: Event) -> bool = "cuEventQuery";
    event_synchronize(event: Event) -> () = "cuEventSynchronize";
    event_elapsed(from: Event, to: Event) -> f32 = "cuEventElapsedTime";
    event_destroy(event: Event) -> () = "cuEventDestroy_v2";
    capture_begin(stream: Stream) -> () = "cuStreamBeginCapture_v2";
    capture_end(stream: Stream) -> Graph = "cuStreamEndCapture";
    graph_instantiate(graph: Graph) -> GraphExec = "cuGraphInstantiateWithFlags";
    graph_upload(exec: GraphExec, stream: Stream) -> () = "cuGraphUpload";
    graph_launch(exec: GraphExec, stream: Stream) -> () = "cuGraphLaunch";
    graph_destroy(graph: Graph) -> () = "cuGraphDestroy";
    exec_destroy(exec: GraphExec) -> () = "cuGraphExecDestroy";
}
