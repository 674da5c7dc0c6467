//! Allocations and what is known of addresses.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{in_context, initialized, on_stream, store};
use crate::advice::{self, Range};
use crate::driver::contexts::{PRIMARY, context_of, note_context, selected};
use crate::errors::{self, Code};
use crate::graph::refuse_unsafe;
use crate::memory::{
    self, PITCH, address_of, find_allocation, find_mapping, is_device_only, stream_of,
};
use crate::pools::{Location, reaches_device};
use crate::protocol::{NO_POOL, kind};

/// Allocates and stores the address.
///
/// # Safety
/// `to` is null or writable.
pub(crate) unsafe fn allocate_into(to: *mut u64, bytes: usize, kind: u32) -> Result<(), Code> {
    if to.is_null() || bytes == 0 {
        return Err(errors::INVALID_VALUE);
    }
    refuse_unsafe()?;
    let address = memory::allocate(bytes as u64, kind)?;
    note_context(address, selected().unwrap_or(PRIMARY));
    // SAFETY: the caller's promise.
    unsafe { store(to, address) }
}

in_context! {
    /// Allocates device memory.
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        // SAFETY: the program passes where the address goes.
        unsafe { allocate_into(address, bytes, kind::DEVICE) }
    }

    /// Allocates rows at a pitch.
    fn cuMemAllocPitch_v2(
        address: *mut u64,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element_bytes: c_uint,
    ) {
        if !matches!(element_bytes, 4 | 8 | 16) {
            return Err(errors::INVALID_VALUE);
        }
        let row = (width as u64).next_multiple_of(PITCH);
        let bytes = row.checked_mul(height as u64).ok_or(errors::OUT_OF_MEMORY)?;
        // SAFETY: the program passes where the results go.
        unsafe {
            store(pitch, row as usize)?;
            allocate_into(address, bytes as usize, kind::DEVICE)
        }
    }

    /// Allocates page-locked host memory, which the device addresses.
    fn cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize) {
        // SAFETY: the program passes where the address goes: a pointer of 64 bits.
        unsafe { allocate_into(pointer.cast::<u64>(), bytes, kind::PINNED) }
    }

    /// Allocates page-locked host memory, which the device addresses.
    fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        // SAFETY: the program passes where the address goes: a pointer of 64 bits.
        unsafe {
            allocate_into(pointer.cast::<u64>(), bytes, kind::PINNED)?;
            memory::set_host_flags(address_of(*pointer), flags);
        }
        Ok(())
    }

    /// Allocates managed memory.
    fn cuMemAllocManaged(address: *mut u64, bytes: usize, flags: c_uint) {
        if !matches!(flags, 1 | 2) {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes where the address goes.
        unsafe { allocate_into(address, bytes, kind::MANAGED) }
    }

    /// Frees device or managed memory.
    fn cuMemFree_v2(address: u64) {
        refuse_unsafe()?;
        memory::release_kind(address, false)
    }

    /// Frees page-locked host memory.
    fn cuMemFreeHost(pointer: *mut c_void) {
        refuse_unsafe()?;
        memory::release_kind(address_of(pointer), true)
    }

    /// Returns the device address of page-locked memory, which is the same, or of registered memory.
    fn cuMemHostGetDevicePointer_v2(address: *mut u64, pointer: *mut c_void, flags: c_uint) {
        if flags != 0 {
            return Err(errors::INVALID_VALUE);
        }
        let found = memory::device_address(address_of(pointer))?;
        // SAFETY: the program passes where the address goes.
        unsafe { store(address, found) }
    }

    /// Returns the allocation of an address; both results are optional.
    fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, address: u64) {
        let found = find_allocation(address).map_err(|_| errors::NOT_FOUND)?;
        // SAFETY: the program passes where the results go, or null.
        unsafe {
            let _ = store(base, found.address);
            let _ = store(bytes, found.bytes as usize);
        }
        Ok(())
    }

    /// Keeps advice on managed memory, which has no other effect.
    fn cuMemAdvise(address: u64, bytes: usize, advice: c_uint, device: c_int) {
        advice::advise(Range { address, bytes }, advice, Location::of_device(device))
    }

    /// Keeps advice on managed memory, which has no other effect.
    fn cuMemAdvise_v2(address: u64, bytes: usize, advice: c_uint, location: Location) {
        advice::advise(Range { address, bytes }, advice, location)
    }

    /// Moves managed memory: no effect.
    fn cuMemPrefetchAsync(address: u64, bytes: usize, device: c_int, _stream: *mut c_void) {
        advice::prefetch(Range { address, bytes }, Location::of_device(device))
    }

    /// Moves managed memory: no effect.
    fn cuMemPrefetchAsync_v2(
        address: u64,
        bytes: usize,
        location: Location,
        _flags: c_uint,
        _stream: *mut c_void,
    ) {
        advice::prefetch(Range { address, bytes }, location)
    }

    /// Returns what the program stated about managed memory.
    fn cuMemRangeGetAttribute(
        to: *mut c_void,
        to_bytes: usize,
        number: c_uint,
        address: u64,
        bytes: usize,
    ) {
        // SAFETY: the program states how many bytes are writable.
        unsafe { advice::store_attribute(to.cast(), to_bytes, number, Range { address, bytes }) }
    }

    /// Returns what the program stated about managed memory.
    fn cuMemRangeGetAttributes(
        to: *mut *mut c_void,
        to_bytes: *const usize,
        numbers: *const c_uint,
        count: usize,
        address: u64,
        bytes: usize,
    ) {
        let wanted = advice::Attributes { to: to.cast(), bytes: to_bytes, numbers, count };
        // SAFETY: the program states the lengths.
        unsafe { advice::store_attributes(wanted, Range { address, bytes }) }
    }
}

