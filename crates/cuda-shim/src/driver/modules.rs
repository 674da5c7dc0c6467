//! Modules and libraries, which are one handle here: both are loaded at once.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::abi::{driver, in_context, initialized, store, text};
use crate::connection::take_failure;
use crate::driver::contexts::check_initialized;
use crate::driver::functions::{forget_functions, function_handle};
use crate::driver::module_handles::{module_handle, module_number};
use crate::errors::{self, Code};
use crate::images::image_bytes;
use crate::kernels::{
    forget_loaded, get_variable, list_functions, load_module, share_variable, unload_module,
};
use crate::memory::pointer_to;

/// Options of the compiler in the driver: numbers, and values that are pointers or numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JitOptions {
    /// Number of options.
    pub(crate) count: c_uint,
    /// Numbers in `CUjit_option`.
    pub(crate) numbers: *const c_uint,
    /// Their values.
    pub(crate) values: *mut *mut c_void,
}

const WALL_TIME: c_uint = 2;
const INFO_LOG: c_uint = 3;
const INFO_LOG_BYTES: c_uint = 4;
const ERROR_LOG: c_uint = 5;
const ERROR_LOG_BYTES: c_uint = 6;

impl JitOptions {
    /// The place of an option's value.
    ///
    /// # Safety
    /// As many numbers as stated are readable.
    unsafe fn find(&self, number: c_uint) -> Option<*mut *mut c_void> {
        if self.numbers.is_null() || self.values.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe {
            let numbers = std::slice::from_raw_parts(self.numbers, self.count as usize);
            let index = numbers.iter().position(|present| *present == number)?;
            Some(self.values.add(index))
        }
    }

    /// Writes a text into a log buffer, and its length in the place of the buffer's size.
    ///
    /// # Safety
    /// The options are those of the header, with buffers of the stated sizes.
    unsafe fn write_log(&self, buffer: c_uint, bytes: c_uint, log: &str) {
        // SAFETY: the caller's promise.
        unsafe {
            let (Some(buffer), Some(bytes)) = (self.find(buffer), self.find(bytes)) else {
                return;
            };
            let Some(room) = (*bytes).addr().checked_sub(1) else {
                return;
            };
            let to = (*buffer).cast::<u8>();
            if to.is_null() {
                return;
            }
            let length = log.len().min(room);
            std::ptr::copy_nonoverlapping(log.as_ptr(), to, length);
            to.add(length).write(0);
            bytes.write(pointer_to(length as u64));
        }
    }

    /// Writes what the compiler says.
    ///
    /// # Safety
    /// As of [`JitOptions::write_log`].
    pub(crate) unsafe fn write_logs(&self, failure: &str) {
        // SAFETY: the caller's promise.
        unsafe {
            self.write_log(INFO_LOG, INFO_LOG_BYTES, "");
            self.write_log(ERROR_LOG, ERROR_LOG_BYTES, failure);
            if let Some(time) = self.find(WALL_TIME) {
                time.cast::<f32>().write(0.0);
            }
        }
    }
}

/// Loads an image in memory; stores its handle.
///
/// # Safety
/// `image` is an image, `to` null or writable, the options as of the header.
pub(crate) unsafe fn load(
    to: *mut *mut c_void,
    image: *const c_void,
    options: JitOptions,
) -> Result<(), Code> {
    if to.is_null() || image.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = image_bytes(image).ok_or(errors::INVALID_IMAGE)?;
        load_bytes(to, bytes, options)
    }
}

/// Loads the bytes of an image; stores its handle.
///
/// # Safety
/// `to` is null or writable, the options as of the header.
unsafe fn load_bytes(to: *mut *mut c_void, bytes: &[u8], options: JitOptions) -> Result<(), Code> {
    take_failure();
    let loaded = load_module(bytes);
    let failure = match loaded {
        Ok(_) => String::new(),
        Err(_) => take_failure(),
    };
    // SAFETY: the caller's promise.
    unsafe {
        options.write_logs(&failure);
        store(to, pointer_to(module_handle(loaded?)))
    }
}

/// Loads a file; stores its handle.
///
/// # Safety
/// `path` ends in a zero byte; the others as of [`load_bytes`].
pub(crate) unsafe fn load_file(
    to: *mut *mut c_void,
    path: *const c_char,
    options: JitOptions,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = std::fs::read(text(path)?).map_err(|_| errors::FILE_NOT_FOUND)?;
        load_bytes(to, &bytes, options)
    }
}

/// No options.
const NO_OPTIONS: JitOptions = JitOptions {
    count: 0,
    numbers: std::ptr::null(),
    values: std::ptr::null_mut(),
};

/// Unloads a module; the handles of its kernels end in both interfaces.
pub(crate) fn unload(handle: *mut c_void) -> Result<(), Code> {
    let module = module_number(handle)?;
    unload_module(module)?;
    forget_functions(module);
    forget_loaded(module);
    Ok(())
}

