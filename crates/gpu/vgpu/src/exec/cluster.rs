//! Thread block clusters: the numbering of the threads and the shared memory of a cluster.
//!
//! The blocks of a cluster are executed as one unit. Block `rank` has the warps from
//! `rank * warps` on, and the shared memory from byte `rank * stride` on. The addresses that a kernel
//! computes with are those of a GPU: the rank is in their upper bits ([`RANK_SHIFT`]), so that the
//! address of a shared variable names its block, `mapa` only replaces the rank, and a descriptor made of an
//! address without a mask has the rank in another field.

use super::cta::{Context, Cta};
use super::launch::{BlockSet, Launch};
use super::trace::{self, BlockTrace};
use super::warp::Warp;
use crate::hazard::report::{Location, Occurrence};
use crate::hazard::shadow::Conflict;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, NONE, Program, SHARED_WINDOW, WINDOW};
use crate::module::Module;
use ptx::ast::ClusterDirectives;

/// The lowest bit of the rank in a shared address.
const RANK_SHIFT: u32 = 24;
/// Distance of the shared memory of two blocks: a multiple of every alignment that a copy needs.
const STRIDE_STEP: u32 = 1024;
/// Blocks of the largest cluster that a device can run (CUDA C++ programming guide, "Thread Block
/// Clusters").
pub(super) const MAX_BLOCKS: usize = 16;
/// Warps of a warp-group, which must not include warps of two blocks.
const WARPS_PER_GROUP: usize = 4;

/// Shape of the clusters of a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cluster {
    /// Blocks in x, y, z.
    pub(super) shape: [u32; 3],
    /// Blocks of a cluster.
    pub(super) blocks: usize,
    /// Warps from one block of a cluster to the next.
    pub(super) warps: usize,
    /// Bytes from the shared memory of one block to that of the next.
    pub(super) stride: u32,
    /// The launch or the kernel names the shape.
    pub(super) explicit: bool,
}

impl Cluster {
    /// Creates the clusters of a launch with the shape that it or its kernel names.
    pub(super) fn new(launch: &Launch, program: &Program, shared_words: usize) -> Cluster {
        let shape = shape(launch, &program.cluster);
        let blocks = shape.map_or(1, |shape| shape.iter().product::<u32>() as usize);
        let warps = (launch.block.iter().product::<u32>() as usize).div_ceil(32);
        let bytes = shared_words as u32 * 4;
        Cluster {
            shape: shape.unwrap_or([1; 3]),
            blocks,
            warps: match blocks {
                1 => warps,
                _ => warps.next_multiple_of(WARPS_PER_GROUP),
            },
            stride: match blocks {
                1 => bytes,
                // At least one step without shared memory, too: `rank_of_address` divides by the
                // stride.
                _ => bytes.max(1).next_multiple_of(STRIDE_STEP),
            },
            explicit: shape.is_some(),
        }
    }

    /// Returns the rank of the block that a thread belongs to.
    #[inline]
    pub(super) fn rank(&self, thread: usize) -> usize {
        match self.blocks {
            1 => 0,
            _ => thread / (self.warps * 32),
        }
    }

    /// Returns the linear index of a thread in its block.
    #[inline]
    pub(super) fn thread_in_block(&self, thread: usize) -> usize {
        match self.blocks {
            1 => thread,
            _ => thread % (self.warps * 32),
        }
    }

    /// Returns the rank of the block whose shared memory an address is in.
    #[inline]
    pub(super) fn rank_of_address(&self, at: u64) -> usize {
        match self.blocks {
            1 => 0,
            _ => (at / u64::from(self.stride)) as usize,
        }
    }

    /// Returns the offset of an address in the shared memory of its block.
    pub(super) fn offset(&self, at: u64) -> u64 {
        match self.blocks {
            1 => at,
            _ => at % u64::from(self.stride),
        }
    }

    /// Returns the address that a kernel has for a place in the shared memory of a block.
    pub(super) fn kernel_address(&self, rank: usize, offset: u64) -> u64 {
        match self.blocks {
            1 => offset,
            _ => (rank as u64) << RANK_SHIFT | offset,
        }
    }

    /// Returns the place of a kernel's shared address in the memory of the cluster; one beyond it
    /// where the address is in no block.
    #[inline]
    pub(super) fn place_of(&self, at: u64) -> u64 {
        if self.blocks == 1 {
            return at;
        }
        let (rank, offset) = (at >> RANK_SHIFT, at & ((1 << RANK_SHIFT) - 1));
        if rank < self.blocks as u64 && offset < u64::from(self.stride) {
            self.address(rank as usize, offset)
        } else {
            u64::from(self.stride) * self.blocks as u64 + (at & 0xffff_ffff)
        }
    }

