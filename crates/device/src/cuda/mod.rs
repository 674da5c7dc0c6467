//! The only module that calls the CUDA driver: opens its library at run time and implements the
//! safe trait [`Driver`].
//!
//! Functions are looked up by name in the driver's library, with cudarc's types. Each signature is
//! compared with cudarc's binding when this file is compiled. cudarc's own wrappers are not
//! suitable: they panic if the library or a function is missing. They store the result in an `enum`,
//! which is undefined behaviour for a code of a newer driver.
//!
//! Every handle is looked up among the live ones before a call, so that a stale one is an error. The driver
//! would dereference it.

#![expect(unsafe_code, reason = "calls the CUDA driver")]

mod functions;
mod handles;

use super::gpu::driver::*;
use cudarc::driver::sys;
pub use functions::{CALLS, DriverAbsent};
use functions::{cluster_attributes, launch_config};
pub use handles::CudaDriver;
use handles::Kind;
use std::ffi::{CStr, CString, c_void};
use sys::{
    CUcontext, CUevent, CUfunction, CUgraph, CUgraphExec, CUjit_option, CUmodule, CUstream,
    CUstreamCaptureMode, CUuuid,
};
use vgpu::{TENSOR_MAP_BYTES, TensorMap};

/// Maximum total size of a kernel's parameters, bytes: CUDA C++ Programming Guide, compute
/// capability 7 and newer.
const PARAMETER_BYTES_MAX: usize = 32_764;
/// Maximum length of the compiler's log, bytes.
const LOG_BYTES: usize = 8192;

/// Calls the driver; an error code becomes an error with the call's name.
macro_rules! call {
    ($driver:expr, $name:ident($($argument:expr),*)) => {{
        // SAFETY: handles were returned by the driver and are live (`Kind`), pointers are to local
        // variables or slices that outlive the call, lengths are theirs.
        let answer = unsafe { ($driver.cuda.$name)($($argument),*) };
        if answer == 0 { Ok(()) } else { Err(CudaError::new(stringify!($name), answer)) }
    }};
}

