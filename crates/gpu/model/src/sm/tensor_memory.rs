//! Asynchronous products in tensor memory (`tcgen05`), copies to it, and transfers between it and registers.
//!
//! A multiprocessor has one queue of products and copies, in the order of their issue. A product occupies it for
//! its multiply-adds at the peak rate, which 64 rows halve (128 rows and N columns: N / 2 cycles, every type),
//! or for the bytes of its operands in shared memory at the rate of that memory: ademeure/QuickRunCUDA,
//! `b300_clean/06_tensor_cores.md` (B300, 2026), and SemiAnalysis, "Dissecting Nvidia Blackwell" (B200, 2026),
//! which finds fewer than 128 columns bound by 128 bytes a cycle. Two blocks of a pair have half each.

use super::Sm;
use super::paths::Issue;
use crate::code::TensorCore;
use crate::cursor::AccessLookup;
use crate::units::{Rates, TENSOR};
use vgpu::exec::trace::Target;

/// Cycles from the end of a product to its arrival at an `mbarrier` (FlashGPU-Sim, configuration SM100_B200).
const TAIL_CYCLES: u64 = 160;
/// Cycles of an allocation that does not wait (the same notes on a B300).
const ALLOCATION_CYCLES: u64 = 253;
/// Lanes of tensor memory, all of which a product of any number of rows occupies.
const LANES: u32 = 128;
/// Bytes a cycle that a scheduler loads from tensor memory, and stores there (there: 57 bytes
/// a warp, and 97 TB/s of 148 multiprocessors at 1920 MHz).
const LOAD_BYTES: u64 = 57;
const STORE_BYTES: u64 = 85;

impl Sm<'_> {
    /// Issues a product or a copy, or occupies the path between registers and tensor memory; returns the end.
    pub(super) fn tensor_memory(&mut self, issue: Issue, op: TensorCore) -> u64 {
        let Issue {
            core,
            warp_index,
            now,
        } = issue;
        match op {
            TensorCore::Transfer { registers, stores } => {
                let rate = if stores { STORE_BYTES } else { LOAD_BYTES };
                let busy = (u64::from(registers) * 128).div_ceil(rate);
                let path = &mut self.cores[core].tensor_memory;
                *path = (*path).max(now) + busy;
                *path + u64::from(self.work.arch.shared_cycles)
            }
            TensorCore::Allocate => now + ALLOCATION_CYCLES,
            TensorCore::Product { .. } | TensorCore::Copy => {
                let busy = self.queue_cycles(warp_index, op);
                let end = self.products_end.max(now) + busy;
                self.products_end = end;
                // Each scheduler has a part of the tensor core.
                self.out.tally.pipe_cycles[TENSOR] += busy * self.cores.len() as u64;
                let warp = &mut self.warps[warp_index];
                warp.product_end = warp.product_end.max(end + TAIL_CYCLES);
                end
            }
        }
    }

    /// Returns the cycles of a product or copy in the queue of the multiprocessor: outside the kept trace, those of
    /// the last one.
    fn queue_cycles(&mut self, warp_index: usize, op: TensorCore) -> u64 {
        if let AccessLookup::Access(access, _) = self.lookup_access(warp_index).0
            && let Target::TensorCore { columns, bytes } = access.target
        {
            let rate = self.work.arch.shared_bytes_per_clock;
            self.product_cycles = queue_cycles(&self.rates, rate, op, columns, bytes);
        }
        self.product_cycles.max(1)
    }
}

/// Returns the cycles of a product of some columns of tensor memory, or of a copy. Shared memory provides
/// `shared_rate` bytes a cycle.
fn queue_cycles(rates: &Rates, shared_rate: u32, op: TensorCore, columns: u32, bytes: u32) -> u64 {
    let work = match op {
        TensorCore::Product { matrix, depth } => {
            rates.tensor_memory_cycles(LANES * columns * depth, matrix)
        }
        _ => 0,
    };
    work.max(bytes.div_ceil(shared_rate).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Matrix;
    use vgpu::Arch;

    #[test]
    fn products_take_what_was_measured() {
        let b200 = Arch::by_name("b200").unwrap();
        let rates = Rates::from_arch(b200);
        let cycles = |matrix, depth, columns: u32, operands: u32| {
            let op = TensorCore::Product { matrix, depth };
            queue_cycles(
                &rates,
                b200.shared_bytes_per_clock,
                op,
                columns,
                32 * operands,
            )
        };
        // 128 rows in shared memory: half a cycle a column of every type, or the bytes of both operands.
        for (matrix, depth) in [(Matrix::F16, 16), (Matrix::F8, 32), (Matrix::Int, 32)] {
            assert_eq!(cycles(matrix, depth, 256, 128 + 256), 128);
            assert_eq!(cycles(matrix, depth, 128, 128 + 128), 64);
            assert_eq!(cycles(matrix, depth, 64, 128 + 64), 48);
        }
        // A in tensor memory, and a pair of blocks that has half of the columns of B each.
        assert_eq!(cycles(Matrix::F16, 16, 64, 64), 32);
        assert_eq!(cycles(Matrix::F16, 16, 256, 128 + 128), 128);
    }
}
