//! Memory pools: functions that differ by name only in the two interfaces.

use std::ffi::{c_uint, c_void};

use crate::abi::both_initialized;
use crate::pools::{self, Location, Permission, Properties};

both_initialized! {
    /// Returns the default pool of a location.
    fn cuMemGetDefaultMemPool | cudaMemGetDefaultMemPool(pool: *mut *mut c_void, location: *mut Location, kind: c_uint) {
        // SAFETY: the program passes a location, and where the handle goes.
        unsafe { pools::find_at(pool, location, kind, true) }
    }

    /// Returns the pool of a location.
    fn cuMemGetMemPool | cudaMemGetMemPool(pool: *mut *mut c_void, location: *mut Location, kind: c_uint) {
        // SAFETY: the program passes a location, and where the handle goes.
        unsafe { pools::find_at(pool, location, kind, false) }
    }

    /// Selects the pool of a location.
    fn cuMemSetMemPool | cudaMemSetMemPool(location: *mut Location, kind: c_uint, pool: *mut c_void) {
        // SAFETY: the program passes a location.
        unsafe { pools::select_at(location, kind, pool) }
    }

    /// Creates a memory pool.
    fn cuMemPoolCreate | cudaMemPoolCreate(pool: *mut *mut c_void, properties: *const Properties) {
        // SAFETY: the program passes properties, and where the handle goes.
        unsafe { pools::create(pool, properties) }
    }

    /// Destroys a pool.
    fn cuMemPoolDestroy | cudaMemPoolDestroy(pool: *mut c_void) { pools::destroy(pool) }

    /// Sets an attribute of a pool.
    fn cuMemPoolSetAttribute | cudaMemPoolSetAttribute(pool: *mut c_void, attribute: c_uint, value: *mut c_void) {
        // SAFETY: the program passes a value of the attribute's type.
        unsafe { pools::set_attribute(pool, attribute, value) }
    }

    /// Returns an attribute of a pool.
    fn cuMemPoolGetAttribute | cudaMemPoolGetAttribute(pool: *mut c_void, attribute: c_uint, value: *mut c_void) {
        // SAFETY: the program passes where the result goes, of the attribute's type.
        unsafe { pools::store_attribute(pool, attribute, value) }
    }

    /// Releases unused memory of a pool: there is none.
    fn cuMemPoolTrimTo | cudaMemPoolTrimTo(pool: *mut c_void, _bytes: usize) { pools::kind_of(pool).map(drop) }

    /// Gives or takes the access of locations to a pool.
    fn cuMemPoolSetAccess | cudaMemPoolSetAccess(pool: *mut c_void, permissions: *const Permission, count: usize) {
        // SAFETY: the program states how many there are.
        unsafe { pools::set_access(pool, permissions, count) }
    }

    /// Returns the access of a location to a pool.
    fn cuMemPoolGetAccess | cudaMemPoolGetAccess(flags: *mut c_uint, pool: *mut c_void, location: *mut Location) {
        // SAFETY: the program passes a location, and where the result goes.
        unsafe { pools::store_access(flags, pool, location) }
    }
}
