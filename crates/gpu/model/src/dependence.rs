//! Test for data-dependent control flow or addresses of a block.
//!
//! A program slice finds loads that *may* decide. It does not separate stores to shared memory, so
//! it includes loads of most kernels that reduce through shared memory. This test runs the block
//! once with memory as it is, and once with other data in the sectors that those loads read.

use super::blocks::launch_blocks;
use std::collections::BTreeSet;
use vgpu::Arch;
use vgpu::Module;
use vgpu::exec::launch::{Depth, End, Launch, LaunchError, launch};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::{BufferId, GlobalMemory};

/// Bytes per sector.
const SECTOR_BYTES: u64 = 32;
/// Distance in sectors to the sector whose content replaces one. A prime, so that a tile of a power
/// of two elements does not get the equal part of another tile.
const REPLACEMENT_DISTANCE: u64 = 4099;

/// Returns the buffers whose data decide the control flow or the addresses of a block, executed as
/// PTX. With other data in them the block took another path. Memory is restored, except for the
/// block's own stores.
///
/// # Errors
/// A refused launch.
pub(super) fn find_deciding_buffers(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    plain: &BlockTrace,
) -> Result<Vec<BufferId>, LaunchError> {
    let sectors = collect_candidates(module, memory, &template.entry, plain)?;
    if sectors.is_empty() {
        return Ok(Vec::new());
    }
    let mut one = launch_blocks(
        template,
        vec![u64::from(plain.block)],
        template.instruction_budget,
    );
    one.trace = true;
    one.depth = Depth::Addresses;
    // Not the trace at hand: since then the block has changed memory, and its depth was another.
    let usual = execute_block(module, memory, arch, &one)?;
    // One buffer at a time, so that the result can name those that decide.
    let buffers: BTreeSet<BufferId> = sectors.iter().map(|(buffer, _)| *buffer).collect();
    let mut found = Vec::new();
    for buffer in buffers {
        let of_buffer = sectors.iter().filter(|(of, _)| *of == buffer);
        let kept = replace_sectors(memory, buffer, of_buffer.map(|(_, offset)| *offset));
        let other = execute_block(module, memory, arch, &one);
        for (offset, bytes) in kept {
            memory.write(buffer, offset, &bytes);
        }
        if other? != usual {
            found.push(buffer);
        }
    }
    Ok(found)
}

/// Collects the sectors read by loads that may decide, as buffers and offsets.
fn collect_candidates(
    module: &Module,
    memory: &GlobalMemory,
    entry: &str,
    plain: &BlockTrace,
) -> Result<BTreeSet<(BufferId, u64)>, LaunchError> {
    let slice = module.control_dependence(entry)?;
    let mut found = BTreeSet::new();
    for warp in &plain.warps {
        let loads = warp
            .accesses
            .iter()
            .filter(|a| !a.write && slice.is_decided_by(a.pc));
        let sectors: BTreeSet<u64> = loads
            .flat_map(|load| warp.sectors_of(load))
            .copied()
            .collect();
        found.extend(sectors.iter().filter_map(|sector| {
            // The first sector of a buffer may begin before the buffer.
            let place = memory
                .find(sector * SECTOR_BYTES)
                .or_else(|| memory.find(sector * SECTOR_BYTES + SECTOR_BYTES - 1))?;
            Some((place.buffer(), place.offset / SECTOR_BYTES * SECTOR_BYTES))
        }));
    }
    Ok(found)
}

/// Executes the block; returns its completion, and the instructions and accesses of its warps.
fn execute_block(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    one: &Launch,
) -> Result<(bool, Option<Vec<WarpPath>>), LaunchError> {
    let report = launch(module, memory, arch, one)?;
    let trace = report.traces.into_iter().next();
    let paths = trace.map(|trace| {
        let warps = trace.warps.into_iter();
        warps.map(|warp| (warp.executed, warp.sectors)).collect()
    });
    Ok((report.end == End::Completed, paths))
}

/// Control-flow summary of a warp: its instructions and the sectors it accessed.
type WarpPath = (u64, Vec<u64>);

/// Replaces sectors of a buffer by the content of others, or by finite numbers if that is equal,
/// and returns the old content.
fn replace_sectors(
    memory: &mut GlobalMemory,
    buffer: BufferId,
    offsets: impl Iterator<Item = u64>,
) -> Vec<(u64, Vec<u8>)> {
    let total = memory.len(buffer);
    let mut pairs = Vec::new();
    for offset in offsets {
        let length = SECTOR_BYTES.min(total - offset) as usize;
        let mut held = vec![0; length];
        memory.read_at(buffer, offset, &mut held);
        let from =
            (offset + REPLACEMENT_DISTANCE * SECTOR_BYTES) % total / SECTOR_BYTES * SECTOR_BYTES;
        let mut other = vec![0; length];
        match from + length as u64 <= total {
            true => memory.read_at(buffer, from, &mut other),
            false => other.clone_from(&held),
        }
        if other == held {
            other = finite_bytes(offset, length);
        }
        pairs.push((offset, held, other));
    }
    // Not before all are read: a sector may be the source of another one.
    for (offset, _, other) in &pairs {
        memory.write(buffer, *offset, other);
    }
    let kept = pairs.into_iter();
    kept.map(|(offset, held, _)| (offset, held)).collect()
}

/// Generates bytes that are finite and nonzero in every floating-point type of 16 bits and more, and differ by
/// offset.
fn finite_bytes(offset: u64, length: usize) -> Vec<u8> {
    let halves = (0..length.div_ceil(2) as u64).flat_map(|index| {
        // Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
        let mixed = (offset + 2 * index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let half = 0x3c00 | (mixed as u16 & 0x83ff);
        half.to_le_bytes()
    });
    halves.take(length).collect()
}
