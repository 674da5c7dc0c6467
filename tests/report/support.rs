//! A small project with a kernel, in a git tree of its own.

use crate::program::{ended, folder, tuner};
pub(crate) use crate::program::{git, write};
use crate::virtual_run::REFERENCE;
use std::path::Path;
use tempfile::TempDir;

const KERNEL: &str = r#"
extern "C" __global__ void scale(const float* x, float* y) {
  __shared__ float tile[32][32 + PAD];
  int t = threadIdx.x;
  int row = t / 32, column = t % 32;
  int i = blockIdx.x * BLOCK + t;
  tile[column][row] = i < N ? x[i] : 0.0f;
  if (SYNC) __syncthreads();
  float left = tile[(column + 1) % 32][row];
  if (i < N) y[i] = 2.0f * x[i] + 0.0f * left;
}
"#;

const SPACE: &str = r#"
version: 1
kernel: scale
summary: "y = 2 x <in> one & two"
source: ../templates/scale/kernel.cu
problems:
  small: { N: 4096 }
  large: { N: 65536 }
parameters:
  BLOCK: { values: [32, 64, 128, 256], default: 64, doc: threads a block }
  PAD: { values: [0, 1], default: 0, doc: floats added to a shared-memory row }
  SYNC: { values: [1, 0], default: 1 }
derived:
  SHARED_BYTES: "4 * 32 * (32 + PAD)"
constraints:
  - { rule: "SHARED_BYTES <= DEVICE_SHARED_BYTES", why: the tile must fit in shared memory }
arguments:
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: scale, grid: ["ceil_div(N, BLOCK)", 1, 1], block: [BLOCK, 1, 1] }
reference: { source: ../templates/scale/reference.cu, entry: plain, grid: [4, 1, 1], block: [64, 1, 1] }
metric: { flops: "N", bytes: "8 * N" }
"#;

/// Writes the project and commits it.
pub(crate) fn project() -> TempDir {
    let folder = folder(&[
        ("search_spaces/scale.yaml", SPACE),
        ("templates/scale/kernel.cu", KERNEL),
        ("templates/scale/reference.cu", REFERENCE),
    ]);
    git(folder.path(), &["init", "-q"]);
    commit(folder.path());
    folder
}

/// Changes the template.
pub(crate) fn edit(folder: &Path, line: &str) {
    let path = folder.join("templates/scale/kernel.cu");
    let text = std::fs::read_to_string(&path).expect("the template is there");
    std::fs::write(path, format!("{text}{line}\n")).expect("the file is written");
}

/// Commits everything and gives the hash.
pub(crate) fn commit(folder: &Path) -> String {
    git(folder, &["add", "search_spaces", "templates"]);
    git(folder, &["commit", "-qm", "a state"]);
    git(folder, &["rev-parse", "HEAD"])
}

/// Runs a command that must end with that code; gives standard output and error.
pub(crate) fn run(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    let ran = ended(tuner(folder).args(arguments));
    ran.says_of(&arguments, code, &[]);
    (ran.stdout, ran.stderr)
}

/// Tunes the small problem a little.
pub(crate) fn tune(folder: &Path, seed: &str) {
    tune_some(folder, 6, seed);
}

/// Tries so many configurations.
pub(crate) fn tune_some(folder: &Path, evals: u32, seed: &str) {
    // What a run tries depends on its seed alone.
    let line = format!(
        "run scale --device vgpu:a100 --problem small --evals {evals} --no-knowledge --db t.db --seed {seed}"
    );
    let arguments: Vec<&str> = line.split(' ').collect();
    run(folder, &arguments, 0);
}

pub(crate) fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let (out, _) = run(folder, arguments, 0);
    serde_json::from_str(&out).expect("JSON")
}
