//! Checks of a launch against the limits of the device.

use super::{Launch, LaunchError};
use crate::arch::{
    Arch, LOCAL_BYTES, MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK, SHARED_BYTES_DEFAULT, exceeds,
};
use crate::exec::cluster;
use crate::lower::program::Program;
use crate::module::Entry;
use ptx::ast::ClusterDirectives;

pub(super) fn check_dimensions(launch: &Launch, entry: &Entry) -> Result<(), LaunchError> {
    let refuse = |what, dims, why: String| Err(LaunchError::Dimensions { what, dims, why });
    if launch.grid.contains(&0) {
        return refuse("grid", launch.grid, "a dimension is zero".to_owned());
    }
    if launch.block.contains(&0) {
        return refuse("block", launch.block, "a dimension is zero".to_owned());
    }
    if exceeds(launch.grid, MAX_GRID) {
        return refuse(
            "grid",
            launch.grid,
            "the limits are 2^31-1, 65535, 65535".to_owned(),
        );
    }
    // The largest 32-bit block number is reserved (`NONE`, `SEVERAL_BLOCKS`).
    let blocks: u128 = launch.grid.map(u128::from).into_iter().product();
    if blocks > u128::from(u32::MAX - 1) {
        return refuse(
            "grid",
            launch.grid,
            "more than 2^32-2 blocks cannot be executed".to_owned(),
        );
    }
    let [x, y, z] = launch.block.map(u64::from);
    let threads = x.saturating_mul(y).saturating_mul(z);
    let limit = u64::from(MAX_THREADS_PER_BLOCK);
    if exceeds(launch.block, MAX_BLOCK) || threads > limit {
        let why = format!("{threads} threads; a block has at most {limit}, and 64 in z");
        return refuse("block", launch.block, why);
    }
    if let Some(max) = entry
        .max_threads
        .map(|m| m.iter().map(|d| u64::from(*d)).product::<u64>())
        && threads > max
    {
        let why = format!("the kernel was compiled for at most {max} threads");
        return refuse("block", launch.block, why);
    }
    if entry.required_threads.is_some_and(|r| r != launch.block) {
        let why = format!(
            "the kernel demands {:?}",
            entry.required_threads.unwrap_or_default()
        );
        return refuse("block", launch.block, why);
    }
    Ok(())
}

/// Largest cluster that every device with clusters can run, and the largest that some can
/// (CUDA C++ programming guide, "Thread Block Clusters").
const PORTABLE_CLUSTER: u64 = 8;
const LARGEST_CLUSTER: u64 = cluster::MAX_BLOCKS as u64;
/// Compute capability times 10 from which on there are clusters.
const FIRST_WITH_CLUSTERS: u32 = 90;

pub(super) fn check_cluster(
    launch: &Launch,
    directives: &ClusterDirectives,
    arch: &Arch,
) -> Result<(), LaunchError> {
    let Some(shape) = cluster::shape(launch, directives) else {
        if directives.explicit {
            let why = "the kernel was compiled for a launch with clusters, and this one has none";
            return refuse_cluster([0; 3], why.to_owned());
        }
        return Ok(());
    };
    if directives
        .required
        .is_some_and(|required| required != shape)
    {
        let required = directives.required.unwrap_or_default();
        return refuse_cluster(shape, format!("the kernel demands {required:?}"));
    }
    if shape.contains(&0) {
        return refuse_cluster(shape, "a dimension is zero".to_owned());
    }
    if arch.cc < FIRST_WITH_CLUSTERS {
        let why = format!("{} has no thread block clusters", arch.name);
        return refuse_cluster(shape, why);
    }
    let blocks: u64 = shape.iter().map(|d| u64::from(*d)).product();
    if blocks > LARGEST_CLUSTER {
        let why = format!(
            "{blocks} blocks; a cluster has at most {LARGEST_CLUSTER}, and {PORTABLE_CLUSTER} on every device"
        );
        return refuse_cluster(shape, why);
    }
    if directives.max_blocks.is_some_and(|max| blocks > max.into()) {
        let max = directives.max_blocks.unwrap_or_default();
        let why = format!("the kernel was compiled for clusters of at most {max} blocks");
        return refuse_cluster(shape, why);
    }
    if launch
        .grid
        .iter()
        .zip(shape)
        .any(|(grid, by)| !grid.is_multiple_of(by))
    {
        let why = format!("the grid {:?} is not a multiple of it", launch.grid);
        return refuse_cluster(shape, why);
    }
    Ok(())
}

fn refuse_cluster(dims: [u32; 3], why: String) -> Result<(), LaunchError> {
    let what = "cluster";
    Err(LaunchError::Dimensions { what, dims, why })
}

pub(super) fn check_shared(launch: &Launch, entry: &Entry, arch: &Arch) -> Result<(), LaunchError> {
    let statics = u64::from(entry.static_shared_bytes);
    let wanted = statics + u64::from(launch.dynamic_shared_bytes);
    // Static arrays alone must stay within the default limit, even with opt-in.
    let (limit, over) = if statics > u64::from(SHARED_BYTES_DEFAULT) {
        (u64::from(SHARED_BYTES_DEFAULT), true)
    } else {
        (
            u64::from(arch.shared_bytes_optin),
            wanted > u64::from(arch.shared_bytes_optin),
        )
    };
    if over {
        return Err(LaunchError::SharedMemory {
            wanted,
            statics,
            arch: arch.name,
            limit,
        });
    }
    Ok(())
}

pub(super) fn check_local(program: &Program, entry: &Entry) -> Result<(), LaunchError> {
    if program.local_bytes > LOCAL_BYTES {
        return Err(LaunchError::LocalMemory {
            entry: entry.name.clone(),
            wanted: program.local_bytes,
        });
    }
    Ok(())
}
