//! The time of a kernel on a named GPU, as far as a model can tell it. Everything here is labelled
//! predicted.
//!
//! [`Forecaster`] executes a block in the middle of the grid and the beginnings of those beside it,
//! and has `vgpu::model` replay the block's machine code on one multiprocessor. Without machine
//! code (or without the line numbers that tie it to its PTX) a plain estimate is left, by roofline
//! and occupancy, and is marked as not reliable.

mod forecast;

pub use forecast::{Forecast, Forecaster};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tuner_core::units::Micros;
use vgpu::counters::Class;
use vgpu::{Arch, Counters};

/// Name of this model, stored with each time as its timing protocol.
pub const PROTOCOL: &str = "predicted: machine code replayed on a multiprocessor, version 4";

/// What stands beside a figure that should not be relied on.
pub(crate) const NOT_RELIABLE: &str = "prediction not reliable for this kernel";

/// Factors on a predicted time between which nine of ten recorded times lie, where the model has
/// no doubts, and where it has (`docs/prediction.md`, "Error").
const INTERVAL: [f64; 2] = [0.6, 2.0];
const DOUBTFUL: [f64; 2] = [0.25, 4.0];

/// One launch, as far as its time depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LaunchWork {
    /// Threads a block.
    pub threads: u64,
    /// Blocks of the whole grid.
    pub grid_blocks: u64,
    /// Registers a thread.
    pub registers: u32,
    /// Shared memory a block, static and dynamic, bytes.
    pub shared_bytes: u64,
    /// Blocks that ran.
    pub counted_blocks: u64,
    /// What they did.
    pub counters: Counters,
}

/// A predicted time and what limits it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Prediction {
    /// Time of all launches.
    pub time: Micros,
    /// Resident warps of the longest launch over the multiprocessor's maximum, 0 to 1.
    pub occupancy: f64,
    /// Rounds in which the blocks of the longest launch fill the device.
    pub waves: f64,
    /// Blocks of the longest launch.
    pub blocks: u64,
    /// The limit of the longest launch: `issue`, `fp32`, `alu`, `fp16`, `fp64`, `special`, `tensor`,
    /// `shared` (loads and stores of shared memory and of the L1 cache), `l2`, `dram` or
    /// `latency`.
    pub bound: &'static str,
}

/// What explains a predicted time; work is that of all launches and all of their blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// See `Prediction::bound`.
    pub bound: String,
    /// See `Prediction::occupancy`.
    pub occupancy: f64,
    /// See `Prediction::waves`.
    pub waves: f64,
    /// See `Prediction::blocks`.
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

    /// Scales what the sampled blocks did to whole grids.
    #[must_use]
    pub(crate) fn new(prediction: &Prediction, launches: &[LaunchWork]) -> Self {
        let sum = |count: fn(&Counters) -> u64| -> f64 {
            let scaled = launches.iter().map(|launch| {
                let blocks = launch.counted_blocks.max(1) as f64;
                count(&launch.counters) as f64 * launch.grid_blocks as f64 / blocks
            });
            scaled.sum()
        };
        Self {
            bound: prediction.bound.to_owned(),
            occupancy: prediction.occupancy,
            waves: prediction.waves,
            blocks: prediction.blocks,
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
            interval_us: DOUBTFUL.map(|factor| prediction.time.get() * factor),
            doubts: Vec::new(),
            metrics: BTreeMap::new(),
        }
    }
}

/// Blocks of this shape that one multiprocessor holds at once; zero when a single one does not fit.
#[must_use]
pub fn resident_blocks(arch: &Arch, threads: u64, registers: u32, shared_bytes: u64) -> u64 {
    let Ok(threads) = u32::try_from(threads) else {
        return 0;
    };
    vgpu::model::resident_blocks(arch, threads, registers, shared_bytes).into()
}

/// Cycles between dependent instructions of one warp, averaged over arithmetic and shared memory.
const DEPENDENT_CYCLES: f64 = 5.0;
/// Latency of a global load, cycles, of which a warp usually has several in flight.
const GLOBAL_CYCLES: f64 = 500.0;
/// Global loads a warp has in flight, typically.
const LOADS_IN_FLIGHT: f64 = 4.0;
/// Latency of a block-wide barrier, cycles.
const BARRIER_CYCLES: f64 = 30.0;
/// Bytes a clock that one multiprocessor gets from the L2 cache.
const L2_BYTES_PER_CLOCK: f64 = 64.0;

/// One launch, without the launch overhead.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    /// Microseconds.
    time: f64,
    occupancy: f64,
    waves: f64,
    bound: &'static str,
}

