//! `st.bulk` (PTX ISA, 9.7.9.13): zeros in shared memory, as ordinary stores of the thread.

use super::access::{Touch, split};
use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Address, Area, NONE};

/// Bytes of a unit, and all of them at most.
const UNIT: u64 = 8;
const MAX_BYTES: u64 = 1 << 24;

impl Cta<'_> {
    /// Executes `st.bulk` of each active lane; `bytes` is the row of its size.
    pub(super) fn clear(&mut self, w: &mut Warp, at: &Address, bytes: u32, active: u32) {
        for lane in lanes(active) {
            let size = w.regs.r64[bytes as usize][lane];
            let first = w.address(at, lane);
            let (area, place) = match at.area {
                Area::Generic => split(first),
                area => (area, first),
            };
            let why = match () {
                () if !size.is_multiple_of(UNIT) || size > MAX_BYTES => Some(format!(
                    "st.bulk of {size} bytes: a multiple of {UNIT} up to {MAX_BYTES} is possible"
                )),
                () if area != Area::Shared => {
                    Some("st.bulk to an address outside shared memory".to_owned())
                }
                () => None,
            };
            if let Some(why) = why {
                let (thread, place) = (w.index * 32 + lane, Location::new(Space::Shared, place));
                self.hazard(HazardKind::Crashed, thread, place, NONE, || why);
                continue;
            }
            for offset in (0..size).step_by(UNIT as usize) {
                let touch = Touch::write(lane, UNIT as u32);
                // The first place that does not exist is reported; the others do not exist either.
                let Some(place) = self.touch(w, area, place + offset, touch) else {
                    break;
                };
                self.put(w, place, 0, UNIT as u32, 0);
            }
        }
    }
}
