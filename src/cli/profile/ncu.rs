//! Nsight Compute: invocation and CSV parser.

use crate::cli::{CliError, search_path};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tuner_core::record::{ConfigValues, assignments};
use tuner_kernel::catalog::Kernel;
use tuner_store::{Board, Profile, ProfileSource};

/// Metrics in percent of a peak: ncu's name, and the tuner's name.
const PERCENT: [(&str, &str); 6] = [
    (
        "sm__instruction_throughput.avg.pct_of_peak_sustained_active",
        "sm_busy_pct",
    ),
    (
        "sm__inst_issued.avg.pct_of_peak_sustained_active",
        "issue_slots_busy_pct",
    ),
    (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "achieved_occupancy_pct",
    ),
    (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram_throughput_pct",
    ),
    (
        "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
        "l2_throughput_pct",
    ),
    (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "tensor_pipe_pct",
    ),
];
/// Metrics with counts.
const COUNTS: [(&str, &str); 2] = [
    (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        "bank_conflicts",
    ),
    (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "shared_wavefronts",
    ),
];
const DURATION: &str = "gpu__time_duration.sum";
const REGISTERS: &str = "launch__registers_per_thread";
/// Stall reasons: number of stalled warps per issuing warp.
const STALLS: [&str; 12] = [
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "math_pipe_throttle",
    "mio_throttle",
    "lg_throttle",
    "not_selected",
    "wait",
    "no_instruction",
    "dispatch_stall",
    "membar",
    "branch_resolving",
];

fn stall_metric(reason: &str) -> String {
    format!("smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio")
}

/// Finds the profiler: the named file, else on PATH, else in the toolkit.
pub(crate) fn find(named: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = named {
        return path.is_file().then(|| path.to_owned());
    }
    let path = std::env::var_os("PATH");
    let folders = search_path::folders(path.as_deref());
    let toolkit = ["CUDA_PATH", "CUDA_HOME"]
        .into_iter()
        .filter_map(std::env::var_os);
    let toolkit = toolkit.map(|folder| PathBuf::from(folder).join("bin"));
    folders
        .chain(toolkit)
        .chain([PathBuf::from("/usr/local/cuda/bin")])
        .map(|folder| folder.join("ncu"))
        .find(|program| program.is_file())
}

/// Returns ncu's pattern of the kernels with these entries. Names of the base `function` have no template arguments:
/// `gemm` for `blas::gemm<float, TILE>`, with or without its namespace.
fn name_pattern<'e>(entries: impl Iterator<Item = &'e str>) -> String {
    let function = |entry: &'e str| {
        let path = entry.split('<').next().unwrap_or(entry).trim();
        path.rsplit("::").next().unwrap_or(path).trim()
    };
    let names: BTreeSet<&str> = entries.map(function).collect();
    // A name in CUDA may have a `$`.
    let names: Vec<String> = names.iter().map(|name| name.replace('$', r"\$")).collect();
    format!("regex:^(.*::)?({})$", names.join("|"))
}

/// Runs the winner once under the profiler and reads its metrics.
pub(super) fn profile(
    program: &Path,
    kernel: &Kernel,
    board: &Board,
    config: &ConfigValues,
) -> Result<Profile, CliError> {
    let entries = kernel.spec.launches.iter();
    let names = name_pattern(entries.map(|launch| launch.entry.as_str()));
    let metrics: Vec<String> = PERCENT
        .iter()
        .chain(&COUNTS)
        .map(|(name, _)| (*name).to_owned())
        .chain([DURATION.to_owned(), REGISTERS.to_owned()])
        .chain(STALLS.iter().map(|reason| stall_metric(reason)))
        .collect();
    // "all", because the kernel runs in the device worker, a child of the profiled process. Without "base",
    // ncu chooses the unit of each value by its magnitude.
    let own = std::env::current_exe()?;
    let mut command = Command::new(program);
    command
        // The profiled code must not receive the daemon's token.
        .env_remove("TUNER_TOKEN")
        .args([
            "--csv",
            "--page",
            "raw",
            "--print-units",
            "base",
            "--target-processes",
            "all",
        ])
        .args(["--kernel-name-base", "function", "--kernel-name"])
        .arg(names)
        // A judgement launches the candidate many times; the counts must be those of one run.
        .args(["--launch-count", &kernel.spec.launches.len().to_string()])
        .args(["--metrics", &metrics.join(",")])
        .arg(own)
        .arg("profile-target")
        .arg(&kernel.path)
        .args(["--problem", &board.key.problem])
        .args(["--name", &board.key.device])
        .args(["--config", &assignments(config, ",")]);
    let unable = |error| anyhow::anyhow!("{}: cannot be started: {error}", program.display());
    let output = command.output().map_err(unable)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words = String::from_utf8_lossy(&output.stderr);
    let metrics = taken(program, &text, &words, output.status.success())?;
    Ok(Profile {
        source: ProfileSource::Ncu,
        tool: version(program),
        metrics,
        profiled_at: String::new(),
    })
}