    /// Returns the place of an address in a space: [`Cluster::place_of`] for shared ones.
    #[inline]
    pub(super) fn placed(&self, area: Area, at: u64) -> u64 {
        match area {
            Area::Shared | Area::Cluster if at < SHARED_WINDOW => self.place_of(at),
            Area::Generic if (SHARED_WINDOW..SHARED_WINDOW + WINDOW).contains(&at) => {
                SHARED_WINDOW + self.place_of(at - SHARED_WINDOW)
            }
            _ => at,
        }
    }

    /// Returns the place of an offset in the shared memory of a block.
    pub(super) fn address(&self, rank: usize, offset: u64) -> u64 {
        match self.blocks {
            1 => offset,
            _ => rank as u64 * u64::from(self.stride) + offset,
        }
    }

    /// Returns the state of the shared memory of all blocks, from that of one.
    pub(super) fn shared_state(&self, of_block: Vec<u8>) -> Vec<u8> {
        if self.blocks == 1 {
            return of_block;
        }
        let mut state = of_block;
        state.resize(self.stride as usize / 4, 0);
        state.repeat(self.blocks)
    }

    /// Returns the index of a block in its cluster.
    pub(super) fn index_of_rank(&self, rank: usize) -> [u32; 3] {
        let [x, y, _] = self.shape;
        let rank = rank as u32;
        [rank % x, rank / x % y, rank / (x * y)]
    }

    /// Returns the number of clusters of a grid by axis.
    pub(super) fn count(&self, grid: [u32; 3]) -> [u32; 3] {
        let [x, y, z] = self.shape;
        [grid[0] / x, grid[1] / y, grid[2] / z]
    }

    /// Returns the linear index of the cluster of a block.
    pub(super) fn of_block(&self, grid: [u32; 3], block: u64) -> u64 {
        if self.blocks == 1 {
            return block;
        }
        let [columns, rows, _] = grid.map(u64::from);
        let [x, y, z] = self.shape.map(u64::from);
        let [clusters, lines, _] = self.count(grid).map(u64::from);
        let (cx, cy) = (block % columns / x, block / columns % rows / y);
        cx + clusters * (cy + lines * (block / (columns * rows) / z))
    }
}

/// Returns the shape of the clusters that a launch or its kernel names.
pub(super) fn shape(launch: &Launch, directives: &ClusterDirectives) -> Option<[u32; 3]> {
    launch.cluster.or(directives.required)
}

impl Module {
    /// Returns the blocks of a cluster of a launch in x, y, z, if it or its kernel names them.
    #[must_use]
    pub fn cluster_of(&self, launch: &Launch) -> Option<[u32; 3]> {
        let required = || self.entry(&launch.entry)?.cluster.required;
        launch.cluster.or_else(required)
    }
}

/// Clusters to run, by linear index.
pub(super) enum Units {
    /// All of the grid.
    All(u64),
    /// Some; those beyond the grid are skipped.
    List(Vec<u64>),
}

impl Units {
    /// Returns the clusters of the chosen blocks: a block runs with all of its cluster.
    pub(super) fn new(launch: &Launch, cluster: &Cluster) -> Units {
        let BlockSet::List(list) = &launch.blocks else {
            return Units::All(launch.chosen() / cluster.blocks as u64);
        };
        if cluster.blocks == 1 {
            return Units::List(list.clone());
        }
        let all: u64 = launch.grid.iter().map(|d| u64::from(*d)).product();
        let inside = list.iter().filter(|block| **block < all);
        let mut units: Vec<u64> = inside.map(|b| cluster.of_block(launch.grid, *b)).collect();
        units.sort_unstable();
        // Two chosen blocks may be in one cluster, which must run once.
        units.dedup();
        Units::List(units)
    }

    /// Returns the number of clusters.
    pub(super) fn len(&self) -> u64 {
        match self {
            Units::All(count) => *count,
            Units::List(list) => list.len() as u64,
        }
    }

    /// Returns a cluster by its place among the chosen ones; `None` for one beyond the grid.
    pub(super) fn get(&self, place: u64, all: u64) -> Option<u32> {
        match self {
            Units::All(_) => Some(place as u32),
            Units::List(list) => {
                let unit = list.get(place as usize).copied();
                unit.filter(|unit| *unit < all).map(|unit| unit as u32)
            }
        }
    }
}

