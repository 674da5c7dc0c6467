//! Texture fetches, surface accesses and queries of their objects.

use super::memory::{Memory, lanes};
use super::registers::{Dest, Pred, Source};
use super::warp::Warp;
use vgpu::exec::fetcher::{FetchKind, Fetcher};
use vgpu::exec::surface_place::{SurfacePlace, formatted};
use vgpu::{AddressMode, Boundary, Image, ImageObject, ImageShape, TexelFormat, Texture};

/// A texture fetch.
#[derive(Debug, Clone)]
pub(super) struct Fetch {
    /// Lower half of the object's handle.
    pub(super) handle: Source,
    pub(super) shape: ImageShape,
    pub(super) kind: FetchKind,
    /// In the order of PTX, a layer first.
    pub(super) coordinates: Vec<Source>,
    /// Channels with their registers.
    pub(super) channels: Vec<(usize, Dest)>,
    /// Tells whether texels are not resident.
    pub(super) missing: Pred,
}

/// Direction of a surface access.
#[derive(Debug, Clone, Copy)]
pub(super) enum SurfaceData {
    Load {
        dest: Dest,
        signed: bool,
    },
    Store(Source),
    /// Stores the first channels of a texel, each converted to the format of the surface.
    StoreFormatted(Source, u8),
}

/// A surface access.
#[derive(Debug, Clone)]
pub(super) struct Surface {
    pub(super) handle: Source,
    pub(super) shape: ImageShape,
    pub(super) boundary: Boundary,
    /// In the order of PTX, a layer first.
    pub(super) coordinates: Vec<Source>,
    /// Bytes per lane.
    pub(super) bytes: u8,
    pub(super) data: SurfaceData,
}

/// An operation on an image.
#[derive(Debug, Clone)]
pub(super) enum ImageOp {
    Fetch(Fetch),
    Surface(Surface),
    /// Reads extents: which (width, height, depth) go to which registers.
    Query(Source, Vec<(usize, Dest)>),
}

/// Addresses of the texels that each lane read, in the order of its reads.
#[derive(Default)]
struct Texels {
    places: Vec<(usize, u64)>,
    bytes: u32,
}