/// Parses the profiler's output. ncu fails if a process of the target is ended by a signal, as a device
/// worker is, although all launches were profiled.
fn taken(
    program: &Path,
    out: &str,
    err: &str,
    success: bool,
) -> Result<Map<String, Json>, CliError> {
    if out.contains("ERR_NVGPUCTRPERM") || err.contains("ERR_NVGPUCTRPERM") {
        refuse!(
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM); run as root, or load \
             the driver with NVreg_RestrictProfilingToAdminUsers=0, or type --source vgpu"
        );
    }
    match read(out) {
        Ok(metrics) => Ok(metrics),
        Err(_) if !success => Err(failure(program, out, err)),
        Err(why) => Err(anyhow::anyhow!("{}: {why}", program.display()))?,
    }
}

fn failure(program: &Path, out: &str, err: &str) -> CliError {
    let told = |text: &str| {
        text.lines()
            .map(str::trim)
            .rfind(|line| line.starts_with("==ERROR==") || line.starts_with("error"))
            .map(str::to_owned)
    };
    let words = told(out)
        .or_else(|| told(err))
        .or_else(|| err.lines().last().map(str::to_owned));
    let words = words.unwrap_or_else(|| "failed".to_owned());
    anyhow::anyhow!("{}: {words}", program.display()).into()
}

pub(crate) fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output().ok();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = text
        .as_deref()
        .unwrap_or_default()
        .lines()
        .find_map(|line| {
            let rest = line.trim().strip_prefix("Version ")?;
            rest.split_whitespace().next()
        });
    version.map_or_else(|| "ncu".to_owned(), |version| format!("ncu {version}"))
}

/// Reads the raw page: a row of names, a row of units, a row for each launch. Other output of ncu
/// begins with `==`.
pub(in crate::cli) fn read(text: &str) -> Result<Map<String, Json>, String> {
    let start = text
        .lines()
        .position(|line| line.starts_with("\"ID\"") || line.starts_with("ID,"))
        .ok_or("it printed no table: was the kernel launched at all?")?;
    let table: String = text
        .lines()
        .skip(start)
        .filter(|line| !line.starts_with("=="))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(table.as_bytes());
    let head: Vec<String> = reader
        .headers()
        .map_err(|error| error.to_string())?
        .iter()
        .map(str::to_owned)
        .collect();
    let mut launches = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        // The row of units contains no number.
        if record
            .get(0)
            .is_some_and(|id| id.trim().parse::<u64>().is_ok())
        {
            launches.push(record);
        }
    }
    if launches.is_empty() {
        return Err("it profiled no launch".to_owned());
    }
    let value = |record: &csv::StringRecord, name: &str| -> Option<f64> {
        let at = head.iter().position(|known| known == name)?;
        // ncu separates thousands by commas.
        let text: String = record.get(at)?.chars().filter(|c| *c != ',').collect();
        text.trim()
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
    };
    Ok(metrics(&launches, &value))
}

/// Combines launches: counts are summed, percentages weighted by duration.
fn metrics(
    launches: &[csv::StringRecord],
    value: &dyn Fn(&csv::StringRecord, &str) -> Option<f64>,
) -> Map<String, Json> {
    let weight = |launch: &csv::StringRecord| value(launch, DURATION).unwrap_or(1.0);
    let weighted = |name: &str| -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for launch in launches {
            if let Some(figure) = value(launch, name) {
                sum += weight(launch) * figure;
                weights += weight(launch);
            }
        }
        (weights > 0.0).then(|| sum / weights)
    };
    let summed = |name: &str| -> Option<f64> {
        let figures: Vec<f64> = launches
            .iter()
            .filter_map(|launch| value(launch, name))
            .collect();
        (!figures.is_empty()).then(|| figures.iter().sum())
    };
    let mut metrics = Map::new();
    let mut put = |name: String, figure: Option<f64>| {
        if let Some(figure) = figure {
            metrics.insert(name, json!(figure));
        }
    };
    for (theirs, ours) in PERCENT {
        put(ours.to_owned(), weighted(theirs));
    }
    for (theirs, ours) in COUNTS {
        put(ours.to_owned(), summed(theirs));
    }
    put(
        "duration_us".to_owned(),
        summed(DURATION).map(|ns| ns / 1e3),
    );
    let registers = launches
        .iter()
        .filter_map(|launch| value(launch, REGISTERS))
        .reduce(f64::max);
    put("registers_per_thread".to_owned(), registers);
    let stalls: Vec<(&str, f64)> = STALLS
        .iter()
        .filter_map(|reason| Some((*reason, weighted(&stall_metric(reason))?)))
        .collect();
    let all: f64 = stalls.iter().map(|(_, ratio)| ratio).sum();
    for (reason, ratio) in stalls.iter().filter(|_| all > 0.0) {
        put(format!("stall_{reason}_pct"), Some(100.0 * ratio / all));
    }
    metrics
}

#[cfg(test)]
mod tests;
