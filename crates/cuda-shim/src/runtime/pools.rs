//! Memory pools, which keep nothing: memory is allocated and freed at once.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::runtime;
use crate::pools::{self, Location, Permission, Properties};
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

    /// Returns the default pool of a location.
    fn cudaMemGetDefaultMemPool(pool: *mut *mut c_void, location: *mut Location, kind: c_uint) {
        // SAFETY: the program passes a location, and where the handle goes.
        unsafe { pools::find_at(pool, location, kind, true) }
    }

    /// Returns the pool of a location.
    fn cudaMemGetMemPool(pool: *mut *mut c_void, location: *mut Location, kind: c_uint) {
        // SAFETY: the program passes a location, and where the handle goes.
        unsafe { pools::find_at(pool, location, kind, false) }
    }

    /// Selects the pool of a location.
    fn cudaMemSetMemPool(location: *mut Location, kind: c_uint, pool: *mut c_void) {
        // SAFETY: the program passes a location.
        unsafe { pools::select_at(location, kind, pool) }
    }

    /// Creates a memory pool.
    fn cudaMemPoolCreate(pool: *mut *mut c_void, properties: *const Properties) {
        // SAFETY: the program passes properties, and where the handle goes.
        unsafe { pools::create(pool, properties) }
    }

    /// Destroys a pool.
    fn cudaMemPoolDestroy(pool: *mut c_void) { pools::destroy(pool) }

    /// Sets an attribute of a pool.
    fn cudaMemPoolSetAttribute(pool: *mut c_void, attribute: c_uint, value: *mut c_void) {
        // SAFETY: the program passes a value of the attribute's type.
        unsafe { pools::set_attribute(pool, attribute, value) }
    }

    /// Returns an attribute of a pool.
    fn cudaMemPoolGetAttribute(pool: *mut c_void, attribute: c_uint, value: *mut c_void) {
        // SAFETY: the program passes where the result goes, of the attribute's type.
        unsafe { pools::store_attribute(pool, attribute, value) }
    }

    /// Releases unused memory of a pool: there is none.
    fn cudaMemPoolTrimTo(pool: *mut c_void, _bytes: usize) { pools::kind_of(pool).map(drop) }

    /// Gives or takes the access of locations to a pool.
    fn cudaMemPoolSetAccess(pool: *mut c_void, permissions: *const Permission, count: usize) {
        // SAFETY: the program states how many there are.
        unsafe { pools::set_access(pool, permissions, count) }
    }

    /// Returns the access of a location to a pool.
    fn cudaMemPoolGetAccess(flags: *mut c_uint, pool: *mut c_void, location: *mut Location) {
        // SAFETY: the program passes a location, and where the result goes.
        unsafe { pools::store_access(flags, pool, location) }
    }
}
