//! Work that the blocks of a grid take from a counter, as persistent kernels with a dynamic
//! scheduler do.
//!
//! A block that runs alone takes all of it. Its share shows if each number that it takes counts as
//! one of each block ([`Launch::turn`]).

use super::blocks::{cluster_blocks, launch_blocks};
use super::handed_on::HandedOn;
use super::imbalance::{Imbalance, MAX_FOLLOWED_INSTRUCTIONS, nearest_to_mean};
use vgpu::counters::{Class, Counters};
use vgpu::exec::launch::{Depth, End, Launch, LaunchError, LaunchReport, launch};
use vgpu::memory::GlobalMemory;
use vgpu::{Arch, Hazard, HazardKind, Module};

/// Ranks whose shares are compared.
const RANKS: u64 = 8;
/// Ratio of stored bytes and of atomics from which on a block alone takes the work of others.
const MORE_WORK: f64 = 1.25;

/// Finds the rank whose share is nearest to the mean; `None` if `block`, running alone, does no
/// more than with others. The state that blocks hand on is restored, and other stores stay.
///
/// # Errors
/// A refused launch.
pub(super) fn find_share(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    block: u64,
    state: &HandedOn,
) -> Result<Option<(u64, Imbalance)>, LaunchError> {
    let mut follow = |turn, depth, budget| -> Result<LaunchReport, LaunchError> {
        let mut one = launch_blocks(template, vec![block], budget);
        (one.turn, one.depth) = (turn, depth);
        let report = launch(module, memory, arch, &one)?;
        state.restore(memory);
        Ok(report)
    };
    let blocks: u64 = template.grid.iter().map(|n| u64::from(*n)).product();
    // A cluster without blocks is refused at the launch.
    let all = blocks / u64::from(cluster_blocks(module, template)).max(1);
    let mut shares = Vec::new();
    for n in 0..RANKS {
        let rank = all * (2 * n + 1) / (2 * RANKS);
        let report = follow(Some(rank), Depth::Control, template.instruction_budget)?;
        let instructions = report.counters.warp_instructions;
        if report.end != End::Completed || instructions > MAX_FOLLOWED_INSTRUCTIONS {
            return Ok(None);
        }
        shares.push((rank, instructions.max(1) as f64));
    }
    let Some((rank, imbalance)) = nearest_to_mean(&shares, RANKS as f64, all / 2) else {
        return Ok(None);
    };
    let report = follow(Some(rank), Depth::Whole, template.instruction_budget)?;
    let share = report.counters;
    // A number that is a place in memory, and that others do not take in turns, may lie outside.
    let is_outside = |hazard: &Hazard| hazard.kind == HazardKind::OutOfBounds;
    if report.end != End::Completed || report.hazards.iter().any(is_outside) {
        return Ok(None);
    }
    // Twice a share is enough to see more of the work. A block that only waits for others would use
    // up any number of instructions, without stores.
    let alone = follow(None, Depth::Whole, 2 * share.warp_instructions)?.counters;
    // Work without more atomics comes from no queue: the block is the first at each of many counters,
    // such as those of the nodes of a graph.
    let more =
        |count: fn(&Counters) -> u64| count(&alone) as f64 > MORE_WORK * count(&share) as f64;
    if !more(|counters| counters.global_store_bytes)
        || !more(|counters| counters.class(Class::Atomic))
    {
        return Ok(None);
    }
    Ok(Some((rank, imbalance)))
}