on_stream! {
    stream;

    /// Allocates device memory in the order of a stream.
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: *mut c_void) {
        if address.is_null() || bytes == 0 {
            return Err(errors::INVALID_VALUE);
        }
        let found = crate::graph::allocate_in_order(bytes as u64, stream_of(stream), None)?;
        // SAFETY: the program passes where the address goes.
        unsafe { store(address, found) }
    }

    /// Allocates memory of a pool.
    fn cuMemAllocFromPoolAsync(
        address: *mut u64,
        bytes: usize,
        pool: *mut c_void,
        stream: *mut c_void,
    ) {
        if address.is_null() || bytes == 0 {
            return Err(errors::INVALID_VALUE);
        }
        let found = crate::graph::allocate_in_order(bytes as u64, stream_of(stream), Some(pool))?;
        // SAFETY: the program passes where the address goes.
        unsafe { store(address, found) }
    }

    /// Frees device memory in the order of a stream.
    fn cuMemFreeAsync(address: u64, stream: *mut c_void) {
        crate::graph::release_in_order(address, stream_of(stream))
    }
}

/// Description of an address.
#[derive(Debug, Clone, Copy)]
struct Pointer {
    address: u64,
    base: u64,
    bytes: u64,
    kind: u32,
}

fn describe(address: u64) -> Result<Pointer, Code> {
    if let Some((base, mapping)) = find_mapping(address) {
        let (bytes, kind) = (mapping.bytes, mapping.kind);
        return Ok(Pointer {
            address,
            base,
            bytes,
            kind,
        });
    }
    if !is_device_only(address)? {
        return Err(errors::INVALID_VALUE);
    }
    let found = find_allocation(address)?;
    Ok(Pointer {
        address,
        base: found.address,
        bytes: found.bytes,
        kind: found.kind,
    })
}

/// Value of an attribute with its type.
#[derive(Debug, Clone, Copy)]
enum Value {
    Byte(bool),
    Int(c_int),
    Long(u64),
}

impl Value {
    /// Stores the value.
    ///
    /// # Safety
    /// `to` is null or writable for the type.
    unsafe fn store(self, to: *mut c_void) -> Result<(), Code> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Value::Byte(value) => store(to.cast::<u8>(), value.into()),
                Value::Int(value) => store(to.cast::<c_int>(), value),
                Value::Long(value) => store(to.cast::<u64>(), value),
            }
        }
    }
}

/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const HOST: c_int = 1;
const DEVICE: c_int = 2;

/// The memory pool of an address: null for memory that comes from none.
fn pool_of(address: u64) -> u64 {
    find_allocation(address).map_or(NO_POOL, |found| found.pool)
}

/// An attribute by its number in `CUpointer_attribute`; unknown addresses have zeros.
fn attribute(pointer: Option<Pointer>, number: c_uint) -> Result<Value, Code> {
    const RDWR: c_int = 3;
    let known = pointer.is_some();
    let (address, base, bytes) = pointer.map_or((0, 0, 0), |p| (p.address, p.base, p.bytes));
    let kind = pointer.map_or(kind::DEVICE, |pointer| pointer.kind);
    Ok(match number {
        1 => Value::Long(if known { context_of(base) } else { 0 }),
        2 if !known => Value::Int(0),
        2 => Value::Int(if kind == kind::PINNED { HOST } else { DEVICE }),
        3 => Value::Long(if reaches_device(pool_of(address)) {
            address
        } else {
            0
        }),
        4 => Value::Long(if kind == kind::DEVICE { 0 } else { address }),
        6 | 10 | 15 => Value::Byte(false),
        7 | 20 => Value::Long(base),
        8 => Value::Byte(kind == kind::MANAGED),
        9 => Value::Int(if known { 0 } else { -2 }),
        11 | 19 => Value::Long(base),
        12 | 18 => Value::Long(bytes),
        13 => Value::Byte(known),
        14 => Value::Long(0),
        17 => Value::Long(pool_of(address)),
        16 => Value::Int(if known { RDWR } else { 0 }),
        21 => Value::Byte(false),
        _ => return Err(errors::INVALID_VALUE),
    })
}

initialized! {
    /// Returns what is known of an address.
    fn cuPointerGetAttribute(value: *mut c_void, number: c_uint, address: u64) {
        let pointer = describe(address)?;
        if number == 4 && pointer.kind == kind::DEVICE {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes where the result goes.
        unsafe { attribute(Some(pointer), number)?.store(value) }
    }

    /// Returns what is known of an address; an unknown one is not an error.
    fn cuPointerGetAttributes(
        count: c_uint,
        numbers: *const c_uint,
        values: *mut *mut c_void,
        address: u64,
    ) {
        if numbers.is_null() || values.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        let pointer = describe(address).ok();
        for index in 0..count as usize {
            // SAFETY: the program passes as many numbers and places as it states.
            unsafe { attribute(pointer, *numbers.add(index))?.store(*values.add(index))? };
        }
        Ok(())
    }

    /// Sets an attribute: no effect, since copies are synchronous.
    fn cuPointerSetAttribute(_value: *const c_void, _number: c_uint, address: u64) {
        describe(address).map(drop)
    }
}
