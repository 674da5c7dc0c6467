//! Surface loads and stores: `suld` and `sust`.

use gpu_arithmetic::half::f32_to_f16;

use super::access::Touch;
use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, Boundary, ImageShape, NONE, SurfaceAccess, SurfaceKind};
use crate::texture::{ChannelKind, Image, ImageObject, TexelFormat};

/// Place of an access in a surface.
struct Spot {
    /// Byte in the row.
    x: i64,
    y: i64,
    z: i64,
    /// Bytes of the access.
    bytes: u32,
}

impl Spot {
    /// Returns the address inside the surface; `None` outside it.
    fn address(&self, image: &Image) -> Option<u64> {
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
}

impl Cta<'_> {
    /// Executes a surface access, lane by lane.
    pub(super) fn surface(&mut self, w: &mut Warp, a: &SurfaceAccess, mask: u32) {
        for lane in lanes(mask) {
            let image = match self.object(w, a.object, lane, "a surface access") {
                Some(ImageObject::Surface(image)) => image,
                Some(ImageObject::Texture(_)) => {
                    let detail = || "a surface access through a texture object".to_owned();
                    return self.refuse_object(w, lane, detail);
                }
                None => return,
            };
            self.surface_lane(w, a, &image, lane);
        }
    }

    fn surface_lane(&mut self, w: &mut Warp, a: &SurfaceAccess, image: &Image, lane: usize) {
        let mut spot = lane_spot(w, a, image, lane);
        if a.boundary == Boundary::Clamp {
            spot.clamp(image);
        }
        let loads = a.kind == SurfaceKind::Load;
        let touch = match loads {
            true => Touch::read(lane, spot.bytes),
            false => Touch::write(lane, spot.bytes),
        };
        let found = match spot.address(image) {
            Some(at) => self.touch(w, Area::Global, at, touch),
            None => {
                if a.boundary == Boundary::Trap {
                    self.surface_out_of_bounds(w, image, lane, &spot, loads);
                }
                None
            }
        };
        let counter = match loads {
            true => &mut self.counters.global_load_bytes,
            false => &mut self.counters.global_store_bytes,
        };
        *counter += u64::from(spot.bytes);
        let width = match a.kind {
            SurfaceKind::StoreFormatted => image.format.channel_bytes,
            _ => a.width,
        };
        for (number, data) in (0..).zip(&a.data) {
            let offset = number * width;
            if offset + width > spot.bytes {
                break;
            }
            match (a.kind, found) {
                (SurfaceKind::Load, Some(place)) => {
                    let value = self.get(w, place, offset, width);
                    w.set(*data, lane, value);
                }
                // Outside the image a load gives zero, and a store has no effect (PTX ISA, `suld`
                // and `sust`).
                (SurfaceKind::Load, None) => w.set(*data, lane, 0),
                (SurfaceKind::Store, Some(place)) => {
                    let value = w.value(*data, lane);
                    self.put(w, place, offset, width, value);
                }
                (SurfaceKind::StoreFormatted, Some(place)) => {
                    let value = formatted(image.format, w.value(*data, lane) as u32);
                    self.put(w, place, offset, width, value.into());
                }
                (_, None) => {}
            }
        }
    }

    #[cold]
    fn surface_out_of_bounds(
        &mut self,
        w: &Warp,
        image: &Image,
        lane: usize,
        spot: &Spot,
        loads: bool,
    ) {
        let act = if loads { "read" } else { "write" };
        let row = image.width * image.format.bytes();
        let (height, depth) = (image.height, image.depth);
        let &Spot { x, y, z, bytes } = spot;
        let thread = Self::thread(w, lane);
        let place = Location::new(Space::Global, image.address);
        self.hazard(HazardKind::OutOfBounds, thread, place, NONE, || {
            format!(
                "a {act} of {bytes} bytes at byte {x} of row {y} in slice {z} of a surface with \
                 {row} bytes a row, {height} rows and {depth} slices"
            )
        });
    }
}

fn lane_spot(w: &Warp, a: &SurfaceAccess, image: &Image, lane: usize) -> Spot {
    let at = |number: usize| {
        let row = a.coordinates.get(number);
        row.map_or(0, |row| i64::from(w.regs.r32[*row as usize][lane] as i32))
    };
    let [x, y, z] = match a.shape {
        ImageShape::Layers1 => [at(1), 0, at(0)],
        ImageShape::Layers2 => [at(1), at(2), at(0)],
        _ => [at(0), at(1), at(2)],
    };
    let texel = image.format.bytes();
    match a.kind {
        // The formatted store counts texels.
        SurfaceKind::StoreFormatted => Spot {
            x: x * i64::from(texel),
            y,
            z,
            bytes: texel,
        },
        _ => Spot {
            x,
            y,
            z,
            bytes: a.width * a.data.len() as u32,
        },
    }
}

/// Returns a word as a channel of a format: integers saturate (PTX ISA, `sust.p`).
fn formatted(format: TexelFormat, word: u32) -> u32 {
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
