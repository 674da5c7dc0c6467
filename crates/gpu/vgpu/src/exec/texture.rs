//! Texture fetches: `tex`, `tld4` and `txq`.

use super::access::Touch;
use super::cta::Cta;
use super::fetcher::{FetchKind, Fetcher, Texel};
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::program::{Area, Fetch, ImageQuery, NONE, Queried};
use crate::texture::{ImageObject, TexelFormat};

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
            let word = |row: &u32| w.regs.r32[*row as usize][lane];
            let words = std::array::from_fn(|n| f.coordinates.get(n).map_or(0, word));
            let kind = match (f.integer, f.gather) {
                (true, _) => FetchKind::Numbered,
                (_, Some(channel)) => FetchKind::Gathered(channel),
                _ => FetchKind::Sampled,
            };
            let format = fetcher.format();
            let texel = fetcher.fetch(words, kind, &mut |at| self.raw_texel(w, lane, at, format));
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

    /// Returns the bits of the channels of a texel.
    fn raw_texel(
        &mut self,
        w: &mut Warp,
        lane: usize,
        at: u64,
        format: TexelFormat,
    ) -> Option<Texel> {
        let bytes = format.bytes();
        self.counters.global_load_bytes += u64::from(bytes);
        let found = self.touch(w, Area::Global, at, Touch::read(lane, bytes))?;
        let width = format.channel_bytes;
        Some(std::array::from_fn(|n| {
            match (n as u32) < format.channels {
                true => self.get(w, found, n as u32 * width, width) as u32,
                false => 0,
            }
        }))
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
