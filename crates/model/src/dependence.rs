//! Whether a block's way, or the addresses that it asks for, depend on the data it loads.
//!
//! The program says which loads *may* decide (a slice that tells no stores to shared memory apart, so
//! it says so of most kernels that reduce through shared memory). Whether they do is tried: the block
//! is followed once as memory is and once with other data in the sectors that those loads read.

use super::sample::some;
use std::collections::BTreeSet;
use vgpu::Arch;
use vgpu::Module;
use vgpu::exec::launch::{Depth, End, Launch, LaunchError, launch};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::{BufferId, GlobalMemory};

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Sectors from each one to the one whose content it is given: a prime, so that no tile of a power of
/// two elements is given an equal part of another tile.
const AWAY: u64 = 4099;

/// Of what a block, executed as PTX, may have loaded its way or an address from: the buffers with which
/// it took another way when they held other data. Memory is left as it was but for what the block
/// stores.
///
/// # Errors
/// A launch that is refused.
pub(super) fn deciding(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    template: &Launch,
    plain: &BlockTrace,
) -> Result<Vec<BufferId>, LaunchError> {
    let sectors = candidates(module, memory, &template.entry, plain)?;
    if sectors.is_empty() {
        return Ok(Vec::new());
    }
    let mut one = some(
        template,
        vec![u64::from(plain.block)],
        template.instruction_budget,
    );
    one.trace = true;
    one.depth = Depth::Addresses;
    let usual = followed(module, memory, arch, &one)?;
    let buffers: BTreeSet<BufferId> = sectors.iter().map(|(buffer, _)| *buffer).collect();
    let mut found = Vec::new();
    for buffer in buffers {
        let of_buffer = sectors.iter().filter(|(of, _)| *of == buffer);
        let kept = replace(memory, buffer, of_buffer.map(|(_, offset)| *offset));
        let other = followed(module, memory, arch, &one);
        for (offset, bytes) in kept {
            memory.write(buffer, offset, &bytes);
        }
        if other? != usual {
            found.push(buffer);
        }
    }
    Ok(found)
}

/// The sectors that the loads read which may decide: buffer and offset.
fn candidates(
    module: &Module,
    memory: &GlobalMemory,
    entry: &str,
    plain: &BlockTrace,
) -> Result<BTreeSet<(BufferId, u64)>, LaunchError> {
    let way = module.way(entry)?;
    let mut found = BTreeSet::new();
    for warp in &plain.warps {
        let loads = warp
            .accesses
            .iter()
            .filter(|a| !a.write && way.decided_by(a.pc));
        let sectors: BTreeSet<u64> = loads
            .flat_map(|load| warp.sectors_of(load))
            .copied()
            .collect();
        found.extend(sectors.iter().filter_map(|sector| {
            // The first sector of a buffer may begin before it.
            let place = memory
                .find(sector * SECTOR)
                .or_else(|| memory.find(sector * SECTOR + SECTOR - 1))?;
            Some((place.buffer(), place.offset / SECTOR * SECTOR))
        }));
    }
    Ok(found)
}

/// What the block did: whether it ended, the instructions of its warps, and where they went.
fn followed(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    one: &Launch,
) -> Result<(bool, Option<Vec<Way>>), LaunchError> {
    let report = launch(module, memory, arch, one)?;
    let trace = report.traces.into_iter().next();
    let ways = trace.map(|trace| {
        let warps = trace.warps.into_iter();
        warps.map(|warp| (warp.executed, warp.sectors)).collect()
    });
    Ok((report.end == End::Completed, ways))
}

/// Instructions of a warp, and the sectors it asked for.
type Way = (u64, Vec<u64>);

/// Gives sectors of a buffer the content of others, or finite numbers where that is the same, and
/// returns what they held.
fn replace(
    memory: &mut GlobalMemory,
    buffer: BufferId,
    offsets: impl Iterator<Item = u64>,
) -> Vec<(u64, Vec<u8>)> {
    let total = memory.len(buffer);
    let mut pairs = Vec::new();
    for offset in offsets {
        let length = SECTOR.min(total - offset) as usize;
        let mut held = vec![0; length];
        memory.read_at(buffer, offset, &mut held);
        let from = (offset + AWAY * SECTOR) % total / SECTOR * SECTOR;
        let mut other = vec![0; length];
        match from + length as u64 <= total {
            true => memory.read_at(buffer, from, &mut other),
            false => other.clone_from(&held),
        }
        if other == held {
            other = finite(offset, length);
        }
        pairs.push((offset, held, other));
    }
    for (offset, _, other) in &pairs {
        memory.write(buffer, *offset, other);
    }
    let kept = pairs.into_iter();
    kept.map(|(offset, held, _)| (offset, held)).collect()
}

/// Bytes that are finite and not zero as a number of any floating-point type, different at each offset.
fn finite(offset: u64, length: usize) -> Vec<u8> {
    let halves = (0..length.div_ceil(2) as u64).flat_map(|index| {
        // Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
        let mixed = (offset + 2 * index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let half = 0x3c00 | (mixed as u16 & 0x83ff);
        half.to_le_bytes()
    });
    halves.take(length).collect()
}
