//! Blocks of a cluster: their places in the grid, and the barrier of the cluster.

use super::{BARRIERS, Block, BlockBarrier, BlockInputs};
use crate::warp::State;
use vgpu::exec::trace::SignalKind;

impl BlockInputs<'_> {
    /// Returns the indices of the blocks of a cluster.
    pub(super) fn places(&self, cluster: u64) -> Vec<[u32; 3]> {
        let shape = self.cluster.map(u64::from);
        let counts: [u64; 3] = std::array::from_fn(|n| u64::from(self.grid[n]) / shape[n].max(1));
        let [x, y, _] = counts.map(|count| count.max(1));
        let at = [cluster % x, cluster / x % y, cluster / x / y];
        let [a, b, _] = shape;
        let ranks = 0..shape.iter().product::<u64>();
        let inner = ranks.map(|rank| [rank % a, rank / a % b, rank / a / b]);
        inner
            .map(|inner| std::array::from_fn(|n| (at[n] * shape[n] + inner[n]) as u32))
            .collect()
    }
}

impl Block<'_> {
    /// Records an arrival at the barrier of the cluster.
    pub(super) fn arrive_at_cluster(&mut self, w: usize, on: u32) {
        let index = self.barriers.len() - 1;
        let barrier = &mut self.barriers[index];
        barrier.arrived[w] |= on;
        // Read before `complete`, which may begin the next phase.
        let phase = barrier.phases;
        let warp = &mut self.warps[w];
        warp.cluster_phase = phase;
        if let Some(trace) = &mut warp.trace {
            let number = self.memory.phases.of_block_barrier(index as u32, phase);
            trace.signal_of_last(number, SignalKind::Arrives);
        }
        let current = warp.current;
        warp.paths[current].pc += 1;
        self.complete(index);
    }

    /// Blocks the current path until the phase of its warp's last arrival ends.
    pub(super) fn wait_for_cluster(&mut self, w: usize) {
        let index = self.barriers.len() - 1;
        let warp = &mut self.warps[w];
        // Not the present phase: that of the arrival may be over, and other warps may have arrived
        // in the next one.
        let phase = warp.cluster_phase;
        if let Some(trace) = &mut warp.trace {
            let number = self.memory.phases.of_block_barrier(index as u32, phase);
            trace.signal_of_last(number, SignalKind::Waits);
        }
        let current = warp.current;
        warp.paths[current].state = State::Barrier(index as u16, phase);
    }
}

/// Creates the barriers of blocks with this many warps each, and that of their cluster.
pub(super) fn barriers(ranks: usize, warps: usize) -> Vec<BlockBarrier> {
    let barrier = |first: usize, warps: usize| BlockBarrier {
        first,
        arrived: vec![0; warps],
        all: true,
        ..BlockBarrier::default()
    };
    let of_blocks = (0..ranks * BARRIERS).map(|n| barrier(n / BARRIERS * warps, warps));
    of_blocks.chain([barrier(0, ranks * warps)]).collect()
}
