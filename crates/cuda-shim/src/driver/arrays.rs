//! CUDA arrays: allocation, description, contiguous copies.

use std::ffi::{c_uint, c_void};

use crate::abi::{in_context, store};
use crate::arrays::{self, Corner, check_format, find_array};
use crate::driver::copies::LEGACY;
use crate::errors::{self, Code};
use crate::graph::submit_copy;
use crate::memory::{Copy, Direction, Place, address_of, pointer_to, stream_of};
use crate::protocol::images::{ArrayShape, Format};

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ArrayDescriptor {
    width: usize,
    height: usize,
    format: c_uint,
    channels: c_uint,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct VolumeDescriptor {
    width: usize,
    height: usize,
    depth: usize,
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

/// Numbers of `CUarray_format` with the kind and the bytes of a channel.
const FORMATS: [(c_uint, u32, u32); 8] = [
    (0x01, 1, 1),
    (0x02, 1, 2),
    (0x03, 1, 4),
    (0x08, 0, 1),
    (0x09, 0, 2),
    (0x0a, 0, 4),
    (0x10, 2, 2),
    (0x20, 2, 4),
];

/// The format of a number of `CUarray_format`.
pub(super) fn format_of(number: c_uint, channels: c_uint) -> Result<Format, Code> {
    let found = FORMATS.iter().find(|(known, ..)| *known == number);
    let Some((_, kind, channel_bytes)) = found else {
        crate::connection::report_missing(&format!("CUarray_format {number:#x}"));
        return Err(errors::NOT_SUPPORTED);
    };
    let format = Format {
        kind: *kind,
        channel_bytes: *channel_bytes,
        channels,
    };
    check_format(format).map_err(|_| errors::INVALID_VALUE)
}

fn number_of(format: Format) -> c_uint {
    let found = FORMATS
        .iter()
        .find(|(_, kind, bytes)| (*kind, *bytes) == (format.kind, format.channel_bytes));
    found.map_or(0, |(number, ..)| *number)
}

fn create(handle: *mut *mut c_void, shape: ArrayShape, function: &str) -> Result<(), Code> {
    if handle.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    let array = arrays::create_array(shape, function)?;
    // SAFETY: the program passes where the handle goes.
    unsafe { store(handle, pointer_to(array)) }
}

/// Bytes of an array from an offset on, as an end of a copy.
fn range(array: *const c_void, offset: usize, bytes: usize) -> Result<Place, Code> {
    let corner = Corner {
        x_bytes: offset as u64,
        ..Corner::default()
    };
    find_array(array)?.range(corner, bytes as u64)
}

fn copy(
    destination: Place,
    source: Place,
    direction: Direction,
    stream: *mut c_void,
) -> Result<(), Code> {
    let stream = stream_of(stream);
    let copy = Copy {
        destination,
        source,
        direction,
        stream,
    };
    submit_copy(copy)
}

in_context! {
    /// Creates a one- or two-dimensional array.
    fn cuArrayCreate_v2(handle: *mut *mut c_void, descriptor: *const ArrayDescriptor) {
        // SAFETY: the program passes the structure or null.
        let wanted = unsafe { descriptor.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        let shape = ArrayShape {
            width: wanted.width as u64,
            height: wanted.height as u64,
            depth: 0,
            format: format_of(wanted.format, wanted.channels)?,
            flags: 0,
        };
        create(handle, shape, "cuArrayCreate")
    }

    /// Creates an array of up to three dimensions, or with layers.
    fn cuArray3DCreate_v2(handle: *mut *mut c_void, descriptor: *const VolumeDescriptor) {
        // SAFETY: the program passes the structure or null.
        let wanted = unsafe { descriptor.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        let shape = ArrayShape {
            width: wanted.width as u64,
            height: wanted.height as u64,
            depth: wanted.depth as u64,
            format: format_of(wanted.format, wanted.channels)?,
            flags: wanted.flags,
        };
        create(handle, shape, "cuArray3DCreate")
    }

    /// Destroys an array.
    fn cuArrayDestroy(handle: *mut c_void) { arrays::destroy_array(address_of(handle)) }

    /// Returns the shape of an array.
    fn cuArrayGetDescriptor_v2(descriptor: *mut ArrayDescriptor, handle: *mut c_void) {
        let shape = find_array(handle)?.shape;
        let found = ArrayDescriptor {
            width: shape.width as usize,
            height: shape.height as usize,
            format: number_of(shape.format),
            channels: shape.format.channels,
        };
        // SAFETY: the program passes where the result goes.
        unsafe { store(descriptor, found) }
    }

    /// Returns the shape of an array with its depth and flags.
    fn cuArray3DGetDescriptor_v2(descriptor: *mut VolumeDescriptor, handle: *mut c_void) {
        let shape = find_array(handle)?.shape;
        let found = VolumeDescriptor {
            width: shape.width as usize,
            height: shape.height as usize,
            depth: shape.depth as usize,
            format: number_of(shape.format),
            channels: shape.format.channels,
            flags: shape.flags,
        };
        // SAFETY: the program passes where the result goes.
        unsafe { store(descriptor, found) }
    }

    /// Copies from the host into an array.
    fn cuMemcpyHtoA_v2(array: *mut c_void, offset: usize, source: *const c_void, bytes: usize) {
        let from = Place::linear(address_of(source), bytes as u64);
        copy(range(array, offset, bytes)?, from, Direction::HostToDevice, LEGACY)
    }

    /// Copies from the host into an array in the order of a stream.
    fn cuMemcpyHtoAAsync_v2(
        array: *mut c_void,
        offset: usize,
        source: *const c_void,
        bytes: usize,
        stream: *mut c_void,
    ) {
        let from = Place::linear(address_of(source), bytes as u64);
        copy(range(array, offset, bytes)?, from, Direction::HostToDevice, stream)
    }

    /// Copies from an array to the host.
    fn cuMemcpyAtoH_v2(destination: *mut c_void, array: *mut c_void, offset: usize, bytes: usize) {
        let to = Place::linear(address_of(destination), bytes as u64);
        copy(to, range(array, offset, bytes)?, Direction::DeviceToHost, LEGACY)
    }

    /// Copies from an array to the host in the order of a stream.
    fn cuMemcpyAtoHAsync_v2(
        destination: *mut c_void,
        array: *mut c_void,
        offset: usize,
        bytes: usize,
        stream: *mut c_void,
    ) {
        let to = Place::linear(address_of(destination), bytes as u64);
        copy(to, range(array, offset, bytes)?, Direction::DeviceToHost, stream)
    }

    /// Copies from device memory into an array.
    fn cuMemcpyDtoA_v2(array: *mut c_void, offset: usize, source: u64, bytes: usize) {
        let from = Place::linear(source, bytes as u64);
        copy(range(array, offset, bytes)?, from, Direction::DeviceToDevice, LEGACY)
    }

    /// Copies from an array into device memory.
    fn cuMemcpyAtoD_v2(destination: u64, array: *mut c_void, offset: usize, bytes: usize) {
        let to = Place::linear(destination, bytes as u64);
        copy(to, range(array, offset, bytes)?, Direction::DeviceToDevice, LEGACY)
    }

    /// Copies between arrays.
    fn cuMemcpyAtoA_v2(
        destination: *mut c_void,
        destination_offset: usize,
        source: *mut c_void,
        source_offset: usize,
        bytes: usize,
    ) {
        let to = range(destination, destination_offset, bytes)?;
        let from = range(source, source_offset, bytes)?;
        copy(to, from, Direction::DeviceToDevice, LEGACY)
    }
}
