//! Memory pools, which keep nothing: memory is allocated and freed at once.

use std::ffi::{c_int, c_void};

use crate::abi::runtime;
use crate::pools;
use crate::protocol::kind;
use crate::runtime::device::check_device;

runtime! {
    /// Returns the default memory pool of a device.
    fn cudaDeviceGetDefaultMemPool(pool: *mut *mut c_void, device: c_int) {
        check_device(device)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { pools::find(pool, kind::DEVICE, true) }
    }

    /// Returns the memory pool of a device.
    fn cudaDeviceGetMemPool(pool: *mut *mut c_void, device: c_int) {
        check_device(device)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { pools::find(pool, kind::DEVICE, false) }
    }

    /// Selects the memory pool of a device.
    fn cudaDeviceSetMemPool(device: c_int, pool: *mut c_void) {
        check_device(device)?;
        pools::select(pool, kind::DEVICE)
    }

}
