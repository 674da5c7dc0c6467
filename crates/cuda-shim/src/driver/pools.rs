//! Memory pools, which keep nothing: memory is allocated and freed at once.

use std::ffi::{c_uint, c_void};

use crate::abi::driver;
use crate::driver::contexts::check_initialized;
use crate::pools::{self, Location, Permission, Properties};

driver! {
    /// Creates a memory pool.
    fn cuMemPoolCreate(pool: *mut *mut c_void, properties: *const Properties) {
        check_initialized()?;
        // SAFETY: the program passes properties, and where the handle goes.
        unsafe { pools::create(pool, properties) }
    }

    /// Destroys a pool.
    fn cuMemPoolDestroy(pool: *mut c_void) {
        check_initialized()?;
        pools::destroy(pool)
    }

    /// Sets an attribute of a pool.
    fn cuMemPoolSetAttribute(pool: *mut c_void, attribute: c_uint, value: *mut c_void) {
        check_initialized()?;
        // SAFETY: the program passes a value of the attribute's type.
        unsafe { pools::set_attribute(pool, attribute, value) }
    }

    /// Returns an attribute of a pool.
    fn cuMemPoolGetAttribute(pool: *mut c_void, attribute: c_uint, value: *mut c_void) {
        check_initialized()?;
        // SAFETY: the program passes where the result goes, of the attribute's type.
        unsafe { pools::store_attribute(pool, attribute, value) }
    }

    /// Releases unused memory of a pool: there is none.
    fn cuMemPoolTrimTo(pool: *mut c_void, _bytes: usize) {
        check_initialized()?;
        pools::kind_of(pool).map(drop)
    }

    /// Gives or takes the access of locations to a pool.
    fn cuMemPoolSetAccess(pool: *mut c_void, permissions: *const Permission, count: usize) {
        check_initialized()?;
        // SAFETY: the program states how many there are.
        unsafe { pools::set_access(pool, permissions, count) }
    }

    /// Returns the access of a location to a pool.
    fn cuMemPoolGetAccess(flags: *mut c_uint, pool: *mut c_void, location: *mut Location) {
        check_initialized()?;
        // SAFETY: the program passes a location, and where the result goes.
        unsafe { pools::store_access(flags, pool, location) }
    }

    /// Returns the default pool of a location.
    fn cuMemGetDefaultMemPool(pool: *mut *mut c_void, location: *mut Location, kind: c_uint) {
        check_initialized()?;
        // SAFETY: the program passes a location, and where the handle goes.
        unsafe { pools::find_at(pool, location, kind, true) }
    }

    /// Returns the pool of a location.
    fn cuMemGetMemPool(pool: *mut *mut c_void, location: *mut Location, kind: c_uint) {
        check_initialized()?;
        // SAFETY: the program passes a location, and where the handle goes.
        unsafe { pools::find_at(pool, location, kind, false) }
    }

    /// Selects the pool of a location.
    fn cuMemSetMemPool(location: *mut Location, kind: c_uint, pool: *mut c_void) {
        check_initialized()?;
        // SAFETY: the program passes a location.
        unsafe { pools::select_at(location, kind, pool) }
    }
}
