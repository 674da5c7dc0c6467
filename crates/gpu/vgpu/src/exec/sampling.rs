//! Coordinates and values of texture fetches: CUDA C++ Programming Guide, appendix "Texture Fetching".
//!
//! The guide gives real-number formulas. Coordinates are scaled in single precision and then exact;
//! weights have 8 bits of fraction, rounded to nearest; weighted sums are rounded once. Hardware may differ
//! in the last bits of a filtered value.

use gpu_arithmetic::half::f16_to_f32;

use crate::texture::{AddressMode, ChannelKind, ImageShape, Sampler, TexelFormat};

/// Steps of an interpolation weight: 9 bits, so that 1 is exact (guide, "Linear Filtering").
const WEIGHT_STEPS: f64 = 256.0;

/// Texel index of one dimension; `None` is the border.
pub(super) type Index = Option<u32>;

/// The two texels that a coordinate is between, with the weight of the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Taps {
    pub(super) first: Index,
    pub(super) second: Index,
    pub(super) weight: f64,
}

/// One dimension of a fetch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub(super) size: u32,
    pub(super) mode: AddressMode,
    pub(super) normalized: bool,
}

impl Axis {
    /// Returns the axis of a dimension of an image.
    pub(super) fn new(sampler: &Sampler, dimension: usize, size: u32) -> Axis {
        let normalized = sampler.normalized_coordinates;
        let mode = sampler.address[dimension];
        Axis {
            size,
            // The guide: wrap and mirror are for normalized coordinates only; clamp replaces them.
            mode: match mode {
                AddressMode::Wrap | AddressMode::Mirror if !normalized => AddressMode::Clamp,
                mode => mode,
            },
            normalized,
        }
    }

    /// Returns a texel number inside the image.
    pub(super) fn index(&self, at: i64) -> Index {
        let size = i64::from(self.size.max(1));
        let inside = (0..size).contains(&at);
        let at = match self.mode {
            AddressMode::Clamp => at.clamp(0, size - 1),
            AddressMode::Border if !inside => return None,
            AddressMode::Border => at,
            AddressMode::Wrap => at.rem_euclid(size),
            AddressMode::Mirror => match at.rem_euclid(2 * size) {
                at if at < size => at,
                at => 2 * size - 1 - at,
            },
        };
        u32::try_from(at).ok()
    }

    /// Returns a coordinate in texels.
    fn scaled(&self, coordinate: f32) -> f64 {
        if !self.normalized {
            return coordinate.into();
        }
        let folded = match self.mode {
            AddressMode::Wrap => coordinate - coordinate.floor(),
            AddressMode::Mirror => {
                let floor = coordinate.floor();
                let fraction = coordinate - floor;
                match floor % 2.0 == 0.0 {
                    true => fraction,
                    false => 1.0 - fraction,
                }
            }
            _ => coordinate,
        };
        f64::from(folded * self.size as f32)
    }

    /// Returns the nearest texel of a coordinate.
    pub(super) fn nearest(&self, coordinate: f32) -> Index {
        self.index(self.scaled(coordinate).floor() as i64)
    }

    /// Returns the two texels that a coordinate is between.
    pub(super) fn between(&self, coordinate: f32) -> Taps {
        let centered = self.scaled(coordinate) - 0.5;
        let first = centered.floor();
        let weight = ((centered - first) * WEIGHT_STEPS).round() / WEIGHT_STEPS;
        Taps {
            first: self.index(first as i64),
            // The cast saturates for an infinite coordinate, whose successor must not overflow.
            second: self.index((first as i64).saturating_add(1)),
            // A coordinate that is not a number has no weight either.
            weight: if weight.is_nan() { 0.0 } else { weight },
        }
    }
}

/// A direction on a cube: the face, and normalized coordinates there (guide, "Cubemap Textures").
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CubePlace {
    pub(super) face: u32,
    pub(super) s: f32,
    pub(super) t: f32,
}

impl CubePlace {
    /// Returns the place of a direction.
    pub(super) fn new([x, y, z]: [f32; 3]) -> CubePlace {
        let (face, m, s, t) = if x.abs() > y.abs() && x.abs() > z.abs() {
            match x >= 0.0 {
                true => (0, x, -z, -y),
                false => (1, -x, z, -y),
            }
        } else if y.abs() > z.abs() {
            match y >= 0.0 {
                true => (2, y, x, z),
                false => (3, -y, x, -z),
            }
        } else {
            match z >= 0.0 {
                true => (4, z, x, -y),
                false => (5, -z, -x, -y),
            }
        };
        CubePlace {
            face,
            s: (s / m + 1.0) / 2.0,
            t: (t / m + 1.0) / 2.0,
        }
    }
}

/// Returns the number of dimensions that coordinates address in a layer or a face.
pub(super) fn rank(shape: ImageShape) -> usize {
    match shape {
        ImageShape::D1 | ImageShape::Layers1 => 1,
        ImageShape::D3 => 3,
        _ => 2,
    }
}

/// Conversion of the channels of a texel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Channels {
    pub(super) format: TexelFormat,
    pub(super) normalized: bool,
    pub(super) srgb: bool,
}

impl Channels {
    /// Reports whether values are floats.
    pub(super) fn are_floats(&self) -> bool {
        self.normalized || self.format.kind == ChannelKind::Float
    }

