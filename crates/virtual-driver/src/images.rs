//! CUDA arrays, textures and surfaces of one process.

use std::collections::BTreeMap;
use std::io;

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::images::{ArrayShape, Format, Resource, Sampling};
use cuda_shim::protocol::{Fields, Message, NO_POOL, Op, kind};
use vgpu::{AddressMode, ChannelKind, Image, Sampler, TexelFormat, Texture};

use crate::device::Device;

/// Shapes of CUDA arrays by their handle, which is the address of their memory.
pub(crate) type Arrays = BTreeMap<u64, ArrayShape>;

impl Device {
    /// Answers a request about images. The outer error is a message that breaks the protocol.
    pub(crate) fn answer_image(
        &mut self,
        op: Op,
        fields: &mut Fields<'_>,
        head: &mut Message,
    ) -> io::Result<Result<(), Code>> {
        let mut reply = |number: Result<u64, Code>| {
            number.map(|number| {
                head.put_u64(number);
            })
        };
        Ok(match op {
            Op::CreateArray => {
                let shape = ArrayShape::take(fields)?;
                reply(self.create_array(shape))
            }
            Op::DestroyArray => self.destroy_array(fields.u64()?),
            Op::DescribeArray => self.array(fields.u64()?).map(|shape| shape.put(head)),
            Op::CreateTexture => {
                let (resource, sampling) = (Resource::take(fields)?, Sampling::take(fields)?);
                reply(self.create_texture(resource, sampling))
            }
            Op::CreateSurface => {
                let array = fields.u64()?;
                reply(self.create_surface(array))
            }
            _ => {
                let destroyed = self.memory.destroy_object(fields.u64()?);
                match destroyed {
                    true => self.check(),
                    false => Err(errors::INVALID_VALUE),
                }
            }
        })
    }

    fn create_array(&mut self, shape: ArrayShape) -> Result<u64, Code> {
        let (address, _) = self.allocate(shape.bytes(), kind::ARRAY, NO_POOL)?;
        self.arrays.insert(address, shape);
        Ok(address)
    }

    fn destroy_array(&mut self, handle: u64) -> Result<(), Code> {
        self.check()?;
        self.array(handle)?;
        self.arrays.remove(&handle);
        self.free(handle)
    }

    fn array(&self, handle: u64) -> Result<&ArrayShape, Code> {
        self.arrays.get(&handle).ok_or(errors::INVALID_HANDLE)
    }

    fn array_image(&self, handle: u64) -> Result<Image, Code> {
        let shape = self.array(handle)?;
        let extent = |extent: u64| u32::try_from(extent.max(1)).map_err(|_| errors::INVALID_VALUE);
        Ok(Image {
            address: handle,
            format: texel_format(shape.format),
            width: extent(shape.width)?,
            height: extent(shape.height)?,
            depth: extent(shape.depth)?,
            pitch: shape.pitch(),
            slice: shape.slice(),
            linear: false,
        })
    }

    fn create_texture(&mut self, resource: Resource, sampling: Sampling) -> Result<u64, Code> {
        let image = match resource {
            Resource::Array(handle) => self.array_image(handle)?,
            Resource::Memory(memory) => {
                let linear = memory.height == 0;
                let bytes = match linear {
                    true => memory.width.saturating_mul(memory.format.bytes()),
                    false => {
                        let last = memory.width.saturating_mul(memory.format.bytes());
                        memory
                            .pitch
                            .saturating_mul(memory.height - 1)
                            .saturating_add(last)
                    }
                };
                self.resolve(memory.address, bytes)?;
                let extent = |extent| u32::try_from(extent).map_err(|_| errors::INVALID_VALUE);
                Image {
                    address: memory.address,
                    format: texel_format(memory.format),
                    width: extent(memory.width)?,
                    height: extent(memory.height.max(1))?,
                    depth: 1,
                    pitch: memory.pitch,
                    slice: 0,
                    linear,
                }
            }
        };
        let sampler = Sampler {
            address: sampling.address.map(address_mode),
            filters: sampling.filters,
            normalized_coordinates: sampling.normalized_coordinates,
            normalized_values: sampling.normalized_values,
            srgb: sampling.srgb,
            border: sampling.border,
        };
        Ok(self.memory.create_texture(Texture { image, sampler }))
    }

    fn create_surface(&mut self, handle: u64) -> Result<u64, Code> {
        const SURFACE: u32 = 2;
        if self.array(handle)?.flags & SURFACE == 0 {
            // The array lacks cudaArraySurfaceLoadStore.
            return Err(errors::INVALID_VALUE);
        }
        let image = self.array_image(handle)?;
        Ok(self.memory.create_surface(image))
    }
}

fn texel_format(format: Format) -> TexelFormat {
    TexelFormat {
        kind: match format.kind {
            0 => ChannelKind::Signed,
            1 => ChannelKind::Unsigned,
            _ => ChannelKind::Float,
        },
        channel_bytes: format.channel_bytes,
        channels: format.channels,
    }
}

/// Returns the address mode of a number of `cudaTextureAddressMode`.
fn address_mode(number: u32) -> AddressMode {
    match number {
        0 => AddressMode::Wrap,
        2 => AddressMode::Mirror,
        3 => AddressMode::Border,
        _ => AddressMode::Clamp,
    }
}
