//! Model prediction of the time of a kernel on a named GPU. All results are labelled as predicted.
//!
//! [`Forecaster`] executes a block in the middle of the grid, as PTX and as SASS, and the
//! beginnings of its neighbours, and lets `gpu_model` replay the block's SASS on one
//! multiprocessor. If the SASS cannot be executed, or leaves other memory than the PTX, there is no
//! prediction.

mod cases;
mod forecast;
mod cache;

pub use forecast::{Forecast, Forecaster};
pub use gpu_model::SERIALIZED;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vgpu::{Arch, Counters};

/// Name of this model, stored with each time as its timing protocol.
pub const PROTOCOL: &str = "predicted: machine code replayed on a multiprocessor, version 13";

/// Label of a figure that should not be relied on.
pub(crate) const NOT_RELIABLE: &str = "prediction not reliable for this kernel";

/// Returns the factors on a predicted time between which nine of ten recorded times are, by the
/// limit of the launch (`scripts/calibrate-interval`; `docs/evidence/prediction.md`, "Error").
fn interval(bound: &str) -> [f64; 2] {
    match bound {
        "shared" | "l2" | "dram" | "latency" => [0.57, 2.09],
        _ => [0.59, 2.04],
    }
}

/// The same if the model has doubts.
const DOUBTFUL: [f64; 2] = [0.25, 4.0];

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
    /// Returns a warning where the assembler serialized most products of warp-groups: it found them
    /// using registers that other code changes (messages C7510 and C7511 of ptxas).
    #[must_use]
    pub fn serialization(&self) -> Option<String> {
        let share = self.metrics.get(gpu_model::SERIALIZED)?;
        (*share > gpu_model::SERIALIZED_MOST_PCT).then(|| {
            format!(
                "its wgmma is serialized: {share:.0} % of the products wait for the one before. Where the source \
                 does not wait, ptxas makes it wait (messages C7510 and C7511)"
            )
        })
    }

    /// Returns the label of the time: empty, or that it is not reliable and why.
    #[must_use]
    pub fn reliability(&self) -> String {
        if self.doubts.is_empty() {
            return "ok".to_owned();
        }
        format!("{NOT_RELIABLE}: {}", self.doubts.join("; "))
    }

    /// Scales the counters of the sampled blocks to whole grids: the blocks of each launch, and the
    /// counters of those that ran.
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

/// Returns the blocks of this shape that fit on one multiprocessor; zero if a single one does not
/// fit.
#[must_use]
pub fn resident_blocks(arch: &Arch, threads: u64, registers: u32, shared_bytes: u64) -> u64 {
    let Ok(threads) = u32::try_from(threads) else {
        return 0;
    };
    gpu_model::resident_blocks(arch, threads, registers, shared_bytes).into()
}

#[cfg(test)]
mod tests;
