//! Fills.

use std::ffi::c_void;

use crate::abi::in_context;
use crate::errors::{self, Code};
use crate::graph::{AWAITED, submit_fill};
use crate::memory::{Fill, Place, stream_of};
use crate::protocol::Shape;

/// A value of 1, 2 or 4 bytes.
#[derive(Debug, Clone, Copy)]
struct Element {
    value: u32,
    bytes: u32,
}

impl From<u8> for Element {
    fn from(value: u8) -> Element {
        Element {
            value: value.into(),
            bytes: 1,
        }
    }
}

impl From<u16> for Element {
    fn from(value: u16) -> Element {
        Element {
            value: value.into(),
            bytes: 2,
        }
    }
}

impl From<u32> for Element {
    fn from(value: u32) -> Element {
        Element { value, bytes: 4 }
    }
}

fn fill(address: u64, element: Element, shape: Shape, stream: u64) -> Result<(), Code> {
    if !address.is_multiple_of(element.bytes.into()) {
        return Err(errors::INVALID_VALUE);
    }
    let fill = Fill {
        place: Place { address, shape },
        value: element.value,
        element_bytes: element.bytes,
        stream,
    };
    submit_fill(fill)
}

fn linear(element: Element, count: usize) -> Result<Shape, Code> {
    let bytes = (count as u64).checked_mul(element.bytes.into());
    bytes.map(Shape::linear).ok_or(errors::INVALID_VALUE)
}

fn rows(element: Element, pitch: usize, width: usize, height: usize) -> Result<Shape, Code> {
    let bytes = (width as u64).checked_mul(element.bytes.into());
    let bytes = bytes.ok_or(errors::INVALID_VALUE)?;
    let pitch = if height > 1 { pitch as u64 } else { bytes };
    match pitch < bytes {
        true => Err(errors::INVALID_VALUE),
        false => Ok(Shape::rows(bytes, height as u64, pitch)),
    }
}

in_context! {
    /// Fills memory with bytes.
    fn cuMemsetD8_v2(address: u64, value: u8, count: usize) {
        fill(address, value.into(), linear(value.into(), count)?, AWAITED)
    }

    /// Fills memory with values of two bytes.
    fn cuMemsetD16_v2(address: u64, value: u16, count: usize) {
        fill(address, value.into(), linear(value.into(), count)?, AWAITED)
    }

    /// Fills memory with values of four bytes.
    fn cuMemsetD32_v2(address: u64, value: u32, count: usize) {
        fill(address, value.into(), linear(value.into(), count)?, AWAITED)
    }

    /// Fills memory with bytes in the order of a stream.
    fn cuMemsetD8Async(address: u64, value: u8, count: usize, stream: *mut c_void) {
        fill(address, value.into(), linear(value.into(), count)?, stream_of(stream))
    }

    /// Fills memory with values of two bytes in the order of a stream.
    fn cuMemsetD16Async(address: u64, value: u16, count: usize, stream: *mut c_void) {
        fill(address, value.into(), linear(value.into(), count)?, stream_of(stream))
    }

    /// Fills memory with values of four bytes in the order of a stream.
    fn cuMemsetD32Async(address: u64, value: u32, count: usize, stream: *mut c_void) {
        fill(address, value.into(), linear(value.into(), count)?, stream_of(stream))
    }

    /// Fills rows with bytes.
    fn cuMemsetD2D8_v2(address: u64, pitch: usize, value: u8, width: usize, height: usize) {
        fill(address, value.into(), rows(value.into(), pitch, width, height)?, AWAITED)
    }

    /// Fills rows with values of two bytes.
    fn cuMemsetD2D16_v2(address: u64, pitch: usize, value: u16, width: usize, height: usize) {
        fill(address, value.into(), rows(value.into(), pitch, width, height)?, AWAITED)
    }

    /// Fills rows with values of four bytes.
    fn cuMemsetD2D32_v2(address: u64, pitch: usize, value: u32, width: usize, height: usize) {
        fill(address, value.into(), rows(value.into(), pitch, width, height)?, AWAITED)
    }

    /// Fills rows with bytes in the order of a stream.
    fn cuMemsetD2D8Async(
        address: u64,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize,
        stream: *mut c_void,
    ) {
        fill(address, value.into(), rows(value.into(), pitch, width, height)?, stream_of(stream))
    }

    /// Fills rows with values of two bytes in the order of a stream.
    fn cuMemsetD2D16Async(
        address: u64,
        pitch: usize,
        value: u16,
        width: usize,
        height: usize,
        stream: *mut c_void,
    ) {
        fill(address, value.into(), rows(value.into(), pitch, width, height)?, stream_of(stream))
    }

    /// Fills rows with values of four bytes in the order of a stream.
    fn cuMemsetD2D32Async(
        address: u64,
        pitch: usize,
        value: u32,
        width: usize,
        height: usize,
        stream: *mut c_void,
    ) {
        fill(address, value.into(), rows(value.into(), pitch, width, height)?, stream_of(stream))
    }
}
