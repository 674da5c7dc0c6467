//! Kernels: their handles, attributes and occupancy. A `CUkernel` and its `CUfunction` are one handle.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use crate::abi::{driver, in_context, initialized, store, text};
use crate::client;
use crate::connection::device;
use crate::driver::module_handles::module_handle;
use crate::errors::{self, Code};
use crate::kernels::{DYNAMIC_LIMIT, available_shared_bytes, get_function};
use crate::memory::{address_of, pointer_to};
use crate::protocol::FunctionInfo;

/// A kernel of a module.
#[derive(Debug)]
pub(crate) struct Function {
    /// Number of the module.
    pub(crate) module: u64,
    /// Mangled name.
    name: CString,
    /// As the device describes it.
    pub(crate) info: FunctionInfo,
}

#[derive(Debug)]
struct Functions {
    by_handle: BTreeMap<u64, Arc<Function>>,
    by_name: BTreeMap<(u64, String), u64>,
    next: u64,
}

/// Distance between handles.
const HANDLE_STEP: u64 = 16;

static FUNCTIONS: Mutex<Functions> = Mutex::new(Functions {
    by_handle: BTreeMap::new(),
    by_name: BTreeMap::new(),
    next: 0x4000_0000,
});

/// The handle of a kernel of a module: the same at each call.
pub(crate) fn function_handle(module: u64, name: &str) -> Result<u64, Code> {
    let key = (module, name.to_owned());
    let mut functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = functions.by_name.get(&key) {
        return Ok(*handle);
    }
    let info = get_function(module, name)?;
    let function = Function {
        module,
        name: CString::new(name).map_err(|_| errors::INVALID_VALUE)?,
        info,
    };
    let handle = functions.next;
    functions.next += HANDLE_STEP;
    functions.by_handle.insert(handle, Arc::new(function));
    functions.by_name.insert(key, handle);
    Ok(handle)
}

/// Forgets the kernels of a module.
pub(crate) fn forget_functions(module: u64) {
    let mut functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    functions.by_name.retain(|(of, _), _| *of != module);
    functions
        .by_handle
        .retain(|_, function| function.module != module);
}

/// The kernel of a handle.
pub(crate) fn find_function(handle: *mut c_void) -> Result<Arc<Function>, Code> {
    let functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = functions.by_handle.get(&address_of(handle));
    found.cloned().ok_or(errors::INVALID_HANDLE)
}

/// The handle of a function with this number on the device.
pub(super) fn handle_of(function: u64) -> Result<*mut c_void, Code> {
    let functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = functions.by_handle.iter();
    let found = all.find(|(_, known)| known.info.id == function);
    found
        .map(|(handle, _)| pointer_to(*handle))
        .ok_or(errors::INVALID_HANDLE)
}

/// Attributes that a program sets.
const SETTABLE: std::ops::RangeInclusive<c_uint> = DYNAMIC_LIMIT..=15;

/// An attribute by its number in `CUfunction_attribute`.
fn attribute(function: &Function, number: c_uint) -> Result<c_int, Code> {
    let info = &function.info;
    Ok(match number {
        0 => info.max_threads as c_int,
        1 => info.static_shared_bytes as c_int,
        3 => info.local_bytes as c_int,
        4 => info.registers as c_int,
        5 => info.ptx_version as c_int,
        6 => info.capability as c_int,
        2 | 7 => 0,
        number if SETTABLE.contains(&number) => info.settable(number),
        _ => return Err(errors::INVALID_VALUE),
    })
}

fn set_attribute(function: &Function, number: c_uint, value: c_int) -> Result<(), Code> {
    match SETTABLE.contains(&number) {
        true => client::set_function_attribute(function.info.id, number, value),
        false => Err(errors::INVALID_VALUE),
    }
}

