//! Launches.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{in_context, store};
use crate::driver::functions::{Function, find_function};
use crate::errors::{self, Code};
use crate::graph::submit_launch;
use crate::kernels::{
    Dim3, Launch, LaunchAttribute, NO_CLUSTER, NON_PORTABLE_CLUSTER, pack_arguments,
    read_attributes,
};
use crate::memory::stream_of;
use crate::protocol::{COOPERATIVE, FunctionInfo};

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Debug)]
pub struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared_bytes: c_uint,
    stream: *mut c_void,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

impl LaunchConfig {
    /// Grid and block.
    pub(crate) fn extents(&self) -> [Dim3; 2] {
        [self.grid, self.block]
    }

    /// Dynamic shared memory of a block, bytes.
    pub(crate) fn shared_bytes(&self) -> c_uint {
        self.shared_bytes
    }

    /// Handle of the stream.
    pub(crate) fn stream(&self) -> *mut c_void {
        self.stream
    }

    /// Returns the launch of a kernel, without its arguments.
    ///
    /// # Safety
    /// Its attributes are readable.
    pub(crate) unsafe fn launch_of(&self, info: &FunctionInfo) -> Result<Launch, Code> {
        let shared = u64::from(self.shared_bytes);
        let mut launch = Launch::new(info.id, [self.grid, self.block], shared);
        // SAFETY: the caller's promise.
        unsafe { read_attributes(&mut launch, self.attributes, self.attribute_count)? };
        Ok(launch)
    }
}

/// Both forms in which a program passes arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments {
    /// Pointers to values.
    pub(crate) values: *mut *mut c_void,
    /// A list that names a packed buffer.
    pub(crate) extra: *mut *mut c_void,
}

/// `CU_LAUNCH_PARAM_END`.
const EXTRA_END: usize = 0;
/// `CU_LAUNCH_PARAM_BUFFER_POINTER`.
const EXTRA_POINTER: usize = 1;
/// `CU_LAUNCH_PARAM_BUFFER_SIZE`.
const EXTRA_SIZE: usize = 2;

/// Reads the packed arguments of `extra`.
///
/// # Safety
/// `extra` is a list of the header's form.
unsafe fn read_extra(info: &FunctionInfo, extra: *mut *mut c_void) -> Result<Vec<u8>, Code> {
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), std::ptr::null::<usize>());
    let mut at = extra;
    // SAFETY: the caller's promise: pairs up to the end.
    unsafe {
        loop {
            match (*at).addr() {
                EXTRA_END => break,
                EXTRA_POINTER => buffer = (*at.add(1)).cast::<u8>().cast_const(),
                EXTRA_SIZE => size = (*at.add(1)).cast::<usize>().cast_const(),
                _ => return Err(errors::INVALID_VALUE),
            }
            at = at.add(2);
        }
    }
    let needed = info.parameter_bytes();
    // SAFETY: the caller's promise: the buffer has the size that is named.
    unsafe {
        if buffer.is_null() || size.is_null() || *size < needed {
            return Err(errors::INVALID_VALUE);
        }
        Ok(std::slice::from_raw_parts(buffer, needed).to_vec())
    }
}

/// Copies arguments in either form into a parameter block.
///
/// # Safety
/// As many values as the kernel has parameters, or a list of the header's form.
pub(crate) unsafe fn pack(info: &FunctionInfo, arguments: Arguments) -> Result<Vec<u8>, Code> {
    // SAFETY: the caller's promise.
    unsafe {
        match (arguments.values.is_null(), arguments.extra.is_null()) {
            (false, false) => Err(errors::INVALID_VALUE),
            (true, false) => read_extra(info, arguments.extra),
            _ => pack_arguments(info, arguments.values),
        }
    }
}

/// A launch of a kernel with its arguments.
///
/// # Safety
/// As many values as the kernel has parameters, or a list of the header's form.
pub(crate) unsafe fn prepare(
    function: &Function,
    extents: [Dim3; 2],
    arguments: Arguments,
    shared_bytes: c_uint,
    stream: *mut c_void,
) -> Result<Launch, Code> {
    let info = &function.info;
    let [grid, block] = extents;
    // SAFETY: the caller's promise.
    let parameters = unsafe { pack(info, arguments)? };
    Ok(Launch {
        function: info.id,
        grid,
        block,
        shared_bytes: shared_bytes.into(),
        stream: stream_of(stream),
        flags: 0,
        cluster: NO_CLUSTER,
        parameters,
    })
}

in_context! {
    /// Launches a kernel.
    fn cuLaunchKernel(
        function: *mut c_void,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: *mut c_void,
        values: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
        let block = Dim3 { x: block_x, y: block_y, z: block_z };
        let function = find_function(function)?;
        let arguments = Arguments { values, extra };
        // SAFETY: the program passes as many arguments as the kernel has parameters.
        submit_launch(unsafe { prepare(&function, [grid, block], arguments, shared_bytes, stream)? })
    }

    /// Launches a kernel whose blocks are all resident.
    fn cuLaunchCooperativeKernel(
        function: *mut c_void,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: *mut c_void,
        values: *mut *mut c_void,
    ) {
        let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
        let block = Dim3 { x: block_x, y: block_y, z: block_z };
        let function = find_function(function)?;
        let arguments = Arguments { values, extra: std::ptr::null_mut() };
        // SAFETY: the program passes as many arguments as the kernel has parameters.
        let mut launch = unsafe {
            prepare(&function, [grid, block], arguments, shared_bytes, stream)?
        };
        launch.flags |= COOPERATIVE;
        submit_launch(launch)
    }

    /// Launches a kernel with attributes.
    fn cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: *mut c_void,
        values: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        let function = find_function(function)?;
        // SAFETY: the program passes a configuration or null, and as many arguments as the kernel has
        // parameters.
        let (launch, events) = unsafe {
            let config = config.as_ref().ok_or(errors::INVALID_VALUE)?;
            let extents = [config.grid, config.block];
            let arguments = Arguments { values, extra };
            let mut launch =
                prepare(&function, extents, arguments, config.shared_bytes, config.stream)?;
            let events = read_attributes(&mut launch, config.attributes, config.attribute_count)?;
            (launch, events)
        };
        events.submit_with(launch)
    }

    /// Returns how many clusters of a launch the device holds at once.
    fn cuOccupancyMaxActiveClusters(
        clusters: *mut c_int,
        function: *mut c_void,
        config: *const LaunchConfig,
    ) {
        let function = find_function(function)?;
        // SAFETY: the program passes a configuration or null, and where the result goes.
        unsafe {
            let launch = config.as_ref().ok_or(errors::INVALID_VALUE)?.launch_of(&function.info)?;
            store(clusters, launch.active_clusters()? as c_int)
        }
    }

    /// Returns the blocks of the largest cluster of a launch that the device can hold.
    fn cuOccupancyMaxPotentialClusterSize(
        blocks: *mut c_int,
        function: *mut c_void,
        config: *const LaunchConfig,
    ) {
        let function = find_function(function)?;
        let allowed = function.info.settable(NON_PORTABLE_CLUSTER) != 0;
        // SAFETY: the program passes a configuration or null, and where the result goes.
        unsafe {
            let launch = config.as_ref().ok_or(errors::INVALID_VALUE)?.launch_of(&function.info)?;
            store(blocks, launch.largest_cluster(allowed)? as c_int)
        }
    }
}
