//! `tuner ablate` and the warnings of `tuner check`, as a user runs them.

use crate::program::{self, folder};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A kernel whose tile is read with conflicts unless it is padded.
const KERNEL: &str = "\
extern \"C\" __global__ void turn(const float* x, float* y) {
  __shared__ float tile[32 * (32 + PAD)];
  const int column = threadIdx.x, base = blockIdx.x * 1024;
  for (int row = threadIdx.y; row < 32; row += BLOCK_ROWS)
    tile[row * (32 + PAD) + column] = x[base + row * 32 + column];
  __syncthreads();
  for (int row = threadIdx.y; row < 32; row += BLOCK_ROWS)
    y[base + row * 32 + column] = tile[column * (32 + PAD) + row];
}
extern \"C\" __global__ void plain(const float* x, float* y) {
  const int i = blockIdx.x * 1024 + threadIdx.x;
  y[i] = x[blockIdx.x * 1024 + threadIdx.x % 32 * 32 + threadIdx.x / 32];
}
";

const SPACE: &str = "\
version: 1
kernel: turn
source: kernel.cu
problems:
  large: { TILES: 512 }
  few: { TILES: 8 }
parameters:
  PAD: { values: [0, 1, 2], default: 1 }
  BLOCK_ROWS: { values: [1, 4, 8, 16, 32], default: 8 }
constraints:
  - { rule: \"PAD != 2 or BLOCK_ROWS == 8\", why: the test says so }
arguments:
  - { name: x, type: f32, role: input, shape: [TILES, 32, 32] }
  - { name: y, type: f32, role: output, shape: [TILES, 32, 32] }
launches:
  - { entry: turn, grid: [TILES, 1, 1], block: [32, BLOCK_ROWS, 1] }
reference: { source: kernel.cu, entry: plain, grid: [TILES, 1, 1], block: [1024, 1, 1] }
";

fn project() -> tempfile::TempDir {
    folder(&[("space.yaml", SPACE), ("kernel.cu", KERNEL)])
}

fn tuner(folder: &Path, arguments: &[&str]) -> (Vec<Value>, String, Option<i32>) {
    told(program::tuner(folder).args(arguments))
}

/// With the stand-in for a GPU.
fn with_gpu(folder: &Path, arguments: &[&str]) -> (Vec<Value>, String, Option<i32>) {
    let mut command = program::with_gpu(folder);
    command.env("TUNER_FAKE_GATE", "host");
    told(command.args(arguments))
}

fn told(command: &mut Command) -> (Vec<Value>, String, Option<i32>) {
    let ran = program::ended(command);
    let rows = serde_json::from_str(&ran.stdout).unwrap_or_default();
    (rows, ran.stderr, Some(ran.code))
}

const ABLATE: [&str; 5] = ["ablate", "space.yaml", "--format", "json", "--device"];

fn ablate(folder: &Path, more: &[&str]) -> (Vec<Value>, String, Option<i32>) {
    let mut arguments = ABLATE.to_vec();
    arguments.push("vgpu:l4");
    arguments.extend(more);
    tuner(folder, &arguments)
}

#[test]
fn every_valid_change_of_one_parameter_is_predicted_against_the_base() {
    let folder = project();
    let (rows, story, code) = ablate(folder.path(), &[]);
    assert_eq!(code, Some(0), "{story}");
    assert_eq!(rows.len(), 1 + 2 + 4, "{story}");
    assert_eq!(
        (&rows[0]["change"], &rows[0]["cost"]),
        (&"base".into(), &1.0.into())
    );
    assert!(
        rows.iter()
            .all(|row| row["timing"] == "predicted" && row["verdict"] == "ok")
    );
    let unpadded = rows
        .iter()
        .find(|row| row["parameter"] == "PAD" && row["to"] == "0")
        .expect("the change of PAD");
    assert_eq!(unpadded["from"], "1");
    assert_eq!(rows[0]["bank_conflicts"], 0.0);
    // 31 more wavefronts for each of 32 columns of each tile.
    assert_eq!(unpadded["bank_conflicts"], 512.0 * 32.0 * 31.0);
    assert!(unpadded["cost"].as_f64().expect("a cost") > 1.0);
}

#[test]
fn a_given_configuration_is_taken_apart_and_parameters_that_cannot_move_are_named() {
    let folder = project();
    let config = ["--config", "PAD=2", "--parameter", "BLOCK_ROWS"];
    let (rows, story, code) = ablate(folder.path(), &config);
    assert_eq!((code, rows.len()), (Some(0), 1), "{story}");
    assert_eq!(rows[0]["config"]["PAD"], 2);
    assert!(
        story.contains("no other value is valid by itself: BLOCK_ROWS"),
        "{story}"
    );
    let (_, story, code) = ablate(folder.path(), &["--config", "PAD=2,BLOCK_ROWS=1"]);
    assert_eq!(code, Some(2), "{story}");
    assert!(story.contains("the test says so"), "{story}");
    let (_, story, code) = ablate(folder.path(), &["--parameter", "BN"]);
    assert_eq!(code, Some(2));
    assert!(story.contains("it has PAD, BLOCK_ROWS"), "{story}");
}

#[test]
fn inversion_shows_what_known_pathologies_cost() {
    let folder = project();
    let (rows, story, code) = ablate(folder.path(), &["--inversion"]);
    assert_eq!(code, Some(0), "{story}");
    let named: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["parameter"].as_str())
        .collect();
    assert_eq!(
        named,
        ["", "no padding or swizzle", "tiny blocks", "huge blocks"]
    );
    assert_eq!(rows[1]["to"], "PAD=0");
    assert!(rows[1]["cost"].as_f64().expect("a cost") > 1.0);
}

