//! Fetches from textures, by either executor: which texels are read, and their weighted sum.

use super::sampling::{Axis, Channels, CubePlace, Index, Taps, rank};
use crate::texture::{Image, ImageShape, Sampler, TexelFormat, Texture};

/// Words of a fetched texel.
pub type Texel = [u32; 4];

/// Reads the bits of the channels of the texel at an address; `None` where memory has none.
type Read<'r> = dyn FnMut(u64) -> Option<Texel> + 'r;

/// Coordinates of one lane.
struct Place {
    /// In the dimensions of a layer or a face.
    at: [f32; 3],
    /// The same as numbers of texels.
    texels: [i64; 3],
    layer: u32,
}

/// Kind of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchKind {
    /// By numbers of texels.
    Numbered,
    /// By coordinates.
    Sampled,
    /// One channel of the four texels around a place.
    Gathered(usize),
}

/// A texture with what its fetches share.
pub struct Fetcher {
    image: Image,
    sampler: Sampler,
    channels: Channels,
    shape: ImageShape,
    axes: [Axis; 3],
    /// Number of axes.
    rank: usize,
}

impl Fetcher {
    /// Creates the fetcher of a texture for instructions of one shape.
    pub fn new(texture: &Texture, shape: ImageShape) -> Fetcher {
        let image = texture.image;
        let mut sampler = texture.sampler;
        // A direction on a cube has no unit.
        sampler.normalized_coordinates |= matches!(shape, ImageShape::Cube | ImageShape::Cubes);
        let sizes = [image.width, image.height, image.depth];
        let channels = Channels {
            format: image.format,
            normalized: sampler.normalized_values,
            srgb: sampler.srgb,
        };
        Fetcher {
            image,
            channels,
            shape,
            axes: std::array::from_fn(|n| Axis::new(&sampler, n, sizes[n])),
            rank: rank(shape),
            sampler,
        }
    }

    /// Returns the format of the texels.
    pub fn format(&self) -> TexelFormat {
        self.image.format
    }

    /// Fetches by coordinates in the order of PTX, a layer first. Channels that `read` has not are
    /// zero.
    pub fn fetch(&self, words: [u32; 4], kind: FetchKind, read: &mut Read<'_>) -> Texel {
        let place = self.place(words);
        match kind {
            // The guide: a fetch beyond linear memory returns zero.
            FetchKind::Numbered => match self.numbered(&place) {
                Some(indices) => self.texel(&place, indices, read),
                None => [0; 4],
            },
            FetchKind::Gathered(channel) => self.gather(&place, channel, read),
            FetchKind::Sampled if self.sampler.filters && self.channels.are_floats() => {
                self.interpolated(&place, read)
            }
            FetchKind::Sampled => {
                let indices = std::array::from_fn(|n| self.axes[n].nearest(place.at[n]));
                self.texel(&place, indices, read)
            }
        }
    }

    /// Returns the place that coordinates name.
    fn place(&self, words: [u32; 4]) -> Place {
        let word = |number: usize| words.get(number).copied().unwrap_or(0);
        let from = usize::from(matches!(
            self.shape,
            ImageShape::Layers1 | ImageShape::Layers2 | ImageShape::Cubes
        ));
        // An unsigned number (PTX ISA, `tex`): a negative one is beyond the last layer.
        let layer = if from == 1 { word(0) } else { 0 };
        let clamped = |count: u32| layer.min(count.max(1) - 1);
        let mut place = Place {
            at: std::array::from_fn(|n| f32::from_bits(word(from + n))),
            texels: std::array::from_fn(|n| i64::from(word(from + n) as i32)),
            layer: clamped(self.image.depth),
        };
        if matches!(self.shape, ImageShape::Cube | ImageShape::Cubes) {
            let on_cube = CubePlace::new(place.at);
            place.layer = clamped(self.image.depth / 6) * 6 + on_cube.face;
            place.at = [on_cube.s, on_cube.t, 0.0];
        }
        place
    }

    /// Returns the texel of indices by dimension in a layer; `None` is the border.
    fn indices(&self, place: &Place, index: [Index; 3]) -> Option<[u32; 3]> {
        let along = |dimension: usize| match dimension < self.rank {
            true => index[dimension],
            false => Some(0),
        };
        let z = match self.shape {
            ImageShape::D3 => along(2)?,
            _ => place.layer,
        };
        Some([along(0)?, along(1)?, z])
    }

    /// Returns the indices of numbers of texels; `None` is beyond linear memory.
    fn numbered(&self, place: &Place) -> Option<[Index; 3]> {
        if self.image.linear && !(0..i64::from(self.image.width)).contains(&place.texels[0]) {
            return None;
        }
        Some(std::array::from_fn(|n| self.axes[n].index(place.texels[n])))
    }

    /// Returns the weighted sum of the texels around a place.
    fn interpolated(&self, place: &Place, read: &mut Read<'_>) -> Texel {
        let taps: [Taps; 3] = std::array::from_fn(|n| self.axes[n].between(place.at[n]));
        let mut sums = [0.0; 4];
        for corner in 0..1_usize << self.rank {
            let mut weight = 1.0;
            let mut indices = [Some(0); 3];
            for (dimension, tap) in taps.iter().enumerate().take(self.rank) {
                let second = corner >> dimension & 1 == 1;
                weight *= if second { tap.weight } else { 1.0 - tap.weight };
                indices[dimension] = if second { tap.second } else { tap.first };
            }
            // A texel without a weight need not be written yet.
            if weight == 0.0 {
                continue;
            }
            let texel = self.texel(place, indices, read);
            for (sum, word) in sums.iter_mut().zip(texel) {
                *sum += weight * f64::from(f32::from_bits(word));
            }
        }
        sums.map(|sum| (sum as f32).to_bits())
    }

    /// Returns one channel of the four texels around a place (PTX ISA, `tld4`).
    fn gather(&self, place: &Place, channel: usize, read: &mut Read<'_>) -> Texel {
        let x = self.axes[0].between(place.at[0]);
        let y = self.axes[1].between(place.at[1]);
        let corners = [
            [x.first, y.second],
            [x.second, y.second],
            [x.second, y.first],
            [x.first, y.first],
        ];
        corners.map(|[x, y]| self.texel(place, [x, y, Some(0)], read)[channel])
    }

    /// Returns the converted channels of a texel.
    fn texel(&self, place: &Place, index: [Index; 3], read: &mut Read<'_>) -> Texel {
        let channels = self.image.format.channels as usize;
        let mut words = [0; 4];
        let Some(indices) = self.indices(place, index) else {
            for (word, value) in words.iter_mut().zip(self.sampler.border).take(channels) {
                *word = self.channels.border(value);
            }
            return words;
        };
        let Some(raw) = read(self.image.texel(indices)) else {
            return words;
        };
        for (channel, (word, raw)) in words.iter_mut().zip(raw).enumerate().take(channels) {
            *word = self.channels.word(raw, channel);
        }
        words
    }
}