/// Predicts the time of one launch by roofline and occupancy. `bytes` is what must move between
/// memory and chip at least, where the space says so. `None` when nothing was counted or a block does
/// not fit.
fn launch_time(arch: &Arch, launch: &LaunchWork, bytes: Option<f64>) -> Option<Estimate> {
    let resident = resident_blocks(arch, launch.threads, launch.registers, launch.shared_bytes);
    if resident == 0 || launch.counted_blocks == 0 {
        return None;
    }
    let c = &launch.counters;
    let counted = launch.counted_blocks as f64;
    let blocks_an_sm = launch.grid_blocks.div_ceil(u64::from(arch.sm_count)) as f64;
    let warps = launch.threads.div_ceil(32).max(1) as f64;
    let sectors = (c.global_load_sectors + c.global_store_sectors) as f64;
    let fma = 2.0 * f64::from(arch.fp32_lanes);
    let tensor = 2.0 * f64::from(arch.tensor_f16);
    // Cycles of one block on each unit of its multiprocessor.
    let units = [
        (
            "issue",
            c.warp_instructions as f64 / counted / f64::from(arch.schedulers),
        ),
        ("fp32", c.fp32_flops as f64 / counted / fma),
        ("tensor", c.tensor_flops as f64 / counted / tensor),
        (
            "shared",
            (c.shared_wavefronts + c.class(Class::Shuffle)) as f64 / counted,
        ),
        ("l2", sectors * 32.0 / counted / L2_BYTES_PER_CLOCK),
    ];
    let (mut bound, most) = units
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or(("issue", 0.0));
    let mut cycles = most * blocks_an_sm;
    let waves = (blocks_an_sm / resident as f64).ceil();
    let latency = waves * block_latency(c, counted, warps);
    if latency > cycles {
        (cycles, bound) = (latency, "latency");
    }
    let mut time = cycles / f64::from(arch.boost_mhz);
    let moved = bytes
        .unwrap_or(0.0)
        .min(sectors * 32.0 / counted * launch.grid_blocks as f64);
    let dram = moved / arch.dram_gb_s * 1e-3;
    if dram > time {
        (time, bound) = (dram, "dram");
    }
    let here = (resident as f64).min(blocks_an_sm) * warps * 32.0;
    Some(Estimate {
        time,
        occupancy: here / f64::from(arch.max_threads_per_sm),
        waves: launch.grid_blocks as f64 / (resident * u64::from(arch.sm_count)) as f64,
        bound,
    })
}

/// Cycles from a block's start to its end when it has the multiprocessor to itself.
fn block_latency(c: &Counters, counted: f64, warps: f64) -> f64 {
    let a_warp = |count: u64| count as f64 / counted / warps;
    let global = a_warp(c.class(Class::Global) + c.class(Class::Atomic));
    a_warp(c.warp_instructions) * DEPENDENT_CYCLES
        + (global / LOADS_IN_FLIGHT).max(global.min(1.0)) * GLOBAL_CYCLES
        + c.barriers as f64 / counted * BARRIER_CYCLES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(threads: u64, blocks: u64, registers: u32, flops: u64) -> LaunchWork {
        let counters = Counters {
            fp32_flops: flops,
            warp_instructions: flops / 64,
            global_load_sectors: 1000,
            ..Counters::default()
        };
        LaunchWork {
            threads,
            grid_blocks: blocks,
            registers,
            shared_bytes: 0,
            counted_blocks: 1,
            counters,
        }
    }

    #[test]
    fn a_prediction_is_never_faster_than_the_arithmetic_peak() {
        let arch = Arch::by_name("h100").unwrap();
        let launch = work(256, 13_200, 64, 1 << 24);
        let floor_us = (1u64 << 24) as f64 * 13_200.0 / arch.peak_fp32() * 1e6;
        let time = launch_time(arch, &launch, None).unwrap().time;
        assert!(time >= floor_us, "{time} {floor_us}");
    }

    #[test]
    fn fewer_registers_let_more_blocks_reside_until_another_limit_holds() {
        let arch = Arch::by_name("l4").unwrap();
        assert_eq!(resident_blocks(arch, 256, 255, 0), 1);
        assert_eq!(resident_blocks(arch, 256, 128, 0), 2);
        assert_eq!(resident_blocks(arch, 256, 32, 0), 6);
        assert_eq!(resident_blocks(arch, 256, 32, 50_000), 2);
        assert_eq!(resident_blocks(arch, 1024, 255, 0), 0);
    }

    #[test]
    fn a_grid_smaller_than_the_device_takes_as_long_as_one_wave() {
        let arch = Arch::by_name("h100").unwrap();
        let one = launch_time(arch, &work(256, 1, 64, 1 << 24), None)
            .unwrap()
            .time;
        let full = launch_time(arch, &work(256, 132, 64, 1 << 24), None)
            .unwrap()
            .time;
        assert_eq!(one, full);
    }
}
