//! `tuner ablate` and the warnings of `tuner check`, as a user runs them.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

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
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [("space.yaml", SPACE), ("kernel.cu", KERNEL)] {
        std::fs::write(folder.path().join(name), text).expect("the file is written");
    }
    folder
}

fn tuner(folder: &Path, arguments: &[&str]) -> (Vec<Value>, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    command.current_dir(folder).args(arguments);
    // The compiler that the project's own set-up has fetched.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cuda/nvidia/cu13/lib");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        command.env("TUNER_NVRTC", own);
    }
    let output = command.output().expect("tuner runs");
    let story = String::from_utf8_lossy(&output.stderr).into_owned();
    let rows = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (rows, story, output.status.code())
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