/// Stores the handle of a kernel.
///
/// # Safety
/// `name` ends in a zero byte; `to` is null or writable.
unsafe fn find_kernel(
    to: *mut *mut c_void,
    module: *mut c_void,
    name: *const c_char,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe {
        let handle = function_handle(module_number(module)?, text(name)?)?;
        store(to, pointer_to(handle))
    }
}

/// Stores address and size of a variable; both are optional.
///
/// # Safety
/// `name` ends in a zero byte; the others are null or writable.
pub(crate) unsafe fn find_variable(
    address: *mut u64,
    bytes: *mut usize,
    module: *mut c_void,
    name: *const c_char,
    managed: bool,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe {
        let (module, name) = (module_number(module)?, text(name)?);
        let span = match managed {
            true => share_variable(module, name)?,
            false => get_variable(module, name)?,
        };
        if !address.is_null() {
            store(address, span.address)?;
        }
        if !bytes.is_null() {
            store(bytes, span.bytes as usize)?;
        }
    }
    Ok(())
}

/// Stores the handles of a module's kernels.
///
/// # Safety
/// As many handles as stated are writable.
unsafe fn list_kernels(
    to: *mut *mut c_void,
    count: c_uint,
    module: *mut c_void,
) -> Result<(), Code> {
    let module = module_number(module)?;
    let names = list_functions(module)?;
    for (index, name) in names.iter().take(count as usize).enumerate() {
        let handle = function_handle(module, name)?;
        // SAFETY: the caller's promise.
        unsafe { store(to.wrapping_add(index), pointer_to(handle))? };
    }
    Ok(())
}

/// Stores the number of a module's kernels.
///
/// # Safety
/// `count` is null or writable.
pub(crate) unsafe fn count_kernels(count: *mut c_uint, module: *mut c_void) -> Result<(), Code> {
    let names = list_functions(module_number(module)?)?;
    // SAFETY: the caller's promise.
    unsafe { store(count, names.len() as c_uint) }
}

in_context! {
    /// Loads a module from a file.
    fn cuModuleLoad(module: *mut *mut c_void, path: *const c_char) {
        // SAFETY: the program passes a path and where the handle goes.
        unsafe { load_file(module, path, NO_OPTIONS) }
    }

    /// Loads a module.
    fn cuModuleLoadData(module: *mut *mut c_void, image: *const c_void) {
        // SAFETY: the program passes an image and where the handle goes.
        unsafe { load(module, image, NO_OPTIONS) }
    }

    /// Loads a module with options of the compiler.
    fn cuModuleLoadDataEx(
        module: *mut *mut c_void,
        image: *const c_void,
        count: c_uint,
        numbers: *const c_uint,
        values: *mut *mut c_void,
    ) {
        // SAFETY: the program passes an image, options and where the handle goes.
        unsafe { load(module, image, JitOptions { count, numbers, values }) }
    }

    /// Loads a module from a fat binary.
    fn cuModuleLoadFatBinary(module: *mut *mut c_void, image: *const c_void) {
        // SAFETY: the program passes an image and where the handle goes.
        unsafe { load(module, image, NO_OPTIONS) }
    }

    /// Unloads a module.
    fn cuModuleUnload(module: *mut c_void) { unload(module) }
}

initialized! {
    /// Finds a kernel.
    fn cuModuleGetFunction(
        function: *mut *mut c_void,
        module: *mut c_void,
        name: *const c_char,
    ) {
        // SAFETY: the program passes a name and where the handle goes.
        unsafe { find_kernel(function, module, name) }
    }

    /// Finds a variable.
    fn cuModuleGetGlobal_v2(
        address: *mut u64,
        bytes: *mut usize,
        module: *mut c_void,
        name: *const c_char,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_variable(address, bytes, module, name, false) }
    }

    /// Returns the number of kernels.
    fn cuModuleGetFunctionCount(count: *mut c_uint, module: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { count_kernels(count, module) }
    }

    /// Returns the kernels.
    fn cuModuleEnumerateFunctions(
        functions: *mut *mut c_void,
        count: c_uint,
        module: *mut c_void,
    ) {
        // SAFETY: the program states how many handles fit.
        unsafe { list_kernels(functions, count, module) }
    }
}

driver! {
    /// Reports that modules are loaded at once.
    fn cuModuleGetLoadingMode(mode: *mut c_int) {
        check_initialized()?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(mode, 1) }
    }
}

initialized! {
    /// Finds a kernel.
    fn cuLibraryGetKernel(kernel: *mut *mut c_void, library: *mut c_void, name: *const c_char) {
        // SAFETY: the program passes a name and where the handle goes.
        unsafe { find_kernel(kernel, library, name) }
    }

    /// Returns the module of a library: the same handle.
    fn cuLibraryGetModule(module: *mut *mut c_void, library: *mut c_void) {
        module_number(library)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(module, library) }
    }

    /// Returns the kernels.
    fn cuLibraryEnumerateKernels(kernels: *mut *mut c_void, count: c_uint, library: *mut c_void) {
        // SAFETY: the program states how many handles fit.
        unsafe { list_kernels(kernels, count, library) }
    }
}
