//! Limits of a device that a launch breaks whatever its code is.

use tuner_core::plan::PlanLaunch;
use tuner_space::DeviceLimits;

/// Most threads of a block in z, and most blocks of a grid in y and z, on every GPU (CUDA C++
/// programming guide, technical specifications).
const MAX_BLOCK_Z: u32 = 64;
const MAX_GRID_YZ: u32 = 65_535;

/// Shared memory of a block without opt-in, bytes.
const SHARED_BYTES_DEFAULT: u32 = 48 << 10;

/// Returns the reason why the device refuses one of the launches; `None` if only the compiled code
/// can tell.
pub(crate) fn explain_refusal(launches: &[PlanLaunch], limits: &DeviceLimits) -> Option<String> {
    launches.iter().find_map(|launch| {
        let PlanLaunch {
            entry, grid, block, ..
        } = launch;
        let [x, y, z] = *block;
        let threads: u128 = [x, y, z].map(u128::from).into_iter().product();
        let most = limits.max_threads;
        if threads > most.into() || z > MAX_BLOCK_Z {
            return Some(format!(
                "block {block:?} of `{entry}` is refused: {threads} threads; a block has at most \
                 {most}, and {MAX_BLOCK_Z} in z"
            ));
        }
        if grid.iter().skip(1).any(|blocks| *blocks > MAX_GRID_YZ) {
            return Some(format!(
                "grid {grid:?} of `{entry}` is refused: the limits are 2^31-1, {MAX_GRID_YZ}, \
                 {MAX_GRID_YZ}"
            ));
        }
        // Static arrays add to it, which only the compiled code shows. A limit of the default may
        // stand for an unknown one, of a compile target without a GPU.
        let (bytes, limit) = (launch.shared_bytes, limits.shared_bytes);
        (limit > SHARED_BYTES_DEFAULT && bytes > limit).then(|| {
            format!(
                "a block of `{entry}` requests {bytes} bytes of shared memory, the device has \
                 {limit}; use smaller tiles or fewer stages"
            )
        })
    })
}

#[cfg(test)]
mod tests;
