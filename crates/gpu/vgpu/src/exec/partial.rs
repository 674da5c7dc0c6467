//! Loads with unused bytes.
//!
//! Compilers widen neighbouring scalar loads to one vector, which may cover bytes that the source
//! never reads, such as those after the end of an array or the padding of a struct. The hardware
//! reads them without harm. NVRTC marks them (`.pragma "used_bytes_mask"`), or leaves a destination
//! that no instruction reads. Only used bytes are checked and counted as read.

use super::access::Touch;
use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::lower::program::{Data, Mem, every_byte};

impl Mem {
    pub(super) fn uses_all(&self) -> bool {
        let all = every_byte(self.width * self.data.len() as u32);
        self.used & all == all
    }
}

impl Cta<'_> {
    pub(super) fn load_partly(&mut self, w: &mut Warp, m: &Mem, mask: u32) {
        let bytes = m.width * m.data.len() as u32;
        for lane in lanes(mask) {
            let at = w.address(&m.at, lane);
            if at & u64::from(bytes - 1) != 0 {
                // The whole vector must be aligned: this access reports it.
                let _ = self.touch(w, m.at.area, at, Touch::read(lane, bytes));
                m.data.iter().for_each(|d| w.set(*d, lane, 0));
                continue;
            }
            for (i, d) in (0..).zip(&m.data).filter(|(_, d)| **d != Data::Nothing) {
                let used = m.used >> (i * m.width) & every_byte(m.width);
                let value = self.load_bytes(w, m, at + u64::from(i * m.width), used, lane);
                w.set(*d, lane, m.extended(value, *d));
            }
        }
    }

    /// Loads an element of which only the bytes `used` are used.
    fn load_bytes(&mut self, w: &mut Warp, m: &Mem, at: u64, used: u32, lane: usize) -> u64 {
        let area = m.at.area;
        if used == every_byte(m.width) {
            let place = self.touch(w, area, at, Touch::read(lane, m.width));
            return place.map_or(0, |p| self.get(w, p, 0, m.width));
        }
        let mut value = 0;
        for byte in lanes(used) {
            let place = self.touch(w, area, at + byte as u64, Touch::read(lane, 1));
            value |= place.map_or(0, |p| self.get(w, p, 0, 1)) << (8 * byte);
        }
        value
    }
}
