//! Copies, fills and variables.

use std::ffi::{c_int, c_void};

use super::device::check_device;
use super::memory::{Extent, PitchedPointer};
use crate::abi::{runtime, store};
use crate::arrays::{Array, Corner, Region, find_array};
use crate::errors::{self, Code};
use crate::graph::{AWAITED, submit_copy, submit_fill};
use crate::kernels::{Span, registry};
use crate::memory::{Copy, Direction, Fill, Place, address_of, is_array, pointer_to, stream_of};
use crate::protocol::Shape;

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Copy3d {
    source_array: *mut c_void,
    source_offset: [usize; 3],
    source: PitchedPointer,
    destination_array: *mut c_void,
    destination_offset: [usize; 3],
    destination: PitchedPointer,
    extent: Extent,
    kind: c_int,
}

impl Copy3d {
    /// The parameters of a copy between memory.
    pub(super) fn describe(copy: &Copy) -> Result<Copy3d, Code> {
        let ends = [copy.destination, copy.source];
        if ends.iter().any(|end| is_array(end.address)) {
            return Err(errors::NOT_SUPPORTED);
        }
        let [destination, source] = ends.map(|end| PitchedPointer {
            pointer: pointer_to(end.address),
            pitch: end.shape.pitch as usize,
            width: end.shape.width as usize,
            height: end.shape.slice.checked_div(end.shape.pitch).unwrap_or(1) as usize,
        });
        let shape = copy.source.shape;
        Ok(Copy3d {
            source_array: std::ptr::null_mut(),
            source_offset: [0; 3],
            source,
            destination_array: std::ptr::null_mut(),
            destination_offset: [0; 3],
            destination,
            extent: Extent {
                width: shape.width as usize,
                height: shape.height as usize,
                depth: shape.depth as usize,
            },
            kind: copy.direction.number(),
        })
    }
}

/// A contiguous copy in the order of a stream.
fn copy_linear(
    destination: u64,
    source: u64,
    bytes: usize,
    kind: c_int,
    stream: u64,
) -> Result<(), Code> {
    let direction = Direction::from_number(kind)?;
    let copy = Copy::linear(destination, source, bytes as u64, direction, stream);
    submit_copy(copy)
}

/// Rows of both ends of a copy.
#[derive(Debug, Clone, Copy)]
struct Rows {
    width: usize,
    height: usize,
    destination_pitch: usize,
    source_pitch: usize,
}

fn copy_rows(
    destination: u64,
    source: u64,
    rows: Rows,
    kind: c_int,
    stream: u64,
) -> Result<(), Code> {
    if rows.destination_pitch < rows.width || rows.source_pitch < rows.width {
        return Err(12);
    }
    let place = |address, pitch: usize| Place {
        address,
        shape: Shape::rows(rows.width as u64, rows.height as u64, pitch as u64),
    };
    let copy = Copy {
        destination: place(destination, rows.destination_pitch),
        source: place(source, rows.source_pitch),
        direction: Direction::from_number(kind)?,
        stream,
    };
    submit_copy(copy)
}

/// The operation of the parameters.
pub(super) fn volume_copy(parameters: &Copy3d, stream: u64) -> Result<Copy, Code> {
    let arrays = [parameters.source_array, parameters.destination_array]
        .map(|array| (!array.is_null()).then(|| find_array(array)));
    let [source_array, destination_array] = arrays.map(Option::transpose);
    let [source_array, destination_array] = [source_array?, destination_array?];
    // The width of the extent counts texels as soon as an array takes part.
    let texel = source_array.as_ref().or(destination_array.as_ref());
    let texel_bytes = texel.map_or(1, |array| array.shape.format.bytes());
    let extent = Extent {
        width: parameters.extent.width * texel_bytes as usize,
        ..parameters.extent
    };
    let in_array = |array: &Array, [x, y, z]: [usize; 3]| {
        let corner = Corner {
            x_bytes: x as u64 * array.shape.format.bytes(),
            y: y as u64,
            z: z as u64,
        };
        let region = Region {
            width_bytes: extent.width as u64,
            height: extent.height as u64,
            depth: extent.depth as u64,
        };
        array.copy_end(corner, region)
    };
    let place = |pitched: PitchedPointer, [x, y, z]: [usize; 3]| {
        let slice = pitched.pitch as u64 * pitched.height as u64;
        let offset = x as u64 + y as u64 * pitched.pitch as u64 + z as u64 * slice;
        Place {
            address: address_of(pitched.pointer) + offset,
            shape: Shape {
                width: extent.width as u64,
                height: extent.height as u64,
                depth: extent.depth as u64,
                pitch: pitched.pitch as u64,
                slice,
            },
        }
    };
    Ok(Copy {
        destination: match &destination_array {
            Some(array) => in_array(array, parameters.destination_offset)?,
            None => place(parameters.destination, parameters.destination_offset),
        },
        source: match &source_array {
            Some(array) => in_array(array, parameters.source_offset)?,
            None => place(parameters.source, parameters.source_offset),
        },
        direction: Direction::from_number(parameters.kind)?,
        stream,
    })
}

