//! Memory: functions that differ by name only in the two interfaces.

use std::ffi::{c_uint, c_void};

use crate::abi::{both, store};
use crate::client;
use crate::errors;
use crate::memory::{address_of, find_mapping};
use crate::registered;

both! {
    /// Registers host memory. Kernels address it by its device address only: see
    /// `cudaDevAttrCanUseHostPointerForRegisteredMem`, which is 0.
    fn cuMemHostRegister_v2 | cudaHostRegister(pointer: *mut c_void, bytes: usize, _flags: c_uint) {
        registered::register(address_of(pointer), bytes as u64)
    }

    /// Ends the registration of host memory.
    fn cuMemHostUnregister | cudaHostUnregister(pointer: *mut c_void) { registered::unregister(address_of(pointer)) }

    /// Returns the flags of page-locked memory.
    fn cuMemHostGetFlags | cudaHostGetFlags(flags: *mut c_uint, pointer: *mut c_void) {
        let (_, mapping) = find_mapping(address_of(pointer)).ok_or(errors::INVALID_VALUE)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, mapping.host_flags) }
    }

    /// Returns free and total memory.
    fn cuMemGetInfo_v2 | cudaMemGetInfo(free: *mut usize, total: *mut usize) {
        let info = client::memory_info()?;
        // SAFETY: the program passes where the results go; one of them is optional.
        unsafe {
            let free = store(free, info.free as usize);
            store(total, info.total as usize).or(free)
        }
    }
}
