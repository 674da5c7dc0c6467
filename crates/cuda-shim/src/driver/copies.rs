//! Copies.

use std::ffi::{c_uint, c_void};

use crate::abi::in_context;
use crate::arrays::{Corner, Region, find_array};
use crate::errors::{self, Code};
use crate::graph::{AWAITED, submit_copy};
use crate::memory::{
    Copy, Direction, Place, address_of, is_array, is_device_only, pointer_to, stream_of,
};
use crate::protocol::Shape;

/// One end of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RowsEnd {
    x_bytes: usize,
    y: usize,
    memory_type: c_uint,
    host: *const c_void,
    device: u64,
    array: *mut c_void,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Copy2d {
    source: RowsEnd,
    destination: RowsEnd,
    width_bytes: usize,
    height: usize,
}

/// One end of `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct VolumeEnd {
    x_bytes: usize,
    y: usize,
    z: usize,
    level: usize,
    memory_type: c_uint,
    host: *const c_void,
    device: u64,
    array: *mut c_void,
    context: *mut c_void,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Copy3d {
    source: VolumeEnd,
    destination: VolumeEnd,
    width_bytes: usize,
    height: usize,
    depth: usize,
}

const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const ARRAY: c_uint = 3;
const UNIFIED: c_uint = 4;

impl RowsEnd {
    fn volume(&self, height: usize) -> VolumeEnd {
        VolumeEnd {
            x_bytes: self.x_bytes,
            y: self.y,
            z: 0,
            level: 0,
            memory_type: self.memory_type,
            host: self.host,
            device: self.device,
            array: self.array,
            context: std::ptr::null_mut(),
            pitch: self.pitch,
            height,
        }
    }
}

impl VolumeEnd {
    fn place(&self, width: u64, height: u64, depth: u64) -> Result<Place, Code> {
        let base = match self.memory_type {
            HOST => address_of(self.host),
            DEVICE | UNIFIED => self.device,
            ARRAY => {
                let corner = Corner {
                    x_bytes: self.x_bytes as u64,
                    y: self.y as u64,
                    z: self.z as u64,
                };
                let region = Region {
                    width_bytes: width,
                    height,
                    depth,
                };
                return find_array(self.array)?.copy_end(corner, region);
            }
            _ => return Err(errors::INVALID_VALUE),
        };
        let pitch = match self.pitch as u64 {
            0 => width + self.x_bytes as u64,
            pitch => pitch,
        };
        let rows = (self.height as u64).max(height);
        if pitch < width || (depth > 1 && (self.height as u64) < height) {
            return Err(errors::INVALID_VALUE);
        }
        let slice = pitch.checked_mul(rows).ok_or(errors::INVALID_VALUE)?;
        let offset = self.x_bytes as u64 + self.y as u64 * pitch + self.z as u64 * slice;
        let shape = Shape {
            width,
            height,
            depth,
            pitch,
            slice,
        };
        Ok(Place {
            address: base.checked_add(offset).ok_or(errors::INVALID_VALUE)?,
            shape,
        })
    }
}

impl VolumeEnd {
    /// The parameters of an end in memory.
    fn describe(place: &Place) -> Result<VolumeEnd, Code> {
        if is_array(place.address) {
            return Err(errors::NOT_SUPPORTED);
        }
        let shape = place.shape;
        let on_device = is_device_only(place.address)?;
        Ok(VolumeEnd {
            x_bytes: 0,
            y: 0,
            z: 0,
            level: 0,
            memory_type: if on_device { DEVICE } else { HOST },
            host: pointer_to(if on_device { 0 } else { place.address }),
            device: if on_device { place.address } else { 0 },
            array: std::ptr::null_mut(),
            context: std::ptr::null_mut(),
            pitch: shape.pitch as usize,
            height: shape.slice.checked_div(shape.pitch).unwrap_or(1) as usize,
        })
    }
}

impl Copy3d {
    /// The parameters of a copy between memory.
    pub(super) fn describe(copy: &Copy) -> Result<Copy3d, Code> {
        let shape = copy.source.shape;
        Ok(Copy3d {
            source: VolumeEnd::describe(&copy.source)?,
            destination: VolumeEnd::describe(&copy.destination)?,
            width_bytes: shape.width as usize,
            height: shape.height as usize,
            depth: shape.depth as usize,
        })
    }

    /// The operation.
    pub(crate) fn copy(&self, stream: u64) -> Result<Copy, Code> {
        let place = |end: &VolumeEnd| {
            end.place(
                self.width_bytes as u64,
                self.height as u64,
                self.depth as u64,
            )
        };
        Ok(Copy {
            destination: place(&self.destination)?,
            source: place(&self.source)?,
            direction: Direction::Inferred,
            stream,
        })
    }
}

/// Copies slices of rows.
///
/// # Safety
/// `parameters` is null or the structure of the header.
unsafe fn copy_volume(parameters: *const Copy3d, stream: *mut c_void) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
    let stream = stream_of(stream);
    submit_copy(parameters.copy(stream)?)
}

