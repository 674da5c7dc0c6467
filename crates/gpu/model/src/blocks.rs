//! Launches of some blocks of a grid, for the model.

use vgpu::exec::launch::{BlockSet, Checks, Depth, Launch, LaunchError, launch};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::GlobalMemory;
use vgpu::{Arch, Module};

/// Creates a launch of some blocks for the model: without checks, on this thread.
pub(super) fn launch_blocks(template: &Launch, blocks: Vec<u64>, budget: u64) -> Launch {
    let mut launch = template.clone();
    launch.blocks = BlockSet::List(blocks);
    launch.checks = Checks {
        races: false,
        uninitialized: false,
        ..Checks::default()
    };
    launch.threads = 1;
    launch.instruction_budget = budget;
    launch
}

/// Executes the first `each` instructions of the blocks' warps to the given depth.
pub(super) fn trace_beginnings(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    blocks: Vec<u64>,
    each: u64,
    depth: Depth,
) -> Result<Vec<BlockTrace>, LaunchError> {
    let warps = u64::from(template.block.iter().product::<u32>()).div_ceil(32);
    let mut launched = launch_blocks(template, blocks, each * warps);
    launched.trace = true;
    launched.depth = depth;
    Ok(launch(module, memory, arch, &launched)?.traces)
}

/// Returns the block that issues the products of the pair of a block: that of the even rank in the cluster.
pub(super) fn first_of_pair(module: &Module, launch: &Launch, block: u64) -> u64 {
    let Some([a, b, c]) = module.cluster_of(launch).map(|shape| shape.map(u64::from)) else {
        return block;
    };
    let [x, y, _] = launch.grid.map(u64::from);
    let at = [block % x % a, block / x % y % b, block / x / y % c];
    if (at[0] + a * (at[1] + b * at[2])).is_multiple_of(2) {
        return block;
    }
    // The rank before is along the first dimension in which the cluster has several blocks; where the number
    // of these is odd, the rank before may begin a line.
    match at {
        [0, 0, _] => block - x * y + (b - 1) * x + (a - 1),
        [0, ..] => block - x + (a - 1),
        _ => block - 1,
    }
}

/// Returns the number of blocks of a cluster of a launch, 1 without clusters.
pub(super) fn cluster_blocks(module: &Module, launch: &Launch) -> u32 {
    let cluster = module.cluster_of(launch);
    cluster.map_or(1, |shape| shape.iter().product())
}
