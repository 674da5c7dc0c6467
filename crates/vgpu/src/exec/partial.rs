//! Vector loads of which some elements go nowhere.
//!
//! Compilers widen neighbouring scalar loads to one vector, also over bytes that the source never
//! reads: behind the end of an array, say, where the hardware reads them harmlessly. Only elements
//! that somebody uses are judged, and counted as read.

use super::access::Touch;
use super::team::Team;
use super::transfer::lanes;
use super::warp::Warp;
use crate::lower::program::{Data, Mem};

impl Team<'_> {
    pub(super) fn load_partly(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        let bytes = m.width * m.data.len() as u32;
        for lane in lanes(mask) {
            let at = w.address(&m.at, lane);
            if at & u64::from(bytes - 1) != 0 {
                // The whole vector has to be aligned: this says so.
                let _ = self.touch(w, m.at.area, at, Touch::read(lane, bytes));
                m.data.iter().for_each(|d| w.set(*d, lane, 0));
                continue;
            }
            let used = |d: &Data| *d != Data::Nothing;
            for (i, d) in m.data.iter().enumerate().filter(|(_, d)| used(d)) {
                let at = at + u64::from(i as u32 * m.width);
                let value = self
                    .touch(w, m.at.area, at, Touch::read(lane, m.width))
                    .map_or(0, |place| self.get(w, place, 0, m.width));
                w.set(*d, lane, m.extended(value, *d));
            }
        }
    }
}
