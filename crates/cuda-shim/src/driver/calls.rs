//! Contexts: the functions `cuCtx…` and `cuDevicePrimaryCtx…`.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{driver, in_context, store};
use crate::client;
use crate::driver::contexts::{
    self, PRIMARY, check_initialized, contexts, current, pop, pop_if_current, push, selected,
};
use crate::driver::devices::check_device;
use crate::errors::{self, Code};
use crate::memory::{address_of, pointer_to};

/// Version of the interface that a context was made for.
const API_VERSION: c_uint = 3020;

/// Creates a context and makes it current.
///
/// # Safety
/// `context` is null or writable.
unsafe fn create(context: *mut *mut c_void, flags: c_uint, number: c_int) -> Result<(), Code> {
    check_device(number)?;
    if context.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    let handle = contexts().create(flags);
    push(handle);
    // SAFETY: the caller's promise.
    unsafe { store(context, pointer_to(handle)) }
}

/// The context of a handle; a null handle is the current one.
fn named(context: *mut c_void) -> Result<u64, Code> {
    if context.is_null() {
        return current();
    }
    check_initialized()?;
    match contexts().holds(address_of(context)) {
        true => Ok(address_of(context)),
        false => Err(errors::INVALID_CONTEXT),
    }
}

driver! {
    /// Creates a context and makes it current.
    fn cuCtxCreate_v2(context: *mut *mut c_void, flags: c_uint, number: c_int) {
        // SAFETY: the program passes where the handle goes.
        unsafe { create(context, flags, number) }
    }

    /// Creates a context and makes it current; all multiprocessors belong to it.
    fn cuCtxCreate_v3(
        context: *mut *mut c_void,
        _affinities: *const c_void,
        _count: c_int,
        flags: c_uint,
        number: c_int,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { create(context, flags, number) }
    }

    /// Creates a context and makes it current.
    fn cuCtxCreate_v4(
        context: *mut *mut c_void,
        _parameters: *const c_void,
        flags: c_uint,
        number: c_int,
    ) {
        // SAFETY: the program passes where the handle goes.
        unsafe { create(context, flags, number) }
    }

    /// Destroys a context.
    fn cuCtxDestroy_v2(context: *mut c_void) {
        check_initialized()?;
        let handle = address_of(context);
        let mut contexts = contexts();
        contexts.created.remove(&handle).ok_or(errors::INVALID_CONTEXT)?;
        pop_if_current(handle);
        contexts.end_unused()
    }

    /// Makes a context current over the one before.
    fn cuCtxPushCurrent_v2(context: *mut c_void) {
        if context.is_null() {
            return Err(errors::INVALID_CONTEXT);
        }
        push(named(context)?);
        Ok(())
    }

    /// Takes the current context from the thread.
    fn cuCtxPopCurrent_v2(context: *mut *mut c_void) {
        check_initialized()?;
        let popped = pop().ok_or(errors::INVALID_CONTEXT)?;
        if context.is_null() {
            return Ok(());
        }
        // SAFETY: the program passes where the handle goes.
        unsafe { store(context, pointer_to(popped)) }
    }

    /// Replaces the current context.
    fn cuCtxSetCurrent(context: *mut c_void) {
        check_initialized()?;
        if context.is_null() {
            contexts::detach();
            return Ok(());
        }
        let handle = named(context)?;
        pop();
        push(handle);
        Ok(())
    }

    /// Returns the current context or null.
    fn cuCtxGetCurrent(context: *mut *mut c_void) {
        if !contexts::runtime_is_active() {
            check_initialized()?;
        }
        // SAFETY: the program passes where the handle goes.
        unsafe { store(context, pointer_to(selected().unwrap_or(0))) }
    }

    /// Returns the version of the interface that the context was made for.
    fn cuCtxGetApiVersion(context: *mut c_void, version: *mut c_uint) {
        named(context)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(version, API_VERSION) }
    }

    /// Returns the number of a context.
    fn cuCtxGetId(context: *mut c_void, id: *mut u64) {
        let handle = named(context)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(id, handle) }
    }

    /// Retains the primary context.
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(context, pointer_to(PRIMARY))? };
        contexts().retained += 1;
        Ok(())
    }

    /// Releases the primary context.
    fn cuDevicePrimaryCtxRelease_v2(number: c_int) {
        check_device(number)?;
        let mut contexts = contexts();
        contexts.retained = contexts.retained.checked_sub(1).ok_or(errors::INVALID_CONTEXT)?;
        contexts.end_unused()
    }

    /// Frees everything and clears the errors.
    fn cuDevicePrimaryCtxReset_v2(number: c_int) {
        check_device(number)?;
        client::reset()
    }

    /// Returns flags of the primary context, and whether it is active.
    fn cuDevicePrimaryCtxGetState(number: c_int, flags: *mut c_uint, active: *mut c_int) {
        check_device(number)?;
        let contexts = contexts();
        // SAFETY: the program passes where the results go.
        unsafe {
            store(flags, contexts.primary_flags)?;
            store(active, contexts.holds(PRIMARY).into())
        }
    }

    /// Sets the flags of the primary context: no effect.
    fn cuDevicePrimaryCtxSetFlags_v2(number: c_int, flags: c_uint) {
        check_device(number)?;
        contexts().primary_flags = flags;
        Ok(())
    }

    /// Returns the device of a context.
    fn cuCtxGetDevice_v2(number: *mut c_int, context: *mut c_void) {
        named(context)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, 0) }
    }

    /// Waits for the device.
    fn cuCtxSynchronize_v2(context: *mut c_void) {
        named(context)?;
        client::synchronize_device()
    }
}

driver! {
    /// Returns the device of the current context, also of a primary one that nobody retains.
    fn cuCtxGetDevice(number: *mut c_int) {
        check_initialized()?;
        match selected() {
            Some(PRIMARY) => {}
            _ => current().map(drop)?,
        }
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, 0) }
    }
}

in_context! {
    /// Returns the flags of the current context.
    fn cuCtxGetFlags(flags: *mut c_uint) {
        let context = current()?;
        let contexts = contexts();
        let created = contexts.created.get(&context).copied();
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, created.unwrap_or(contexts.primary_flags)) }
    }

}
