//! Tensor maps. The encoding is the virtual GPU's.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::driver;
use crate::errors::{self, Code};
use crate::memory::address_of;
use crate::say::say_once;
use crate::tensor_map::{MAX_RANK, PixelBox, TENSOR_MAP_BYTES, TensorElement, TensorMap};

/// Alignment of a `CUtensorMap`, bytes.
const MAP_ALIGNMENT: u64 = 64;

/// Returns the first `length` values behind a pointer of the program.
///
/// # Safety
/// `from` is null or holds so many values.
unsafe fn list<T: Copy>(from: *const T, length: usize) -> Result<Vec<T>, Code> {
    if from.is_null() && length > 0 {
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    Ok((0..length)
        .map(|index| unsafe { from.add(index).read_unaligned() })
        .collect())
}

/// Returns the function that encodes a map.
fn encoder(pixels: Option<&PixelBox>) -> &'static str {
    match pixels {
        None => "cuTensorMapEncodeTiled",
        Some(_) => "cuTensorMapEncodeIm2col",
    }
}

/// Writes a map that keeps the driver's limits.
///
/// # Safety
/// `to` is null or has room for a map.
unsafe fn write(to: *mut c_void, map: &TensorMap) -> Result<(), Code> {
    if to.is_null() || !address_of(to).is_multiple_of(MAP_ALIGNMENT) {
        return Err(errors::INVALID_VALUE);
    }
    if let Err(error) = map.check() {
        say_once(&format!("{}: {error}", encoder(map.pixels.as_ref())));
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe {
        to.cast::<[u8; TENSOR_MAP_BYTES]>()
            .write_unaligned(map.encode())
    };
    Ok(())
}

/// Arguments that the functions of both kinds of maps share.
struct Given {
    element: c_uint,
    rank: usize,
    address: *mut c_void,
    sizes: *const u64,
    strides: *const u64,
    steps: *const c_uint,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
}

/// Writes a map with these extents of its box, or prints the limit that it breaks.
///
/// # Safety
/// `to` is null or has room for a map, and the lists have one entry for each dimension.
unsafe fn encode(
    to: *mut c_void,
    given: &Given,
    boxes: Vec<u32>,
    pixels: Option<PixelBox>,
) -> Result<(), Code> {
    let element = TensorElement::from_number(given.element).ok_or(errors::INVALID_VALUE)?;
    // SAFETY: the caller's promise.
    unsafe {
        let map = TensorMap {
            element,
            address: address_of(given.address),
            sizes: list(given.sizes, given.rank)?,
            strides: list(given.strides, given.rank - 1)?,
            boxes,
            steps: list(given.steps, given.rank)?,
            interleave: given.interleave,
            swizzle: given.swizzle,
            promotion: given.promotion,
            fills_nan: given.fill == 1,
            pixels,
        };
        write(to, &map)
    }
}

driver! {
    /// Encodes a map of a tensor, or prints the limit that it breaks.
    fn cuTensorMapEncodeTiled(
        map: *mut c_void,
        element: c_uint,
        rank: c_uint,
        address: *mut c_void,
        sizes: *const u64,
        strides: *const u64,
        boxes: *const c_uint,
        steps: *const c_uint,
        interleave: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    ) {
        let rank = rank as usize;
        if rank == 0 || rank > MAX_RANK || fill > 1 {
            return Err(errors::INVALID_VALUE);
        }
        let given = Given {
            element, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill,
        };
        // SAFETY: the map is the program's, and the lists have one entry for each dimension, as it promises.
        unsafe { encode(map, &given, list(boxes, rank)?, None) }
    }

    /// Encodes an im2col map of a tensor, or prints the limit that it breaks.
    fn cuTensorMapEncodeIm2col(
        map: *mut c_void,
        element: c_uint,
        rank: c_uint,
        address: *mut c_void,
        sizes: *const u64,
        strides: *const u64,
        lower: *const c_int,
        upper: *const c_int,
        channels: c_uint,
        pixels: c_uint,
        steps: *const c_uint,
        interleave: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    ) {
        let rank = rank as usize;
        if !(3..=MAX_RANK).contains(&rank) || fill > 1 {
            return Err(errors::INVALID_VALUE);
        }
        let given = Given {
            element, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill,
        };
        // SAFETY: as above; the corners have one entry for each spatial dimension.
        unsafe {
            let corners = PixelBox { lower: list(lower, rank - 2)?, upper: list(upper, rank - 2)? };
            encode(map, &given, vec![channels, pixels], Some(corners))
        }
    }

    /// Replaces the address in a map.
    fn cuTensorMapReplaceAddress(map: *mut c_void, address: *mut c_void) {
        // SAFETY: the map is the program's.
        let bytes = unsafe { list(map.cast::<u8>().cast_const(), TENSOR_MAP_BYTES)? };
        let mut old = TensorMap::decode(&bytes).map_err(|_| errors::INVALID_VALUE)?;
        old.address = address_of(address);
        // SAFETY: the map is the program's.
        unsafe { write(map, &old) }
    }
}
