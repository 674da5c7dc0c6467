//! The device, its limits, errors and versions.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::abi::{runtime, store, text};
use crate::client;
use crate::connection::{call, device, last_error};
use crate::errors::{self, Code};
use crate::properties::device_properties;
use crate::protocol::{Message, Op};
use crate::runtime::{FULL_VERSION, VERSION};

fn check_device(number: c_int) -> Result<(), Code> {
    match number {
        0 => device().map(drop),
        _ => Err(errors::INVALID_DEVICE),
    }
}

/// Writes the properties in the layout of a version.
///
/// # Safety
/// `to` is null, or a structure of that version.
unsafe fn write_properties(to: *mut c_void, number: c_int, version: u32) -> Result<(), Code> {
    check_device(number)?;
    if to.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    let bytes = device_properties(device()?, version);
    // SAFETY: the caller's promise: as large as the layout.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), bytes.len()) };
    Ok(())
}

runtime! {
    /// Waits for the device.
    fn cudaDeviceSynchronize() { client::synchronize_device() }

    /// Waits for the device.
    fn cudaThreadSynchronize() { client::synchronize_device() }

    /// Waits for the device.
    fn cudaThreadExit() { client::reset() }

    /// Frees everything and clears the errors.
    fn cudaDeviceReset() { client::reset() }

    /// Returns the number of devices: one.
    fn cudaGetDeviceCount(count: *mut c_int) {
        device()?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(count, 1) }
    }

    /// Selects the device.
    fn cudaSetDevice(number: c_int) { check_device(number) }

    /// Creates the context.
    fn cudaInitDevice(number: c_int, _device_flags: c_uint, _flags: c_uint) { check_device(number) }

    /// Returns the selected device.
    fn cudaGetDevice(number: *mut c_int) {
        device()?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, 0) }
    }

    /// Selects devices in an order: there is one.
    fn cudaSetValidDevices(_devices: *mut c_int, _count: c_int) { Ok(()) }

    /// Sets how the host waits: no effect.
    fn cudaSetDeviceFlags(_flags: c_uint) { Ok(()) }

    /// Returns how the host waits.
    fn cudaGetDeviceFlags(flags: *mut c_uint) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, 0) }
    }

    /// Chooses the device.
    fn cudaChooseDevice(number: *mut c_int, _properties: *const c_void) {
        device()?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(number, 0) }
    }

    /// Writes the properties of the device.
    fn cudaGetDeviceProperties(properties: *mut c_void, number: c_int) {
        // SAFETY: the program passes the structure of this version.
        unsafe { write_properties(properties, number, VERSION) }
    }

    /// Writes the properties of the device.
    fn cudaGetDeviceProperties_v2(properties: *mut c_void, number: c_int) {
        // SAFETY: the program passes the structure of this version.
        unsafe { write_properties(properties, number, VERSION) }
    }

    /// Returns an attribute of the device.
    fn cudaDeviceGetAttribute(value: *mut c_int, attribute: c_uint, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, device()?.attribute(attribute)) }
    }

    /// Reports peer access: none.
    fn cudaDeviceCanAccessPeer(access: *mut c_int, _device: c_int, _peer: c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(access, 0) }
    }

    /// Returns the priorities of streams: all are equal.
    fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        // SAFETY: the program passes where the results go, or null.
        unsafe {
            let _ = store(least, 0);
            let _ = store(greatest, 0);
        }
        Ok(())
    }

    /// Writes the bus address.
    fn cudaDeviceGetPCIBusId(to: *mut c_char, bytes: c_int, number: c_int) {
        check_device(number)?;
        let id = b"0000:01:00.0\0";
        if to.is_null() || usize::try_from(bytes).unwrap_or(0) < id.len() {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program states that so many bytes are writable.
        unsafe { std::ptr::copy_nonoverlapping(id.as_ptr().cast(), to, id.len()) };
        Ok(())
    }

    /// Sets a limit, such as the size of the heap of kernels.
    fn cudaDeviceSetLimit(limit: c_uint, value: usize) {
        let mut head = Message::new();
        head.put_u32(limit).put_u64(value as u64);
        call(Op::SetLimit, &head).map(drop)
    }

    /// Returns a limit's default.
    fn cudaDeviceGetLimit(value: *mut usize, limit: c_uint) {
        let default = match limit {
            0 => 1024,
            1 => 1 << 20,
            2 => 8 << 20,
            _ => 0,
        };
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, default) }
    }

    /// A hint without an effect.
    fn cudaDeviceSetCacheConfig(_config: c_uint) { Ok(()) }

    /// Returns the cache hint.
    fn cudaDeviceGetCacheConfig(config: *mut c_uint) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(config, 0) }
    }

    /// A hint without an effect.
    fn cudaDeviceSetSharedMemConfig(_config: c_uint) { Ok(()) }

    /// Returns the bank hint.
    fn cudaDeviceGetSharedMemConfig(config: *mut c_uint) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(config, 1) }
    }

    /// Resets the persisting cache: no effect.
    fn cudaCtxResetPersistingL2Cache() { Ok(()) }

    /// Begins profiling: no effect.
    fn cudaProfilerStart() { Ok(()) }

    /// Ends profiling: no effect.
    fn cudaProfilerStop() { Ok(()) }

    /// Returns the version of the driver.
    fn cudaDriverGetVersion(version: *mut c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(version, 13_000) }
    }

    /// Returns the version of the runtime.
    fn cudaRuntimeGetVersion(version: *mut c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(version, FULL_VERSION) }
    }

    /// Returns a function of the driver interface.
    fn cudaGetDriverEntryPoint(
        symbol: *const c_char,
        function: *mut *mut c_void,
        _flags: u64,
        status: *mut c_int,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_driver_function(symbol, function, status) }
    }

    /// Returns a function of the driver interface.
    fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char,
        function: *mut *mut c_void,
        _version: c_uint,
        _flags: u64,
        status: *mut c_int,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_driver_function(symbol, function, status) }
    }
}

