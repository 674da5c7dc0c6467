//! The functions of the driver's library, looked up by name, with cudarc's signatures.
#![expect(unsafe_code, reason = "looks up the CUDA driver's functions")]

use crate::gpu::driver::{Answer, CudaError, LaunchConfig, code};
use cudarc::driver::sys;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUgraph, CUgraphExec, CUjit_option, CUmodule, CUstream,
    CUstreamCaptureMode, CUuuid,
};
use vgpu::{TENSOR_MAP_BYTES, TensorMap};

/// Reason why no usable driver was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverAbsent {
    /// No library.
    #[error("libcuda.so.1 is not on the system's library path")]
    NoLibrary,
    /// A required function is missing.
    #[error(
        "the NVIDIA driver is too old: it has no `{0}`; install a driver of CUDA 11.4 or newer (470)"
    )]
    TooOld(&'static str),
}

/// Expands to cudarc's binding of a function. CUDA 13 has dropped names that every driver still exports;
/// their signature is that of the second name.
macro_rules! binding {
    ($name:ident) => {
        sys::$name
    };
    ($name:ident = $binding:ident) => {
        sys::$binding
    };
}

/// `cuTensorMapEncodeTiled`, its enumerations as numbers.
pub(super) type EncodeTiled = unsafe extern "C" fn(
    *mut sys::CUtensorMap,
    c_uint,
    u32,
    *mut c_void,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
) -> u32;

/// `cuTensorMapEncodeIm2col`, its enumerations as numbers.
pub(super) type EncodeIm2col = unsafe extern "C" fn(
    *mut sys::CUtensorMap,
    c_uint,
    u32,
    *mut c_void,
    *const u64,
    *const u64,
    *const c_int,
    *const c_int,
    u32,
    u32,
    *const u32,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
) -> u32;

/// `cuLaunchKernelEx`.
pub(super) type LaunchEx = unsafe extern "C" fn(
    *const sys::CUlaunchConfig,
    CUfunction,
    *mut *mut c_void,
    *mut *mut c_void,
) -> u32;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(= $binding:ident)?;)*) => {
        #[expect(non_snake_case, reason = "the driver's own names")]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> u32,)*
            pub(super) cuFuncGetParamInfo:
                Option<unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> u32>,
            pub(super) cuFuncLoad: Option<unsafe extern "C" fn(CUfunction) -> u32>,
            pub(super) cuTensorMapEncodeTiled: Option<EncodeTiled>,
            pub(super) cuTensorMapEncodeIm2col: Option<EncodeIm2col>,
            pub(super) cuLaunchKernelEx: Option<LaunchEx>,
        }

        /// Returns the configuration of a launch without attributes.
pub(super) fn launch_config(launch: &LaunchConfig, stream: CUstream) -> sys::CUlaunchConfig {
    let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
    sys::CUlaunchConfig {
        gridDimX: gx,
        gridDimY: gy,
        gridDimZ: gz,
        blockDimX: bx,
        blockDimY: by,
        blockDimZ: bz,
        sharedMemBytes: launch.shared_bytes,
        hStream: stream,
        attrs: std::ptr::null_mut(),
        numAttrs: 0,
    }
}

/// Returns the launch attributes of a cluster.
pub(super) fn cluster_attributes(
    [x, y, z]: [u32; 3],
    cooperative: bool,
) -> Vec<sys::CUlaunchAttribute> {
    let attribute = |id, value| sys::CUlaunchAttribute {
        id,
        pad: [0; 4],
        value,
    };
    let shape = sys::CUlaunchAttributeValue {
        clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z },
    };
    let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    let mut all = vec![attribute(id, shape)];
    if cooperative {
        let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        all.push(attribute(id, sys::CUlaunchAttributeValue { cooperative: 1 }));
    }
    all
}

