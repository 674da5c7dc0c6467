//! `tuner profile`: metrics of the best configuration on the device.

pub(crate) mod ncu;
mod target;
pub(super) mod virtual_gpu;

pub(crate) use target::{TargetArgs, run_target};

use super::output::{self, Format};
use super::results::{Selection, block_on};
use super::stale::Present;
use super::terminal::Ticker;
use super::{CliError, CommandResult};
use crate::exit;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use std::path::{Path, PathBuf};
use tuner_core::record::{ConfigValues, DeviceKind, TimingKind, config_as_object};
use tuner_store::{Board, ProfileSource, Store};

/// Profile the best configuration
///
/// Shows busy multiprocessors, occupancy, memory and cache throughput, bank conflicts, tensor pipes
/// and stall reasons.
///
/// Under Nsight Compute (`ncu`) where the winner was measured on a GPU and ncu is installed; from the
/// virtual GPU's counters elsewhere, labelled predicted. The metrics are stored and used by `tuner
/// report` and by acceptance rules.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner profile gemm_f32 --device 'NVIDIA H200'
  tuner profile attention_f16 --problem mission --source vgpu
  tuner profile softmax --format json | jq '.[].metrics.dram_throughput_pct'

Exit codes: 0 done, 2 bad usage or input, 3 there is no winner to profile.")]
pub(crate) struct Args {
    /// Kernels, by name or search space file [default: all]
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernels: Vec<String>,

    #[command(flatten)]
    selection: Selection,

    /// Source of the metrics
    #[arg(long, value_enum, default_value = "auto")]
    source: Source,