#[test]
fn the_best_in_the_database_is_the_base() {
    let folder = project();
    let run = [
        "run",
        "space.yaml",
        "--problem",
        "few",
        "--evals",
        "11",
        "--device",
        "vgpu:l4",
        "--db",
        "tuner.db",
    ];
    let (_, story, code) = tuner(folder.path(), &run);
    assert_eq!(code, Some(0), "{story}");
    let (rows, story, code) = ablate(folder.path(), &["--problem", "few", "--db", "tuner.db"]);
    assert_eq!(code, Some(0), "{story}");
    assert!(story.contains("the best in tuner.db"), "{story}");
    let better = rows
        .iter()
        .filter_map(|row| row["cost"].as_f64())
        .filter(|cost| *cost < 0.999);
    assert_eq!(
        better.count(),
        0,
        "all 11 configurations were tried: {rows:?}"
    );
}

#[test]
fn check_warns_of_a_right_kernel_that_leaves_multiprocessors_idle() {
    let folder = project();
    let check = [
        "check",
        "space.yaml",
        "--format",
        "json",
        "--config",
        "PAD=0",
    ];
    let (rows, story, code) = tuner(folder.path(), &[&check[..], &["--problem", "few"]].concat());
    assert_eq!(code, Some(0), "{story}");
    let row = &rows[0];
    assert_eq!((&row["verdict"], &row["blocks"]), (&"ok".into(), &8.into()));
    assert_eq!(row["bank_conflicts"], 8.0 * 32.0 * 31.0);
    let warning = row["warnings"][0].as_str().expect("a warning");
    assert_eq!(
        warning,
        "right but serialised: 8 blocks for 132 multiprocessors"
    );
    assert!(story.contains(warning), "{story}");
}

/// A kernel whose time is what WORK says, with faults to choose from.
const WORK_KERNEL: &str = "\
#if FAULT == 3
#error no code
#endif
extern \"C\" __global__ void work(const float* x, float* y, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  const float one = n > 0 ? 1.0f : 2.0f;
#pragma unroll 1
  for (int round = 0; round < 400 * WORK; round++)
    asm volatile(\"mul.f32 %0, %0, %1;\" : \"+f\"(v) : \"f\"(one));
#if FAULT == 1
  v *= 1.01f;
#endif
#if FAULT == 2
  volatile float* spin = y;
  while (spin[i] != 123456.0f) {}
#endif
#if FAULT == 5
  if (x[3] > 0.9f) __trap();
#endif
#if FAULT == 4
  if (n == 515) v *= 1.01f;
#endif
  y[i] = v;
}
extern \"C\" __global__ void copy(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = x[i];
}
";