/// Finds a function of `libcuda.so.1`.
///
/// # Safety
/// `symbol` ends in a zero byte; the others are null or writable.
unsafe fn find_driver_function(
    symbol: *const c_char,
    function: *mut *mut c_void,
    status: *mut c_int,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(symbol)? };
    let newest = ["_v2", ""].iter().find_map(|suffix| {
        let name = std::ffi::CString::new(format!("{name}{suffix}")).ok()?;
        let found = crate::system::find_symbol(c"libcuda.so.1", &name);
        (!found.is_null()).then_some(found)
    });
    // SAFETY: the caller's promise.
    unsafe {
        let _ = store(status, if newest.is_some() { 0 } else { 1 });
        store(function, newest.unwrap_or(std::ptr::null_mut()))
    }
}

/// Returns the last error of this thread and forgets it.
///
/// # Safety
/// Safe.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn cudaGetLastError() -> Code {
    last_error(true)
}

/// Returns the last error of this thread.
///
/// # Safety
/// Safe.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn cudaPeekAtLastError() -> Code {
    last_error(false)
}

/// Returns the name of an error.
///
/// # Safety
/// Safe.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn cudaGetErrorName(code: Code) -> *const c_char {
    errors::pointer(errors::runtime_name(code))
}

/// Returns the text of an error.
///
/// # Safety
/// Safe.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn cudaGetErrorString(code: Code) -> *const c_char {
    errors::pointer(errors::text(code))
}

/// `cudaChannelFormatDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ChannelFormat {
    bits: [c_int; 4],
    kind: c_int,
}

/// Returns the description of a texture's elements.
///
/// # Safety
/// Safe.
#[cfg_attr(all(shim, not(shim = "cuda")), unsafe(no_mangle))]
pub unsafe extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: c_int,
) -> ChannelFormat {
    ChannelFormat {
        bits: [x, y, z, w],
        kind,
    }
}
