//! CUDA arrays: allocation, description, copies.

use std::ffi::{c_int, c_uint, c_void};

use super::memory::Extent;
use crate::abi::{runtime, store};
use crate::arrays::{self, Array, Corner, Region, find_array};
use crate::connection::report_missing;
use crate::errors::{self, Code};
use crate::graph::{AWAITED, submit_copy};
use crate::memory::{Copy, Direction, Place, address_of, pointer_to, stream_of};
use crate::protocol::Shape;
use crate::protocol::images::{ArrayShape, Format};

/// `cudaChannelFormatDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ChannelFormat {
    bits: [c_int; 4],
    kind: c_int,
}

/// Kinds of channels in `cudaChannelFormatKind`: signed, unsigned, float.
const PLAIN_KINDS: std::ops::Range<c_int> = 0..3;

impl ChannelFormat {
    /// The format of texels.
    pub(super) fn format(&self) -> Result<Format, Code> {
        if !PLAIN_KINDS.contains(&self.kind) {
            report_missing(&format!("cudaChannelFormatKind {}", self.kind));
            return Err(errors::NOT_SUPPORTED);
        }
        let channels = self.bits.iter().take_while(|bits| **bits > 0).count();
        let [first, ..] = self.bits;
        let (used, unused) = self.bits.split_at(channels);
        let uniform =
            used.iter().all(|bits| *bits == first) && unused.iter().all(|bits| *bits == 0);
        if !uniform || first % 8 != 0 {
            return Err(errors::INVALID_CHANNEL_DESCRIPTOR);
        }
        arrays::check_format(Format {
            kind: self.kind as u32,
            channel_bytes: first as u32 / 8,
            channels: channels as u32,
        })
    }

    fn of_format(format: Format) -> ChannelFormat {
        let channels = 0..4_u32;
        let bits = channels.map(|channel| match channel < format.channels {
            true => 8 * format.channel_bytes as c_int,
            false => 0,
        });
        let mut all = [0; 4];
        all.iter_mut().zip(bits).for_each(|(to, bits)| *to = bits);
        ChannelFormat {
            bits: all,
            kind: format.kind as c_int,
        }
    }
}

/// Creates an array and stores its handle.
///
/// # Safety
/// Each pointer is null or as the function's documentation states.
unsafe fn create(
    array: *mut *mut c_void,
    format: *const ChannelFormat,
    extent: Extent,
    flags: c_uint,
    function: &str,
) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let format = unsafe { format.as_ref() }.ok_or(errors::INVALID_VALUE)?;
    let shape = ArrayShape {
        width: extent.width as u64,
        height: extent.height as u64,
        depth: extent.depth as u64,
        format: format.format()?,
        flags,
    };
    if array.is_null() {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { store(array, pointer_to(arrays::create_array(shape, function)?)) }
}

/// Rows of memory of the program, as an end of a copy.
fn rows(pointer: *const c_void, pitch: usize, width: usize, height: usize) -> Result<Place, Code> {
    if pitch < width {
        return Err(12);
    }
    Ok(Place {
        address: address_of(pointer),
        shape: Shape::rows(width as u64, height as u64, pitch as u64),
    })
}

/// Rows of an array, as an end of a copy.
fn array_rows(
    array: &Array,
    [x, y]: [usize; 2],
    width: usize,
    height: usize,
) -> Result<Place, Code> {
    let corner = corner(x, y);
    array.copy_end(
        corner,
        Region {
            width_bytes: width as u64,
            height: height as u64,
            depth: 1,
        },
    )
}

fn corner(x: usize, y: usize) -> Corner {
    Corner {
        x_bytes: x as u64,
        y: y as u64,
        z: 0,
    }
}

fn copy(destination: Place, source: Place, kind: c_int, stream: *mut c_void) -> Result<(), Code> {
    let stream = stream_of(stream);
    let copy = Copy {
        destination,
        source,
        direction: Direction::from_number(kind)?,
        stream,
    };
    submit_copy(copy)
}

/// The legacy default stream, for calls that wait.
const LEGACY: *mut c_void = std::ptr::without_provenance_mut(AWAITED as usize);