    /// Path of ncu [default: on PATH, else in the CUDA toolkit]
    #[arg(long, value_name = "FILE")]
    ncu: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Source of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Source {
    /// ncu if it can be used, else the virtual GPU
    Auto,
    /// Nsight Compute; an error if it cannot be used
    Ncu,
    /// The virtual GPU's counters
    Vgpu,
}

/// A profiled winner.
#[derive(Debug, Serialize)]
struct Answer {
    kernel: String,
    problem: String,
    device: String,
    source: ProfileSource,
    /// `measured` or `predicted`.
    timing: &'static str,
    tool: String,
    #[serde(with = "config_as_object")]
    config: ConfigValues,
    time_us_p50: f64,
    metrics: Map<String, Json>,
}

/// Runs the command.
///
/// # Errors
/// Bad arguments, an unusable database, and a requested profiler that does not work.
pub(crate) fn run(args: &Args) -> CommandResult {
    let ticker = Ticker::start();
    let answers = block_on(profile(args))?;
    drop(ticker);
    if answers.is_empty() {
        return Ok(exit::NOTHING_PASSED);
    }
    let text = if args.format == Format::Json {
        output::json(&answers)?
    } else {
        table(args.format, &answers)
    };
    output::result(&text)
}

async fn profile(args: &Args) -> Result<Vec<Answer>, CliError> {
    // A profile of a missing database must not create it.
    args.selection.open().await?.close().await?;
    let store = Store::open(&args.selection.db).await?;
    let mut boards = args
        .selection
        .boards(&store, &args.kernels, Some(1))
        .await?;
    if boards.is_empty() {
        say!("nothing to profile: no candidate passed");
    }
    let ncu = ncu::find(args.ncu.as_deref());
    if args.source == Source::Ncu && ncu.is_none() {
        refuse!(
            "ncu is not on PATH; install Nsight Compute (package nsight-compute), name it by --ncu \
             FILE, or type --source vgpu"
        );
    }
    let mut present = Present::default();
    present.mark(&mut boards);
    let mut answers = Vec::new();
    for board in &boards {
        answers.extend(profile_board(args, &store, board, &mut present, ncu.as_deref()).await?);
    }
    store.close().await?;
    Ok(answers)
}

/// Profiles a board's winner and stores the result; `None`, after a message, if nothing can be run.
async fn profile_board(
    args: &Args,
    store: &Store,
    board: &Board,
    present: &mut Present,
    ncu: Option<&Path>,
) -> Result<Option<Answer>, CliError> {
    let Some(best) = board.rows.first() else {
        return Ok(None);
    };
    let skip = |why: &str| say!("left out: {}: {why}", board.key);
    if board.device_kind == DeviceKind::Replay {
        skip("a recorded file has no kernel to run");
        return Ok(None);
    }
    if best.stale == Some(true) {
        skip("the template was edited since; tune again");
        return Ok(None);
    }
    let Some(kernel) = present.kernel(board) else {
        skip("its search space is not at hand");
        return Ok(None);
    };
    let measured = board.timing == TimingKind::Measured;
    let wanted = args.source != Source::Vgpu && measured;
    let profile = match ncu.filter(|_| wanted) {
        Some(program) => ncu::profile(program, kernel, board, &best.config)?,
        None if args.source == Source::Ncu => {
            skip("its times are predicted: there is no GPU to profile it on");
            return Ok(None);
        }
        None => {
            if wanted {
                say!("note: ncu is not installed; the virtual GPU's counters instead");
            }
            match virtual_gpu::profile(kernel, board, best)? {
                Some(profile) => profile,
                None => {
                    skip("no virtual GPU models this device");
                    return Ok(None);
                }
            }
        }
    };
    store
        .store_profile(board, &best.config, profile.clone())
        .await?;
    let key = board.key.clone();
    Ok(Some(Answer {
        kernel: key.kernel,
        problem: key.problem,
        device: key.device,
        source: profile.source,
        timing: match profile.source {
            ProfileSource::Ncu => "measured",
            ProfileSource::Vgpu => "predicted",
        },
        tool: profile.tool,
        config: best.config.clone(),
        time_us_p50: best.time_us_p50,
        metrics: profile.metrics,
    }))
}

/// The metrics that are always shown, with their meaning.
const KEY_METRICS: [(&str, &str, &str); 9] = [
    ("sm_busy_pct", "SM busy", "%"),
    ("issue_slots_busy_pct", "issue slots busy", "%"),
    ("achieved_occupancy_pct", "achieved occupancy", "%"),
    ("dram_throughput_pct", "DRAM throughput", "%"),
    ("l2_throughput_pct", "L2 throughput", "%"),
    ("tensor_pipe_pct", "tensor pipes", "%"),
    ("bank_conflicts", "bank conflicts", ""),
    ("shared_wavefronts", "shared-memory wavefronts", ""),
    ("registers_per_thread", "registers a thread", ""),
];

/// Number of stall reasons shown.
const STALLS: usize = 4;

fn table(format: Format, answers: &[Answer]) -> String {
    let mut rows = Vec::new();
    for answer in answers {
        let place = [
            answer.kernel.clone(),
            answer.problem.clone(),
            answer.device.clone(),
        ];
        let mut add = |metric: &str, value: f64, unit: &str| {
            let value = if unit == "%" {
                format!("{value:.1} %")
            } else {
                format!("{value:.0}")
            };
            let mut row = place.to_vec();
            row.extend([
                metric.to_owned(),
                value,
                answer.timing.to_owned(),
                answer.tool.clone(),
            ]);
            rows.push(row);
        };
        for (key, name, unit) in KEY_METRICS {
            if let Some(value) = answer.metrics.get(key).and_then(Json::as_f64) {
                add(name, value, unit);
            }
        }
        let mut stalls: Vec<(&str, f64)> = answer
            .metrics
            .iter()
            .filter_map(|(key, value)| {
                Some((
                    key.strip_prefix("stall_")?.strip_suffix("_pct")?,
                    value.as_f64()?,
                ))
            })
            .collect();
        stalls.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        for (reason, percent) in stalls.into_iter().take(STALLS) {
            add(
                &format!("stall: {}", reason.replace('_', " ")),
                percent,
                "%",
            );
        }
    }
    let headings = [
        "kernel", "problem", "device", "metric", "value", "timing", "from",
    ];
    output::rows(format, &headings, &rows)
}
