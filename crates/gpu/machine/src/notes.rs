//! Records of memory accesses and signals for the timing model.

use super::memory::{Window, lanes, split};
use super::warp::Warp;
use std::ops::Range;
use vgpu::exec::trace::{SignalKind, WarpTrace};
use vgpu::exec::traffic::shared_wavefronts;

impl Warp {
    /// Records an atomic operation. Lanes with the same bank of shared memory are serialized, even
    /// with the same word.
    pub(super) fn note_atomic(&mut self, at: &[u64; 32], window: Window, mask: u32, bytes: u8) {
        let pc = self.pc;
        let Some(trace) = self.trace.as_mut().filter(|_| mask != 0) else {
            return;
        };
        match split(window, at[mask.trailing_zeros() as usize]).0 {
            Window::Shared => {
                let mut banks = [0u64; 32];
                lanes(mask).for_each(|lane| banks[(at[lane] / 4 % 32) as usize] += 1);
                let passes = banks.into_iter().max().unwrap_or(1);
                trace.shared(pc, passes, passes - 1, mask, bytes.into(), true);
            }
            Window::Local => self.note(at, window, mask, bytes, true),
            _ => trace.atomic(pc, at, mask, bytes.into()),
        }
    }

    /// Records a bulk copy from or to ranges of global memory.
    pub(super) fn note_bulk(&mut self, ranges: impl Iterator<Item = Range<u64>>, write: bool) {
        let pc = self.pc;
        if let Some(trace) = self.trace.as_mut() {
            trace.bulk(pc, ranges, write);
        }
    }

    /// Records the columns of tensor memory that a product or allocation has in one block, and the bytes of shared memory
    /// that it or a copy reads there.
    pub(super) fn note_tensor_core(&mut self, columns: u32, bytes: u32) {
        let pc = self.pc;
        if let Some(trace) = self.trace.as_mut() {
            trace.tensor_core(pc, columns, bytes);
        }
    }

    /// Records the accesses of a fetch or of a surface access: lanes with the addresses of texels.
    pub(super) fn note_texels(&mut self, places: &[(usize, u64)], bytes: u32, write: bool) {
        let pc = self.pc;
        if let Some(trace) = self.trace.as_mut() {
            trace.texels(pc, places, bytes, write);
        }
    }

    /// Records a signal to a barrier in shared memory.
    pub(super) fn note_signal(&mut self, phase: impl FnOnce() -> u32, kind: SignalKind) {
        let pc = self.pc;
        if let Some(trace) = self.trace.as_mut() {
            trace.signal(pc, phase(), kind);
        }
    }

    /// Records an access for the timing model.
    pub(super) fn note(
        &mut self,
        at: &[u64; 32],
        window: Window,
        mask: u32,
        bytes: u8,
        write: bool,
    ) {
        let pc = self.pc;
        let Some(trace) = self.trace.as_mut().filter(|_| mask != 0) else {
            return;
        };
        let trace: &mut WarpTrace = trace;
        match split(window, at[mask.trailing_zeros() as usize]).0 {
            Window::Shared => {
                let (groups, extra) = shared_wavefronts(at, mask, bytes.into(), write);
                trace.shared(pc, groups + extra, extra, mask, bytes.into(), write);
            }
            Window::Local => {
                // A generic address has the number of the window above the offset.
                let at = at.map(|at| at & 0xffff_ffff);
                trace.local(pc, &at, mask, bytes.into(), write);
            }
            _ => trace.global(pc, at, 0, mask, bytes.into(), write),
        }
    }
}
