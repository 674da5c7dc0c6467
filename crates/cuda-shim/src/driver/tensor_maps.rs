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

/// Writes a map that keeps the driver's limits.
///
/// # Safety
/// `to` is null or has room for a map.
unsafe fn write(to: *mut c_void, map: &TensorMap) -> Result<(), Code> {
    let name = match map.pixels {
        None => "cuTensorMapEncodeTiled",
        Some(_) => "cuTensorMapEncodeIm2col",
    };
    if to.is_null() || !address_of(to).is_multiple_of(MAP_ALIGNMENT) {
        return Err(errors::INVALID_VALUE);
    }
    if let Err(error) = map.check() {
        say_once(&format!("{name}: {error}"));
        return Err(errors::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe {
        to.cast::<[u8; TENSOR_MAP_BYTES]>()
            .write_unaligned(map.encode())
    };
    Ok(())
}

/// Returns the type of a tensor's elements; a packed type is not supported, and the program is told.
fn element_of(number: c_uint, name: &str) -> Result<TensorElement, Code> {
    TensorElement::from_number(number).ok_or_else(|| {
        say_once(&format!(
            "{name}: packed types of 4 and 6 bits are not supported"
        ));
        errors::NOT_SUPPORTED
    })
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
        let element = element_of(element, "cuTensorMapEncodeTiled")?;
        // SAFETY: the lists have one entry for each dimension, as the program promises.
        let encoded = unsafe {
            TensorMap {
                element,
                address: address_of(address),
                sizes: list(sizes, rank)?,
                strides: list(strides, rank - 1)?,
                boxes: list(boxes, rank)?,
                steps: list(steps, rank)?,
                interleave,
                swizzle,
                promotion,
                fills_nan: fill == 1,
                pixels: None,
            }
        };
        // SAFETY: the map is the program's.
        unsafe { write(map, &encoded) }
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
        let element = element_of(element, "cuTensorMapEncodeIm2col")?;
        // SAFETY: the lists have one entry for each dimension, those of the corners for each spatial one, as
        // the program promises.
        let encoded = unsafe {
            TensorMap {
                element,
                address: address_of(address),
                sizes: list(sizes, rank)?,
                strides: list(strides, rank - 1)?,
                boxes: vec![channels, pixels],
                steps: list(steps, rank)?,
                interleave,
                swizzle,
                promotion,
                fills_nan: fill == 1,
                pixels: Some(PixelBox {
                    lower: list(lower, rank - 2)?,
                    upper: list(upper, rank - 2)?,
                }),
            }
        };
        // SAFETY: the map is the program's.
        unsafe { write(map, &encoded) }
    }

    /// Replaces the address in a map.
    fn cuTensorMapReplaceAddress(map: *mut c_void, address: *mut c_void) {
        // SAFETY: the map is the program's.
        let bytes = unsafe { list(map.cast::<u8>().cast_const(), TENSOR_MAP_BYTES)? };
        let mut old = TensorMap::decode(&bytes).ok_or(errors::INVALID_VALUE)?;
        old.address = address_of(address);
        // SAFETY: the map is the program's.
        unsafe { write(map, &old) }
    }
}