fn copy_volume(parameters: &Copy3d, stream: u64) -> Result<(), Code> {
    submit_copy(volume_copy(parameters, stream)?)
}

/// Checks the direction of a copy to or from a variable, which is memory of the device.
fn check_direction(kind: c_int, other: Direction) -> Result<(), Code> {
    match Direction::from_number(kind)? {
        Direction::DeviceToDevice | Direction::Inferred => Ok(()),
        direction if direction == other => Ok(()),
        _ => Err(errors::INVALID_DIRECTION),
    }
}

/// Checks the pitch of a fill, which has no meaning for a single row.
fn check_pitch(pitch: usize, width: usize, height: usize) -> Result<(), Code> {
    match height > 1 && pitch < width {
        true => Err(errors::INVALID_VALUE),
        false => Ok(()),
    }
}

/// Where a variable of the program is on the device.
fn variable(symbol: *const c_void) -> Result<Span, Code> {
    let registry = registry();
    let found = registry.variables.get(&address_of(symbol));
    found.ok_or(errors::INVALID_SYMBOL)?.span()
}

/// Address of a range of a variable.
pub(super) fn variable_range(
    symbol: *const c_void,
    offset: usize,
    bytes: usize,
) -> Result<u64, Code> {
    let span = variable(symbol)?;
    let end = (offset as u64).checked_add(bytes as u64);
    match end.is_some_and(|end| end <= span.bytes) {
        true => Ok(span.address + offset as u64),
        false => Err(errors::INVALID_VALUE),
    }
}

