//! Texture and surface objects.

use std::ffi::{c_int, c_uint, c_void};

use super::arrays::format_of;
use crate::abi::{in_context, store};
use crate::arrays;
use crate::connection::report_missing;
use crate::errors::{self, Code};
use crate::memory::address_of;
use crate::protocol::images::{Resource, Sampling, TexelMemory};

/// `CUDA_RESOURCE_DESC` up to the fields that a resource may have.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ResourceDescription {
    kind: c_int,
    /// An array, or the first byte of device memory.
    object: *mut c_void,
    /// Of linear and pitched memory.
    format: c_uint,
    channels: c_uint,
    /// Bytes of linear memory, or texels of a row.
    size: usize,
    height: usize,
    pitch: usize,
}

/// `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TextureDescription {
    address_modes: [c_int; 3],
    filter_mode: c_int,
    flags: c_uint,
    max_anisotropy: c_uint,
    mipmap_filter_mode: c_int,
    mipmap_bias: f32,
    min_mipmap_level: f32,
    max_mipmap_level: f32,
    border: [f32; 4],
    reserved: [c_int; 12],
}

/// `CU_TRSF_READ_AS_INTEGER` and its neighbours.
const READ_AS_INTEGER: c_uint = 1;
const NORMALIZED_COORDINATES: c_uint = 2;
const SRGB: c_uint = 0x10;
const SEAMLESS_CUBEMAP: c_uint = 0x40;

const ARRAY: c_int = 0;
const MIPMAPPED: c_int = 1;
const LINEAR: c_int = 2;
const PITCH_2D: c_int = 3;

impl ResourceDescription {
    fn resource(&self) -> Result<Resource, Code> {
        if self.kind == ARRAY {
            return Ok(Resource::Array(address_of(self.object)));
        }
        if self.kind == MIPMAPPED {
            report_missing("cuTexObjectCreate of a mipmapped array");
            return Err(errors::NOT_SUPPORTED);
        }
        let format = format_of(self.format, self.channels)?;
        let (width, height, pitch) = match self.kind {
            LINEAR => (self.size as u64 / format.bytes(), 0, self.size),
            PITCH_2D => (self.size as u64, self.height.max(1), self.pitch),
            _ => return Err(errors::INVALID_VALUE),
        };
        Ok(Resource::Memory(TexelMemory {
            address: address_of(self.object),
            format,
            width,
            height: height as u64,
            pitch: pitch as u64,
        }))
    }
}

in_context! {
    /// Creates a texture object.
    fn cuTexObjectCreate(
        object: *mut u64,
        resource: *const ResourceDescription,
        texture: *const TextureDescription,
        view: *const c_void,
    ) {
        if !view.is_null() {
            report_missing("cuTexObjectCreate with a resource view");
            return Err(errors::NOT_SUPPORTED);
        }
        // SAFETY: the program passes the structures or null.
        let (resource, texture) = unsafe { (resource.as_ref(), texture.as_ref()) };
        let (Some(resource), Some(texture)) = (resource, texture) else {
            return Err(errors::INVALID_VALUE);
        };
        let has = |flag| texture.flags & flag != 0;
        if has(SEAMLESS_CUBEMAP) && texture.filter_mode != 0 {
            report_missing("cuTexObjectCreate with CU_TRSF_SEAMLESS_CUBEMAP");
            return Err(errors::NOT_SUPPORTED);
        }
        let resource = resource.resource()?;
        let sampling = Sampling {
            address: texture.address_modes.map(|mode| mode as u32),
            filters: texture.filter_mode != 0,
            normalized_coordinates: has(NORMALIZED_COORDINATES),
            // Without the flag, integers of 8 and 16 bits are read as floats.
            normalized_values: !has(READ_AS_INTEGER) && arrays::is_narrow_integer(resource)?,
            srgb: has(SRGB),
            border: texture.border,
        };
        let handle = arrays::create_texture(resource, sampling)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(object, handle) }
    }

    /// Destroys a texture object.
    fn cuTexObjectDestroy(object: u64) { arrays::destroy_object(object) }

    /// Creates a surface object of an array.
    fn cuSurfObjectCreate(object: *mut u64, resource: *const ResourceDescription) {
        // SAFETY: the program passes the structure or null.
        let resource = unsafe { resource.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        if resource.kind != ARRAY {
            return Err(errors::INVALID_VALUE);
        }
        let handle = arrays::create_surface(address_of(resource.object))?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(object, handle) }
    }

    /// Destroys a surface object.
    fn cuSurfObjectDestroy(object: u64) { arrays::destroy_object(object) }
}
