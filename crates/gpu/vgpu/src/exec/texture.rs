//! Texture fetches: `tex`, `tld4` and `txq`.

use super::access::Touch;
use super::cta::Cta;
use super::sampling::{Axis, Channels, CubePlace, Index, Taps, rank};
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::program::{Area, Fetch, ImageQuery, ImageShape, NONE, Queried};
use crate::texture::{Image, ImageObject, Sampler, Texture};

/// Words of a fetched texel.
type Texel = [u32; 4];

/// Coordinates of one lane.
struct Place {
    lane: usize,
    /// In the dimensions of a layer or a face.
    at: [f32; 3],
    /// The same as numbers of texels.
    texels: [i64; 3],
    layer: u32,
}

/// A texture with what its fetches share.
struct Fetcher {
    image: Image,
    sampler: Sampler,
    channels: Channels,
    shape: ImageShape,
    axes: [Axis; 3],
    /// Number of axes.
    rank: usize,
}

impl Fetcher {
    fn new(texture: &Texture, shape: ImageShape) -> Fetcher {
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
}

impl Cta<'_> {
    /// Executes a fetch, lane by lane.
    pub(super) fn fetch_texels(&mut self, w: &mut Warp, f: &Fetch, mask: u32) {
        let mut known: Option<(u64, Fetcher)> = None;
        for lane in lanes(mask) {
            let handle = w.regs.r64[f.object as usize][lane];
            // The lanes of a warp mostly name one texture.
            if known.as_ref().is_none_or(|(named, _)| *named != handle) {
                let object = self.object(w, f.object, lane, "a fetch");
                let Some(ImageObject::Texture(texture)) = object else {
                    let detail = || "a fetch through a surface object".to_owned();
                    if object.is_some() {
                        self.refuse_object(w, lane, detail);
                    }
                    return;
                };
                known = Some((handle, Fetcher::new(&texture, f.shape)));
            }
            let Some((_, fetcher)) = &known else {
                return;
            };
            let place = lane_place(w, f, fetcher, lane);
            let texel = self.fetch_lane(w, f, fetcher, &place);
            for (data, word) in f.data.iter().zip(texel) {
                w.set(*data, lane, word.into());
            }
        }
        // Objects describe plain memory, not sparse textures: every texel is resident.
        if let Some(row) = f.resident {
            w.regs.preds[row as usize] |= mask;
        }
    }

    /// Returns the object of a lane's handle; one that does not exist stops the kernel.
    pub(super) fn object(
        &mut self,
        w: &Warp,
        row: u32,
        lane: usize,
        what: &str,
    ) -> Option<ImageObject> {
        let handle = w.regs.r64[row as usize][lane];
        let found = self.context.memory.image_object(handle).copied();
        if found.is_none() {
            self.refuse_object(w, lane, || {
                format!("{what} through {handle:#x}, which is not a texture or surface object")
            });
        }
        found
    }

    /// Stops the kernel for an object that an instruction cannot use.
    #[cold]
    pub(super) fn refuse_object(&mut self, w: &Warp, lane: usize, detail: impl FnOnce() -> String) {
        self.halted = Some(Halt(Stop::IllegalOperand, "an invalid texture or surface"));
        let thread = Self::thread(w, lane);
        self.hazard(HazardKind::Crashed, thread, Location::NONE, NONE, detail);
    }

    fn fetch_lane(&mut self, w: &mut Warp, f: &Fetch, t: &Fetcher, place: &Place) -> Texel {
        if f.integer {
            // The guide: a fetch beyond linear memory returns zero.
            return match t.numbered(place) {
                Some(indices) => self.texel(w, t, place, indices),
                None => [0; 4],
            };
        }
        if let Some(channel) = f.gather {
            return self.gather(w, t, place, channel);
        }
        if t.sampler.filters && t.channels.are_floats() {
            return self.interpolated(w, t, place);
        }
        let indices = std::array::from_fn(|n| t.axes[n].nearest(place.at[n]));
        self.texel(w, t, place, indices)
    }