runtime! {
    /// Copies memory.
    fn cudaMemcpy(destination: *mut c_void, source: *const c_void, bytes: usize, kind: c_int) {
        copy_linear(address_of(destination), address_of(source), bytes, kind, AWAITED)
    }

    /// Copies memory in the order of a stream.
    fn cudaMemcpyAsync(
        destination: *mut c_void,
        source: *const c_void,
        bytes: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        copy_linear(address_of(destination), address_of(source), bytes, kind, stream_of(stream))
    }

    /// Copies memory between devices: there is one.
    fn cudaMemcpyPeer(
        destination: *mut c_void,
        destination_device: c_int,
        source: *const c_void,
        source_device: c_int,
        bytes: usize,
    ) {
        check_device(destination_device)?;
        check_device(source_device)?;
        copy_linear(address_of(destination), address_of(source), bytes, 3, AWAITED)
    }

    /// Copies memory between devices in the order of a stream: there is one.
    fn cudaMemcpyPeerAsync(
        destination: *mut c_void,
        destination_device: c_int,
        source: *const c_void,
        source_device: c_int,
        bytes: usize,
        stream: *mut c_void,
    ) {
        check_device(destination_device)?;
        check_device(source_device)?;
        copy_linear(address_of(destination), address_of(source), bytes, 3, stream_of(stream))
    }

    /// Copies rows.
    fn cudaMemcpy2D(
        destination: *mut c_void,
        destination_pitch: usize,
        source: *const c_void,
        source_pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) {
        let rows = Rows { width, height, destination_pitch, source_pitch };
        copy_rows(address_of(destination), address_of(source), rows, kind, AWAITED)
    }

    /// Copies rows in the order of a stream.
    fn cudaMemcpy2DAsync(
        destination: *mut c_void,
        destination_pitch: usize,
        source: *const c_void,
        source_pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        let rows = Rows { width, height, destination_pitch, source_pitch };
        copy_rows(address_of(destination), address_of(source), rows, kind, stream_of(stream))
    }

    /// Copies slices of rows.
    fn cudaMemcpy3D(parameters: *const Copy3d) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        copy_volume(parameters, AWAITED)
    }

    /// Copies slices of rows in the order of a stream.
    fn cudaMemcpy3DAsync(parameters: *const Copy3d, stream: *mut c_void) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        copy_volume(parameters, stream_of(stream))
    }

    /// Fills memory with a byte.
    fn cudaMemset(pointer: *mut c_void, value: c_int, bytes: usize) {
        fill(pointer, Shape::linear(bytes as u64), value, AWAITED)
    }

    /// Fills memory with a byte in the order of a stream.
    fn cudaMemsetAsync(pointer: *mut c_void, value: c_int, bytes: usize, stream: *mut c_void) {
        fill(pointer, Shape::linear(bytes as u64), value, stream_of(stream))
    }

    /// Fills rows with a byte.
    fn cudaMemset2D(pointer: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) {
        check_pitch(pitch, width, height)?;
        fill(pointer, Shape::rows(width as u64, height as u64, pitch as u64), value, AWAITED)
    }

    /// Fills rows with a byte in the order of a stream.
    fn cudaMemset2DAsync(
        pointer: *mut c_void,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
        stream: *mut c_void,
    ) {
        check_pitch(pitch, width, height)?;
        let shape = Shape::rows(width as u64, height as u64, pitch as u64);
        fill(pointer, shape, value, stream_of(stream))
    }

    /// Fills slices of rows with a byte.
    fn cudaMemset3D(pitched: PitchedPointer, value: c_int, extent: Extent) {
        fill(pitched.pointer, volume(pitched, extent), value, AWAITED)
    }

    /// Fills slices of rows with a byte in the order of a stream.
    fn cudaMemset3DAsync(pitched: PitchedPointer, value: c_int, extent: Extent, stream: *mut c_void) {
        fill(pitched.pointer, volume(pitched, extent), value, stream_of(stream))
    }

    /// Copies into a variable.
    fn cudaMemcpyToSymbol(
        symbol: *const c_void,
        source: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        check_direction(kind, Direction::HostToDevice)?;
        let destination = variable_range(symbol, offset, bytes)?;
        copy_linear(destination, address_of(source), bytes, kind, AWAITED)
    }

    /// Copies into a variable in the order of a stream.
    fn cudaMemcpyToSymbolAsync(
        symbol: *const c_void,
        source: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        check_direction(kind, Direction::HostToDevice)?;
        let destination = variable_range(symbol, offset, bytes)?;
        copy_linear(destination, address_of(source), bytes, kind, stream_of(stream))
    }

    /// Copies from a variable.
    fn cudaMemcpyFromSymbol(
        destination: *mut c_void,
        symbol: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        check_direction(kind, Direction::DeviceToHost)?;
        let source = variable_range(symbol, offset, bytes)?;
        copy_linear(address_of(destination), source, bytes, kind, AWAITED)
    }

    /// Copies from a variable in the order of a stream.
    fn cudaMemcpyFromSymbolAsync(
        destination: *mut c_void,
        symbol: *const c_void,
        bytes: usize,
        offset: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        check_direction(kind, Direction::DeviceToHost)?;
        let source = variable_range(symbol, offset, bytes)?;
        copy_linear(address_of(destination), source, bytes, kind, stream_of(stream))
    }

    /// Returns the device address of a variable.
    fn cudaGetSymbolAddress(to: *mut *mut c_void, symbol: *const c_void) {
        // SAFETY: the program passes where the address goes.
        unsafe { store(to, pointer_to(variable(symbol)?.address)) }
    }

    /// Returns the size of a variable.
    fn cudaGetSymbolSize(to: *mut usize, symbol: *const c_void) {
        // SAFETY: the program passes where the size goes.
        unsafe { store(to, variable(symbol)?.bytes as usize) }
    }
}

fn volume(pitched: PitchedPointer, extent: Extent) -> Shape {
    Shape {
        width: extent.width as u64,
        height: extent.height as u64,
        depth: extent.depth as u64,
        pitch: pitched.pitch as u64,
        slice: pitched.pitch as u64 * pitched.height as u64,
    }
}

fn fill(pointer: *mut c_void, shape: Shape, value: c_int, stream: u64) -> Result<(), Code> {
    let fill = Fill {
        place: Place {
            address: address_of(pointer),
            shape,
        },
        value: value as u32 & 0xff,
        element_bytes: 1,
        stream,
    };
    submit_fill(fill)
}
