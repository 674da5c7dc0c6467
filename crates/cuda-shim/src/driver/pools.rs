//! Memory pools, which keep nothing: memory is allocated and freed at once.

use std::ffi::{c_uint, c_void};

use crate::abi::{driver, store};
use crate::client;
use crate::driver::contexts::check_initialized;
use crate::errors;
use crate::memory::{DEFAULT_POOL, pointer_to};

/// Handle of every pool that a program creates.
const CREATED_POOL: u64 = DEFAULT_POOL + 16;

driver! {
    /// Returns a memory pool.
    fn cuMemPoolCreate(pool: *mut *mut c_void, properties: *const c_void) {
        check_initialized()?;
        if properties.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes where the handle goes.
        unsafe { store(pool, pointer_to(CREATED_POOL)) }
    }

    /// Destroys a pool: no effect.
    fn cuMemPoolDestroy(_pool: *mut c_void) { check_initialized() }

    /// Sets an attribute of a pool: no effect.
    fn cuMemPoolSetAttribute(_pool: *mut c_void, _attribute: c_uint, _value: *mut c_void) {
        check_initialized()
    }

    /// Returns an attribute of a pool.
    fn cuMemPoolGetAttribute(_pool: *mut c_void, attribute: c_uint, value: *mut c_void) {
        check_initialized()?;
        // SAFETY: the program passes where the result goes, of the attribute's type.
        unsafe { client::store_pool_attribute(attribute, value) }
    }

    /// Releases unused memory of a pool: no effect.
    fn cuMemPoolTrimTo(_pool: *mut c_void, _bytes: usize) { check_initialized() }

    /// Permits a device to use a pool: no effect, there is one.
    fn cuMemPoolSetAccess(_pool: *mut c_void, _permissions: *const c_void, _count: usize) {
        check_initialized()
    }

    /// Returns the access to a pool: reads and writes.
    fn cuMemPoolGetAccess(flags: *mut c_uint, _pool: *mut c_void, _location: *mut c_void) {
        check_initialized()?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, 3) }
    }

    /// Returns the default pool of a location.
    fn cuMemGetDefaultMemPool(pool: *mut *mut c_void, _location: *mut c_void, _kind: c_uint) {
        check_initialized()?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(pool, pointer_to(DEFAULT_POOL)) }
    }

    /// Returns the pool of a location.
    fn cuMemGetMemPool(pool: *mut *mut c_void, _location: *mut c_void, _kind: c_uint) {
        check_initialized()?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(pool, pointer_to(DEFAULT_POOL)) }
    }
}
