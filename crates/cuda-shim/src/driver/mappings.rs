//! Memory that the program maps at reserved addresses.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{initialized, store};
use crate::client::request;
use crate::connection::call;
use crate::errors::{self, Code};
use crate::memory::address_of;
use crate::pools::{Location, ON_DEVICE, PINNED, Permission};
use crate::protocol::{GRANULARITY, Message, Op};

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Properties {
    allocation: c_uint,
    handles: c_int,
    location: Location,
    metadata: *mut c_void,
    compression: u8,
    direct: u8,
    usage: u16,
    reserved: [u8; 4],
}

/// Fails where memory with these properties is not device memory.
///
/// # Safety
/// `properties` is null or readable.
unsafe fn check(properties: *const Properties) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let properties = unsafe { properties.as_ref() }.ok_or(errors::INVALID_VALUE)?;
    match (properties.allocation, properties.location.kind()) {
        (PINNED, ON_DEVICE) if properties.location.number() != 0 => Err(errors::INVALID_DEVICE),
        (PINNED, ON_DEVICE) => Ok(()),
        (PINNED, _) => Err(errors::NOT_SUPPORTED),
        _ => Err(errors::INVALID_VALUE),
    }
}

/// Stores the number that a request returns.
///
/// # Safety
/// `to` is null or writable.
unsafe fn request_into(to: *mut u64, op: Op, fields: &[u64]) -> Result<(), Code> {
    if to.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    let found = request(op, fields)?
        .fields()
        .u64()
        .map_err(|_| errors::UNKNOWN)?;
    // SAFETY: the caller's promise.
    unsafe { store(to, found) }
}

initialized! {
    /// Returns the size of the pieces in which memory is mapped.
    fn cuMemGetAllocationGranularity(
        bytes: *mut usize,
        properties: *const Properties,
        _option: c_uint,
    ) {
        // SAFETY: the program passes properties and where the result goes.
        unsafe {
            check(properties)?;
            store(bytes, GRANULARITY as usize)
        }
    }

    /// Reserves addresses; a wanted address is a hint.
    fn cuMemAddressReserve(
        address: *mut u64,
        bytes: usize,
        alignment: usize,
        _wanted: u64,
        flags: u64,
    ) {
        if flags != 0 {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes where the address goes.
        unsafe { request_into(address, Op::ReserveAddresses, &[bytes as u64, alignment as u64]) }
    }

    /// Gives reserved addresses back.
    fn cuMemAddressFree(address: u64, bytes: usize) {
        request(Op::FreeAddresses, &[address, bytes as u64]).map(drop)
    }

    /// Creates memory without an address.
    fn cuMemCreate(handle: *mut u64, bytes: usize, properties: *const Properties, flags: u64) {
        if flags != 0 {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes properties and where the handle goes.
        unsafe {
            check(properties)?;
            request_into(handle, Op::CreateMemory, &[bytes as u64])
        }
    }

    /// Releases memory, which ends when it is not mapped either.
    fn cuMemRelease(handle: u64) { request(Op::ReleaseMemory, &[handle]).map(drop) }

    /// Returns the handle of mapped memory.
    fn cuMemRetainAllocationHandle(handle: *mut u64, pointer: *mut c_void) {
        // SAFETY: the program passes where the handle goes.
        unsafe { request_into(handle, Op::RetainMemory, &[address_of(pointer)]) }
    }

    /// Maps memory at reserved addresses; the device has no access yet.
    fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) {
        if offset != 0 || flags != 0 {
            return Err(errors::INVALID_VALUE);
        }
        request(Op::MapMemory, &[address, bytes as u64, handle]).map(drop)
    }

    /// Ends the mapping of memory.
    fn cuMemUnmap(address: u64, bytes: usize) {
        request(Op::UnmapMemory, &[address, bytes as u64]).map(drop)
    }

    /// Gives or takes the device's access to mapped memory.
    fn cuMemSetAccess(address: u64, bytes: usize, permissions: *const Permission, count: usize) {
            if permissions.is_null() || count == 0 {
            return Err(errors::INVALID_VALUE);
        }
        for index in 0..count {
            // SAFETY: the program passes as many permissions as it states.
            let permission = unsafe { permissions.add(index).read_unaligned() };
            let mut head = Message::new();
            head.put_u64(address)
                .put_u64(bytes as u64)
                .put_u32(permission.flags_for_device()?);
            call(Op::SetMemoryAccess, &head)?;
        }
        Ok(())
    }

    /// Returns the device's access to mapped memory.
    fn cuMemGetAccess(flags: *mut u64, _location: *const Location, address: u64) {
        let found = request(Op::GetMemoryAccess, &[address])?;
        let found = found.fields().u32().map_err(|_| errors::UNKNOWN)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(flags, found.into()) }
    }
}