    /// Returns the weighted sum of the texels around a place.
    fn interpolated(&mut self, w: &mut Warp, t: &Fetcher, place: &Place) -> Texel {
        let taps: [Taps; 3] = std::array::from_fn(|n| t.axes[n].between(place.at[n]));
        let mut sums = [0.0; 4];
        for corner in 0..1_usize << t.rank {
            let mut weight = 1.0;
            let mut indices = [Some(0); 3];
            for (dimension, tap) in taps.iter().enumerate().take(t.rank) {
                let second = corner >> dimension & 1 == 1;
                weight *= if second { tap.weight } else { 1.0 - tap.weight };
                indices[dimension] = if second { tap.second } else { tap.first };
            }
            // A texel without a weight need not be written yet.
            if weight == 0.0 {
                continue;
            }
            let texel = self.texel(w, t, place, indices);
            for (sum, word) in sums.iter_mut().zip(texel) {
                *sum += weight * f64::from(f32::from_bits(word));
            }
        }
        sums.map(|sum| (sum as f32).to_bits())
    }

    /// Returns one channel of the four texels around a place (PTX ISA, `tld4`).
    fn gather(&mut self, w: &mut Warp, t: &Fetcher, place: &Place, channel: usize) -> Texel {
        let x = t.axes[0].between(place.at[0]);
        let y = t.axes[1].between(place.at[1]);
        let corners = [
            [x.first, y.second],
            [x.second, y.second],
            [x.second, y.first],
            [x.first, y.first],
        ];
        corners.map(|[x, y]| self.texel(w, t, place, [x, y, Some(0)])[channel])
    }

    /// Returns the converted channels of a texel.
    fn texel(&mut self, w: &mut Warp, t: &Fetcher, place: &Place, index: [Index; 3]) -> Texel {
        let channels = t.image.format.channels as usize;
        let mut words = [0; 4];
        let Some(indices) = t.indices(place, index) else {
            for (word, value) in words.iter_mut().zip(t.sampler.border).take(channels) {
                *word = t.channels.border(value);
            }
            return words;
        };
        let bytes = t.image.format.bytes();
        let at = t.image.texel(indices);
        self.counters.global_load_bytes += u64::from(bytes);
        let Some(found) = self.touch(w, Area::Global, at, Touch::read(place.lane, bytes)) else {
            return words;
        };
        let width = t.image.format.channel_bytes;
        for (channel, word) in words.iter_mut().enumerate().take(channels) {
            let raw = self.get(w, found, channel as u32 * width, width) as u32;
            *word = t.channels.word(raw, channel);
        }
        words
    }

    /// Executes `txq` and `suq`.
    pub(super) fn query_image(&mut self, w: &mut Warp, q: &ImageQuery, mask: u32) {
        for lane in lanes(mask) {
            let Some(object) = self.object(w, q.object, lane, "a query") else {
                return;
            };
            let (image, normalized) = match &object {
                ImageObject::Texture(texture) => {
                    (&texture.image, texture.sampler.normalized_coordinates)
                }
                ImageObject::Surface(image) => (image, false),
            };
            let value = match q.queried {
                Queried::Width => image.width,
                Queried::Height => image.height,
                Queried::Depth => image.depth,
                Queried::NormalizedCoordinates => normalized.into(),
            };
            w.regs.r32[q.dest as usize][lane] = value;
        }
    }
}

/// Returns the place that a lane's coordinates name.
fn lane_place(w: &Warp, f: &Fetch, t: &Fetcher, lane: usize) -> Place {
    let word = |number: usize| match f.coordinates.get(number) {
        Some(row) => w.regs.r32[*row as usize][lane],
        None => 0,
    };
    let from = usize::from(matches!(
        f.shape,
        ImageShape::Layers1 | ImageShape::Layers2 | ImageShape::Cubes
    ));
    let layer = if from == 1 { word(0) as i32 } else { 0 };
    let clamped = |count: u32| i64::from(layer).clamp(0, i64::from(count.max(1)) - 1) as u32;
    let mut place = Place {
        lane,
        at: std::array::from_fn(|n| f32::from_bits(word(from + n))),
        texels: std::array::from_fn(|n| i64::from(word(from + n) as i32)),
        layer: clamped(t.image.depth),
    };
    if matches!(f.shape, ImageShape::Cube | ImageShape::Cubes) {
        let on_cube = CubePlace::new(place.at);
        place.layer = clamped(t.image.depth / 6) * 6 + on_cube.face;
        place.at = [on_cube.s, on_cube.t, 0.0];
    }
    place
}
