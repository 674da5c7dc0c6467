//! Allocations and what is known of an address.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{runtime, store};
use crate::advice;
use crate::connection::device;
use crate::errors::{self, Code};
use crate::graph::refuse_unsafe;
use crate::memory::{
    self, PITCH, address_of, find_allocation, find_mapping, pointer_to, stream_of,
};
use crate::pools::{Location, reaches_device};
use crate::protocol::kind;

/// Extent of a region: width in bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

/// All flags of `cudaHostAlloc`.
const HOST_ALLOC_FLAGS: c_uint = 7;

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PitchedPointer {
    pub(super) pointer: *mut c_void,
    pub(super) pitch: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// `cudaPointerAttributes` of version 13; version 12 ends before the reserved words.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
}

/// The attributes of memory that the device knows.
fn described(
    kind: c_int,
    pointer: *const c_void,
    host_pointer: *const c_void,
) -> PointerAttributes {
    PointerAttributes {
        kind,
        device: 0,
        device_pointer: pointer.cast_mut(),
        host_pointer: host_pointer.cast_mut(),
    }
}

/// Allocates and stores the address.
///
/// # Safety
/// `to` is null or writable.
unsafe fn allocate_into(to: *mut *mut c_void, bytes: usize, kind: u32) -> Result<(), Code> {
    refuse_unsafe()?;
    if to.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    if bytes == 0 {
        // SAFETY: the caller's promise.
        return unsafe { store(to, std::ptr::null_mut()) };
    }
    // SAFETY: the caller's promise.
    unsafe { store(to, pointer_to(memory::allocate(bytes as u64, kind)?)) }
}

fn managed(pointer: *const c_void, bytes: usize) -> advice::Range {
    let address = address_of(pointer);
    advice::Range { address, bytes }
}

/// The location of a call that names a device by its number alone in version 12.
fn location_of(location: Location) -> Location {
    match crate::runtime::VERSION < 13 {
        true => Location::of_device(location.kind()),
        false => location,
    }
}

