//! Memory traffic of a launch between the multiprocessors, the L2 cache and DRAM.

use super::code::Instr;
use super::sectors::Sectors;
use super::sm::PRIVATE;
use vgpu::Arch;
use vgpu::exec::trace::{BlockTrace, LOCAL_SECTOR};

/// Memory traffic of a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Distinct sectors of one block.
    pub block_sectors: f64,
    /// DRAM share of the first accesses to sectors that only one of neighbouring blocks uses, for
    /// loads and stores.
    pub first_miss: f64,
    /// L2 hit share of local memory.
    pub local_hit_share: f64,
    /// Share of the bytes that the L2 cache does not hold from an equal launch before.
    pub cold: f64,
    /// Lower bound of the DRAM bytes.
    pub least_bytes: f64,
    /// Expected DRAM bytes, without local memory.
    pub dram_bytes: f64,
}

/// Computes the L1 bytes next to the driver's shared memory carve-out, the smallest size that holds
/// all resident blocks (CUDA Programming Guide, "Shared Memory" of each compute capability).
pub(super) fn l1_bytes(arch: &Arch, shared_bytes: u64, resident: u64) -> u64 {
    let system = if arch.cc >= 80 { 1024 } else { 0 };
    let wanted = if shared_bytes == 0 {
        0
    } else {
        (shared_bytes + system) * resident
    };
    let sizes = arch
        .shared_carveouts_kib
        .iter()
        .map(|kib| u64::from(*kib) * 1024);
    let chosen = sizes.filter(|s| *s > 0 && *s >= wanted).min();
    let shared = chosen.unwrap_or(u64::from(arch.shared_bytes_per_sm));
    u64::from(arch.l1_bytes).saturating_sub(shared)
}

/// Collects the distinct sectors of a block; with `like`, limited to as many accesses per warp.
fn footprint(trace: &BlockTrace, like: Option<&BlockTrace>) -> Sectors {
    let mut distinct = Sectors::default();
    for (index, warp) in trace.warps.iter().enumerate() {
        let other = like.map(|o| o.warps.get(index).map_or(0, |w| w.accesses.len()));
        let first = warp.accesses.iter().take(other.unwrap_or(usize::MAX));
        distinct.extend(first.flat_map(|access| warp.sectors_of(access)));
    }
    distinct
}

/// Sector sets of a block and its neighbours.
pub(super) struct Neighbourhood {
    mine: Sectors,
    /// Share of the block's sectors that its neighbours along x and y access too.
    along: [f64; 2],
    /// Sectors that every neighbour accesses.
    common: Sectors,
}

impl Neighbourhood {
    pub(super) fn new(main: &BlockTrace, beside: &[Option<BlockTrace>; 2]) -> Neighbourhood {
        let mut along = [0.0; 2];
        let mut common: Option<Sectors> = None;
        for (share, other) in along.iter_mut().zip(beside) {
            let Some(other) = other else { continue };
            // Only a beginning of the neighbour was executed, to be compared with as much of this
            // block.
            let (a, b) = (footprint(main, Some(other)), footprint(other, Some(main)));
            let both: Sectors = a.intersection(&b).copied().collect();
            *share = both.len() as f64 / a.len().max(1) as f64;
            common = Some(match common {
                Some(so_far) => so_far.intersection(&both).copied().collect(),
                None => both,
            });
        }
        Neighbourhood {
            mine: footprint(main, None),
            along,
            common: common.unwrap_or_default(),
        }
    }

    /// Marks the sectors that no other block accesses: a copy of the block has separate ones.
    pub(super) fn mark(&self, trace: &mut BlockTrace) {
        for sector in trace.warps.iter_mut().flat_map(|w| &mut w.sectors) {
            if *sector & LOCAL_SECTOR == 0 && !self.common.contains(sector) {
                *sector |= PRIVATE;
            }
        }
    }

    /// Estimates the traffic of a grid with `together` blocks on the device at once. Of two
    /// estimates of the shared bytes, the one with more sharing counts. One is the overlap with the
    /// neighbours along x and y, the other is `asked` sectors per block from the accesses of all
    /// resident blocks.
    pub(super) fn traffic(
        &self,
        arch: &Arch,
        grid: [u32; 3],
        together: u64,
        asked: f64,
        kept: f64,
        allocated: u64,
    ) -> Traffic {
        // Accesses beyond the trace are taken to reach new sectors at the same rate.
        let each = self.mine.len().max(1) as f64 * kept.max(1.0);
        let [along_x, along_y] = self.along;
        let [x, y, z] = grid.map(f64::from);
        let blocks = x * y * z;
        // Blocks start along x, then y, so that those at once are rows of the grid.
        let wide = (together as f64).min(x).max(1.0);
        let high = (together as f64 / wide).min(y * z).max(1.0);
        let grow = |n: f64, shared: f64| 1.0 + (n - 1.0) * (1.0 - shared);
        // Bytes of all blocks on the device at once, and of the whole grid.
        let most = allocated as f64;
        let wave = (each * grow(wide, along_x) * grow(high, along_y) * 32.0).min(most);
        let waves = (blocks / (wide * high)).max(1.0);
        let whole = (each * grow(x, along_x) * grow(y * z, along_y) * 32.0).min(most);
        // A grid that fits in the L2 cache leaves its bytes there for the next wave.
        let fits = whole <= arch.l2_bytes as f64;
        let dram = if fits {
            whole
        } else {
            (wave * waves).max(whole).min(asked * 32.0 * blocks)
        };
        let cold = cold_share(arch, whole);
        let common = self.common.len() as f64 * kept.max(1.0);
        let own = ((each - common).max(1.0) * 32.0 * blocks).max(1.0);
        Traffic {
            block_sectors: each,
            first_miss: (dram / own).clamp(0.0, 1.0) * cold,
            local_hit_share: 1.0,
            cold,
            least_bytes: whole.min(dram) * cold,
            dram_bytes: dram * cold,
        }
    }
}

/// Computes the share of the bytes of a launch that come from memory although an equal launch came
/// before. Half of the L2 cache is safe: on GPUs with two partitions a line that both read is in both
/// (Jia et al., arXiv 1804.06826, and NVIDIA's A100 whitepaper). Beyond its size nothing stays.
fn cold_share(arch: &Arch, bytes: f64) -> f64 {
    let size = arch.l2_bytes as f64;
    (2.0 * bytes / size - 1.0).clamp(0.0, 1.0)
}

/// Computes the share of the local memory of all resident threads that stays in the L2 cache.
pub(super) fn local_hit_share(arch: &Arch, code: &[Instr], resident_threads: f64) -> f64 {
    let frame = code.iter().map(|instr| instr.frame).max();
    let bytes = f64::from(frame.unwrap_or(0)) * resident_threads;
    if bytes <= arch.l2_bytes as f64 {
        return 1.0;
    }
    arch.l2_bytes as f64 / bytes
}

/// Returns the ratio of a block's accesses to those kept in its trace.
pub(super) fn kept_ratio(trace: &BlockTrace) -> f64 {
    let kept: u64 = trace.warps.iter().map(|w| w.accesses.len() as u64).sum();
    let dropped: u64 = trace.warps.iter().map(|w| w.dropped).sum();
    (kept + dropped) as f64 / kept.max(1) as f64
}