fn work_space(faults: &str, blocks: &str) -> String {
    format!(
        "\
version: 1
kernel: work
source: kernel.cu
problems: {{ timed: {{ N: 512 }} }}
check_problems: {{ ragged: {{ N: 515 }} }}
parameters:
  FAULT: {{ values: [{faults}], default: 0 }}
  SPARE: {{ values: [0, 1], default: 0 }}
  WORK: {{ values: [1, 2, 4], default: 2 }}
  BLOCK: {{ values: [{blocks}], default: 256 }}
arguments:
  - {{ name: x, type: f32, role: input, shape: [N] }}
  - {{ name: y, type: f32, role: output, shape: [N] }}
  - {{ name: n, type: i32, role: scalar, value: N }}
launches:
  - {{ entry: work, grid: [\"ceil_div(N, BLOCK)\", 1, 1], block: [BLOCK, 1, 1] }}
reference: {{ source: kernel.cu, entry: copy, grid: [\"ceil_div(N, 256)\", 1, 1], block: [256, 1, 1] }}
"
    )
}

fn work(faults: &str, blocks: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [
        ("space.yaml", &*work_space(faults, blocks)),
        ("kernel.cu", WORK_KERNEL),
    ] {
        std::fs::write(folder.path().join(name), text).expect("the file is written");
    }
    folder
}

fn measured(folder: &Path, more: &[&str]) -> (Vec<Value>, String, Option<i32>) {
    let mut arguments = ABLATE.to_vec();
    arguments.push("cuda:0");
    arguments.extend(more);
    with_gpu(folder, &arguments)
}

/// The row of a change.
fn change<'r>(rows: &'r [Value], parameter: &str, to: &str) -> &'r Value {
    rows.iter()
        .find(|row| row["parameter"] == parameter && row["to"] == to)
        .unwrap_or_else(|| panic!("{parameter} to {to}: {rows:?}"))
}

fn figure(row: &Value, field: &str) -> f64 {
    row[field]
        .as_f64()
        .unwrap_or_else(|| panic!("{field}: {row}"))
}

#[test]
fn on_a_gpu_a_cost_has_an_interval_and_only_what_is_right_has_a_cost() {
    let folder = work("0, 1, 2, 3, 4", "128, 256");
    let (rows, story, code) = measured(folder.path(), &[]);
    assert_eq!((code, rows.len()), (Some(0), 1 + 4 + 1 + 2 + 1), "{story}");
    assert!(rows.iter().all(|row| row["timing"] == "measured"));
    let base = &rows[0];
    assert_eq!(
        (&base["change"], &base["cost"]),
        (&"base".into(), &1.0.into())
    );
    assert_eq!(
        (&base["same"], &base["verdict"]),
        (&Value::Null, &"ok".into())
    );
    assert!(figure(base, "cost_low") > 0.99 && figure(base, "cost_high") < 1.01);
    // Slower and faster by more than the noise of half a per cent.
    let slow = change(&rows, "WORK", "4");
    assert!(figure(slow, "cost_low") > 1.03, "{slow}");
    assert!(figure(slow, "cost_low") <= figure(slow, "cost"), "{slow}");
    assert!(figure(slow, "cost_high") >= figure(slow, "cost"), "{slow}");
    assert_eq!(slow["same"], false);
    let expected = figure(slow, "cost") * figure(base, "time_us");
    assert!((figure(slow, "time_us") - expected).abs() < 1e-9 * expected);
    assert!(figure(change(&rows, "WORK", "1"), "cost_high") < 0.99);
    // The same work in other blocks is other launches, and takes the same time.
    let equal = change(&rows, "BLOCK", "128");
    assert_eq!(equal["same"], true, "{equal}");
    // And what only has another name is not timed at all.
    let twin = change(&rows, "SPARE", "1");
    assert_eq!(
        (&twin["same"], &twin["cost_high"]),
        (&true.into(), &1.0.into())
    );
    assert_eq!(
        twin["detail"],
        "the same machine code and launches as the base"
    );
    // The fourth is wrong on the check problem alone.
    for (fault, verdict) in [
        ("1", "incorrect"),
        ("2", "timeout"),
        ("3", "compile_failed"),
        ("4", "incorrect"),
    ] {
        let row = change(&rows, "FAULT", fault);
        assert_eq!(row["verdict"], verdict, "{row}");
        for field in ["time_us", "cost", "cost_low", "cost_high", "same"] {
            assert_eq!(row[field], Value::Null, "{field}: {row}");
        }
    }
    // What the compiler says is known, what only a model says is not.
    assert!(figure(slow, "registers") > 0.0 && figure(slow, "occupancy") > 0.0);
    assert_eq!(
        (&slow["spill_bytes"], &slow["shared_bytes"]),
        (&0.into(), &0.into())
    );
    assert_eq!(
        (&slow["bound"], &slow["bank_conflicts"]),
        (&Value::Null, &Value::Null)
    );
    for words in [
        "the base against itself: ",
        "3 timed: 1 slower than the base, 1 faster, 1 the",
    ] {
        assert!(story.contains(words), "{words}: {story}");
    }
}

#[test]
fn on_a_gpu_the_base_is_the_best_measured_result_and_never_a_predicted_one() {
    let folder = work("0", "256");
    let run = [
        "run",
        "space.yaml",
        "--evals",
        "6",
        "--db",
        "tuner.db",
        "--device",
    ];
    let (_, story, code) = tuner(folder.path(), &[&run[..], &["vgpu:h100"]].concat());
    assert_eq!(code, Some(0), "{story}");
    let ablate = ["--db", "tuner.db", "--parameter", "SPARE"];
    let (rows, story, code) = measured(folder.path(), &ablate);
    assert_eq!(code, Some(0), "{story}");
    assert!(
        story.contains("tuner.db has no measured result of work"),
        "{story}"
    );
    assert_eq!(rows[0]["config"]["WORK"], 2, "the default: {rows:?}");
    let (_, story, code) = with_gpu(folder.path(), &[&run[..], &["cuda:0"]].concat());
    assert_eq!(code, Some(0), "{story}");
    let (rows, story, code) = measured(folder.path(), &["--db", "tuner.db", "--parameter", "WORK"]);
    assert_eq!(code, Some(0), "{story}");
    assert!(
        story.contains("the best in tuner.db: ") && story.contains(" us, measured, "),
        "{story}"
    );
    assert_eq!(rows[0]["config"]["WORK"], 1, "{rows:?}");
    assert!(figure(change(&rows, "WORK", "2"), "cost_low") > 1.0);
}

#[test]
fn on_a_gpu_what_fails_in_a_round_takes_nobody_along() {
    // It stops at a value that the data of the final rounds has first.
    let folder = work("0, 5", "128, 256");
    let only = ["--parameter", "FAULT", "--parameter", "BLOCK"];
    let (rows, story, code) = measured(folder.path(), &only);
    assert_eq!((code, rows.len()), (Some(0), 3), "{story}");
    assert!(
        story.contains("timed 2 of 2"),
        "both passed the gate: {story}"
    );
    let failing = change(&rows, "FAULT", "5");
    assert_eq!(
        (&failing["verdict"], &failing["time_us"]),
        (&"crashed".into(), &Value::Null)
    );
    let equal = change(&rows, "BLOCK", "128");
    assert_eq!(
        (&equal["verdict"], &equal["same"]),
        (&"ok".into(), &true.into()),
        "{equal}"
    );
}

#[test]
fn on_a_gpu_pathologies_are_timed_and_a_base_that_is_wrong_is_refused() {
    let folder = work("0, 1", "128, 256");
    let (_, story, code) = measured(folder.path(), &["--config", "FAULT=1"]);
    assert_eq!(code, Some(2), "{story}");
    for words in [
        "the configuration to take apart is incorrect on fake GPU",
        "--config",
    ] {
        assert!(story.contains(words), "{story}");
    }
    let inversion = ["--config", "WORK=1", "--inversion"];
    let (rows, story, code) = measured(folder.path(), &inversion);
    assert_eq!((code, rows.len()), (Some(0), 2), "{story}");
    // A pathology is judged and timed like any other change.
    assert_eq!(
        (&rows[1]["change"], &rows[1]["to"]),
        (&"inversion".into(), &"BLOCK=128".into())
    );
    assert_eq!(
        (&rows[1]["parameter"], &rows[1]["same"]),
        (&"tiny blocks".into(), &true.into())
    );
    for (device, words) in [
        ("cuda:7", "cuda:0 to cuda:1"),
        ("cuda:0,1", "type --device cuda:N"),
        ("replay:x.json", "type --device cuda:N"),
    ] {
        let (_, story, code) =
            with_gpu(folder.path(), &["ablate", "space.yaml", "--device", device]);
        assert_eq!(code, Some(2), "{story}");
        assert!(story.contains(words), "{device}: {story}");
    }
}

/// Spills for a multiprocessor that is to hold four blocks, for two it does not.
const HUNGRY_KERNEL: &str = "\
#if MIN_BLOCKS
extern \"C\" __global__ void __launch_bounds__(256, MIN_BLOCKS)
#else
extern \"C\" __global__ void __launch_bounds__(256)
#endif
sums(const float* x, float* y) {
  float kept[LIVE];
  const int i = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
  for (int j = 0; j < LIVE; ++j) kept[j] = x[(i + 256 * j) % N];
#pragma unroll
  for (int round = 0; round < 2; ++round)
#pragma unroll
    for (int j = 0; j < LIVE; ++j) kept[j] = kept[j] * kept[(j + 7) % LIVE] + kept[(j * 5) % LIVE];
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < LIVE; ++j) sum += kept[j];
  y[i] = sum;
}
";

#[test]
fn forced_spills_are_spills_of_the_compiled_code_and_else_left_out() {
    let space = |live: u32| {
        format!(
            "version: 1\nkernel: hungry\nsource: kernel.cu\nproblems: {{ p: {{ N: 4096 }} }}\n\
             parameters:\n  LIVE: {{ values: [{live}] , default: {live} }}\n  \
             MIN_BLOCKS: {{ values: [0, 1, 4], default: 0 }}\n  \
             TILE_M: {{ values: [1, 2], default: 1 }}\n\
             constraints:\n  - {{ rule: \"MIN_BLOCKS < 4 or TILE_M == {tile}\", why: the test }}\n\
             arguments:\n  - {{ name: x, type: f32, role: input, shape: [N], fill: {{ uniform: {{ min: 0, max: 0.1 }} }} }}\n  \
             - {{ name: y, type: f32, role: output, shape: [N] }}\n\
             launches: [{{ entry: sums, grid: [\"N // 256\", 1, 1], block: [256, 1, 1] }}]\n\
             reference: {{ source: kernel.cu, entry: sums, grid: [\"N // 256\", 1, 1], block: [256, 1, 1] }}\n",
            tile = if live == 97 { 2 } else { 1 }
        )
    };
    let at = |live: u32| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in [("space.yaml", &*space(live)), ("kernel.cu", HUNGRY_KERNEL)] {
            std::fs::write(folder.path().join(name), text).expect("the file is written");
        }
        ablate(folder.path(), &["--inversion"])
    };
    let (rows, story, code) = at(96);
    assert_eq!(code, Some(0), "{story}");
    let spilled = change(&rows, "forced spills", "MIN_BLOCKS=4");
    assert!(figure(spilled, "spill_bytes") > 0.0, "{spilled}");
    // Few values: no number of blocks spills. Or: only another tile allows what would.
    for live in [8, 97] {
        let (rows, story, code) = at(live);
        assert_eq!((code, rows.len()), (Some(0), 1), "{story}");
        assert!(
            story.contains("left out") && story.contains("forced spills"),
            "{story}"
        );
    }
}

#[test]
fn a_base_without_a_time_is_refused() {
    let folder = work("0, 1", "128, 256");
    let (rows, story, code) = ablate(folder.path(), &["--config", "FAULT=1"]);
    assert_eq!((code, rows.len()), (Some(2), 0), "{story}");
    for words in [
        "the configuration to take apart is incorrect on vgpu:l4",
        "--config",
    ] {
        assert!(story.contains(words), "{story}");
    }
}
