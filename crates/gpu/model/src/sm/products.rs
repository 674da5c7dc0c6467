//! Asynchronous products of warp-groups (`wgmma`).
//!
//! Figures from microbenchmarks of an H100 and an H800 (Luo et al., arXiv 2402.13499 and 2501.12084): a product of
//! 64 rows and N columns occupies the tensor cores for N / 2 cycles, or for the bytes of its operands in
//! shared memory at the rate of that memory (18, 20, 24, 32, 64 and 128 cycles for N = 8 to 256), a chain on
//! the same accumulators for three more, and about seven products wait in a scheduler's queue.

use super::paths::Issue;
use super::{Sm, Stall, Warp};
use crate::code::GroupProduct;
use std::collections::VecDeque;

/// Products of a scheduler that are issued and not complete.
const QUEUE_PRODUCTS: usize = 7;
/// Cycles between products on the same accumulators.
const CHAIN_CYCLES: u64 = 3;
/// Cycles from the end of a product in the tensor core to its registers: between the 35 of 8 columns and the
/// 49 of 64.
const TAIL_CYCLES: u64 = 42;
/// Cycles from the issue of a product to its begin.
const ISSUE_CYCLES: u64 = 4;

/// Tensor core of one scheduler.
#[derive(Debug, Default)]
pub(super) struct TensorQueue {
    /// End cycles of the last products, ascending.
    ends: VecDeque<u64>,
    /// Warp and accumulators of the last product.
    last: Option<(usize, u8)>,
}

impl TensorQueue {
    /// Returns the first cycle with room for a product.
    pub(super) fn first_free(&self) -> u64 {
        match self.ends.len() {
            QUEUE_PRODUCTS.. => self.ends.front().copied().unwrap_or_default(),
            _ => 0,
        }
    }

    /// Adds a product and returns its end.
    fn push(&mut self, warp: usize, accumulators: u8, now: u64, busy: u64) -> u64 {
        let this = Some((warp, accumulators));
        let chain = if self.last == this { CHAIN_CYCLES } else { 0 };
        let before = self.ends.back().map_or(0, |end| end + chain);
        let end = before.max(now + ISSUE_CYCLES) + busy;
        if self.ends.len() == QUEUE_PRODUCTS {
            self.ends.pop_front();
        }
        self.ends.push_back(end);
        self.last = this;
        end
    }
}

impl Sm<'_> {
    /// Issues a product.
    pub(super) fn product(&mut self, issue: Issue, product: &GroupProduct) {
        let busy = self.rates.group_cycles(product);
        let core = &mut self.cores[issue.core];
        let end = core
            .tensor
            .push(issue.warp_index, product.accumulators, issue.now, busy);
        self.out.tally.pipe_cycles[crate::units::TENSOR] += busy;
        let warp = &mut self.warps[issue.warp_index];
        warp.product_end = warp.product_end.max(end + TAIL_CYCLES);
        if product.commits {
            warp.products.push(warp.product_end);
        }
    }
}

impl Warp {
    /// Returns the completion of all but the last `left` groups of products.
    pub(super) fn products_done(&self, left: u8) -> (u64, Stall) {
        let open = self.products.len().saturating_sub(left.into());
        let end = self.products[..open].last().copied().unwrap_or(0);
        (end, Stall::MathPipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_and_independent_products_take_what_was_measured() {
        let steady = |accumulators: fn(u64) -> u8| {
            let mut queue = TensorQueue::default();
            let ends: Vec<u64> = (0..100)
                .map(|n| queue.push(0, accumulators(n), 0, 32))
                .collect();
            ends[99] - ends[98]
        };
        assert_eq!(steady(|_| 24), 35);
        assert_eq!(steady(|n| (n % 2) as u8 * 32), 32);
    }

    #[test]
    fn a_full_queue_holds_further_products() {
        let mut queue = TensorQueue::default();
        for _ in 0..QUEUE_PRODUCTS {
            assert_eq!(queue.first_free(), 0);
            queue.push(0, 24, 0, 128);
        }
        assert_eq!(queue.first_free(), ISSUE_CYCLES + 128);
    }
}
