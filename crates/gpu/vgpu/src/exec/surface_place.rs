//! Places of surface accesses, by either executor.

use gpu_arithmetic::half::f32_to_f16;

use crate::texture::{Boundary, ChannelKind, Image, ImageShape, TexelFormat};

/// Place of an access in a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurfacePlace {
    /// Byte in the row.
    pub x: i64,
    /// Row.
    pub y: i64,
    /// Slice or layer.
    pub z: i64,
    /// Bytes of the access.
    pub bytes: u32,
}

impl SurfacePlace {
    /// Returns the place of coordinates in the order of PTX, a layer first. The coordinate in a row counts bytes, or
    /// texels for an access of `None` bytes, which moves one.
    pub fn new(
        shape: ImageShape,
        words: [u32; 3],
        bytes: Option<u32>,
        image: &Image,
    ) -> SurfacePlace {
        let [a, b, c] = words.map(|word| i64::from(word as i32));
        let [x, y, z] = match shape {
            ImageShape::Layers1 => [b, 0, a],
            ImageShape::Layers2 => [b, c, a],
            ImageShape::D1 => [a, 0, 0],
            ImageShape::D2 => [a, b, 0],
            _ => [a, b, c],
        };
        let texel = image.format.bytes();
        match bytes {
            Some(bytes) => SurfacePlace { x, y, z, bytes },
            None => SurfacePlace {
                x: x * i64::from(texel),
                y,
                z,
                bytes: texel,
            },
        }
    }

    /// Returns the address under a boundary mode; `None` outside the surface.
    pub fn address(&mut self, image: &Image, boundary: Boundary) -> Option<u64> {
        if boundary == Boundary::Clamp {
            self.clamp(image);
        }
        let row = i64::from(image.width) * i64::from(image.format.bytes());
        let inside = self.x >= 0
            && self.x + i64::from(self.bytes) <= row
            && (0..i64::from(image.height)).contains(&self.y)
            && (0..i64::from(image.depth)).contains(&self.z);
        let texel = [0, self.y as u32, self.z as u32];
        inside.then(|| image.texel(texel).wrapping_add(self.x as u64))
    }

    /// Moves the place to the nearest one inside.
    fn clamp(&mut self, image: &Image) {
        let row = i64::from(image.width) * i64::from(image.format.bytes());
        self.x = self.x.clamp(0, (row - i64::from(self.bytes)).max(0));
        self.y = self.y.clamp(0, i64::from(image.height.max(1)) - 1);
        self.z = self.z.clamp(0, i64::from(image.depth.max(1)) - 1);
    }

    /// Describes an access outside a surface.
    pub fn outside(&self, image: &Image, loads: bool) -> String {
        let act = if loads { "read" } else { "write" };
        let row = image.width * image.format.bytes();
        let (height, depth) = (image.height, image.depth);
        let SurfacePlace { x, y, z, bytes } = self;
        format!(
            "a {act} of {bytes} bytes at byte {x} of row {y} in slice {z} of a surface with \
             {row} bytes a row, {height} rows and {depth} slices"
        )
    }
}

/// Returns a word as a channel of a format: integers saturate (PTX ISA, `sust.p`).
pub fn formatted(format: TexelFormat, word: u32) -> u32 {
    let bits = 8 * format.channel_bytes;
    match format.kind {
        ChannelKind::Float if format.channel_bytes == 2 => f32_to_f16(f32::from_bits(word)).into(),
        ChannelKind::Float => word,
        ChannelKind::Unsigned => word.min(u32::MAX >> (32 - bits)),
        ChannelKind::Signed => {
            let largest = i32::MAX >> (32 - bits);
            (word as i32).clamp(-largest - 1, largest) as u32
        }
    }
}
