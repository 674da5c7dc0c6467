//! Surface loads and stores: `suld` and `sust`.

use super::access::Touch;
use super::cta::Cta;
use super::surface_place::{SurfacePlace, formatted};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, Boundary, NONE, SurfaceAccess, SurfaceKind};
use crate::texture::{Image, ImageObject};

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
        let word = |row: &u32| w.regs.r32[*row as usize][lane];
        let words = std::array::from_fn(|n| a.coordinates.get(n).map_or(0, word));
        let bytes = match a.kind {
            // The formatted store counts texels.
            SurfaceKind::StoreFormatted => None,
            _ => Some(a.width * a.data.len() as u32),
        };
        let mut spot = SurfacePlace::new(a.shape, words, bytes, image);
        let loads = a.kind == SurfaceKind::Load;
        let touch = match loads {
            true => Touch::read(lane, spot.bytes),
            false => Touch::write(lane, spot.bytes),
        };
        let found = match spot.address(image, a.boundary) {
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
        spot: &SurfacePlace,
        loads: bool,
    ) {
        let thread = Self::thread(w, lane);
        let place = Location::new(Space::Global, image.address);
        self.hazard(HazardKind::OutOfBounds, thread, place, NONE, || {
            spot.outside(image, loads)
        });
    }
}
