//! `tuner ablate` and the warnings of `tuner check`, as a user runs them.

mod on_gpu;

use crate::program::{self, folder, words};
use on_gpu::{change, figure, work};
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
    let run = words("run space.yaml --problem few --evals 11 --device vgpu:l4 --db tuner.db");
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
    let check = words("check space.yaml --format json --config PAD=0");
    let (rows, story, code) = tuner(folder.path(), &[&check[..], &["--problem", "few"]].concat());
    assert_eq!(code, Some(0), "{story}");
    let row = &rows[0];
    assert_eq!((&row["verdict"], &row["blocks"]), (&"ok".into(), &8.into()));
    assert_eq!(row["bank_conflicts"], 8.0 * 32.0 * 31.0);
    let warning = row["warnings"][0].as_str().expect("a warning");
    assert_eq!(warning, "grid too small: 124 of 132 SMs idle");
    assert!(story.contains(warning), "{story}");
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
