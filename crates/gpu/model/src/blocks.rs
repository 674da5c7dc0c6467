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

/// Returns the number of blocks of a cluster of a launch, 1 without clusters.
pub(super) fn cluster_blocks(module: &Module, launch: &Launch) -> u32 {
    let cluster = module.cluster_of(launch);
    cluster.map_or(1, |shape| shape.iter().product())
}