impl Memory<'_> {
    /// Executes an operation on images for the lanes of `mask`.
    pub(super) fn image(&mut self, w: &mut Warp, op: &ImageOp, mask: u32) -> Result<(), String> {
        match op {
            ImageOp::Fetch(fetch) => self.fetch_texels(w, fetch, mask),
            ImageOp::Surface(surface) => self.surface(w, surface, mask),
            ImageOp::Query(handle, extents) => self.query(w, handle, extents, mask),
        }
    }

    fn object(&self, handle: u32) -> Result<&ImageObject, String> {
        // Handles have 64 bits, of which the machine code passes the lower half.
        let found = self.global.image_object(handle.into());
        found.ok_or_else(|| format!("{handle:#x} is not a texture or surface object"))
    }

    fn fetch_texels(&mut self, w: &mut Warp, f: &Fetch, mask: u32) -> Result<(), String> {
        let handles = w.registers.int(&f.handle);
        let rows: Vec<_> = f.coordinates.iter().map(|c| w.registers.int(c)).collect();
        let mut results = [[0; 32]; 4];
        let mut texels = Texels::default();
        let mut known: Option<(u32, Texture)> = None;
        let mut prepared: Option<(ImageShape, Fetcher)> = None;
        for lane in lanes(mask) {
            // The lanes of a warp mostly name one texture.
            let texture = match known {
                Some((named, texture)) if named == handles[lane] => texture,
                _ => match self.object(handles[lane])? {
                    ImageObject::Texture(texture) => {
                        prepared = None;
                        *texture
                    }
                    ImageObject::Surface(_) => return Err("a fetch from a surface".to_owned()),
                },
            };
            known = Some((handles[lane], texture));
            let words = std::array::from_fn(|n| rows.get(n).map_or(0, |row| row[lane]));
            let shape = shape_of(f, &texture, words);
            let fetcher = match prepared.take() {
                Some((known, fetcher)) if known == shape => fetcher,
                _ => Fetcher::new(&texture, shape),
            };
            let (_, fetcher) = prepared.insert((shape, fetcher));
            let format = fetcher.format();
            texels.bytes = format.bytes();
            let texel = fetcher.fetch(words, f.kind, &mut |at| {
                texels.places.push((lane, at));
                let words = self.load_global(at, format.bytes() as u8).ok()?;
                Some(channels(words, format))
            });
            for (result, word) in results.iter_mut().zip(texel) {
                result[lane] = word;
            }
        }
        for (channel, dest) in &f.channels {
            w.registers.set(*dest, mask, &results[*channel]);
        }
        // Objects describe plain memory, not sparse textures: every texel is resident.
        w.registers.set_truth(f.missing, mask, 0);
        w.note_texels(&texels.places, texels.bytes, false);
        Ok(())
    }

    fn surface(&mut self, w: &mut Warp, s: &Surface, mask: u32) -> Result<(), String> {
        let handles = w.registers.int(&s.handle);
        let rows: Vec<_> = s.coordinates.iter().map(|c| w.registers.int(c)).collect();
        let loads = matches!(s.data, SurfaceData::Load { .. });
        let bytes = match s.data {
            SurfaceData::StoreFormatted(..) => None,
            _ => Some(s.bytes.into()),
        };
        let mut loaded = [[0; 32]; 4];
        let mut texels = Texels::default();
        for lane in lanes(mask) {
            let image = match self.object(handles[lane])? {
                ImageObject::Surface(image) => *image,
                ImageObject::Texture(_) => {
                    return Err("a surface access through a texture".to_owned());
                }
            };
            let words = std::array::from_fn(|n| rows.get(n).map_or(0, |row| row[lane]));
            let mut place = SurfacePlace::new(s.shape, words, bytes, &image);
            let Some(at) = place.address(&image, s.boundary) else {
                if s.boundary == Boundary::Trap {
                    return Err(place.outside(&image, loads));
                }
                continue;
            };
            texels.places.push((lane, at));
            texels.bytes = place.bytes;
            match s.data {
                SurfaceData::Load { .. } => {
                    let words = self.load_global(at, s.bytes)?;
                    for (row, word) in loaded.iter_mut().zip(words) {
                        row[lane] = word;
                    }
                }
                SurfaceData::Store(source) => {
                    let words = registers(w, source, lane);
                    self.store_global(at, s.bytes, words)?;
                }
                SurfaceData::StoreFormatted(source, count) => {
                    let words = registers(w, source, lane);
                    self.store_texel(&image, at, &words[..usize::from(count)])?;
                }
            }
        }
        if let SurfaceData::Load { dest, signed } = s.data {
            if signed {
                let unused = 32 - 8 * u32::from(s.bytes.min(4));
                loaded[0] = loaded[0].map(|v| ((v << unused) as i32 >> unused) as u32);
            }
            let count = usize::from(s.bytes.div_ceil(4));
            for (n, row) in (0u8..).zip(loaded.iter().take(count)) {
                w.registers.set(dest.next(n), mask, row);
            }
        }
        w.note_texels(&texels.places, texels.bytes, !loads);
        Ok(())
    }

    /// Stores channels of a texel, those that its format has.
    fn store_texel(&mut self, image: &Image, at: u64, words: &[u32]) -> Result<(), String> {
        let format = image.format;
        let places = (at..).step_by(format.channel_bytes as usize);
        for (word, at) in words.iter().zip(places).take(format.channels as usize) {
            let value = [formatted(format, *word), 0, 0, 0];
            self.store_global(at, format.channel_bytes as u8, value)?;
        }
        Ok(())
    }

    fn query(
        &mut self,
        w: &mut Warp,
        handle: &Source,
        extents: &[(usize, Dest)],
        mask: u32,
    ) -> Result<(), String> {
        let handles = w.registers.int(handle);
        let mut found = [[0; 32]; 3];
        for lane in lanes(mask) {
            let image = match self.object(handles[lane])? {
                ImageObject::Texture(texture) => &texture.image,
                ImageObject::Surface(image) => image,
            };
            found[0][lane] = image.width;
            found[1][lane] = image.height;
            found[2][lane] = image.depth;
        }
        for (extent, dest) in extents {
            w.registers.set(*dest, mask, &found[*extent]);
        }
        Ok(())
    }
}

/// Returns the shape of a fetch. The assembler turns fetches from one dimension into those from two, with zero as the
/// second coordinate, which a GPU ignores where the texture has one.
fn shape_of(f: &Fetch, texture: &Texture, words: [u32; 4]) -> ImageShape {
    let flat = texture.image.height == 1 && texture.image.depth == 1;
    let border = texture.sampler.address[1] == AddressMode::Border;
    match (f.kind, f.shape) {
        (FetchKind::Sampled, ImageShape::D2) if flat && (words[1] == 0 || !border) => {
            ImageShape::D1
        }
        _ => f.shape,
    }
}

/// Splits the words of a texel.
fn channels(words: [u32; 4], format: TexelFormat) -> [u32; 4] {
    let bits = 8 * format.channel_bytes;
    std::array::from_fn(|n| {
        let at = n as u32 * bits;
        let word = words.get(at as usize / 32).copied().unwrap_or(0);
        word >> (at % 32) & (u32::MAX >> (32 - bits))
    })
}

fn registers(w: &Warp, source: Source, lane: usize) -> [u32; 4] {
    std::array::from_fn(|n| w.registers.raw(source.from.nth(n as u8))[lane])
}
