//! Products of a warp-group.
//!
//! A warp computes its quarter when it issues the product, from the shared memory of that moment. Its results
//! are final at once; a wait for a group lasts until all four warps have issued the products of it, since only
//! then other threads may overwrite the operands.

use super::memory::{Memory, RANK_SHIFT};
use super::registers::{Dest, Origin, Pred};
use super::warp::Warp;
use gpu_arithmetic::Lanes;
use gpu_arithmetic::mma::Mma;
use std::ops::Range;
use vgpu::warpgroup::{Descriptor, Places, fragment_a, multiply, multiply_sparse};

/// Warps of a warp-group.
pub(super) const WARPS: usize = 4;

/// One warp's part of a product.
#[derive(Debug, Clone)]
pub(super) struct Product {
    /// Form of 16 rows and 8 columns.
    pub(super) form: Mma,
    pub(super) columns: u32,
    pub(super) d: Dest,
    /// First register of A; in shared memory if absent.
    pub(super) a: Option<Origin>,
    /// First of the uniform registers with the descriptors of A and B.
    pub(super) descriptors: u8,
    /// False where the accumulators begin at zero.
    pub(super) adds: Pred,
    pub(super) negate: [bool; 2],
    pub(super) transposed: [bool; 2],
    /// Register of the metadata of a sparse A, and their selector.
    pub(super) places: Option<(Origin, u32)>,
    /// The product ends a group.
    pub(super) commits: bool,
}

impl Product {
    /// Returns the number of accumulator registers.
    fn accumulators(&self) -> u8 {
        let each = 4 / self.form.d.per_register();
        (self.columns as usize / 8 * each) as u8
    }
}

impl Memory<'_> {
    /// Executes the part of a warp.
    pub(super) fn product(&mut self, w: &mut Warp, p: &Product) -> Result<(), String> {
        let part = w.registers.place.warp % WARPS as u32 * 16;
        let descriptor = |w: &Warp, pair: u8| {
            let u = |n: u8| {
                let index = p.descriptors.saturating_add(2 * pair + n);
                u64::from(w.registers.uniform[usize::from(index)])
            };
            Descriptor::decode(u(0) | u(1) << 32)
        };
        let read = |from: Descriptor, rows: Range<u32>, transposed: bool, step: u32| {
            // A descriptor names a place in the own block.
            let own = u64::from(w.registers.place.rank) << RANK_SHIFT;
            from.steps(rows, transposed.then_some(2), step, |at| {
                self.load_shared(own | u64::from(at), 16)
            })
        };
        let a: Vec<Lanes> = match p.a {
            Some(first) => (0..4).map(|n| w.registers.raw(first.nth(n))).collect(),
            None => {
                let rows = read(descriptor(w, 0), part..part + 16, p.transposed[0], 0)?;
                fragment_a(&rows).to_vec()
            }
        };
        let columns = |step| read(descriptor(w, 1), 0..p.columns, p.transposed[1], step);
        let adds = w.registers.truth(p.adds) != 0;
        let value = |n: u8| match (adds, p.d.next(n)) {
            (true, Dest::Row(row)) => w.registers.raw(Origin::Row(row)),
            // Not a product with zero, which would keep a NaN.
            _ => [0; 32],
        };
        let mut values: Vec<Lanes> = (0..p.accumulators()).map(value).collect();
        match p.places {
            Some((metadata, selector)) => {
                let [first, second] = [columns(0)?, columns(1)?];
                let places = Places {
                    metadata: &w.registers.raw(metadata),
                    selector,
                };
                multiply_sparse(p.form, &a, [&first, &second], places, p.negate, &mut values);
            }
            None => multiply(p.form, &a, &columns(0)?, p.negate, &mut values),
        }
        for (n, row) in (0u8..).zip(&values) {
            w.registers.set(p.d.next(n), u32::MAX, row);
        }
        w.committed += u32::from(p.commits);
        Ok(())
    }
}
