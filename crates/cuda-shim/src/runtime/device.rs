//! The device, its limits, errors and versions.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::abi::{meant_flags, runtime, runtime_after_fault, store, store_text, text};
use crate::client;
use crate::connection::{device, last_error};
use crate::errors::{self, Code};
use crate::properties::DRIVER_VERSION;
use crate::properties::{BUS_ID, device_properties, is_bus_id};
use crate::runtime::registration::set_again;
use crate::runtime::{FULL_VERSION, VERSION};

/// Fails for a number that is not a device's.
pub(super) fn check_device(number: c_int) -> Result<(), Code> {
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

/// Frees everything, clears the errors and gives variables their first values.
fn reset() -> Result<(), Code> {
    client::reset()?;
    set_again();
    Ok(())
}

/// `cudaDevAttrMaxTexture1DLinearWidth`.
const LINEAR_TEXELS: u32 = 69;

runtime! {
    /// Waits for the device.
    fn cudaThreadSynchronize() { client::synchronize_device() }
}

runtime_after_fault! {
    /// Frees everything and clears the errors.
    fn cudaThreadExit() { reset() }

    /// Frees everything and clears the errors.
    fn cudaDeviceReset() { reset() }

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
        unsafe { store(value, device()?.known_attribute(attribute)?) }
    }

    /// Reports peer access: none.
    fn cudaDeviceCanAccessPeer(access: *mut c_int, _device: c_int, _peer: c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(access, 0) }
    }

    /// Refuses access to another device: there is one.
    fn cudaDeviceEnablePeerAccess(_peer: c_int, _flags: c_uint) { Err(errors::INVALID_DEVICE) }

    /// Refuses the end of access to another device.
    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        check_device(peer)?;
        Err(errors::PEER_NOT_ENABLED)
    }

    /// Refuses a question about two devices: there is one.
    fn cudaDeviceGetP2PAttribute(
        _value: *mut c_int,
        _attribute: c_uint,
        _from: c_int,
        _to: c_int,
    ) {
        Err(errors::INVALID_DEVICE)
    }

    /// Returns the device at a bus address.
    fn cudaDeviceGetByPCIBusId(number: *mut c_int, id: *const c_char) {
        // SAFETY: the program passes a text and where the result goes.
        unsafe {
            match is_bus_id(text(id)?) {
                true => store(number, 0),
                false => Err(errors::INVALID_DEVICE),
            }
        }
    }

    /// Returns the most texels of a linear texture in one dimension.
    fn cudaDeviceGetTexture1DLinearMaxWidth(
        width: *mut usize,
        _format: *const c_void,
        number: c_int,
    ) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(width, device()?.attribute(LINEAR_TEXELS) as usize) }
    }

    /// Writes the bus address.
    fn cudaDeviceGetPCIBusId(to: *mut c_char, bytes: c_int, number: c_int) {
        check_device(number)?;
        // SAFETY: the program states that so many bytes are writable.
        unsafe { store_text(to, bytes, BUS_ID) }
    }

    /// Returns the version of the driver.
    fn cudaDriverGetVersion(version: *mut c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(version, DRIVER_VERSION) }
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
        flags: u64,
        status: *mut c_int,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_driver_function(symbol, function, FULL_VERSION, flags, status) }
    }

    /// Returns a function of the driver interface as of a version.
    fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char,
        function: *mut *mut c_void,
        version: c_uint,
        flags: u64,
        status: *mut c_int,
    ) {
        // SAFETY: the program passes a name and where the results go.
        unsafe { find_driver_function(symbol, function, version as c_int, flags, status) }
    }
}

type GetProcAddress =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> Code;

/// Finds a function of `libcuda.so.1` as of a version of CUDA.
///
/// # Safety
/// `symbol` ends in a zero byte; the others are null or writable.
unsafe fn find_driver_function(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Result<(), Code> {
    let found = crate::system::find_symbol(c"libcuda.so.1", c"cuGetProcAddress_v2");
    if found.is_null() {
        return Err(errors::NOT_SUPPORTED);
    }
    // SAFETY: the symbol is the driver library's function of this type; the arguments are the caller's
    // promise.
    let code = unsafe {
        let get = std::mem::transmute::<*mut c_void, GetProcAddress>(found);
        get(symbol, function, version, meant_flags(flags), status)
    };
    match code {
        errors::SUCCESS => Ok(()),
        code => Err(code),
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
