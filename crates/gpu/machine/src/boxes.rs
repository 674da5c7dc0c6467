//! Bulk copies of boxes of a tensor. They copy at once.

use super::memory::{CONSTANT_WINDOW, Memory};
use super::registers::{Origin, Source};
use super::warp::Warp;
use gpu_arithmetic::atomic::{AtomOp, apply};
use std::ops::Range;
use vgpu::tensor_box::{Chunk, CopyMode, TensorBox};
use vgpu::{TENSOR_MAP_BYTES, TensorMap};

/// Direction of a copy, with the operation of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Global to shared memory, completing a barrier.
    Load,
    Store,
    Reduce(AtomOp),
}

/// A copy of a box.
#[derive(Debug, Clone)]
pub(super) struct BoxCopy {
    pub(super) direction: Direction,
    /// Without offsets, which are in a register.
    pub(super) mode: CopyMode,
    pub(super) dimensions: u8,
    /// First of the uniform registers with the shared address, the barrier's (of loads) and the coordinates.
    pub(super) place: u8,
    /// First of the two uniform registers with the address of the tensor map.
    pub(super) map: u8,
    /// Register with the mask of the blocks of the cluster that receive the box, in its high half, and the
    /// offsets of an im2col load in its low half.
    pub(super) extra: Option<Source>,
    /// The register's mask counts.
    pub(super) multicast: bool,
}

/// Returns the mode of a copy; `packed` has the offsets of a load.
fn copy_mode(copy: &BoxCopy, packed: Option<u32>) -> CopyMode {
    let rank = copy.dimensions.into();
    let bits = CopyMode::offset_bits(rank);
    let spatial = u32::from(copy.dimensions).saturating_sub(2);
    let unpacked =
        |packed: u32| (0..spatial).map(move |n| packed >> (bits * n) & ((1 << bits) - 1));
    copy.mode
        .with_offsets(|_| packed.into_iter().flat_map(unpacked).collect())
}

impl Memory<'_> {
    /// Executes a copy.
    pub(super) fn tensor(&mut self, w: &mut Warp, copy: &BoxCopy) -> Result<(), String> {
        let u = |w: &Warp, n: u8| w.registers.uniform[usize::from(copy.place.saturating_add(n))];
        let map = self.tensor_map(w, copy.map)?;
        let loads = copy.direction == Direction::Load;
        let first = if loads { 2 } else { 1 };
        let extra = copy.extra.map(|extra| w.registers.raw(extra.from)[0]);
        let mode = copy_mode(copy, extra.filter(|_| loads));
        let coordinates = mode.coordinates(copy.dimensions.into()) as u8;
        let corner = (first..first + coordinates).map(|n| i64::from(u(w, n) as i32));
        let place = TensorBox {
            map: &map,
            mode,
            corner: corner.collect(),
            shared: u(w, 0),
        };
        if let Some(problem) = place.problem() {
            return Err(problem);
        }
        w.note_bulk(place.chunks().map(|chunk| chunk.range()), !loads);
        if !loads {
            if map.element.is_padded() {
                return Err("stores of padded elements are not executed".to_owned());
            }
            for chunk in place.chunks() {
                self.store_chunk(&place, &chunk, copy.direction)?;
            }
            return Ok(());
        }
        let blocks = extra.filter(|_| copy.multicast).map(|extra| extra >> 16);
        let mut place = place;
        for (shared, barrier) in self.receivers(u(w, 0).into(), u(w, 1).into(), blocks) {
            place.shared = shared as u32;
            for chunk in place.chunks() {
                self.load_chunk(&place, &chunk)?;
            }
            self.complete_bytes(w, barrier, place.bytes())?;
        }
        Ok(())
    }

    /// Reads a tensor map from the parameters or from global memory.
    fn tensor_map(&mut self, w: &Warp, register: u8) -> Result<TensorMap, String> {
        let at = w.registers.raw_wide(Origin::Uniform(register))[0];
        let mut bytes = Vec::with_capacity(TENSOR_MAP_BYTES);
        for offset in (0..TENSOR_MAP_BYTES as u64).step_by(4) {
            let word = match at & !0xffff_ffff {
                // A `__grid_constant__` tensor map stays among the parameters, in constant bank 0.
                CONSTANT_WINDOW => {
                    let place = (at + offset) & 0xffff_ffff;
                    w.registers.banks.read::<4>(0, place as usize) as u32
                }
                _ => self.load_global(at + offset, 4)?[0],
            };
            bytes.extend(word.to_le_bytes());
        }
        TensorMap::decode(&bytes).map_err(|why| format!("a tensor map at {at:#x}: {why}"))
    }

    fn load_chunk(&mut self, place: &TensorBox<'_>, chunk: &Chunk) -> Result<(), String> {
        // A box may begin at any element, so that its chunks need not be aligned in global memory.
        if chunk.inside == (0..16) && chunk.global.is_multiple_of(16) {
            let value = self.load_global(chunk.global, 16)?;
            return self.store_shared(chunk.shared.into(), 16, value);
        }
        let width = place.map.element.bytes();
        for at in (0..chunk.bytes).step_by(width as usize) {
            let outside = place.outside();
            let value = match chunk.inside.contains(&at) {
                true => self.load_global(chunk.global.wrapping_add(at.into()), width as u8)?,
                false => [outside as u32, (outside >> 32) as u32, 0, 0],
            };
            self.store_shared(u64::from(chunk.shared + at), width as u8, value)?;
        }
        Ok(())
    }

    fn store_chunk(
        &mut self,
        place: &TensorBox<'_>,
        chunk: &Chunk,
        direction: Direction,
    ) -> Result<(), String> {
        let width = place.map.element.bytes();
        // Elements outside the tensor have no place in global memory.
        let inside: Range<u32> = chunk.inside.clone();
        for at in inside.step_by(width as usize) {
            let mut value = self.load_shared(u64::from(chunk.shared + at), width as u8)?;
            let to = chunk.global.wrapping_add(at.into());
            if let Direction::Reduce(op) = direction {
                let ty = place
                    .reduced_type()
                    .ok_or("a reduction of small integers")?;
                let number = |words: [u32; 4]| u64::from(words[0]) | u64::from(words[1]) << 32;
                let old = number(self.load_global(to, width as u8)?);
                let new = apply(op, ty, old, number(value), 0);
                value = [new as u32, (new >> 32) as u32, 0, 0];
            }
            self.store_global(to, width as u8, value)?;
        }
        Ok(())
    }
}