runtime! {
    /// Creates a one- or two-dimensional array.
    fn cudaMallocArray(
        array: *mut *mut c_void,
        format: *const ChannelFormat,
        width: usize,
        height: usize,
        flags: c_uint,
    ) {
        let extent = Extent { width, height, depth: 0 };
        // SAFETY: the program passes the structure and where the handle goes.
        unsafe { create(array, format, extent, flags, "cudaMallocArray") }
    }

    /// Creates an array of up to three dimensions, or with layers.
    fn cudaMalloc3DArray(
        array: *mut *mut c_void,
        format: *const ChannelFormat,
        extent: Extent,
        flags: c_uint,
    ) {
        // SAFETY: the program passes the structure and where the handle goes.
        unsafe { create(array, format, extent, flags, "cudaMalloc3DArray") }
    }

    /// Destroys an array. A null handle is no error.
    fn cudaFreeArray(array: *mut c_void) {
        match address_of(array) {
            0 => Ok(()),
            handle => arrays::destroy_array(handle),
        }
    }

    /// Returns the shape of an array; each result is optional.
    fn cudaArrayGetInfo(
        format: *mut ChannelFormat,
        extent: *mut Extent,
        flags: *mut c_uint,
        array: *mut c_void,
    ) {
        let shape = find_array(array)?.shape;
        let (width, height) = (shape.width as usize, shape.height as usize);
        // SAFETY: the program passes where the results go, or null.
        unsafe {
            let _ = store(format, ChannelFormat::of_format(shape.format));
            let _ = store(extent, Extent { width, height, depth: shape.depth as usize });
            let _ = store(flags, shape.flags);
        }
        Ok(())
    }

    /// Returns the format of an array.
    fn cudaGetChannelDesc(format: *mut ChannelFormat, array: *const c_void) {
        let shape = find_array(array)?.shape;
        // SAFETY: the program passes where the result goes.
        unsafe { store(format, ChannelFormat::of_format(shape.format)) }
    }

    /// Copies rows into an array.
    fn cudaMemcpy2DToArray(
        array: *mut c_void,
        x: usize,
        y: usize,
        source: *const c_void,
        pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) {
        let to = array_rows(&find_array(array)?, [x, y], width, height)?;
        copy(to, rows(source, pitch, width, height)?, kind, LEGACY)
    }

    /// Copies rows into an array in the order of a stream.
    fn cudaMemcpy2DToArrayAsync(
        array: *mut c_void,
        x: usize,
        y: usize,
        source: *const c_void,
        pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        let to = array_rows(&find_array(array)?, [x, y], width, height)?;
        copy(to, rows(source, pitch, width, height)?, kind, stream)
    }

    /// Copies rows of an array.
    fn cudaMemcpy2DFromArray(
        destination: *mut c_void,
        pitch: usize,
        array: *const c_void,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) {
        let from = array_rows(&find_array(array)?, [x, y], width, height)?;
        copy(rows(destination, pitch, width, height)?, from, kind, LEGACY)
    }

    /// Copies rows of an array in the order of a stream.
    fn cudaMemcpy2DFromArrayAsync(
        destination: *mut c_void,
        pitch: usize,
        array: *const c_void,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        let from = array_rows(&find_array(array)?, [x, y], width, height)?;
        copy(rows(destination, pitch, width, height)?, from, kind, stream)
    }

    /// Copies rows between arrays.
    fn cudaMemcpy2DArrayToArray(
        destination: *mut c_void,
        destination_x: usize,
        destination_y: usize,
        source: *const c_void,
        source_x: usize,
        source_y: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) {
        let to = array_rows(&find_array(destination)?, [destination_x, destination_y], width, height)?;
        let from = array_rows(&find_array(source)?, [source_x, source_y], width, height)?;
        copy(to, from, kind, LEGACY)
    }

    /// Copies bytes into an array, row after row.
    fn cudaMemcpyToArray(
        array: *mut c_void,
        x: usize,
        y: usize,
        source: *const c_void,
        bytes: usize,
        kind: c_int,
    ) {
        let to = find_array(array)?.range(corner(x, y), bytes as u64)?;
        copy(to, Place::linear(address_of(source), bytes as u64), kind, LEGACY)
    }

    /// Copies bytes into an array in the order of a stream.
    fn cudaMemcpyToArrayAsync(
        array: *mut c_void,
        x: usize,
        y: usize,
        source: *const c_void,
        bytes: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        let to = find_array(array)?.range(corner(x, y), bytes as u64)?;
        copy(to, Place::linear(address_of(source), bytes as u64), kind, stream)
    }

    /// Copies bytes of an array, row after row.
    fn cudaMemcpyFromArray(
        destination: *mut c_void,
        array: *const c_void,
        x: usize,
        y: usize,
        bytes: usize,
        kind: c_int,
    ) {
        let from = find_array(array)?.range(corner(x, y), bytes as u64)?;
        copy(Place::linear(address_of(destination), bytes as u64), from, kind, LEGACY)
    }

    /// Copies bytes of an array in the order of a stream.
    fn cudaMemcpyFromArrayAsync(
        destination: *mut c_void,
        array: *const c_void,
        x: usize,
        y: usize,
        bytes: usize,
        kind: c_int,
        stream: *mut c_void,
    ) {
        let from = find_array(array)?.range(corner(x, y), bytes as u64)?;
        copy(Place::linear(address_of(destination), bytes as u64), from, kind, stream)
    }

    /// Copies bytes between arrays, row after row.
    fn cudaMemcpyArrayToArray(
        destination: *mut c_void,
        destination_x: usize,
        destination_y: usize,
        source: *const c_void,
        source_x: usize,
        source_y: usize,
        bytes: usize,
        kind: c_int,
    ) {
        let to = find_array(destination)?.range(corner(destination_x, destination_y), bytes as u64)?;
        let from = find_array(source)?.range(corner(source_x, source_y), bytes as u64)?;
        copy(to, from, kind, LEGACY)
    }
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