/// Copies rows.
///
/// # Safety
/// `parameters` is null or the structure of the header.
unsafe fn copy_rows(parameters: *const Copy2d, stream: *mut c_void) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let rows = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
    let volume = Copy3d {
        source: rows.source.volume(rows.height),
        destination: rows.destination.volume(rows.height),
        width_bytes: rows.width_bytes,
        height: rows.height,
        depth: 1,
    };
    let stream = stream_of(stream);
    submit_copy(volume.copy(stream)?)
}

fn copy_linear(
    destination: u64,
    source: u64,
    bytes: usize,
    direction: Direction,
    stream: *mut c_void,
) -> Result<(), Code> {
    let stream = stream_of(stream);
    let copy = Copy::linear(destination, source, bytes as u64, direction, stream);
    submit_copy(copy)
}

/// The legacy default stream, for calls that wait.
pub(super) const LEGACY: *mut c_void = std::ptr::without_provenance_mut(AWAITED as usize);

in_context! {
    /// Copies memory.
    fn cuMemcpy(destination: u64, source: u64, bytes: usize) {
        copy_linear(destination, source, bytes, Direction::Inferred, LEGACY)
    }

    /// Copies memory in the order of a stream.
    fn cuMemcpyAsync(destination: u64, source: u64, bytes: usize, stream: *mut c_void) {
        copy_linear(destination, source, bytes, Direction::Inferred, stream)
    }

    /// Copies to the device.
    fn cuMemcpyHtoD_v2(destination: u64, source: *const c_void, bytes: usize) {
        copy_linear(destination, address_of(source), bytes, Direction::HostToDevice, LEGACY)
    }

    /// Copies to the device in the order of a stream.
    fn cuMemcpyHtoDAsync_v2(
        destination: u64,
        source: *const c_void,
        bytes: usize,
        stream: *mut c_void,
    ) {
        copy_linear(destination, address_of(source), bytes, Direction::HostToDevice, stream)
    }

    /// Copies from the device.
    fn cuMemcpyDtoH_v2(destination: *mut c_void, source: u64, bytes: usize) {
        copy_linear(address_of(destination), source, bytes, Direction::DeviceToHost, LEGACY)
    }

    /// Copies from the device in the order of a stream.
    fn cuMemcpyDtoHAsync_v2(
        destination: *mut c_void,
        source: u64,
        bytes: usize,
        stream: *mut c_void,
    ) {
        copy_linear(address_of(destination), source, bytes, Direction::DeviceToHost, stream)
    }

    /// Copies inside the device.
    fn cuMemcpyDtoD_v2(destination: u64, source: u64, bytes: usize) {
        copy_linear(destination, source, bytes, Direction::DeviceToDevice, LEGACY)
    }

    /// Copies inside the device in the order of a stream.
    fn cuMemcpyDtoDAsync_v2(destination: u64, source: u64, bytes: usize, stream: *mut c_void) {
        copy_linear(destination, source, bytes, Direction::DeviceToDevice, stream)
    }

    /// Copies memory between contexts, which share the device.
    fn cuMemcpyPeer(
        destination: u64,
        _destination_context: *mut c_void,
        source: u64,
        _source_context: *mut c_void,
        bytes: usize,
    ) {
        copy_linear(destination, source, bytes, Direction::Inferred, LEGACY)
    }

    /// Copies memory between contexts in the order of a stream.
    fn cuMemcpyPeerAsync(
        destination: u64,
        _destination_context: *mut c_void,
        source: u64,
        _source_context: *mut c_void,
        bytes: usize,
        stream: *mut c_void,
    ) {
        copy_linear(destination, source, bytes, Direction::Inferred, stream)
    }

    /// Copies rows.
    fn cuMemcpy2D_v2(parameters: *const Copy2d) {
        // SAFETY: the program passes the structure or null.
        unsafe { copy_rows(parameters, LEGACY) }
    }

    /// Copies rows.
    fn cuMemcpy2DUnaligned_v2(parameters: *const Copy2d) {
        // SAFETY: the program passes the structure or null.
        unsafe { copy_rows(parameters, LEGACY) }
    }

    /// Copies rows in the order of a stream.
    fn cuMemcpy2DAsync_v2(parameters: *const Copy2d, stream: *mut c_void) {
        // SAFETY: the program passes the structure or null.
        unsafe { copy_rows(parameters, stream) }
    }

    /// Copies slices of rows.
    fn cuMemcpy3D_v2(parameters: *const Copy3d) {
        // SAFETY: the program passes the structure or null.
        unsafe { copy_volume(parameters, LEGACY) }
    }

    /// Copies slices of rows in the order of a stream.
    fn cuMemcpy3DAsync_v2(parameters: *const Copy3d, stream: *mut c_void) {
        // SAFETY: the program passes the structure or null.
        unsafe { copy_volume(parameters, stream) }
    }

    /// Copies slices of rows between contexts.
    fn cuMemcpy3DPeer(parameters: *const Copy3d) {
        // SAFETY: the program passes the structure or null.
        unsafe { copy_volume(parameters, LEGACY) }
    }

    /// Copies slices of rows between contexts in the order of a stream.
    fn cuMemcpy3DPeerAsync(parameters: *const Copy3d, stream: *mut c_void) {
        // SAFETY: the program passes the structure or null.
        unsafe { copy_volume(parameters, stream) }
    }
}
