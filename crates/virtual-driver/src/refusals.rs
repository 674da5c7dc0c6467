//! Launches that a driver rejects before they run.

use cuda_shim::errors::{self, Code};
use cuda_shim::protocol::COOPERATIVE;
use vgpu::arch::{MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK, exceeds};

use crate::device::{Device, Function};
use crate::launches::Request;

/// Why a driver refuses a launch.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) text: String,
}

/// Number of blocks of the largest cluster that every device with clusters supports; a kernel can opt in to
/// more (`cudaFuncAttributeNonPortableClusterSizeAllowed`).
pub(crate) const PORTABLE_CLUSTER: u32 = 8;
/// The largest cluster of any device.
pub(crate) const LARGEST_CLUSTER: u32 = 16;

impl Device {
    /// Rejects a launch that a driver would reject before it runs.
    pub(crate) fn refuse(&self, request: &Request, function: &Function) -> Result<(), Refusal> {
        let arch = self.options.arch;
        let refused = |code, text: String| Err(Refusal { code, text });
        let threads: u64 = request
            .block
            .iter()
            .map(|extent| u64::from(*extent))
            .product();
        let [x, y, z] = request.block;
        let [grid_x, grid_y, grid_z] = request.grid;
        let empty = request.block.contains(&0) || request.grid.contains(&0);
        if empty || exceeds(request.block, MAX_BLOCK) || threads > u64::from(MAX_THREADS_PER_BLOCK)
        {
            let text =
                format!("a block of {x}×{y}×{z} threads in a grid of {grid_x}×{grid_y}×{grid_z}");
            return refused(errors::INVALID_CONFIGURATION, text);
        }
        if exceeds(request.grid, MAX_GRID) {
            let text = format!("a grid of {grid_x}×{grid_y}×{grid_z} blocks");
            return refused(errors::INVALID_CONFIGURATION, text);
        }
        if threads > u64::from(function.info.max_threads) {
            let text = format!(
                "{threads} threads a block; the kernel's registers ({}) and launch bounds permit {}",
                function.info.registers, function.info.max_threads
            );
            return refused(errors::OUT_OF_RESOURCES, text);
        }
        if u64::from(request.shared_bytes) > function.dynamic_limit {
            let text = format!(
                "{} bytes of dynamic shared memory; the kernel may use {} (see \
                 cudaFuncAttributeMaxDynamicSharedMemorySize)",
                request.shared_bytes, function.dynamic_limit
            );
            return refused(errors::INVALID_VALUE, text);
        }
        if let Some(text) = cluster_problem(request, function, arch.cc) {
            return refused(errors::INVALID_CLUSTER_SIZE, text);
        }
        let blocks: u64 = request
            .grid
            .iter()
            .map(|extent| u64::from(*extent))
            .product();
        let shared = u64::from(request.shared_bytes) + function.info.static_shared_bytes;
        let each =
            gpu_model::resident_blocks(arch, threads as u32, function.info.registers, shared);
        let together = u64::from(each) * u64::from(arch.sm_count);
        // A barrier of the grid waits for all blocks, which must therefore be resident at once.
        if request.flags & COOPERATIVE != 0 && blocks > together {
            let text =
                format!("a cooperative grid of {blocks} blocks; the device holds {together}");
            return refused(errors::COOPERATIVE_TOO_LARGE, text);
        }
        Ok(())
    }
}

/// Returns the reason why a driver would reject the clusters of a launch.
fn cluster_problem(request: &Request, function: &Function, cc: u32) -> Option<String> {
    let cluster = request.cluster;
    if cluster == [1; 3] {
        return None;
    }
    let [x, y, z] = cluster;
    let blocks = cluster
        .iter()
        .fold(1u32, |all, extent| all.saturating_mul(*extent));
    let most = match function.non_portable_cluster {
        true => LARGEST_CLUSTER,
        false => PORTABLE_CLUSTER,
    };
    let multiple = request.grid.iter().zip(cluster);
    let multiple = multiple
        .into_iter()
        .all(|(grid, by)| by > 0 && grid % by == 0);
    if cc < 90 {
        Some("the device has no thread block clusters".to_owned())
    } else if blocks > most {
        Some(format!(
            "a cluster of {x}×{y}×{z} blocks; the kernel may have {most}"
        ))
    } else if !multiple {
        Some(format!(
            "a cluster of {x}×{y}×{z} blocks, of which the grid is not a multiple"
        ))
    } else {
        None
    }
}
