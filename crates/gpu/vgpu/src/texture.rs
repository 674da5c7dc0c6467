//! Texture and surface objects: images in device memory and the rules of their fetches.
//!
//! An image is plain device memory in rows and slices. On a GPU the layout of a CUDA array is opaque, and no
//! program can observe it except through fetches, so rows in order are equivalent.

use std::collections::BTreeMap;

use crate::memory::GlobalMemory;

/// Interpretation of the bits of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    /// Unsigned integer.
    Unsigned,
    /// Signed integer, two's complement.
    Signed,
    /// Half or single precision.
    Float,
}

/// Format of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TexelFormat {
    /// Interpretation of each channel.
    pub kind: ChannelKind,
    /// Bytes of a channel: 1, 2 or 4.
    pub channel_bytes: u32,
    /// Channels: 1, 2 or 4.
    pub channels: u32,
}

impl TexelFormat {
    /// Returns the bytes of a texel.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.channel_bytes * self.channels
    }
}

/// Texels in device memory. An extent that the image does not have is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Address of the first texel.
    pub address: u64,
    /// Format of the texels.
    pub format: TexelFormat,
    /// Texels of a row.
    pub width: u32,
    /// Rows of a slice.
    pub height: u32,
    /// Slices of a volume, layers of a layered image, or faces of a cube map.
    pub depth: u32,
    /// Bytes from row to row.
    pub pitch: u64,
    /// Bytes from slice to slice.
    pub slice: u64,
    /// Linear memory: a fetch beyond it returns zeros, whatever the address mode.
    pub linear: bool,
}

impl Image {
    /// Returns the address of a texel that is inside the image.
    pub(crate) fn texel(&self, [x, y, z]: [u32; 3]) -> u64 {
        let row = u64::from(y)
            .wrapping_mul(self.pitch)
            .wrapping_add(u64::from(z).wrapping_mul(self.slice));
        let column = u64::from(x) * u64::from(self.format.bytes());
        self.address.wrapping_add(row).wrapping_add(column)
    }
}

/// Treatment of coordinates outside an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressMode {
    /// The image repeats. Applies to normalized coordinates; others are clamped.
    Wrap,
    /// The nearest texel.
    Clamp,
    /// The image repeats, mirrored each time. Applies to normalized coordinates; others are clamped.
    Mirror,
    /// The border color.
    Border,
}

/// Rules of the fetches of a texture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Address mode of each dimension.
    pub address: [AddressMode; 3],
    /// Linear interpolation of adjacent texels instead of the nearest texel.
    pub filters: bool,
    /// Coordinates from 0 to 1.
    pub normalized_coordinates: bool,
    /// Integers are returned as floats from 0 (or -1) to 1.
    pub normalized_values: bool,
    /// Normalized channels are converted from sRGB, but for the last one of four.
    pub srgb: bool,
    /// Channels of a texel outside the image in [`AddressMode::Border`].
    pub border: [f32; 4],
}

/// A texture object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Texture {
    /// The texels.
    pub image: Image,
    /// The rules of its fetches.
    pub sampler: Sampler,
}

/// Geometry of an image as an instruction names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageShape {
    /// One dimension.
    D1,
    /// Two dimensions.
    D2,
    /// Three dimensions.
    D3,
    /// Layers of one dimension (`a1d`): the layer is the first coordinate.
    Layers1,
    /// Layers of two dimensions (`a2d`).
    Layers2,
    /// Six faces, by a direction.
    Cube,
    /// Layers of cube maps (`acube`).
    Cubes,
}

impl ImageShape {
    /// Returns the number of coordinates, the layer included.
    pub fn coordinates(self) -> usize {
        match self {
            ImageShape::D1 => 1,
            ImageShape::D2 | ImageShape::Layers1 => 2,
            ImageShape::D3 | ImageShape::Layers2 | ImageShape::Cube => 3,
            ImageShape::Cubes => 4,
        }
    }
}

/// Treatment of coordinates outside a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// The kernel stops.
    Trap,
    /// The nearest place inside.
    Clamp,
    /// Loads give zero, stores have no effect.
    Zero,
}

/// A handle's object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ImageObject {
    /// For `tex`, `tld4` and `txq`.
    Texture(Texture),
    /// For `suld`, `sust` and `suq`.
    Surface(Image),
}

/// Texture and surface objects of a memory. Handles are never reused: a destroyed one stays invalid.
#[derive(Debug, Default)]
pub(crate) struct ImageObjects {
    by_handle: BTreeMap<u64, ImageObject>,
    created: u64,
}

impl ImageObjects {
    fn create(&mut self, object: ImageObject) -> u64 {
        self.created += 1;
        self.by_handle.insert(self.created, object);
        self.created
    }
}

impl GlobalMemory {
    /// Creates a texture object; returns the handle that kernels take.
    pub fn create_texture(&mut self, texture: Texture) -> u64 {
        self.objects.create(ImageObject::Texture(texture))
    }

    /// Creates a surface object; returns the handle that kernels take.
    pub fn create_surface(&mut self, image: Image) -> u64 {
        self.objects.create(ImageObject::Surface(image))
    }

    /// Destroys a texture or surface object; `false` where the handle has none.
    pub fn destroy_object(&mut self, handle: u64) -> bool {
        self.objects.by_handle.remove(&handle).is_some()
    }

    /// Returns the object of a handle.
    pub fn image_object(&self, handle: u64) -> Option<&ImageObject> {
        self.objects.by_handle.get(&handle)
    }
}