/// Stores offset and size of a parameter.
///
/// # Safety
/// The pointers are null or writable.
unsafe fn parameter_info(
    function: &Function,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> Result<(), Code> {
    let parameter = function.info.parameters.get(index);
    let parameter = parameter.ok_or(errors::INVALID_VALUE)?;
    // SAFETY: the caller's promise; the size is optional.
    unsafe {
        store(offset, parameter.offset as usize)?;
        if !bytes.is_null() {
            store(bytes, parameter.bytes as usize)?;
        }
    }
    Ok(())
}

fn resident_blocks(
    function: &Function,
    threads: c_int,
    shared_bytes: usize,
) -> Result<c_int, Code> {
    let threads = u32::try_from(threads).map_err(|_| errors::INVALID_VALUE)?;
    if threads == 0 {
        return Err(errors::INVALID_VALUE);
    }
    let blocks = client::occupancy(function.info.id, threads, shared_bytes as u64)?;
    Ok(blocks as c_int)
}

driver! {
    /// Returns the handle of a kernel to the runtime library: modules have the same numbers in both.
    fn __cudaTunerFunctionHandle(handle: *mut *mut c_void, module: u64, name: *const c_char) {
        // SAFETY: the runtime passes a name, and where the program wants the handle.
        unsafe { store(handle, pointer_to(function_handle(module, text(name)?)?)) }
    }
}

initialized! {
    /// Returns the module of a kernel.
    fn cuFuncGetModule(module: *mut *mut c_void, function: *mut c_void) {
        let found = find_function(function)?.module;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(module, pointer_to(module_handle(found))) }
    }

    /// Returns the mangled name of a kernel.
    fn cuFuncGetName(name: *mut *const c_char, function: *mut c_void) {
        let function = find_function(function)?;
        // SAFETY: the program passes where the pointer goes; the text lives as long as the module.
        unsafe { store(name, function.name.as_ptr()) }
    }

    /// Returns offset and size of a parameter.
    fn cuFuncGetParamInfo(
        function: *mut c_void,
        index: usize,
        offset: *mut usize,
        bytes: *mut usize,
    ) {
        // SAFETY: the program passes where the results go.
        unsafe { parameter_info(&*find_function(function)?, index, offset, bytes) }
    }

    /// Reports whether a kernel is loaded: 1.
    fn cuFuncIsLoaded(state: *mut c_int, function: *mut c_void) {
        find_function(function)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(state, 1) }
    }
}

in_context! {
    /// Returns an attribute of a kernel.
    fn cuFuncGetAttribute(value: *mut c_int, number: c_uint, function: *mut c_void) {
        let function = find_function(function)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, attribute(&function, number)?) }
    }

    /// Sets an attribute, such as the most dynamic shared memory.
    fn cuFuncSetAttribute(function: *mut c_void, number: c_uint, value: c_int) {
        set_attribute(&*find_function(function)?, number, value)
    }

    /// A hint without an effect.
    fn cuFuncSetCacheConfig(function: *mut c_void, _config: c_uint) {
        find_function(function).map(drop)
    }

    /// A hint without an effect.
    fn cuFuncSetSharedMemConfig(function: *mut c_void, _config: c_uint) {
        find_function(function).map(drop)
    }

    /// Loads a kernel: no effect.
    fn cuFuncLoad(function: *mut c_void) { find_function(function).map(drop) }

    /// Returns how many blocks a multiprocessor holds.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: *mut c_void,
        threads: c_int,
        shared_bytes: usize,
    ) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(blocks, resident_blocks(&*find_function(function)?, threads, shared_bytes)?) }
    }

    /// The same; the flags do not change it.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        function: *mut c_void,
        threads: c_int,
        shared_bytes: usize,
        _flags: c_uint,
    ) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(blocks, resident_blocks(&*find_function(function)?, threads, shared_bytes)?) }
    }

    /// Returns the shared memory left for each of a number of resident blocks.
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: *mut usize,
        function: *mut c_void,
        blocks: c_int,
        _threads: c_int,
    ) {
        let function = find_function(function)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(bytes, available_shared_bytes(&function.info, blocks)?) }
    }

    /// Returns the block size with the most resident threads.
    fn cuOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        block: *mut c_int,
        function: *mut c_void,
        shared_of: Option<SharedOfBlock>,
        shared_bytes: usize,
        limit: c_int,
    ) {
        let best = best_block(&*find_function(function)?, shared_of, shared_bytes, limit)?;
        // SAFETY: the program passes where the results go.
        unsafe {
            store(grid, best.grid)?;
            store(block, best.block)
        }
    }

    /// The same; the flags do not change it.
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut c_int,
        block: *mut c_int,
        function: *mut c_void,
        shared_of: Option<SharedOfBlock>,
        shared_bytes: usize,
        limit: c_int,
        _flags: c_uint,
    ) {
        let best = best_block(&*find_function(function)?, shared_of, shared_bytes, limit)?;
        // SAFETY: the program passes where the results go.
        unsafe {
            store(grid, best.grid)?;
            store(block, best.block)
        }
    }
}