impl Functions {
    /// Launches a kernel with attributes.
    ///
    /// # Safety
    /// The handles of the configuration and the function are live, and `parameters` are the kernel's.
    pub(super) unsafe fn launch_with(
        &self,
        config: sys::CUlaunchConfig,
        attributes: &mut [sys::CUlaunchAttribute],
        function: CUfunction,
        parameters: *mut *mut c_void,
    ) -> Answer<()> {
        let name = "cuLaunchKernelEx";
        let launch = self.cuLaunchKernelEx;
        let launch = launch.ok_or_else(|| CudaError::new(name, code::NOT_SUPPORTED))?;
        let config = sys::CUlaunchConfig {
            numAttrs: attributes.len() as c_uint,
            attrs: attributes.as_mut_ptr(),
            ..config
        };
        // SAFETY: the attributes outlive the call; the caller vouches for the handles and parameters.
        let answer = unsafe { launch(&raw const config, function, parameters, std::ptr::null_mut()) };
        match answer {
            0 => Ok(()),
            code => Err(CudaError::new(name, code)),
        }
    }

            pub(super) fn load(library: &libloading::Library) -> Result<Self, DriverAbsent> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the symbol is the driver function of that name. Its C signature
                        // is the one below except for the result: `CUresult` is an `int`-sized C
                        // enum.
                        *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                            .map_err(|_| DriverAbsent::TooOld(stringify!($name)))?
                    },)*
                    // SAFETY: as above; CUDA 12.4 and newer have these two.
                    cuFuncGetParamInfo: unsafe { library.get(b"cuFuncGetParamInfo\0") }
                        .ok()
                        .map(|symbol| *symbol),
                    // SAFETY: as above.
                    cuFuncLoad: unsafe { library.get(b"cuFuncLoad\0") }
                        .ok()
                        .map(|symbol| *symbol),
                    // SAFETY: as above; CUDA 12 and newer have it. Its enumerations are unsigned 32-bit
                    // numbers.
                    cuTensorMapEncodeTiled: unsafe { library.get(b"cuTensorMapEncodeTiled\0") }
                        .ok()
                        .map(|symbol| *symbol),
                    // SAFETY: as above.
                    cuTensorMapEncodeIm2col: unsafe { library.get(b"cuTensorMapEncodeIm2col\0") }
                        .ok()
                        .map(|symbol| *symbol),
                    // SAFETY: as above; CUDA 11.8 and newer have it.
                    cuLaunchKernelEx: unsafe { library.get(b"cuLaunchKernelEx\0") }
                        .ok()
                        .map(|symbol| *symbol),
                })
            }
        }

        // Fails to compile unless the signatures are cudarc's.
        $(const _: unsafe fn($($argument),*) -> sys::CUresult = binding!($name $(= $binding)?);)*
        const _: unsafe fn(CUfunction, usize, *mut usize, *mut usize) -> sys::CUresult =
            sys::cuFuncGetParamInfo;
        const _: unsafe fn(CUfunction) -> sys::CUresult = sys::cuFuncLoad;
        const _: unsafe fn(
            *const sys::CUlaunchConfig,
            CUfunction,
            *mut *mut c_void,
            *mut *mut c_void,
        ) -> sys::CUresult = sys::cuLaunchKernelEx;

        /// The driver functions that are called, in the driver's names.
        pub const CALLS: &[&str] = &[$(stringify!($name)),*];
    };
}

