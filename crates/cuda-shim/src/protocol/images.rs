//! CUDA arrays, textures and surfaces in requests.

use std::io;

use super::{Fields, Message};

/// Format of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// 0 signed, 1 unsigned, 2 float, as in `cudaChannelFormatKind`.
    pub kind: u32,
    /// Bytes of a channel.
    pub channel_bytes: u32,
    /// Channels.
    pub channels: u32,
}

impl Format {
    /// Bytes of a texel.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.channel_bytes) * u64::from(self.channels)
    }

    fn put(&self, message: &mut Message) {
        message
            .put_u32(self.kind)
            .put_u32(self.channel_bytes)
            .put_u32(self.channels);
    }

    fn take(fields: &mut Fields<'_>) -> io::Result<Format> {
        Ok(Format {
            kind: fields.u32()?,
            channel_bytes: fields.u32()?,
            channels: fields.u32()?,
        })
    }
}

/// Shape of a CUDA array. An extent that it does not have is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayShape {
    /// Texels of a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Slices, layers or faces.
    pub depth: u64,
    /// Format of the texels.
    pub format: Format,
    /// Flags of the program, equal in both interfaces: 1 layered, 2 surface, 4 cube map, 8 gather.
    pub flags: u32,
}

impl ArrayShape {
    /// Bytes from row to row on the device.
    #[must_use]
    pub fn pitch(&self) -> u64 {
        self.width.saturating_mul(self.format.bytes())
    }

    /// Bytes from slice to slice on the device.
    #[must_use]
    pub fn slice(&self) -> u64 {
        self.pitch().saturating_mul(self.height.max(1))
    }

    /// Bytes of the array.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.slice().saturating_mul(self.depth.max(1))
    }

    /// Appends the fields.
    pub fn put(&self, message: &mut Message) {
        message
            .put_u64(self.width)
            .put_u64(self.height)
            .put_u64(self.depth);
        self.format.put(message);
        message.put_u32(self.flags);
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// A head that ends before.
    pub fn take(fields: &mut Fields<'_>) -> io::Result<ArrayShape> {
        Ok(ArrayShape {
            width: fields.u64()?,
            height: fields.u64()?,
            depth: fields.u64()?,
            format: Format::take(fields)?,
            flags: fields.u32()?,
        })
    }
}

/// Linear or pitched device memory as texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TexelMemory {
    /// First byte.
    pub address: u64,
    /// Format of the texels.
    pub format: Format,
    /// Texels of a row.
    pub width: u64,
    /// Rows; 0 for linear memory.
    pub height: u64,
    /// Bytes from row to row.
    pub pitch: u64,
}

/// Texels of a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A CUDA array by its handle.
    Array(u64),
    /// Device memory.
    Memory(TexelMemory),
}

impl Resource {
    /// Appends the fields.
    pub fn put(&self, message: &mut Message) {
        match self {
            Resource::Array(handle) => {
                message.put_u32(0).put_u64(*handle);
            }
            Resource::Memory(memory) => {
                message.put_u32(1).put_u64(memory.address);
                memory.format.put(message);
                message
                    .put_u64(memory.width)
                    .put_u64(memory.height)
                    .put_u64(memory.pitch);
            }
        }
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// A head that ends before.
    pub fn take(fields: &mut Fields<'_>) -> io::Result<Resource> {
        Ok(match fields.u32()? {
            0 => Resource::Array(fields.u64()?),
            _ => Resource::Memory(TexelMemory {
                address: fields.u64()?,
                format: Format::take(fields)?,
                width: fields.u64()?,
                height: fields.u64()?,
                pitch: fields.u64()?,
            }),
        })
    }
}

/// Rules of the fetches of a texture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Address modes by their number in `cudaTextureAddressMode`.
    pub address: [u32; 3],
    /// Linear filter.
    pub filters: bool,
    /// Coordinates from 0 to 1.
    pub normalized_coordinates: bool,
    /// Integers as floats from 0 or -1 to 1.
    pub normalized_values: bool,
    /// Conversion from sRGB.
    pub srgb: bool,
    /// Border color.
    pub border: [f32; 4],
}

impl Sampling {
    /// Appends the fields.
    pub fn put(&self, message: &mut Message) {
        for mode in self.address {
            message.put_u32(mode);
        }
        for flag in [
            self.filters,
            self.normalized_coordinates,
            self.normalized_values,
            self.srgb,
        ] {
            message.put_u32(flag.into());
        }
        for value in self.border {
            message.put_u32(value.to_bits());
        }
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// A head that ends before.
    pub fn take(fields: &mut Fields<'_>) -> io::Result<Sampling> {
        let mut word = || fields.u32();
        Ok(Sampling {
            address: [word()?, word()?, word()?],
            filters: word()? != 0,
            normalized_coordinates: word()? != 0,
            normalized_values: word()? != 0,
            srgb: word()? != 0,
            border: [
                f32::from_bits(word()?),
                f32::from_bits(word()?),
                f32::from_bits(word()?),
                f32::from_bits(word()?),
            ],
        })
    }
}
