//! Texture fetches: `tex`, `tld4` and `txq`.

use super::access::Touch;
use super::cta::Cta;
use super::sampling::{Axis, Channels, CubePlace, Index, Taps, extents};
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
    at: Vec<f32>,
    /// The same as numbers of texels, if the instruction gives them.
    texels: Option<Vec<i64>>,
    layer: u32,
}

/// A texture with what its fetches share.
struct Fetcher<'t> {
    image: &'t Image,
    sampler: Sampler,
    channels: Channels,
    shape: ImageShape,
}

impl Fetcher<'_> {
    fn axes(&self) -> Vec<Axis> {
        let extents = extents(self.image, self.shape);
        let sized = extents.into_iter().enumerate();
        sized
            .map(|(dimension, size)| Axis::new(&self.sampler, dimension, size))
            .collect()
    }

    /// Returns the texel of indices by dimension in a layer; `None` is the border.
    fn indices(&self, place: &Place, index: &[Index]) -> Option<[u32; 3]> {
        let along = |dimension: usize| match index.get(dimension) {
            Some(index) => *index,
            None => Some(0),
        };
        let z = match self.shape {
            ImageShape::D3 => along(2)?,
            _ => place.layer,
        };
        Some([along(0)?, along(1)?, z])
    }
}

impl Cta<'_> {
    /// Executes a fetch, lane by lane.
    pub(super) fn fetch_texels(&mut self, w: &mut Warp, f: &Fetch, mask: u32) {
        for lane in lanes(mask) {
            let Some(ImageObject::Texture(texture)) = self.object(w, f.object, lane, "a fetch")
            else {
                return;
            };
            let fetcher = fetcher(&texture, f.shape);
            let place = lane_place(w, f, &fetcher, lane);
            let texel = self.fetch_lane(w, f, &fetcher, &place);
            for (data, word) in f.data.iter().zip(texel) {
                w.set(*data, lane, word.into());
            }
        }
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

    fn fetch_lane(&mut self, w: &mut Warp, f: &Fetch, t: &Fetcher<'_>, place: &Place) -> Texel {
        let axes = t.axes();
        if let Some(texels) = &place.texels {
            let indices = axes.iter().zip(texels);
            let indices: Vec<Index> = match t.image.linear {
                false => indices.map(|(axis, at)| axis.index(*at)).collect(),
                // The guide: a fetch beyond linear memory returns zero.
                true => {
                    let inside = |(axis, at): (&Axis, &i64)| {
                        u32::try_from(*at).ok().filter(|at| *at < axis.size)
                    };
                    let found: Option<Vec<u32>> = indices.map(inside).collect();
                    match found {
                        Some(found) => found.into_iter().map(Some).collect(),
                        None => return [0; 4],
                    }
                }
            };
            return self.texel(w, t, place, &indices);
        }
        if let Some(channel) = f.gather {
            return self.gather(w, t, place, channel);
        }
        let coordinates = axes.iter().zip(&place.at);
        if t.sampler.filters && t.channels.are_floats() {
            let taps: Vec<Taps> = coordinates.map(|(axis, at)| axis.between(*at)).collect();
            return self.interpolated(w, t, place, &taps);
        }
        let indices: Vec<Index> = coordinates.map(|(axis, at)| axis.nearest(*at)).collect();
        self.texel(w, t, place, &indices)
    }

    /// Returns the weighted sum of the texels around a place.
    fn interpolated(
        &mut self,
        w: &mut Warp,
        t: &Fetcher<'_>,
        place: &Place,
        taps: &[Taps],
    ) -> Texel {
        let mut sums = [0.0; 4];
        for corner in 0..1_usize << taps.len() {
            let mut weight = 1.0;
            let mut indices = Vec::with_capacity(taps.len());
            for (dimension, tap) in taps.iter().enumerate() {
                let second = corner >> dimension & 1 == 1;
                weight *= if second { tap.weight } else { 1.0 - tap.weight };
                indices.push(if second { tap.second } else { tap.first });
            }
            // A texel without a weight need not be written yet.
            if weight == 0.0 {
                continue;
            }
            let texel = self.texel(w, t, place, &indices);
            for (sum, word) in sums.iter_mut().zip(texel) {
                *sum += weight * f64::from(f32::from_bits(word));
            }
        }
        sums.map(|sum| (sum as f32).to_bits())
    }

    /// Returns one channel of the four texels around a place (PTX ISA, `tld4`).
    fn gather(&mut self, w: &mut Warp, t: &Fetcher<'_>, place: &Place, channel: usize) -> Texel {
        let axes = t.axes();
        let taps: Vec<Taps> = axes
            .iter()
            .zip(&place.at)
            .map(|(axis, at)| axis.between(*at))
            .collect();
        let [x, y] = taps.as_slice() else {
            return [0; 4];
        };
        let corners = [
            [x.first, y.second],
            [x.second, y.second],
            [x.second, y.first],
            [x.first, y.first],
        ];
        corners.map(|indices| self.texel(w, t, place, &indices)[channel])
    }

    /// Returns the converted channels of a texel.
    fn texel(&mut self, w: &mut Warp, t: &Fetcher<'_>, place: &Place, index: &[Index]) -> Texel {
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

fn fetcher(texture: &Texture, shape: ImageShape) -> Fetcher<'_> {
    let image = &texture.image;
    let mut sampler = texture.sampler;
    // A direction on a cube has no unit.
    sampler.normalized_coordinates |= matches!(shape, ImageShape::Cube | ImageShape::Cubes);
    Fetcher {
        image,
        sampler,
        channels: Channels {
            format: image.format,
            normalized: sampler.normalized_values,
            srgb: sampler.srgb,
        },
        shape,
    }
}

/// Returns the place that a lane's coordinates name.
fn lane_place(w: &Warp, f: &Fetch, t: &Fetcher<'_>, lane: usize) -> Place {
    let word = |number: usize| w.regs.r32[f.coordinates[number] as usize][lane];
    let from = usize::from(matches!(
        f.shape,
        ImageShape::Layers1 | ImageShape::Layers2 | ImageShape::Cubes
    ));
    let words = (from..f.coordinates.len()).map(word);
    let floats: Vec<f32> = words.clone().map(f32::from_bits).collect();
    let layer = if from == 1 { word(0) as i32 } else { 0 };
    let clamped = |layer: i64, count: u32| layer.clamp(0, i64::from(count.max(1)) - 1) as u32;
    let mut place = Place {
        lane,
        at: floats,
        texels: f
            .integer
            .then(|| words.map(|word| i64::from(word as i32)).collect()),
        layer: clamped(layer.into(), t.image.depth),
    };
    if let (ImageShape::Cube | ImageShape::Cubes, [x, y, z]) = (f.shape, place.at.as_slice()) {
        let on_cube = CubePlace::new([*x, *y, *z]);
        let cube = clamped(layer.into(), t.image.depth / 6);
        place.layer = cube * 6 + on_cube.face;
        place.at = vec![on_cube.s, on_cube.t];
    }
    place
}