runtime! {
    /// Allocates device memory.
    fn cudaMalloc(pointer: *mut *mut c_void, bytes: usize) {
        // SAFETY: the program passes where the address goes.
        unsafe { allocate_into(pointer, bytes, kind::DEVICE) }
    }

    /// Allocates device memory in the order of a stream.
    fn cudaMallocAsync(pointer: *mut *mut c_void, bytes: usize, stream: *mut c_void) {
        if pointer.is_null() || bytes == 0 {
            // SAFETY: the program passes where the address goes.
            return unsafe { allocate_into(pointer, bytes, kind::DEVICE) };
        }
        let address = crate::graph::allocate_in_order(bytes as u64, stream_of(stream), None)?;
        // SAFETY: as above.
        unsafe { store(pointer, pointer_to(address)) }
    }

    /// Allocates memory of a pool.
    fn cudaMallocFromPoolAsync(
        pointer: *mut *mut c_void,
        bytes: usize,
        pool: *mut c_void,
        stream: *mut c_void,
    ) {
        if pointer.is_null() || bytes == 0 {
            // SAFETY: the program passes where the address goes.
            return unsafe { allocate_into(pointer, bytes, kind::DEVICE) };
        }
        let address = crate::graph::allocate_in_order(bytes as u64, stream_of(stream), Some(pool))?;
        // SAFETY: as above.
        unsafe { store(pointer, pointer_to(address)) }
    }

    /// Allocates page-locked host memory, which the device addresses.
    fn cudaMallocHost(pointer: *mut *mut c_void, bytes: usize) {
        // SAFETY: the program passes where the address goes.
        unsafe { allocate_into(pointer, bytes, kind::PINNED) }
    }

    /// Allocates page-locked host memory, which the device addresses.
    fn cudaHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        if flags > HOST_ALLOC_FLAGS {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes where the address goes.
        unsafe {
            allocate_into(pointer, bytes, kind::PINNED)?;
            memory::set_host_flags(address_of(*pointer), flags);
        }
        Ok(())
    }

    /// Allocates managed memory.
    fn cudaMallocManaged(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        if bytes == 0 || !matches!(flags, 1 | 2) {
            return Err(errors::INVALID_VALUE);
        }
        // SAFETY: the program passes where the address goes.
        unsafe { allocate_into(pointer, bytes, kind::MANAGED) }
    }

    /// Allocates rows at a pitch.
    fn cudaMallocPitch(pointer: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) {
        let row = (width as u64).next_multiple_of(PITCH);
        let bytes = row.checked_mul(height as u64).ok_or(errors::OUT_OF_MEMORY)?;
        // SAFETY: the program passes where the results go.
        unsafe {
            store(pitch, row as usize)?;
            allocate_into(pointer, bytes as usize, kind::DEVICE)
        }
    }

    /// Allocates slices of rows at a pitch.
    fn cudaMalloc3D(pitched: *mut PitchedPointer, extent: Extent) {
        refuse_unsafe()?;
        if pitched.is_null() {
            return Err(errors::INVALID_VALUE);
        }
        let row = (extent.width as u64).next_multiple_of(PITCH);
        let slice = row.checked_mul(extent.height as u64).ok_or(errors::OUT_OF_MEMORY)?;
        let bytes = slice.checked_mul(extent.depth as u64).ok_or(errors::OUT_OF_MEMORY)?;
        let filled = PitchedPointer {
            pointer: pointer_to(if bytes == 0 { 0 } else { memory::allocate(bytes, kind::DEVICE)? }),
            pitch: row as usize,
            width: extent.width,
            height: extent.height,
        };
        // SAFETY: the program passes where the result goes.
        unsafe { store(pitched, filled) }
    }

    /// Frees device or managed memory.
    fn cudaFree(pointer: *mut c_void) {
        if pointer.is_null() {
            // Programs call `cudaFree(0)` to create the context.
            return device().map(drop);
        }
        refuse_unsafe()?;
        memory::release_kind(address_of(pointer), false)
    }

    /// Frees device memory in the order of a stream.
    fn cudaFreeAsync(pointer: *mut c_void, stream: *mut c_void) {
        crate::graph::release_in_order(address_of(pointer), stream_of(stream))
    }

    /// Frees page-locked host memory.
    fn cudaFreeHost(pointer: *mut c_void) {
        refuse_unsafe()?;
        memory::release_kind(address_of(pointer), true)
    }

    /// Returns the device address of page-locked memory, which is the same, or of registered memory.
    fn cudaHostGetDevicePointer(to: *mut *mut c_void, pointer: *mut c_void, flags: c_uint) {
        if flags != 0 {
            return Err(errors::INVALID_VALUE);
        }
        let address = memory::device_address(address_of(pointer))?;
        // SAFETY: the program passes where the address goes.
        unsafe { store(to, pointer_to(address)) }
    }

    /// Returns what kind of memory an address is of.
    fn cudaPointerGetAttributes(attributes: *mut PointerAttributes, pointer: *const c_void) {
        let address = address_of(pointer);
        let unregistered = PointerAttributes {
            kind: 0,
            device: -2,
            device_pointer: std::ptr::null_mut(),
            host_pointer: pointer.cast_mut(),
        };
        let mut filled = match find_mapping(address) {
            Some((_, mapping)) if mapping.kind == kind::MANAGED => described(3, pointer, pointer),
            Some(_) => described(1, pointer, pointer),
            None if device()?.holds(address) => match find_allocation(address).map(|it| it.kind) {
                // The driver interface of the same program mapped it.
                Ok(kind::MANAGED) => described(3, pointer, pointer),
                Ok(kind::PINNED) => described(1, pointer, pointer),
                Ok(_) => described(2, pointer, std::ptr::null()),
                Err(_) => unregistered,
            },
            None => unregistered,
        };
        if filled.kind == 1 && find_allocation(address).is_ok_and(|it| !reaches_device(it.pool)) {
            filled.device_pointer = std::ptr::null_mut();
        }
        // SAFETY: the program passes where the result goes.
        unsafe { store(attributes, filled) }
    }

    /// Keeps advice on managed memory, which has no other effect.
    fn cudaMemAdvise(pointer: *const c_void, bytes: usize, advice: c_uint, location: Location) {
        advice::advise(managed(pointer, bytes), advice, location_of(location))
    }

    /// Keeps advice on managed memory, which has no other effect.
    fn cudaMemAdvise_v2(pointer: *const c_void, bytes: usize, advice: c_uint, location: Location) {
        advice::advise(managed(pointer, bytes), advice, location)
    }

    /// Moves managed memory: no effect.
    fn cudaMemPrefetchAsync(pointer: *const c_void, bytes: usize, location: Location) {
        advice::prefetch(managed(pointer, bytes), location_of(location))
    }

    /// Moves managed memory: no effect.
    fn cudaMemPrefetchAsync_v2(pointer: *const c_void, bytes: usize, location: Location) {
        advice::prefetch(managed(pointer, bytes), location)
    }

    /// Returns what the program stated about managed memory.
    fn cudaMemRangeGetAttribute(
        to: *mut c_void,
        to_bytes: usize,
        number: c_uint,
        pointer: *const c_void,
        bytes: usize,
    ) {
        // SAFETY: the program states how many bytes are writable.
        unsafe { advice::store_attribute(to.cast(), to_bytes, number, managed(pointer, bytes)) }
    }

    /// Returns what the program stated about managed memory.
    fn cudaMemRangeGetAttributes(
        to: *mut *mut c_void,
        to_bytes: *const usize,
        numbers: *const c_uint,
        count: usize,
        pointer: *const c_void,
        bytes: usize,
    ) {
        let wanted = advice::Attributes { to: to.cast(), bytes: to_bytes, numbers, count };
        // SAFETY: the program states the lengths.
        unsafe { advice::store_attributes(wanted, managed(pointer, bytes)) }
    }
}
