//! Model prediction of the time of a kernel on a named GPU. All results are labelled as predicted.
//!
//! [`Forecaster`] executes a block in the middle of the grid, as PTX and as SASS, and the beginnings of its
//! neighbours. `gpu_model` then replays the block's SASS on one multiprocessor. If the SASS cannot be
//! executed, or produces other memory contents than the PTX, there is no prediction.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod cache;
mod cases;
mod forecast;

pub use forecast::{Forecast, Forecaster};
pub use gpu_model::SERIALIZED;

use tuner_judge::explanation::Explanation;
use vgpu::{Arch, Counters};

/// Name of this model, stored with each time as its timing protocol.
pub const PROTOCOL: &str = "predicted: machine code replayed on a multiprocessor, version 17";

/// Returns the factors on a predicted time between which nine of ten recorded times are, by the limit of
/// the launch (`scripts/calibrate-interval`; `docs/evidence/prediction.md`, "Error").
fn interval(bound: &str) -> [f64; 2] {
    match bound {
        "shared" | "l2" | "dram" | "latency" => [0.57, 2.09],
        _ => [0.59, 2.04],
    }
}

/// The same factors if the model has doubts.
const DOUBTFUL: [f64; 2] = [0.25, 4.0];

/// Returns a warning if the assembler serialized most warp-group products: it found that other code
/// modifies their registers (messages C7510 and C7511 of ptxas).
#[must_use]
pub fn serialization(explanation: &Explanation) -> Option<String> {
    let share = explanation.metrics.get(gpu_model::SERIALIZED)?;
    (*share > gpu_model::SERIALIZED_MOST_PCT).then(|| {
        format!(
            "its wgmma is serialized: {share:.0} % of the products wait for the one before. Where the source \
             does not wait, ptxas makes it wait (messages C7510 and C7511)"
        )
    })
}

/// Scales the counters of the sampled blocks to whole grids. `launches` has the number of blocks of each
/// launch, and the counters of those that ran.
fn explain_work(launches: &[(u64, Counters)]) -> Explanation {
    let sum = |count: fn(&Counters) -> u64| -> f64 {
        let scaled = launches.iter().map(|(blocks, counters)| {
            count(counters) as f64 * *blocks as f64 / counters.blocks.max(1) as f64
        });
        scaled.sum()
    };
    Explanation {
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
        ..Explanation::default()
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