/// `CUoccupancyB2DSize`: dynamic shared memory of a block size.
pub type SharedOfBlock = unsafe extern "C" fn(c_int) -> usize;

/// A block size, and the grid that fills the device with it.
struct BestBlock {
    grid: c_int,
    block: c_int,
}

fn best_block(
    function: &Function,
    shared_of: Option<SharedOfBlock>,
    shared_bytes: usize,
    limit: c_int,
) -> Result<BestBlock, Code> {
    const WARP: c_int = 32;
    let most = function.info.max_threads as c_int;
    let limit = if limit > 0 { limit.min(most) } else { most };
    let mut best = BestBlock { grid: 0, block: 0 };
    let mut most_threads = 0;
    let multiprocessors = device()?.attribute(16);
    let sizes = (1..=limit / WARP).rev().map(|warps| warps * WARP);
    for size in std::iter::once(limit).chain(sizes) {
        // SAFETY: the program gave the function for this call.
        let shared = shared_of.map_or(shared_bytes, |shared_of| unsafe { shared_of(size) });
        let blocks = resident_blocks(function, size, shared)?;
        if blocks * size > most_threads {
            most_threads = blocks * size;
            best = BestBlock {
                grid: blocks * multiprocessors,
                block: size,
            };
        }
    }
    Ok(best)
}

initialized! {
    /// Returns the function of a kernel: the same handle.
    fn cuKernelGetFunction(function: *mut *mut c_void, kernel: *mut c_void) {
        find_function(kernel)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(function, kernel) }
    }

    /// Returns the library of a kernel.
    fn cuKernelGetLibrary(library: *mut *mut c_void, kernel: *mut c_void) {
        let found = find_function(kernel)?.module;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(library, pointer_to(module_handle(found))) }
    }

    /// Returns the mangled name of a kernel.
    fn cuKernelGetName(name: *mut *const c_char, kernel: *mut c_void) {
        let function = find_function(kernel)?;
        // SAFETY: the program passes where the pointer goes; the text lives as long as the library.
        unsafe { store(name, function.name.as_ptr()) }
    }

    /// Returns an attribute of a kernel.
    fn cuKernelGetAttribute(
        value: *mut c_int,
        number: c_uint,
        kernel: *mut c_void,
        _device: c_int,
    ) {
        let function = find_function(kernel)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, attribute(&function, number)?) }
    }

    /// Sets an attribute of a kernel.
    fn cuKernelSetAttribute(number: c_uint, value: c_int, kernel: *mut c_void, _device: c_int) {
        set_attribute(&*find_function(kernel)?, number, value)
    }

    /// A hint without an effect.
    fn cuKernelSetCacheConfig(kernel: *mut c_void, _config: c_uint, _device: c_int) {
        find_function(kernel).map(drop)
    }

    /// Returns offset and size of a parameter.
    fn cuKernelGetParamInfo(
        kernel: *mut c_void,
        index: usize,
        offset: *mut usize,
        bytes: *mut usize,
    ) {
        // SAFETY: the program passes where the results go.
        unsafe { parameter_info(&*find_function(kernel)?, index, offset, bytes) }
    }
}
