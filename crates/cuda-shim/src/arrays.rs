//! CUDA arrays and texture and surface objects, which both interfaces share.

use crate::connection::call;
use crate::connection::report_missing;
use crate::errors::{self, Code};
use crate::memory::{Place, address_of};
use crate::protocol::images::{ArrayShape, Format, Resource, Sampling};
use crate::protocol::{Message, Op, Shape};
use crate::say::say_once;

/// Flag of a layered array.
pub(crate) const LAYERED: u32 = 1;
/// Flag of a cube map.
pub(crate) const CUBEMAP: u32 = 4;
/// Flags of an array that the device implements: also surface access and gathers.
const KNOWN_FLAGS: u32 = LAYERED | 2 | CUBEMAP | 8;

/// Alignment of the pitch of a texture, bytes: `cudaDevAttrTexturePitchAlignment`.
const PITCH_ALIGNMENT: u64 = 32;

/// A CUDA array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array {
    /// Its first byte on the device, which is also its handle.
    address: u64,
    pub(crate) shape: ArrayShape,
}

/// First byte of a region of an array: a byte in a row, a row, a slice.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Corner {
    pub(crate) x_bytes: u64,
    pub(crate) y: u64,
    pub(crate) z: u64,
}

/// Size of a region: bytes of a row, rows, slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    pub(crate) width_bytes: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
}

impl Array {
    /// Returns a region as an end of a copy.
    pub(crate) fn copy_end(&self, corner: Corner, region: Region) -> Result<Place, Code> {
        let fits = |from: u64, size: u64, whole: u64| {
            from.checked_add(size).is_some_and(|end| end <= whole)
        };
        let (pitch, slice) = (self.shape.pitch(), self.shape.slice());
        let inside = fits(corner.x_bytes, region.width_bytes, pitch)
            && fits(corner.y, region.height, self.shape.height.max(1))
            && fits(corner.z, region.depth, self.shape.depth.max(1));
        if !inside {
            return Err(errors::INVALID_VALUE);
        }
        Ok(Place {
            address: self.address + corner.x_bytes + corner.y * pitch + corner.z * slice,
            shape: Shape {
                width: region.width_bytes,
                height: region.height,
                depth: region.depth,
                pitch,
                slice,
            },
        })
    }

    /// Returns a range of bytes, row after row, as an end of a copy.
    pub(crate) fn range(&self, corner: Corner, bytes: u64) -> Result<Place, Code> {
        let offset = corner.x_bytes + corner.y * self.shape.pitch();
        let end = offset.checked_add(bytes).ok_or(errors::INVALID_VALUE)?;
        match end <= self.shape.bytes() {
            true => Ok(Place::linear(self.address + offset, bytes)),
            false => Err(errors::INVALID_VALUE),
        }
    }
}

/// Creates an array; returns its handle. `function` requests it.
pub(crate) fn create_array(shape: ArrayShape, function: &str) -> Result<u64, Code> {
    if shape.flags & !KNOWN_FLAGS != 0 {
        report_missing(&format!("{function} with flags {:#x}", shape.flags));
        return Err(errors::NOT_SUPPORTED);
    }
    let faces = shape.width == shape.height && shape.depth.is_multiple_of(6) && shape.depth > 0;
    let lacks_layers = shape.flags & LAYERED != 0 && shape.depth == 0;
    if shape.width == 0 || lacks_layers || shape.flags & CUBEMAP != 0 && !faces {
        return Err(errors::INVALID_VALUE);
    }
    let mut head = Message::new();
    shape.put(&mut head);
    let reply = call(Op::CreateArray, &head)?;
    reply.fields().u64().map_err(|_| errors::UNKNOWN)
}

/// Destroys an array.
pub(crate) fn destroy_array(handle: u64) -> Result<(), Code> {
    call(Op::DestroyArray, Message::new().put_u64(handle)).map(drop)
}

/// Returns the array of a handle.
pub(crate) fn find_array<T>(handle: *const T) -> Result<Array, Code> {
    let address = address_of(handle);
    let reply = call(Op::DescribeArray, Message::new().put_u64(address))?;
    let shape = ArrayShape::take(&mut reply.fields()).map_err(|_| errors::UNKNOWN)?;
    Ok(Array { address, shape })
}

/// Checks a format.
pub(crate) fn check_format(format: Format) -> Result<Format, Code> {
    let bytes = match format.kind {
        0 | 1 => matches!(format.channel_bytes, 1 | 2 | 4),
        2 => matches!(format.channel_bytes, 2 | 4),
        _ => false,
    };
    match bytes && matches!(format.channels, 1 | 2 | 4) {
        true => Ok(format),
        false => Err(errors::INVALID_CHANNEL_DESCRIPTOR),
    }
}

/// Checks whether the texels are integers of 8 or 16 bits.
pub(crate) fn is_narrow_integer(resource: Resource) -> Result<bool, Code> {
    let format = match resource {
        Resource::Array(handle) => find_array(crate::memory::pointer_to(handle))?.shape.format,
        Resource::Memory(memory) => memory.format,
    };
    Ok(format.kind != 2 && format.channel_bytes < 4)
}

/// Creates a texture object; returns its handle.
pub(crate) fn create_texture(resource: Resource, sampling: Sampling) -> Result<u64, Code> {
    let (format, flags) = match resource {
        Resource::Array(handle) => {
            let array = find_array(crate::memory::pointer_to(handle))?;
            (array.shape.format, array.shape.flags)
        }
        Resource::Memory(memory) => {
            if memory.height > 0 && !memory.pitch.is_multiple_of(PITCH_ALIGNMENT) {
                say_once(&format!(
                    "a texture of rows at a pitch of {} bytes: the pitch must be a multiple of \
                     {PITCH_ALIGNMENT}",
                    memory.pitch
                ));
                return Err(errors::INVALID_VALUE);
            }
            (memory.format, 0)
        }
    };
    let floats = format.kind == 2;
    if sampling.normalized_values && !floats && format.channel_bytes == 4 {
        return Err(errors::INVALID_NORM_SETTING);
    }
    if sampling.filters && !floats && !sampling.normalized_values {
        return Err(errors::INVALID_FILTER_SETTING);
    }
    if sampling.filters
        && flags & CUBEMAP == 0
        && matches!(resource, Resource::Memory(memory) if memory.height == 0)
    {
        // Linear memory has no neighbours to filter.
        return Err(errors::INVALID_VALUE);
    }
    let mut head = Message::new();
    resource.put(&mut head);
    sampling.put(&mut head);
    let reply = call(Op::CreateTexture, &head)?;
    reply.fields().u64().map_err(|_| errors::UNKNOWN)
}

/// Creates a surface object of an array; returns its handle.
pub(crate) fn create_surface(array: u64) -> Result<u64, Code> {
    let reply = call(Op::CreateSurface, Message::new().put_u64(array))?;
    reply.fields().u64().map_err(|_| errors::UNKNOWN)
}

/// Destroys a texture or surface object.
pub(crate) fn destroy_object(handle: u64) -> Result<(), Code> {
    call(Op::DestroyObject, Message::new().put_u64(handle)).map(drop)
}
