//! The driver, its errors and the device.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};

use crate::abi::{driver, store, store_text, text};
use crate::connection::device;
use crate::driver::contexts::{check_initialized, initialize};
use crate::errors::{self, Code};
use crate::pools;
use crate::properties::{BUS_ID, DRIVER_VERSION, UUID, is_bus_id};
use crate::protocol::kind;

/// Fails before `cuInit`, and for a number that is not a device's.
pub(crate) fn check_device(number: c_int) -> Result<(), Code> {
    check_initialized()?;
    match number {
        0 => Ok(()),
        _ => Err(errors::INVALID_DEVICE),
    }
}

driver! {
    /// Initializes the driver.
    fn cuInit(flags: c_uint) {
        match flags {
            0 => initialize(),
            _ => Err(errors::INVALID_VALUE),
        }
    }

    /// Returns the version of the driver.
    fn cuDriverGetVersion(version: *mut c_int) {
        // SAFETY: the program passes where the result goes.
        unsafe { store(version, DRIVER_VERSION) }
    }

    /// Returns the name of an error.
    fn cuGetErrorName(code: Code, name: *mut *const c_char) {
        let known = errors::driver_name(code);
        // SAFETY: the program passes where the result goes.
        unsafe { store(name, known.map_or(std::ptr::null(), errors::pointer))? };
        known.map(drop).ok_or(errors::INVALID_VALUE)
    }

    /// Returns the text of an error.
    fn cuGetErrorString(code: Code, to: *mut *const c_char) {
        let known = errors::driver_name(code).map(|_| errors::text(code));
        // SAFETY: the program passes where the result goes.
        unsafe { store(to, known.map_or(std::ptr::null(), errors::pointer))? };
        known.map(drop).ok_or(errors::INVALID_VALUE)
    }

    /// Returns the number of devices: one.
    fn cuDeviceGetCount(count: *mut c_int) {
        check_initialized()?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(count, 1) }
    }

    /// Returns the handle of a device.
    fn cuDeviceGet(handle: *mut c_int, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(handle, 0) }
    }

    /// Writes the name of the device, cut to the buffer.
    fn cuDeviceGetName(to: *mut c_char, bytes: c_int, number: c_int) {
        check_device(number)?;
        let room = usize::try_from(bytes).unwrap_or(0).checked_sub(1).ok_or(errors::INVALID_VALUE)?;
        let name = device()?.name.as_bytes();
        let name = CString::new(name.get(..room).unwrap_or(name)).map_err(|_| errors::UNKNOWN)?;
        // SAFETY: the program states that so many bytes are writable.
        unsafe { store_text(to, bytes, &name) }
    }

    /// Returns an attribute of the device.
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(value, device()?.known_attribute(attribute)?) }
    }

    /// Returns the size of device memory.
    fn cuDeviceTotalMem_v2(bytes: *mut usize, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(bytes, device()?.memory_bytes as usize) }
    }

    /// Returns the device's unique number.
    fn cuDeviceGetUuid(uuid: *mut [u8; 16], number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(uuid, UUID) }
    }

    /// Returns the device's unique number.
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(uuid, UUID) }
    }

    /// Writes the bus address.
    fn cuDeviceGetPCIBusId(to: *mut c_char, bytes: c_int, number: c_int) {
        check_device(number)?;
        // SAFETY: the program states that so many bytes are writable.
        unsafe { store_text(to, bytes, BUS_ID) }
    }

    /// Refuses a question about two devices: there is one.
    fn cuDeviceGetP2PAttribute(
        _value: *mut c_int,
        _attribute: c_uint,
        _from: c_int,
        _to: c_int,
    ) {
        check_initialized()?;
        Err(errors::INVALID_DEVICE)
    }

    /// Refuses access to the memory of another context: all are of one device.
    fn cuCtxEnablePeerAccess(_context: *mut c_void, _flags: c_uint) { Err(errors::INVALID_CONTEXT) }

    /// Refuses the end of access to the memory of another context.
    fn cuCtxDisablePeerAccess(_context: *mut c_void) { Err(errors::PEER_NOT_ENABLED) }

    /// Returns the device at a bus address.
    fn cuDeviceGetByPCIBusId(number: *mut c_int, id: *const c_char) {
        check_initialized()?;
        // SAFETY: the program passes a text and where the result goes.
        unsafe {
            match is_bus_id(text(id)?) {
                true => store(number, 0),
                false => Err(errors::INVALID_DEVICE),
            }
        }
    }

    /// Returns the compute capability.
    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the results go.
        unsafe {
            store(major, device()?.attribute(75))?;
            store(minor, device()?.attribute(76))
        }
    }

    /// Writes the short structure of properties of the first versions.
    fn cuDeviceGetProperties(properties: *mut [c_int; 14], number: c_int) {
        check_device(number)?;
        let device = device()?;
        let attributes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        // SAFETY: the program passes the structure of the header: 14 numbers in this order.
        unsafe { store(properties, attributes.map(|number| device.attribute(number))) }
    }

    /// Reports peer access: none.
    fn cuDeviceCanAccessPeer(access: *mut c_int, number: c_int, _peer: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(access, 0) }
    }

    /// Reports support of execution affinity: none.
    fn cuDeviceGetExecAffinitySupport(supported: *mut c_int, _kind: c_uint, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(supported, 0) }
    }

    /// Returns the default memory pool.
    fn cuDeviceGetDefaultMemPool(pool: *mut *mut c_void, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { pools::find(pool, kind::DEVICE, true) }
    }

    /// Returns the memory pool.
    fn cuDeviceGetMemPool(pool: *mut *mut c_void, number: c_int) {
        check_device(number)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { pools::find(pool, kind::DEVICE, false) }
    }

    /// Selects the memory pool.
    fn cuDeviceSetMemPool(number: c_int, pool: *mut c_void) {
        check_device(number)?;
        pools::select(pool, kind::DEVICE)
    }
}
