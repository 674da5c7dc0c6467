//! Memory pools, which keep nothing: memory is allocated and freed at once.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::abi::{runtime, store};
use crate::client;
use crate::memory::{DEFAULT_POOL, pointer_to};

runtime! {
    /// Returns the default memory pool, which has no state.
    fn cudaDeviceGetDefaultMemPool(pool: *mut *mut c_void, _device: c_int) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(pool, pointer_to(DEFAULT_POOL)) }
    }

    /// Returns the default memory pool.
    fn cudaDeviceGetMemPool(pool: *mut *mut c_void, _device: c_int) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(pool, pointer_to(DEFAULT_POOL)) }
    }

    /// Returns a memory pool, which has no state.
    fn cudaMemPoolCreate(pool: *mut *mut c_void, _properties: *const c_char) {
        // SAFETY: the program passes where the handle goes.
        unsafe { store(pool, pointer_to(0x2010)) }
    }

    /// Destroys a pool: no effect.
    fn cudaMemPoolDestroy(_pool: *mut c_void) { Ok(()) }

    /// Sets an attribute of a pool: no effect.
    fn cudaMemPoolSetAttribute(_pool: *mut c_void, _attribute: c_uint, _value: *mut c_void) { Ok(()) }

    /// Releases unused memory of a pool: no effect.
    fn cudaMemPoolTrimTo(_pool: *mut c_void, _bytes: usize) { Ok(()) }

    /// Makes a pool the current one of a device: no effect.
    fn cudaDeviceSetMemPool(_device: c_int, _pool: *mut c_void) { Ok(()) }

    /// Returns an attribute of a pool.
    fn cudaMemPoolGetAttribute(_pool: *mut c_void, attribute: c_uint, value: *mut c_void) {
        // SAFETY: the program passes where the result goes, of the attribute's type.
        unsafe { client::store_pool_attribute(attribute, value) }
    }

    /// Permits a device to use a pool: no effect, there is one.
    fn cudaMemPoolSetAccess(_pool: *mut c_void, _permissions: *const c_void, _count: usize) { Ok(()) }

    /// Returns the access to a pool: reads and writes.
    fn cudaMemPoolGetAccess(flags: *mut c_uint, _pool: *mut c_void, _location: *mut c_void) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, 3) }
    }
}
