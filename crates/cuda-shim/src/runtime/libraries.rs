//! Libraries, which are modules that the program loads; their kernels have handles as registered ones have.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use crate::abi::{runtime, store, text};
use crate::client;
use crate::driver::module_handles::module_number;
use crate::errors::{self, Code};
use crate::kernels::{Image, Kernel, find_kernel, list_functions, registry};
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
    /// Finds a kernel.
    fn cudaLibraryGetKernel(kernel: *mut *const c_void, library: *mut c_void, name: *const c_char) {
        // SAFETY: the program passes a name and where the handle goes.
        unsafe { store(kernel, kernel_of(module_number(library)?, text(name)?)?) }
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
        client::set_function_attribute(kernel.info()?.id, attribute, value)
    }
}
