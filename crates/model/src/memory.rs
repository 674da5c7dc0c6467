//! What a launch moves between the multiprocessors, the L2 cache and memory.

use super::code::Instr;
use super::sectors::Sectors;
use super::sm::PRIVATE;
use vgpu::Arch;
use vgpu::exec::trace::{BlockTrace, LOCAL};

/// Memory traffic of a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Sectors of one block that differ from each other.
    pub block_sectors: f64,
    /// Share of the sectors that only one of neighbouring blocks wants which come from memory, or
    /// go there, when the block asks first.
    pub first_miss: f64,
    /// The same of local memory.
    pub local_hit_share: f64,
    /// Bytes that must come from or go to memory at least.
    pub least_bytes: f64,
    /// Bytes that are expected to, local memory aside.
    pub dram_bytes: f64,
}

/// Bytes of L1 beside the shared memory that the driver sets aside: the smallest size that holds
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

/// Distinct sectors of a block; of each warp as many accesses as `like` has, where given.
fn footprint(trace: &BlockTrace, like: Option<&BlockTrace>) -> Sectors {
    let mut distinct = Sectors::default();
    for (index, warp) in trace.warps.iter().enumerate() {
        let other = like.map(|o| o.warps.get(index).map_or(0, |w| w.accesses.len()));
        let first = warp.accesses.iter().take(other.unwrap_or(usize::MAX));
        distinct.extend(first.flat_map(|access| warp.sectors_of(access)));
    }
    distinct
}

/// A block and those beside it, as sets of sectors.
pub(super) struct Neighbourhood {
    mine: Sectors,
    /// Share of the block's sectors that its neighbours along x and y touch too.
    along: [f64; 2],
    /// Those that every neighbour touches.
    common: Sectors,
}

impl Neighbourhood {
    pub(super) fn new(main: &BlockTrace, beside: &[Option<BlockTrace>; 2]) -> Neighbourhood {
        let mut along = [0.0; 2];
        let mut common: Option<Sectors> = None;
        for (share, other) in along.iter_mut().zip(beside) {
            let Some(other) = other else { continue };
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

    /// Marks the sectors that other blocks do not touch: a copy of the block has its own.
    pub(super) fn mark(&self, trace: &mut BlockTrace) {
        for sector in trace.warps.iter_mut().flat_map(|w| &mut w.sectors) {
            if *sector & LOCAL == 0 && !self.common.contains(sector) {
                *sector |= PRIVATE;
            }
        }
    }

    /// Estimates the traffic of a grid of which `together` blocks are on the device at once:
    /// blocks share bytes along x and y as those beside each other do, or `asked` sectors fall to
    /// each by what all of them ask for, whichever finds more that is shared.
    pub(super) fn traffic(
        &self,
        arch: &Arch,
        grid: [u32; 3],
        (together, asked): (u64, f64),
        kept: f64,
        allocated: u64,
    ) -> Traffic {
        let each = self.mine.len().max(1) as f64 * kept.max(1.0);
        let [along_x, along_y] = self.along;
        let [x, y, z] = grid.map(f64::from);
        let blocks = x * y * z;
        let wide = (together as f64).min(x).max(1.0);
        let high = (together as f64 / wide).min(y * z).max(1.0);
        let grow = |n: f64, shared: f64| 1.0 + (n - 1.0) * (1.0 - shared);
        // Bytes of all blocks on the device at once, and those of the whole grid.
        let most = allocated as f64;
        let wave = (each * grow(wide, along_x) * grow(high, along_y) * 32.0).min(most);
        let waves = (blocks / (wide * high)).max(1.0);
        let whole = (each * grow(x, along_x) * grow(y * z, along_y) * 32.0).min(most);
        // A grid that fits leaves its bytes to the next wave that wants them.
        let fits = whole <= arch.l2_bytes as f64;
        let dram = if fits {
            whole
        } else {
            (wave * waves).max(whole).min(asked * 32.0 * blocks)
        };
        let common = self.common.len() as f64 * kept.max(1.0);
        let own = ((each - common).max(1.0) * 32.0 * blocks).max(1.0);
        Traffic {
            block_sectors: each,
            first_miss: (dram / own).clamp(0.0, 1.0),
            local_hit_share: 1.0,
            least_bytes: whole.min(dram),
            dram_bytes: dram,
        }
    }
}

/// Share of the local memory of all resident threads that stays in the L2 cache.
pub(super) fn local_hit_share(arch: &Arch, code: &[Instr], resident_threads: f64) -> f64 {
    let frame = code.iter().map(|instr| instr.frame).max();
    let bytes = f64::from(frame.unwrap_or(0)) * resident_threads;
    if bytes <= arch.l2_bytes as f64 {
        return 1.0;
    }
    arch.l2_bytes as f64 / bytes
}

/// How many times more accesses a block made than its trace kept.
pub(super) fn kept(trace: &BlockTrace) -> f64 {
    let kept: u64 = trace.warps.iter().map(|w| w.accesses.len() as u64).sum();
    let dropped: u64 = trace.warps.iter().map(|w| w.dropped).sum();
    (kept + dropped) as f64 / kept.max(1) as f64
}
