//! The time of a kernel on a named GPU, as far as a model can tell it. Everything here is labelled
//! predicted.
//!
//! [`Forecaster`] executes a block in the middle of the grid, as PTX and as machine code, and the
//! beginnings of those beside it, and has `gpu_model` replay the block's machine code on one
//! multiprocessor. Where the machine code cannot be executed, or leaves other memory than the PTX,
//! nothing is predicted.

mod cases;
mod forecast;
mod kept;

pub use forecast::{Forecast, Forecaster};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vgpu::{Arch, Counters};

/// Name of this model, stored with each time as its timing protocol.
pub const PROTOCOL: &str = "predicted: machine code replayed on a multiprocessor, version 11";

/// What stands beside a figure that should not be relied on.
pub(crate) const NOT_RELIABLE: &str = "prediction not reliable for this kernel";

/// Factors on a predicted time between which nine of ten recorded times lie, by what bounds the launch
/// (`scripts/calibrate-interval`; `docs/evidence/prediction.md`, "Error").
fn interval(bound: &str) -> [f64; 2] {
    match bound {
        "shared" | "l2" | "dram" | "latency" => [0.57, 2.09],
        _ => [0.59, 2.04],
    }
}

/// The same where the model has doubts.
const DOUBTFUL: [f64; 2] = [0.25, 4.0];

/// What explains a predicted time; work is that of all launches and all of their blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The limit of the longest launch: `issue`, `fp32`, `alu`, `fp16`, `fp64`, `special`, `tensor`,
    /// `shared` (loads and stores of shared memory and of the L1 cache), `l2`, `dram` or
    /// `latency`.
    pub bound: String,
    /// Resident warps of the longest launch over the multiprocessor's maximum, 0 to 1.
    pub occupancy: f64,
    /// Rounds in which the blocks of the longest launch fill the device.
    pub waves: f64,
    /// Blocks of the longest launch.
    pub blocks: u64,
    /// Instructions issued by warps.
    pub warp_instructions: f64,
    /// Bytes that global loads asked for.
    pub global_load_bytes: f64,
    /// Bytes that global stores asked for.
    pub global_store_bytes: f64,
    /// 32-byte sectors of global loads.
    pub global_load_sectors: f64,
    /// 32-byte sectors of global stores.
    pub global_store_sectors: f64,
    /// Wavefronts of shared memory.
    pub shared_wavefronts: f64,
    /// Those of them that bank conflicts cost.
    pub bank_conflicts: f64,
    /// Bytes of local loads and stores.
    pub local_bytes: f64,
    /// Single-precision operations.
    pub fp32_flops: f64,
    /// Operations of matrix instructions.
    pub tensor_flops: f64,
    /// Block-wide barriers passed.
    pub barriers: f64,
    /// Least and most that the time is likely to be, µs.
    #[serde(default)]
    pub interval_us: [f64; 2],
    /// Why the time is not to be relied on; empty where it is.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// Counters of the model by the names that Nsight Compute gives them, where it has them.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
}

impl Explanation {
    /// What stands beside the time: nothing, or that it is not reliable and why.
    #[must_use]
    pub fn reliability(&self) -> String {
        if self.doubts.is_empty() {
            return "ok".to_owned();
        }
        format!("{NOT_RELIABLE}: {}", self.doubts.join("; "))
    }

    /// Scales what the sampled blocks did to whole grids: the blocks of each launch, and what those
    /// that ran did.
    fn of_work(launches: &[(u64, Counters)]) -> Self {
        let sum = |count: fn(&Counters) -> u64| -> f64 {
            let scaled = launches.iter().map(|(blocks, counters)| {
                count(counters) as f64 * *blocks as f64 / counters.blocks.max(1) as f64
            });
            scaled.sum()
        };
        Self {
            warp_instructions: sum(|c| c.warp_instructions),
            global_load_bytes: sum(|c| c.global_load_bytes),
            global_store_bytes: sum(|c| c.global_store_bytes),
            global_load_sectors: sum(|c| c.global_load_sectors),
            global_store_sectors: sum(|c| c.global_store_sectors),
            shared_wavefronts: sum(|c| c.shared_wavefronts),
            bank_conflicts: sum(|c| c.bank_conflicts),
            local_bytes: sum(|c| c.local_bytes),
            fp32_flops: sum(|c| c.fp32_flops),
            tensor_flops: sum(|c| c.tensor_flops),
            barriers: sum(|c| c.barriers),
            ..Self::default()
        }
    }
}

/// Blocks of this shape that one multiprocessor holds at once; zero when a single one does not fit.
#[must_use]
pub fn resident_blocks(arch: &Arch, threads: u64, registers: u32, shared_bytes: u64) -> u64 {
    let Ok(threads) = u32::try_from(threads) else {
        return 0;
    };
    gpu_model::resident_blocks(arch, threads, registers, shared_bytes).into()
}

#[cfg(test)]
mod tests;
