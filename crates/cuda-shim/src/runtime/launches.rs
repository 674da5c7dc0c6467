//! Launches, attributes of kernels and occupancy.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::abi::{runtime, store};
use crate::client;
use crate::errors::{self, Code};
use crate::graph::submit_launch;
use crate::kernels::{
    CARVEOUT, DYNAMIC_LIMIT, Dim3, Kernel, Launch, LaunchAttribute, NO_CLUSTER,
    NON_PORTABLE_CLUSTER, available_shared_bytes, find_kernel, pack_arguments, read_attributes,
};
use crate::memory::stream_of;
use crate::protocol::{COOPERATIVE, FunctionInfo};

/// Configuration of `cudaLaunchKernelExC`.
#[repr(C)]
#[derive(Debug)]
pub struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: *mut c_void,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

impl LaunchConfig {
    /// Returns the launch of a kernel, without its arguments.
    ///
    /// # Safety
    /// Its attributes are readable.
    unsafe fn launch_of(&self, info: &FunctionInfo) -> Result<Launch, Code> {
        let mut launch = Launch::new(info.id, [self.grid, self.block], self.shared_bytes as u64);
        // SAFETY: the caller's promise.
        unsafe { read_attributes(&mut launch, self.attributes, self.attribute_count)? };
        Ok(launch)
    }
}

/// A launch of a kernel with its arguments.
///
/// # Safety
/// As of [`pack_arguments`].
pub(crate) unsafe fn prepare(
    kernel: &Kernel,
    extents: [Dim3; 2],
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: *mut c_void,
) -> Result<Launch, Code> {
    let info = kernel.info()?;
    let [grid, block] = extents;
    Ok(Launch {
        function: info.id,
        grid,
        block,
        shared_bytes: shared_bytes as u64,
        stream: stream_of(stream),
        flags: 0,
        cluster: NO_CLUSTER,
        // SAFETY: the caller's promise.
        parameters: unsafe { pack_arguments(info, arguments)? },
    })
}

runtime! {
    /// Launches a kernel by its handle.
    fn __cudaLaunchKernel(
        kernel: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *mut *mut c_void,
        shared_bytes: usize,
        stream: *mut c_void,
    ) {
        // SAFETY: the compiler passes the arguments of the kernel's own signature.
        submit_launch(unsafe {
            prepare(find_kernel(kernel)?, [grid, block], arguments, shared_bytes, stream)?
        })
    }

    /// Launches a kernel by its host function.
    fn cudaLaunchKernel(
        function: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *mut *mut c_void,
        shared_bytes: usize,
        stream: *mut c_void,
    ) {
        // SAFETY: the program passes as many arguments as the kernel has parameters.
        submit_launch(unsafe {
            prepare(find_kernel(function)?, [grid, block], arguments, shared_bytes, stream)?
        })
    }

    /// Launches a kernel whose blocks are all resident.
    fn cudaLaunchCooperativeKernel(
        function: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: *mut *mut c_void,
        shared_bytes: usize,
        stream: *mut c_void,
    ) {
        // SAFETY: the program passes as many arguments as the kernel has parameters.
        let mut launch = unsafe {
            prepare(find_kernel(function)?, [grid, block], arguments, shared_bytes, stream)?
        };
        launch.flags |= COOPERATIVE;
        submit_launch(launch)
    }

    /// Launches a kernel with attributes.
    fn cudaLaunchKernelExC(
        config: *const LaunchConfig,
        function: *const c_void,
        arguments: *mut *mut c_void,
    ) {
        if config.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes a configuration, and as many arguments as the kernel has
        // parameters.
        let (launch, events) = unsafe {
            let config = &*config;
            let extents = [config.grid, config.block];
            let kernel = find_kernel(function)?;
            let mut launch = prepare(kernel, extents, arguments, config.shared_bytes, config.stream)?;
            let events = read_attributes(&mut launch, config.attributes, config.attribute_count)?;
            (launch, events)
        };
        events.submit_with(launch)
    }

}

/// `cudaFuncAttributes`, as far as it is filled.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FunctionAttributes {
    shared_bytes: usize,
    constant_bytes: usize,
    local_bytes: usize,
    max_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode: c_int,
    max_dynamic_shared_bytes: c_int,
    preferred_carveout: c_int,
    cluster: [c_int; 6],
    reserved: [c_int; 16],
}