impl Context<'_> {
    /// Reports whether every reader of a word must be recorded separately: where other threads than
    /// all of a unit synchronise.
    pub(super) fn exact_readers(&self) -> bool {
        self.program.partial_sync || self.cluster.blocks > 1
    }

    /// Returns the number of thread numbers of a cluster.
    pub(super) fn slots(&self) -> usize {
        match self.cluster.blocks {
            1 => self.threads,
            blocks => blocks * self.cluster.warps * 32,
        }
    }

    /// Returns the linear index of a block of a cluster.
    pub(super) fn block_of(&self, unit: u32, rank: usize) -> u32 {
        if self.cluster.blocks == 1 {
            return unit;
        }
        let [clusters, lines, _] = self.cluster.count(self.grid);
        let at = [
            unit % clusters,
            unit / clusters % lines,
            unit / (clusters * lines),
        ];
        let (shape, inner) = (self.cluster.shape, self.cluster.index_of_rank(rank));
        let [x, y, z]: [u32; 3] = std::array::from_fn(|n| at[n] * shape[n] + inner[n]);
        x + self.grid[0] * (y + self.grid[1] * z)
    }

    /// Returns the earlier access of a race with the block and the thread in it. `block` is that of
    /// the later access.
    pub(super) fn conflict_in_block(&self, unit: u32, block: u32, c: Conflict) -> Conflict {
        if self.cluster.blocks == 1 || c.block == Some(NONE) {
            return c;
        }
        let own = self.block_of(c.block.unwrap_or(unit), self.cluster.rank(c.thread));
        Conflict {
            block: (own != block).then_some(own),
            thread: self.cluster.thread_in_block(c.thread),
            ..c
        }
    }

    /// Begins the traces of the blocks of a cluster.
    pub(super) fn begin_traces(&self, unit: u32) -> Vec<BlockTrace> {
        let ranks = 0..self.cluster.blocks;
        let warps = self.threads.div_ceil(32);
        ranks
            .map(|rank| trace::begin(self.block_of(unit, rank), warps))
            .collect()
    }
}

impl Cta<'_> {
    /// Creates an occurrence of a hazard of a thread, by its block and its number there.
    pub(super) fn occurrence(&self, thread: usize, at: Location) -> Occurrence {
        let cluster = &self.context.cluster;
        let block = self.context.block_of(self.block, cluster.rank(thread));
        let mut found = Occurrence::new(block, cluster.thread_in_block(thread), at);
        if at.space == Space::Shared {
            found.address = cluster.offset(at.address);
        }
        found
    }

    /// Returns the name of the block that shared memory belongs to, where it is not that of the
    /// thread.
    pub(super) fn holder_of(&self, thread: usize, at: Location) -> String {
        let cluster = &self.context.cluster;
        let rank = cluster.rank_of_address(at.address);
        if at.space != Space::Shared || rank == cluster.rank(thread) || rank >= cluster.blocks {
            return String::new();
        }
        format!(" of {}", self.block_name(rank))
    }

    /// Returns the name of a block of the cluster.
    pub(super) fn block_name(&self, rank: usize) -> String {
        if rank >= self.context.cluster.blocks {
            return "no block of the cluster".to_owned();
        }
        let block = self.context.block_of(self.block, rank);
        let [x, y, z] = self.context.ctaid(block.into());
        format!("block ({x}, {y}, {z})")
    }

    /// Returns the address of the same place in the block with a rank (`mapa`).
    pub(super) fn map_address(
        &mut self,
        w: &Warp,
        lane: usize,
        at: u64,
        rank: u32,
        generic: bool,
    ) -> u64 {
        let cluster = self.context.cluster;
        if rank as usize >= cluster.blocks {
            let blocks = cluster.blocks;
            let thread = w.index * 32 + lane;
            self.hazard(HazardKind::Crashed, thread, Location::NONE, NONE, || {
                format!("`mapa` to the block with rank {rank} of a cluster of {blocks}")
            });
            return at;
        }
        let (window, at) = match generic {
            true => (SHARED_WINDOW, at.wrapping_sub(SHARED_WINDOW)),
            false => (0, at),
        };
        let offset = match cluster.blocks {
            // A block on its own has no rank in its addresses.
            1 => at,
            _ => at & ((1 << RANK_SHIFT) - 1),
        };
        window.wrapping_add(cluster.kernel_address(rank as usize, offset))
    }
}