    /// Returns a channel as a float.
    pub(super) fn float(&self, raw: u32, channel: usize) -> f32 {
        let bits = 8 * self.format.channel_bytes;
        match (self.format.kind, self.format.channel_bytes) {
            (ChannelKind::Float, 2) => f16_to_f32(raw as u16),
            (ChannelKind::Float, _) => f32::from_bits(raw),
            (ChannelKind::Unsigned, _) => {
                let value = raw as f32 / (u32::MAX >> (32 - bits)) as f32;
                // The transfer function applies to red, green and blue; alpha is linear.
                match self.srgb && self.format.channel_bytes == 1 && channel < 3 {
                    true => linear_from_srgb(value),
                    false => value,
                }
            }
            // The most negative integer and the one after it are both -1.
            (ChannelKind::Signed, _) => {
                let largest = (u32::MAX >> (33 - bits)) as f32;
                (sign_extended(raw, bits) as f32 / largest).max(-1.0)
            }
        }
    }

    /// Returns the word of a fetched channel that is not interpolated.
    pub(super) fn word(&self, raw: u32, channel: usize) -> u32 {
        if self.are_floats() {
            return self.float(raw, channel).to_bits();
        }
        match self.format.kind {
            ChannelKind::Signed => sign_extended(raw, 8 * self.format.channel_bytes) as u32,
            _ => raw,
        }
    }

    /// Returns the word of a channel of the border color.
    pub(super) fn border(&self, value: f32) -> u32 {
        match (self.are_floats(), self.format.kind) {
            (true, _) => value.to_bits(),
            (false, ChannelKind::Signed) => value as i32 as u32,
            (false, _) => value as u32,
        }
    }
}

fn sign_extended(raw: u32, bits: u32) -> i32 {
    let unused = 32 - bits;
    (raw << unused) as i32 >> unused
}

/// The transfer function of IEC 61966-2-1.
fn linear_from_srgb(value: f32) -> f32 {
    match value <= 0.04045 {
        true => value / 12.92,
        false => ((value + 0.055) / 1.055).powf(2.4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(mode: AddressMode, normalized: bool) -> Axis {
        Axis {
            size: 4,
            mode,
            normalized,
        }
    }

    fn indices(mode: AddressMode) -> Vec<Index> {
        (-5..9).map(|at| axis(mode, true).index(at)).collect()
    }

    #[test]
    fn outside_coordinates_follow_the_address_mode() {
        let some = |list: &[u32]| list.iter().map(|at| Some(*at)).collect::<Vec<_>>();
        let clamped = some(&[0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3]);
        assert_eq!(indices(AddressMode::Clamp), clamped);
        let wrapped = some(&[3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0]);
        assert_eq!(indices(AddressMode::Wrap), wrapped);
        let mirrored = some(&[3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0]);
        assert_eq!(indices(AddressMode::Mirror), mirrored);
        let border = indices(AddressMode::Border);
        assert_eq!(border.iter().flatten().count(), 4);
    }

    #[test]
    fn weights_have_eight_bits_of_fraction() {
        let plain = axis(AddressMode::Clamp, false);
        let taps = plain.between(1.5 + 0.3);
        assert_eq!((taps.first, taps.second), (Some(1), Some(2)));
        // 0.3 · 256 = 76.8
        assert_eq!(taps.weight, 77.0 / 256.0);
        assert_eq!(plain.between(0.25).weight, 0.75);
        // A weight of 1 is exact.
        assert_eq!(plain.between(1.4999).weight, 1.0);
    }

    #[test]
    fn normalized_coordinates_repeat() {
        let wrap = axis(AddressMode::Wrap, true);
        assert_eq!(wrap.nearest(1.25), Some(1));
        assert_eq!(wrap.nearest(-0.25), Some(3));
        let mirror = axis(AddressMode::Mirror, true);
        assert_eq!(mirror.nearest(1.2), Some(3));
        assert_eq!(mirror.nearest(2.3), Some(1));
        let taps = wrap.between(0.0);
        assert_eq!((taps.first, taps.second), (Some(3), Some(0)));
    }

    #[test]
    fn directions_choose_the_face_of_the_largest_coordinate() {
        let place = CubePlace::new([2.0, 1.0, -1.0]);
        assert_eq!((place.face, place.s, place.t), (0, 0.75, 0.25));
        let faces = [
            [-2.0, 0.0, 1.0],
            [0.0, 1.0, 0.0],
            [0.0, -1.0, 0.0],
            [0.0, 0.0, 1.0],
            [0.0, 0.0, -1.0],
        ];
        assert_eq!(
            faces.map(|direction| CubePlace::new(direction).face),
            [1, 2, 3, 4, 5]
        );
    }

    #[test]
    fn integers_are_normalized_to_their_range() {
        let channels = |kind, channel_bytes| Channels {
            format: TexelFormat {
                kind,
                channel_bytes,
                channels: 1,
            },
            normalized: true,
            srgb: false,
        };
        assert_eq!(channels(ChannelKind::Unsigned, 1).float(255, 0), 1.0);
        assert_eq!(channels(ChannelKind::Unsigned, 2).float(65_535, 0), 1.0);
        assert_eq!(channels(ChannelKind::Signed, 1).float(0x80, 0), -1.0);
        assert_eq!(channels(ChannelKind::Signed, 1).float(0x81, 0), -1.0);
        assert_eq!(channels(ChannelKind::Signed, 2).float(0x7fff, 0), 1.0);
        assert_eq!(channels(ChannelKind::Float, 2).float(0x3c00, 0), 1.0);
    }
}
