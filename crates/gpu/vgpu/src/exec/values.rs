//! Values at checked memory locations.

use std::sync::atomic::Ordering::Relaxed;

use super::access::CheckedLocation;
use super::cta::Cta;
use super::warp::Warp;

impl Cta<'_> {
    /// Reads up to 8 bytes at a checked location.
    #[inline]
    pub(super) fn get(&self, w: &Warp, place: CheckedLocation, offset: u32, bytes: u32) -> u64 {
        match place {
            CheckedLocation::Global(l) => {
                let words = &self.context.memory.allocations[l.index].words;
                let at = l.offset + u64::from(offset);
                from_words(at, bytes, |i| words[i].load(Relaxed))
            }
            CheckedLocation::Shared(at) => {
                from_words(u64::from(at + offset), bytes, |i| self.shared[i])
            }
            CheckedLocation::Local(at) => little(&w.local[at + offset as usize..], bytes),
            CheckedLocation::Param(at) => {
                little(&self.context.params[at + offset as usize..], bytes)
            }
        }
    }

    /// Stores up to 8 bytes at a checked location.
    #[inline]
    pub(super) fn put(
        &mut self,
        w: &mut Warp,
        place: CheckedLocation,
        offset: u32,
        bytes: u32,
        value: u64,
    ) {
        // The version detects deadlocks: a polling loop is stuck only while memory stays unchanged.
        // Local memory is part of a warp's hashed state instead.
        if !matches!(place, CheckedLocation::Local(_)) {
            let cut = if bytes == 8 {
                u64::MAX
            } else {
                (1 << (bytes * 8)) - 1
            };
            self.version += u64::from(self.get(w, place, offset, bytes) != value & cut);
        }
        match place {
            CheckedLocation::Global(l) => {
                let words = &self.context.memory.allocations[l.index].words;
                let at = l.offset + u64::from(offset);
                let word = (at / 4) as usize;
                match bytes {
                    4 => words[word].store(value as u32, Relaxed),
                    8 => {
                        words[word].store(value as u32, Relaxed);
                        words[word + 1].store((value >> 32) as u32, Relaxed);
                    }
                    _ => {
                        let (mask, shift) = locate_bytes(at, bytes);
                        // A block on another core may store the neighbouring bytes at the same
                        // time.
                        let _ = words[word].fetch_update(Relaxed, Relaxed, |old| {
                            Some((old & !mask) | ((value as u32) << shift & mask))
                        });
                    }
                }
            }
            CheckedLocation::Shared(at) => {
                let at = u64::from(at + offset);
                let word = (at / 4) as usize;
                match bytes {
                    4 => self.shared[word] = value as u32,
                    8 => {
                        self.shared[word] = value as u32;
                        self.shared[word + 1] = (value >> 32) as u32;
                    }
                    _ => {
                        let (mask, shift) = locate_bytes(at, bytes);
                        let old = self.shared[word];
                        self.shared[word] = (old & !mask) | ((value as u32) << shift & mask);
                    }
                }
            }
            CheckedLocation::Local(at) => {
                let at = at + offset as usize;
                let bytes = bytes as usize;
                w.local[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
            // Parameters are read-only: `touch_param` refuses every write.
            CheckedLocation::Param(_) => {}
        }
    }
}

#[inline(always)]
fn locate_bytes(at: u64, bytes: u32) -> (u32, u32) {
    let shift = (at & 3) as u32 * 8;
    (((1u64 << (bytes * 8)) - 1) as u32)
        .checked_shl(shift)
        .map_or((0, 0), |m| (m, shift))
}

#[inline(always)]
fn from_words(at: u64, bytes: u32, word: impl Fn(usize) -> u32) -> u64 {
    let i = (at / 4) as usize;
    match bytes {
        4 => word(i).into(),
        8 => u64::from(word(i)) | u64::from(word(i + 1)) << 32,
        2 => u64::from(word(i) >> ((at & 3) * 8) & 0xffff),
        _ => u64::from(word(i) >> ((at & 3) * 8) & 0xff),
    }
}

fn little(bytes: &[u8], n: u32) -> u64 {
    let mut out = [0; 8];
    out[..n as usize].copy_from_slice(&bytes[..n as usize]);
    u64::from_le_bytes(out)
}