fn number(bytes: usize) -> u64 {
    bytes as u64
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Driver for CudaDriver {
    fn init(&mut self) -> Answer<()> {
        call!(self, cuInit(0))
    }

    fn version(&mut self) -> Answer<i32> {
        let mut version = 0;
        call!(self, cuDriverGetVersion(&raw mut version)).map(|()| version)
    }

    fn device_count(&mut self) -> Answer<i32> {
        let mut count = 0;
        call!(self, cuDeviceGetCount(&raw mut count)).map(|()| count)
    }

    fn device(&mut self, ordinal: i32) -> Answer<Device> {
        let mut device = 0;
        call!(self, cuDeviceGet(&raw mut device, ordinal)).map(|()| Device(device))
    }

    fn device_name(&mut self, device: Device) -> Answer<String> {
        let mut name = [0u8; 256];
        // The last byte stays 0, so that the name is always terminated.
        let length = 255;
        call!(
            self,
            cuDeviceGetName(name.as_mut_ptr().cast(), length, device.0)
        )?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    fn device_uuid(&mut self, device: Device) -> Answer<[u8; 16]> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        call!(self, cuDeviceGetUuid_v2(&raw mut uuid, device.0))?;
        Ok(uuid.bytes.map(|byte| byte as u8))
    }

    fn device_memory(&mut self, device: Device) -> Answer<u64> {
        let mut bytes = 0;
        call!(self, cuDeviceTotalMem_v2(&raw mut bytes, device.0)).map(|()| number(bytes))
    }

    fn device_attribute(&mut self, device: Device, attribute: DeviceAttribute) -> Answer<i32> {
        let mut value = 0;
        call!(
            self,
            cuDeviceGetAttribute(&raw mut value, attribute, device.0)
        )
        .map(|()| value)
    }

    fn context_retain(&mut self, device: Device) -> Answer<Context> {
        let mut context: CUcontext = std::ptr::null_mut();
        call!(self, cuDevicePrimaryCtxRetain(&raw mut context, device.0))?;
        self.living.insert((Kind::Context, context as u64));
        Ok(Context(context as u64))
    }

    fn context_set_current(&mut self, context: Context) -> Answer<()> {
        self.alive("cuCtxSetCurrent", Kind::Context, context.0)?;
        call!(self, cuCtxSetCurrent(context.0 as CUcontext))
    }

    fn context_synchronize(&mut self) -> Answer<()> {
        call!(self, cuCtxSynchronize())
    }

    fn context_release(&mut self, device: Device) -> Answer<()> {
        // The context is not used again, even if the call fails.
        self.living.clear();
        self.kernels.clear();
        call!(self, cuDevicePrimaryCtxRelease_v2(device.0))
    }

    fn memory_info(&mut self) -> Answer<(u64, u64)> {
        let (mut free, mut total) = (0, 0);
        call!(self, cuMemGetInfo_v2(&raw mut free, &raw mut total))?;
        Ok((number(free), number(total)))
    }

    fn memory_alloc(&mut self, bytes: u64) -> Answer<DevicePointer> {
        let mut at = 0;
        call!(self, cuMemAlloc_v2(&raw mut at, size(bytes))).map(|()| DevicePointer(at))
    }

    fn memory_free(&mut self, at: DevicePointer) -> Answer<()> {
        call!(self, cuMemFree_v2(at.0))
    }

    fn copy_to_device(&mut self, to: DevicePointer, from: &[u8]) -> Answer<()> {
        call!(
            self,
            cuMemcpyHtoD_v2(to.0, from.as_ptr().cast(), from.len())
        )
    }

    fn copy_from_device(&mut self, to: &mut [u8], from: DevicePointer) -> Answer<()> {
        call!(
            self,
            cuMemcpyDtoH_v2(to.as_mut_ptr().cast(), from.0, to.len())
        )
    }

    fn copy_on_device(
        &mut self,
        to: DevicePointer,
        from: DevicePointer,
        bytes: u64,
        stream: Stream,
    ) -> Answer<()> {
        self.alive("cuMemcpyDtoDAsync_v2", Kind::Stream, stream.0)?;
        call!(
            self,
            cuMemcpyDtoDAsync_v2(to.0, from.0, size(bytes), stream.0 as CUstream)
        )
    }

    fn fill_bytes(&mut self, at: DevicePointer, value: u8, count: u64, on: Stream) -> Answer<()> {
        self.alive("cuMemsetD8Async", Kind::Stream, on.0)?;
        call!(
            self,
            cuMemsetD8Async(at.0, value, size(count), on.0 as CUstream)
        )
    }

    fn fill_words(&mut self, at: DevicePointer, value: u32, count: u64, on: Stream) -> Answer<()> {
        self.alive("cuMemsetD32Async", Kind::Stream, on.0)?;
        call!(
            self,
            cuMemsetD32Async(at.0, value, size(count), on.0 as CUstream)
        )
    }

    fn module_load(&mut self, image: &[u8]) -> Answer<Module> {
        // PTX ends at a zero byte; a cubin contains its length.
        let mut image = image.to_vec();
        image.push(0);
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            // The driver takes this option's number in place of a pointer.
            std::ptr::without_provenance_mut(LOG_BYTES - 1),
        ];
        let mut module: CUmodule = std::ptr::null_mut();
        let answer = call!(
            self,
            cuModuleLoadDataEx(
                &raw mut module,
                image.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr()
            )
        );
        let text = CStr::from_bytes_until_nul(&log).unwrap_or_default();
        answer.map_err(|error| error.noting(&text.to_string_lossy()))?;
        self.living.insert((Kind::Module, module as u64));
        Ok(Module(module as u64))
    }

    fn module_unload(&mut self, module: Module) -> Answer<()> {
        self.alive("cuModuleUnload", Kind::Module, module.0)?;
        self.living.remove(&(Kind::Module, module.0));
        // The driver would dereference functions of an unloaded module as stale pointers.
        self.kernels.retain(|_, (of, _)| *of != module.0);
        call!(self, cuModuleUnload(module.0 as CUmodule))
    }

    fn function(&mut self, module: Module, name: &str) -> Answer<Function> {
        self.alive("cuModuleGetFunction", Kind::Module, module.0)?;
        let text = CString::new(name)
            .map_err(|_| CudaError::new("cuModuleGetFunction", code::NOT_FOUND))?;
        let mut function: CUfunction = std::ptr::null_mut();
        call!(
            self,
            cuModuleGetFunction(&raw mut function, module.0 as CUmodule, text.as_ptr())
        )
        .map_err(|error| error.noting(name))?;
        // Drivers load kernels at their first launch, which is not allowed while a graph is
        // captured.
        if let Some(load) = self.cuda.cuFuncLoad {
            // SAFETY: the function was just returned by the driver.
            let answer = unsafe { load(function) };
            if answer != 0 {
                return Err(CudaError::new("cuFuncLoad", answer).noting(name));
            }
        }
        let sizes = self.parameter_sizes(function);
        self.kernels.insert(function as u64, (module.0, sizes));
        Ok(Function(function as u64))
    }

    fn tensor_map(&mut self, map: &TensorMap) -> Answer<[u8; TENSOR_MAP_BYTES]> {
        self.cuda.encode(map)
    }

    fn function_attribute(
        &mut self,
        function: Function,
        attribute: FunctionAttribute,
    ) -> Answer<i32> {
        let function = self.kernel("cuFuncGetAttribute", function)?;
        let mut value = 0;
        call!(
            self,
            cuFuncGetAttribute(&raw mut value, attribute, function)
        )
        .map(|()| value)
    }

    fn function_set_attribute(
        &mut self,
        function: Function,
        attribute: FunctionAttribute,
        value: i32,
    ) -> Answer<()> {
        let function = self.kernel("cuFuncSetAttribute", function)?;
        call!(self, cuFuncSetAttribute(function, attribute, value))
    }

    fn occupancy(&mut self, function: Function, threads: i32, shared_bytes: u64) -> Answer<i32> {
        let function = self.kernel("cuOccupancyMaxActiveBlocksPerMultiprocessor", function)?;
        let (mut blocks, shared) = (0, size(shared_bytes));
        call!(
            self,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, function, threads, shared)
        )
        .map(|()| blocks)
    }

    fn variable(&mut self, module: Module, name: &str) -> Answer<(DevicePointer, u64)> {
        self.alive("cuModuleGetGlobal_v2", Kind::Module, module.0)?;
        let text = CString::new(name)
            .map_err(|_| CudaError::new("cuModuleGetGlobal_v2", code::NOT_FOUND))?;
        let (mut at, mut bytes, module) = (0, 0, module.0 as CUmodule);
        call!(
            self,
            cuModuleGetGlobal_v2(&raw mut at, &raw mut bytes, module, text.as_ptr())
        )?;
        Ok((DevicePointer(at), number(bytes)))
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "a word is longer than the part of a word that is copied"
    )]
    fn launch(&mut self, function: Function, stream: Stream, launch: &LaunchConfig) -> Answer<()> {
        self.alive("cuLaunchKernel", Kind::Stream, stream.0)?;
        let kernel = self.kernel("cuLaunchKernel", function)?;
        let given: Vec<usize> = launch.parameters.iter().map(Vec::len).collect();
        let wanted = self
            .kernels
            .get(&function.0)
            .and_then(|(_, sizes)| sizes.as_ref());
        let total: usize = given.iter().sum();
        if total > PARAMETER_BYTES_MAX || wanted.is_some_and(|wanted| *wanted != given) {
            let note = format!(
                "the kernel takes parameters of {:?} bytes, the launch gives {given:?}",
                wanted.map_or(&[][..], Vec::as_slice)
            );
            return Err(CudaError::new("cuLaunchKernel", code::INVALID_VALUE).noting(&note));
        }
        // The driver reads each declared parameter of the kernel through its pointer. If it does not report
        // the sizes, zeros cover the maximum.
        let spare = if wanted.is_some() {
            0
        } else {
            PARAMETER_BYTES_MAX
        };
        // Each parameter begins at a separate word.
        let mut values = Vec::new();
        let mut starts = Vec::with_capacity(given.len());
        for bytes in &launch.parameters {
            starts.push(values.len());
            values.extend(bytes.chunks(8).map(|part| {
                let mut word = [0; 8];
                word[..part.len()].copy_from_slice(part);
                u64::from_le_bytes(word)
            }));
        }
        let end = values.len();
        values.resize(end + spare.div_ceil(8) + 1, 0u64);
        let first = values.as_mut_ptr();
        let mut pointers: Vec<*mut c_void> = (0..given.len() + spare)
            // SAFETY: every start is at most `end`, which is within `values`.
            .map(|index| unsafe { first.add(starts.get(index).copied().unwrap_or(end)) }.cast())
            .collect();
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let (stream, none) = (stream.0 as CUstream, std::ptr::null_mut());
        let (shared, pointers) = (launch.shared_bytes, pointers.as_mut_ptr());
        if let Some(cluster) = launch.cluster {
            let mut attributes = cluster_attributes(cluster, launch.cooperative);
            let config = launch_config(launch, stream);
            // SAFETY: kernel and stream were returned by the driver and are live; the pointers are to local
            // values that outlive the call.
            return unsafe {
                self.cuda
                    .launch_with(config, &mut attributes, kernel, pointers)
            };
        }
        if launch.cooperative {
            return call!(
                self,
                cuLaunchCooperativeKernel(kernel, gx, gy, gz, bx, by, bz, shared, stream, pointers)
            );
        }
        call!(
            self,
            cuLaunchKernel(
                kernel, gx, gy, gz, bx, by, bz, shared, stream, pointers, none
            )
        )
    }

    fn stream_create(&mut self) -> Answer<Stream> {
        let mut stream: CUstream = std::ptr::null_mut();
        call!(self, cuStreamCreate(&raw mut stream, 0))?;
        self.living.insert((Kind::Stream, stream as u64));
        Ok(Stream(stream as u64))
    }

    fn stream_synchronize(&mut self, stream: Stream) -> Answer<()> {
        self.alive("cuStreamSynchronize", Kind::Stream, stream.0)?;
        call!(self, cuStreamSynchronize(stream.0 as CUstream))
    }

    fn stream_destroy(&mut self, stream: Stream) -> Answer<()> {
        self.alive("cuStreamDestroy_v2", Kind::Stream, stream.0)?;
        self.living.remove(&(Kind::Stream, stream.0));
        call!(self, cuStreamDestroy_v2(stream.0 as CUstream))
    }

    fn event_create(&mut self) -> Answer<Event> {
        let mut event: CUevent = std::ptr::null_mut();
        call!(self, cuEventCreate(&raw mut event, 0))?;
        self.living.insert((Kind::Event, event as u64));
        Ok(Event(event as u64))
    }

    fn event_record(&mut self, event: Event, stream: Stream) -> Answer<()> {
        self.alive("cuEventRecord", Kind::Event, event.0)?;
        self.alive("cuEventRecord", Kind::Stream, stream.0)?;
        call!(
            self,
            cuEventRecord(event.0 as CUevent, stream.0 as CUstream)
        )
    }

    fn event_is_over(&mut self, event: Event) -> Answer<bool> {
        self.alive("cuEventQuery", Kind::Event, event.0)?;
        match call!(self, cuEventQuery(event.0 as CUevent)) {
            Err(error) if error.code == code::NOT_READY => Ok(false),
            answer => answer.map(|()| true),
        }
    }

    fn event_synchronize(&mut self, event: Event) -> Answer<()> {
        self.alive("cuEventSynchronize", Kind::Event, event.0)?;
        call!(self, cuEventSynchronize(event.0 as CUevent))
    }

    fn event_elapsed(&mut self, from: Event, to: Event) -> Answer<f32> {
        self.alive("cuEventElapsedTime", Kind::Event, from.0)?;
        self.alive("cuEventElapsedTime", Kind::Event, to.0)?;
        let (mut milliseconds, from, to) = (0.0, from.0 as CUevent, to.0 as CUevent);
        call!(self, cuEventElapsedTime(&raw mut milliseconds, from, to)).map(|()| milliseconds)
    }

    fn event_destroy(&mut self, event: Event) -> Answer<()> {
        self.alive("cuEventDestroy_v2", Kind::Event, event.0)?;
        self.living.remove(&(Kind::Event, event.0));
        call!(self, cuEventDestroy_v2(event.0 as CUevent))
    }

    fn capture_begin(&mut self, stream: Stream) -> Answer<()> {
        self.alive("cuStreamBeginCapture_v2", Kind::Stream, stream.0)?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        call!(self, cuStreamBeginCapture_v2(stream.0 as CUstream, mode))
    }

    fn capture_end(&mut self, stream: Stream) -> Answer<Graph> {
        self.alive("cuStreamEndCapture", Kind::Stream, stream.0)?;
        let mut graph: CUgraph = std::ptr::null_mut();
        call!(
            self,
            cuStreamEndCapture(stream.0 as CUstream, &raw mut graph)
        )?;
        self.living.insert((Kind::Graph, graph as u64));
        Ok(Graph(graph as u64))
    }

    fn graph_instantiate(&mut self, graph: Graph) -> Answer<GraphExec> {
        self.alive("cuGraphInstantiateWithFlags", Kind::Graph, graph.0)?;
        let mut exec: CUgraphExec = std::ptr::null_mut();
        call!(
            self,
            cuGraphInstantiateWithFlags(&raw mut exec, graph.0 as CUgraph, 0)
        )?;
        self.living.insert((Kind::Exec, exec as u64));
        Ok(GraphExec(exec as u64))
    }

    fn graph_upload(&mut self, exec: GraphExec, stream: Stream) -> Answer<()> {
        self.alive("cuGraphUpload", Kind::Exec, exec.0)?;
        self.alive("cuGraphUpload", Kind::Stream, stream.0)?;
        call!(
            self,
            cuGraphUpload(exec.0 as CUgraphExec, stream.0 as CUstream)
        )
    }

    fn graph_launch(&mut self, exec: GraphExec, stream: Stream) -> Answer<()> {
        self.alive("cuGraphLaunch", Kind::Exec, exec.0)?;
        self.alive("cuGraphLaunch", Kind::Stream, stream.0)?;
        call!(
            self,
            cuGraphLaunch(exec.0 as CUgraphExec, stream.0 as CUstream)
        )
    }

    fn graph_destroy(&mut self, graph: Graph) -> Answer<()> {
        self.alive("cuGraphDestroy", Kind::Graph, graph.0)?;
        self.living.remove(&(Kind::Graph, graph.0));
        call!(self, cuGraphDestroy(graph.0 as CUgraph))
    }

    fn exec_destroy(&mut self, exec: GraphExec) -> Answer<()> {
        self.alive("cuGraphExecDestroy", Kind::Exec, exec.0)?;
        self.living.remove(&(Kind::Exec, exec.0));
        call!(self, cuGraphExecDestroy(exec.0 as CUgraphExec))
    }
}