functions! {
    cuInit(c_uint);
    cuDriverGetVersion(*mut c_int);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDeviceGetUuid_v2(*mut CUuuid, CUdevice);
    cuDeviceTotalMem_v2(*mut usize, CUdevice);
    cuDeviceGetAttribute(*mut c_int, CUdevice_attribute, CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuCtxSetCurrent(CUcontext);
    cuCtxSynchronize();
    cuDevicePrimaryCtxRelease_v2(CUdevice);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut CUdeviceptr, usize);
    cuMemFree_v2(CUdeviceptr);
    cuMemcpyHtoD_v2(CUdeviceptr, *const c_void, usize);
    cuMemcpyDtoH_v2(*mut c_void, CUdeviceptr, usize);
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuMemsetD8Async(CUdeviceptr, c_uchar, usize, CUstream);
    cuMemsetD32Async(CUdeviceptr, c_uint, usize, CUstream);
    cuModuleLoadDataEx(*mut CUmodule, *const c_void, c_uint, *mut CUjit_option, *mut *mut c_void);
    cuModuleUnload(CUmodule);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuModuleGetGlobal_v2(*mut CUdeviceptr, *mut usize, CUmodule, *const c_char);
    cuFuncGetAttribute(*mut c_int, CUfunction_attribute, CUfunction);
    cuFuncSetAttribute(CUfunction, CUfunction_attribute, c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, CUfunction, c_int, usize);
    cuLaunchKernel(CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void);
    cuLaunchCooperativeKernel(CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamSynchronize(CUstream);
    cuStreamDestroy_v2(CUstream);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventRecord(CUevent, CUstream);
    cuEventSynchronize(CUevent);
    cuEventQuery(CUevent);
    cuEventElapsedTime(*mut f32, CUevent, CUevent) = cuEventElapsedTime_v2;
    cuEventDestroy_v2(CUevent);
    cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
    cuStreamEndCapture(CUstream, *mut CUgraph);
    cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, c_ulonglong);
    cuGraphUpload(CUgraphExec, CUstream);
    cuGraphLaunch(CUgraphExec, CUstream);
    cuGraphDestroy(CUgraph);
    cuGraphExecDestroy(CUgraphExec);
}

impl Functions {
    /// Encodes a tensor map.
    pub(super) fn encode(&self, map: &TensorMap) -> Answer<[u8; TENSOR_MAP_BYTES]> {
        let mut encoded = sys::CUtensorMap { opaque: [0; 16] };
        let (to, tensor) = (&raw mut encoded, map.address as *mut c_void);
        let (element, rank) = (map.element as u32, map.sizes.len() as u32);
        let (sizes, strides, steps) =
            (map.sizes.as_ptr(), map.strides.as_ptr(), map.steps.as_ptr());
        let (interleave, swizzle, promotion) = (map.interleave, map.swizzle, map.promotion);
        let fill = u32::from(map.fills_nan);
        let missing = |name| CudaError::new(name, code::NOT_SUPPORTED);
        let (name, answer) = match &map.pixels {
            None => {
                let name = "cuTensorMapEncodeTiled";
                let encode = self.cuTensorMapEncodeTiled.ok_or_else(|| missing(name))?;
                let boxes = map.boxes.as_ptr();
                // SAFETY: the lists have the map's rank, as `TensorMap::check` found, and outlive the call; the
                // driver writes the map and does not read the tensor.
                let answer = unsafe {
                    encode(
                        to, element, rank, tensor, sizes, strides, boxes, steps, interleave,
                        swizzle, promotion, fill,
                    )
                };
                (name, answer)
            }
            Some(pixels) => {
                let name = "cuTensorMapEncodeIm2col";
                let encode = self.cuTensorMapEncodeIm2col.ok_or_else(|| missing(name))?;
                let (lower, upper) = (pixels.lower.as_ptr(), pixels.upper.as_ptr());
                let extent = |at: usize| map.boxes.get(at).copied().unwrap_or_default();
                let (channels, column) = (extent(0), extent(1));
                // SAFETY: as above; the corners have one coordinate for each spatial dimension.
                let answer = unsafe {
                    encode(
                        to, element, rank, tensor, sizes, strides, lower, upper, channels, column,
                        steps, interleave, swizzle, promotion, fill,
                    )
                };
                (name, answer)
            }
        };
        if answer != 0 {
            return Err(CudaError::new(name, answer));
        }
        let mut bytes = [0; TENSOR_MAP_BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(encoded.opaque) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(bytes)
    }
}
