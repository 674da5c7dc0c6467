//! Libraries, which are modules that the program loads; their kernels have handles as registered ones have.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use crate::abi::{runtime, store, text};
use crate::client;
use crate::connection::device;
use crate::driver::module_handles::module_number;
use crate::driver::modules::{JitOptions, count_kernels, find_variable, load, load_file};
use crate::errors::{self, Code};
use crate::kernels::{Image, Kernel, find_kernel, list_functions, registry, unload_module};
use crate::memory::address_of;

/// The kernel of that name: the same at each call.
fn kernel_of(module: u64, name: &str) -> Result<*const c_void, Code> {
    let mut registry = registry();
    let is_it = |kernel: &&&Kernel| kernel.module() == Ok(module) && kernel.name == name;
    let kernel = match registry.loaded.iter().find(is_it) {
        Some(kernel) => *kernel,
        None => {
            let kernel = Kernel::new(Arc::new(Image::loaded(module)), name.to_owned());
            kernel.info()?;
            Box::leak(Box::new(kernel))
        }
    };
    let handle = std::ptr::from_ref(kernel).cast::<c_void>();
    if registry
        .handles
        .insert(address_of(handle), kernel)
        .is_none()
    {
        registry.loaded.push(kernel);
    }
    Ok(handle)
}

runtime! {
    /// Loads a library.
    fn cudaLibraryLoadData(
        library: *mut *mut c_void,
        image: *const c_void,
        numbers: *const c_uint,
        values: *mut *mut c_void,
        count: c_uint,
        _library_options: *const c_uint,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        device()?;
        // SAFETY: the program passes an image, options and where the handle goes.
        unsafe { load(library, image, JitOptions { count, numbers, values }) }
    }

    /// Loads a library from a file.
    fn cudaLibraryLoadFromFile(
        library: *mut *mut c_void,
        path: *const c_char,
        numbers: *const c_uint,
        values: *mut *mut c_void,
        count: c_uint,
        _library_options: *const c_uint,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        device()?;
        // SAFETY: the program passes a path, options and where the handle goes.
        unsafe { load_file(library, path, JitOptions { count, numbers, values }) }
    }

    /// Unloads a library.
    fn cudaLibraryUnload(library: *mut c_void) {
        let module = module_number(library)?;
        unload_module(module)?;
        let mut registry = registry();
        let is_of = |kernel: &&Kernel| kernel.module() == Ok(module);
        registry.handles.retain(|_, kernel| !is_of(&&**kernel));
        registry.loaded.retain(|kernel| !is_of(kernel));
        Ok(())
    }

    /// Finds a kernel.
    fn cudaLibraryGetKernel(kernel: *mut *const c_void, library: *mut c_void, name: *const c_char) {
        // SAFETY: the program passes a name and where the handle goes.
        unsafe { store(kernel, kernel_of(module_number(library)?, text(name)?)?) }
    }

    /// Finds a variable.
    fn cudaLibraryGetGlobal(
        address: *mut *mut c_void,
        bytes: *mut usize,
        library: *mut c_void,
        name: *const c_char,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_variable(address.cast(), bytes, library, name, false) }
    }

    /// Finds a managed variable.
    fn cudaLibraryGetManaged(
        address: *mut *mut c_void,
        bytes: *mut usize,
        library: *mut c_void,
        name: *const c_char,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_variable(address.cast(), bytes, library, name, true) }
    }

    /// Returns the number of kernels.
    fn cudaLibraryGetKernelCount(count: *mut c_uint, library: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { count_kernels(count, library) }
    }

    /// Returns the kernels.
    fn cudaLibraryEnumerateKernels(kernels: *mut *const c_void, count: c_uint, library: *mut c_void) {
        let module = module_number(library)?;
        for (index, name) in list_functions(module)?.iter().take(count as usize).enumerate() {
            // SAFETY: the program states how many handles fit.
            unsafe { store(kernels.wrapping_add(index), kernel_of(module, name)?)? };
        }
        Ok(())
    }

    /// Sets an attribute of a kernel.
    fn cudaKernelSetAttributeForDevice(kernel: *const c_void, attribute: c_uint, value: c_int, number: c_int) {
        if number != 0 {
            return Err(errors::INVALID_DEVICE);
        }
        let kernel = find_kernel(kernel)?;
        kernel.note_attribute(attribute, value);
        client::set_function_attribute(kernel.info()?.id, attribute, value)
    }
}
