//! The virtual GPU's counters as profiler metrics.

use crate::cli::{CliError, usage};
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use tuner_core::record::LeaderboardRow;
use tuner_core::units::Micros;
use tuner_device::DeviceSelector;
use tuner_engine::Predictor;
use tuner_engine::job::JobError;
use tuner_kernel::catalog::Kernel;
use tuner_store::{Board, Profile, ProfileSource};
use vgpu::Arch;
use vgpu::arch::by_device_name;

/// Returns a predictor of a board's kernel on the virtual GPU of its device or of that device's
/// model; `None` without a table for it.
pub(in crate::cli) fn predictor(
    kernel: &Kernel,
    board: &Board,
) -> Result<Option<(&'static Arch, Predictor)>, JobError> {
    let Some(arch) = by_device_name(&board.key.device) else {
        return Ok(None);
    };
    let device = DeviceSelector::Vgpu(arch.name.to_owned());
    let path = kernel.path.to_string_lossy();
    let folder = Path::new(".");
    let predictor = Predictor::open(&path, folder, Some(&board.key.problem), &device, None, None)?;
    Ok(Some((arch, predictor)))
}

/// Predicts the winner on the board's virtual GPU, or on that of the real GPU's model.
pub(super) fn profile(
    kernel: &Kernel,
    board: &Board,
    best: &LeaderboardRow,
) -> Result<Option<Profile>, CliError> {
    let Some((arch, predictor)) = predictor(kernel, board)? else {
        return Ok(None);
    };
    let config = predictor
        .space
        .config_from_values(&best.config)
        .map_err(|error| usage(format!("{}: {error}", kernel.path.display())))?;
    let judged = predictor.predict(&[config])?;
    let Some(judged) = judged.first() else {
        return Ok(None);
    };
    let explanation = judged
        .found
        .explanation
        .as_ref()
        .and_then(|one| serde_json::to_value(one).ok());
    let Some(Json::Object(counters)) = explanation else {
        return Ok(None);
    };
    let time_us = judged.predicted().map_or(best.time_us_p50, Micros::get);
    let mut metrics = normalised(&counters, arch, time_us);
    if let Some(facts) = &judged.compilation {
        metrics.insert("registers_per_thread".to_owned(), json!(facts.registers));
    }
    metrics.insert("duration_us".to_owned(), json!(time_us));
    // The raw counters are stored too: reports derive bottlenecks from them.
    for (name, value) in counters {
        metrics.entry(name).or_insert(value);
    }
    Ok(Some(Profile {
        source: ProfileSource::Vgpu,
        tool: format!(
            "virtual GPU {}, tuner {}",
            arch.name,
            env!("CARGO_PKG_VERSION")
        ),
        metrics,
        profiled_at: String::new(),
    }))
}

/// Computes percentages of each peak from the counts and the predicted time.
fn normalised(counters: &Map<String, Json>, arch: &Arch, time_us: f64) -> Map<String, Json> {
    let get = |key: &str| counters.get(key).and_then(Json::as_f64).unwrap_or(0.0);
    let seconds = time_us * 1e-6;
    let device_cycles = f64::from(arch.boost_mhz) * 1e6 * seconds * f64::from(arch.sm_count);
    let percent = |part: f64| json!((100.0 * part).clamp(0.0, 100.0));
    let issue = arch.issue_share(get("warp_instructions"), device_cycles);
    let tensor = get("tensor_flops") / arch.peak_tensor_f16() / seconds;
    let fp32 = get("fp32_flops") / arch.peak_fp32() / seconds;
    let shared = get("shared_wavefronts") / device_cycles;
    let sectors = (get("global_load_sectors") + get("global_store_sectors")) * 32.0;
    let mut metrics = Map::new();
    let mut put = |name: &str, value: Json| {
        metrics.insert(name.to_owned(), value);
    };
    // As in ncu, the busiest unit counts.
    put(
        "sm_busy_pct",
        percent(issue.max(tensor).max(fp32).max(shared)),
    );
    put("issue_slots_busy_pct", percent(issue));
    put("achieved_occupancy_pct", percent(get("occupancy")));
    // An upper bound: cache hits are unknown here unless they were counted.
    let dram = counters
        .get("dram_bytes")
        .and_then(Json::as_f64)
        .unwrap_or(sectors);
    put(
        "dram_throughput_pct",
        percent(dram / (arch.dram_gb_s * 1e9) / seconds),
    );
    put(
        "l2_throughput_pct",
        percent(sectors / (64.0 * device_cycles)),
    );
    put("tensor_pipe_pct", percent(tensor));
    put("bank_conflicts", json!(get("bank_conflicts")));
    put("shared_wavefronts", json!(get("shared_wavefronts")));
    metrics
}