runtime! {
    /// Returns what is known of a kernel.
    fn cudaFuncGetAttributes(attributes: *mut FunctionAttributes, function: *const c_void) {
        let info = find_kernel(function)?.info()?;
        let cluster = [10, 11, 12, 13, 15, NON_PORTABLE_CLUSTER];
        let filled = FunctionAttributes {
            shared_bytes: info.static_shared_bytes as usize,
            constant_bytes: 0,
            local_bytes: info.local_bytes as usize,
            max_threads: info.max_threads as c_int,
            registers: info.registers as c_int,
            ptx_version: info.ptx_version as c_int,
            binary_version: info.capability as c_int,
            cache_mode: 0,
            max_dynamic_shared_bytes: info.settable(DYNAMIC_LIMIT),
            preferred_carveout: info.settable(CARVEOUT),
            cluster: cluster.map(|number| info.settable(number)),
            reserved: [0; 16],
        };
        // SAFETY: the program passes the structure of the header.
        unsafe { store(attributes, filled) }
    }

    /// Sets an attribute, such as the most dynamic shared memory.
    fn cudaFuncSetAttribute(function: *const c_void, attribute: c_uint, value: c_int) {
        let kernel = find_kernel(function)?;
        client::set_function_attribute(kernel.info()?.id, attribute, value)
    }

    /// A hint without an effect.
    fn cudaFuncSetCacheConfig(function: *const c_void, _config: c_uint) {
        find_kernel(function).map(drop)
    }

    /// A hint without an effect.
    fn cudaFuncSetSharedMemConfig(_function: *const c_void, _config: c_uint) { Ok(()) }

    /// Returns the kernel's mangled name.
    fn cudaFuncGetName(name: *mut *const c_char, function: *const c_void) {
        let kernel = find_kernel(function)?;
        let text = std::ffi::CString::new(kernel.name.as_str());
        let text = text.map_err(|_| errors::INVALID_VALUE)?;
        // SAFETY: the program passes where the pointer goes; the text stays valid, as documented.
        unsafe { store(name, text.into_raw().cast_const()) }
    }

    /// Returns offset and size of a parameter.
    fn cudaFuncGetParamInfo(function: *const c_void, index: usize, offset: *mut usize, bytes: *mut usize) {
        let parameters = &find_kernel(function)?.info()?.parameters;
        let parameter = parameters.get(index).ok_or(errors::INVALID_VALUE)?;
        // SAFETY: the program passes where the results go; the size is optional.
        unsafe {
            store(offset, parameter.offset as usize)?;
            if !bytes.is_null() {
                store(bytes, parameter.bytes as usize)?;
            }
        }
        Ok(())
    }

    /// Returns how many blocks a multiprocessor holds.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: *const c_void,
        threads: c_int,
        shared_bytes: usize,
    ) {
        // SAFETY: as of the function below.
        unsafe { store(blocks, resident_blocks(function, threads, shared_bytes)?) }
    }

    /// The same; the flags do not change it.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        function: *const c_void,
        threads: c_int,
        shared_bytes: usize,
        _flags: c_uint,
    ) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(blocks, resident_blocks(function, threads, shared_bytes)?) }
    }

    /// Returns how many clusters of a launch the device holds at once.
    fn cudaOccupancyMaxActiveClusters(
        clusters: *mut c_int,
        function: *const c_void,
        config: *const LaunchConfig,
    ) {
        let info = find_kernel(function)?.info()?;
        // SAFETY: the program passes a configuration or null, and where the result goes.
        unsafe {
            let launch = config.as_ref().ok_or(errors::INVALID_VALUE)?.launch_of(info)?;
            store(clusters, launch.active_clusters()? as c_int)
        }
    }

    /// Returns the blocks of the largest cluster of a launch that the device can hold.
    fn cudaOccupancyMaxPotentialClusterSize(
        blocks: *mut c_int,
        function: *const c_void,
        config: *const LaunchConfig,
    ) {
        let kernel = find_kernel(function)?;
        let allowed = kernel.info()?.settable(NON_PORTABLE_CLUSTER) != 0;
        // SAFETY: the program passes a configuration or null, and where the result goes.
        unsafe {
            let launch = config.as_ref().ok_or(errors::INVALID_VALUE)?.launch_of(kernel.info()?)?;
            store(blocks, launch.largest_cluster(allowed)? as c_int)
        }
    }

    /// Returns the shared memory left for each of so many resident blocks.
    fn cudaOccupancyAvailableDynamicSMemPerBlock(
        bytes: *mut usize,
        function: *const c_void,
        blocks: c_int,
        _threads: c_int,
    ) {
        let info = find_kernel(function)?.info()?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(bytes, available_shared_bytes(info, blocks)?) }
    }
}

fn resident_blocks(
    function: *const c_void,
    threads: c_int,
    shared_bytes: usize,
) -> Result<c_int, Code> {
    let threads = u32::try_from(threads).map_err(|_| errors::INVALID_VALUE)?;
    if threads == 0 {
        return Err(errors::INVALID_VALUE);
    }
    let id = find_kernel(function)?.info()?.id;
    Ok(client::occupancy(id, threads, shared_bytes as u64)? as c_int)
}
