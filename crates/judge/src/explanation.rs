//! Explanation of a predicted time: the form in which a device's worker returns it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Label of a figure that should not be relied on.
const NOT_RELIABLE: &str = "prediction not reliable for this kernel";

/// Explanation of a predicted time; work is that of all launches and all of their blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The limit of the longest launch: `issue`, `fp32`, `alu`, `fp16`, `fp64`, `special`, `tensor`,
    /// `shared` (loads and stores of shared memory and of the L1 cache), `l2`, `dram` or
    /// `latency`.
    pub bound: String,
    /// Resident warps of the longest launch over the multiprocessor's maximum, 0 to 1.
    pub occupancy: f64,
    /// Waves of blocks of the longest launch.
    pub waves: f64,
    /// Blocks of the longest launch.
    pub blocks: u64,
    /// Instructions issued by warps.
    pub warp_instructions: f64,
    /// Bytes requested by global loads.
    pub global_load_bytes: f64,
    /// Bytes requested by global stores.
    pub global_store_bytes: f64,
    /// 32-byte sectors of global loads.
    pub global_load_sectors: f64,
    /// 32-byte sectors of global stores.
    pub global_store_sectors: f64,
    /// Wavefronts of shared memory.
    pub shared_wavefronts: f64,
    /// Wavefronts caused by bank conflicts.
    pub bank_conflicts: f64,
    /// Bytes of local loads and stores.
    pub local_bytes: f64,
    /// Single-precision operations.
    pub fp32_flops: f64,
    /// Operations of matrix instructions.
    pub tensor_flops: f64,
    /// Block-wide barriers passed.
    pub barriers: f64,
    /// Lower and upper end of the likely time, µs.
    #[serde(default)]
    pub interval_us: [f64; 2],
    /// Reasons why the time is not reliable; empty if it is.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// Counters of the model by their Nsight Compute names, if they have one.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
}

impl Explanation {
    /// Returns the label of the time: empty, or that it is not reliable and why.
    #[must_use]
    pub fn reliability(&self) -> String {
        if self.doubts.is_empty() {
            return "ok".to_owned();
        }
        format!("{NOT_RELIABLE}: {}", self.doubts.join("; "))
    }
}
