//! Loads and stores of matrices, whose rows are at the addresses of eight lanes each.

use super::memory::{Memory, Window};
use super::registers::{Dest, Source};
use super::warp::Warp;
use gpu_arithmetic::layout;

impl Memory<'_> {
    pub(super) fn load_matrices(
        &mut self,
        w: &mut Warp,
        at: &[u64; 32],
        dest: Dest,
        count: u8,
        form: layout::MatrixRows,
        mask: u32,
    ) -> Result<(), String> {
        // Eight lanes per matrix hold the row addresses; exited ones hold none.
        let named = u32::MAX >> (32 - 8 * u32::from(count)) & w.alive;
        w.note(at, Window::Shared, named, 16, false);
        for matrix in 0..count {
            let mut rows = [[0; 4]; 8];
            for (n, row) in rows.iter_mut().enumerate() {
                let lane = usize::from(matrix) * 8 + n;
                if named >> lane & 1 == 1 {
                    *row = self.load_shared(at[lane], 16)?;
                }
            }
            w.registers.set(dest.next(matrix), mask, &form.load(&rows));
        }
        Ok(())
    }

    pub(super) fn store_matrices(
        &mut self,
        w: &mut Warp,
        at: &[u64; 32],
        source: Source,
        count: u8,
        trans: bool,
    ) -> Result<(), String> {
        let named = u32::MAX >> (32 - 8 * u32::from(count)) & w.alive;
        w.note(at, Window::Shared, named, 16, true);
        for matrix in 0..count {
            let register = w.registers.raw(source.from.nth(matrix));
            for (n, row) in layout::stmatrix(&register, trans).into_iter().enumerate() {
                let lane = usize::from(matrix) * 8 + n;
                if named >> lane & 1 == 1 {
                    self.store_shared(at[lane], 16, row)?;
                }
            }
        }
        Ok(())
    }
}
