//! Libraries: functions that differ by name only in the two interfaces.

use std::ffi::{c_char, c_uint, c_void};

use crate::abi::both_initialized;
use crate::driver::modules::{JitOptions, count_kernels, find_variable, load, load_file, unload};

both_initialized! {
    /// Loads a library.
    fn cuLibraryLoadData | cudaLibraryLoadData(
        library: *mut *mut c_void,
        image: *const c_void,
        numbers: *const c_uint,
        values: *mut *mut c_void,
        count: c_uint,
        _library_options: *const c_uint,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        // SAFETY: the program passes an image, options and where the handle goes.
        unsafe { load(library, image, JitOptions { count, numbers, values }) }
    }

    /// Loads a library from a file.
    fn cuLibraryLoadFromFile | cudaLibraryLoadFromFile(
        library: *mut *mut c_void,
        path: *const c_char,
        numbers: *const c_uint,
        values: *mut *mut c_void,
        count: c_uint,
        _library_options: *const c_uint,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        // SAFETY: the program passes a path, options and where the handle goes.
        unsafe { load_file(library, path, JitOptions { count, numbers, values }) }
    }

    /// Unloads a library.
    fn cuLibraryUnload | cudaLibraryUnload(library: *mut c_void) {
        unload(library)
    }

    /// Finds a variable.
    fn cuLibraryGetGlobal | cudaLibraryGetGlobal(
        address: *mut u64,
        bytes: *mut usize,
        library: *mut c_void,
        name: *const c_char,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_variable(address, bytes, library, name, false) }
    }

    /// Finds a managed variable.
    fn cuLibraryGetManaged | cudaLibraryGetManaged(
        address: *mut u64,
        bytes: *mut usize,
        library: *mut c_void,
        name: *const c_char,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_variable(address, bytes, library, name, true) }
    }

    /// Returns the number of kernels.
    fn cuLibraryGetKernelCount | cudaLibraryGetKernelCount(count: *mut c_uint, library: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { count_kernels(count, library) }
    }
}
