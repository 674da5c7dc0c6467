//! Texture and surface objects.

use std::ffi::{c_int, c_uint, c_void};

use super::arrays::ChannelFormat;
use crate::abi::{runtime, store};
use crate::arrays;
use crate::connection::report_missing;
use crate::errors::{self, Code};
use crate::memory::address_of;
use crate::protocol::images::{Resource, Sampling, TexelMemory};

/// `cudaResourceDesc` up to the fields that a resource may have.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ResourceDescription {
    kind: c_int,
    /// An array, or the first byte of device memory.
    object: *mut c_void,
    /// Of linear and pitched memory.
    format: ChannelFormat,
    /// Bytes of linear memory, or texels of a row.
    size: usize,
    height: usize,
    pitch: usize,
}

/// `cudaTextureDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TextureDescription {
    address_modes: [c_int; 3],
    filter_mode: c_int,
    read_mode: c_int,
    srgb: c_int,
    border: [f32; 4],
    normalized_coordinates: c_int,
    max_anisotropy: c_uint,
    mipmap_filter_mode: c_int,
    mipmap_bias: f32,
    min_mipmap_level: f32,
    max_mipmap_level: f32,
    no_trilinear_optimization: c_int,
    seamless_cubemap: c_int,
}

const ARRAY: c_int = 0;
const MIPMAPPED: c_int = 1;
const LINEAR: c_int = 2;
const PITCH_2D: c_int = 3;

impl ResourceDescription {
    fn resource(&self) -> Result<Resource, Code> {
        let memory = |width, height: usize, pitch: usize| {
            Ok(Resource::Memory(TexelMemory {
                address: address_of(self.object),
                format: self.format.format()?,
                width,
                height: height as u64,
                pitch: pitch as u64,
            }))
        };
        match self.kind {
            ARRAY => Ok(Resource::Array(address_of(self.object))),
            MIPMAPPED => {
                report_missing("cudaCreateTextureObject of a mipmapped array");
                Err(errors::NOT_SUPPORTED)
            }
            LINEAR => {
                let texel = self.format.format()?.bytes();
                memory(self.size as u64 / texel, 0, self.size)
            }
            PITCH_2D => memory(self.size as u64, self.height.max(1), self.pitch),
            _ => Err(errors::INVALID_VALUE),
        }
    }
}

runtime! {
    /// Creates a texture object.
    fn cudaCreateTextureObject(
        object: *mut u64,
        resource: *const ResourceDescription,
        texture: *const TextureDescription,
        view: *const c_void,
    ) {
        if !view.is_null() {
            report_missing("cudaCreateTextureObject with a resource view");
            return Err(errors::NOT_SUPPORTED);
        }
        // SAFETY: the program passes the structures or null; memory behind an array's handle is
        // part of the union in any case.
        let (resource, texture) = unsafe { (resource.as_ref(), texture.as_ref()) };
        let (Some(resource), Some(texture)) = (resource, texture) else {
            return Err(errors::INVALID_VALUE);
        };
        if texture.seamless_cubemap != 0 && texture.filter_mode != 0 {
            report_missing("cudaCreateTextureObject with seamlessCubemap");
            return Err(errors::NOT_SUPPORTED);
        }
        let sampling = Sampling {
            address: texture.address_modes.map(|mode| mode as u32),
            filters: texture.filter_mode != 0,
            normalized_coordinates: texture.normalized_coordinates != 0,
            normalized_values: texture.read_mode != 0,
            srgb: texture.srgb != 0,
            border: texture.border,
        };
        let handle = arrays::create_texture(resource.resource()?, sampling)?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(object, handle) }
    }

    /// Destroys a texture object.
    fn cudaDestroyTextureObject(object: u64) { arrays::destroy_object(object) }

    /// Creates a surface object of an array.
    fn cudaCreateSurfaceObject(object: *mut u64, resource: *const ResourceDescription) {
        // SAFETY: the program passes the structure or null.
        let resource = unsafe { resource.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        if resource.kind != ARRAY {
            return Err(errors::INVALID_CHANNEL_DESCRIPTOR);
        }
        let handle = arrays::create_surface(address_of(resource.object))?;
        // SAFETY: the program passes where the handle goes.
        unsafe { store(object, handle) }
    }

    /// Destroys a surface object.
    fn cudaDestroySurfaceObject(object: u64) { arrays::destroy_object(object) }
}
