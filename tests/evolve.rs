//! `tuner evolve`: mutators of every kind, good and bad, on a small kernel.

mod cheats;
mod http;
mod killed;
mod mutators;
mod protocol;

use crate::program::{Ended, ended, folder, tuner};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

const SPACE: &str = r#"
version: 1
kernel: scale
summary: y = 2.5 x
source: kernel.cu
problems:
  main: { N: 4096 }
check_problems:
  ragged: { N: 1003 }
  short: { N: 5 }
parameters:
  BLOCK: { values: [64, 128], default: 64 }
arguments:
  - { name: x, type: f32, role: input, shape: [N], fill: { uniform: { min: 0, max: 1 } } }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: scale, grid: ["ceil_div(N, BLOCK)"], block: [BLOCK] }
reference: { source: reference.cu, entry: scale_reference, grid: ["ceil_div(N, 256)"], block: [256] }
"#;

/// A slow kernel: each thread computes its element many times.
const KERNEL: &str = r#"#ifndef BLOCK
#define BLOCK 64
#endif
extern "C" __global__ void scale(const float* x, float* y) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= N) return;
    float v = x[i];
    for (int pass = 0; pass < 400; ++pass) v = v * 1.0000001f;
    y[i] = pass_through(v, x[i]);
}
"#;

const HELPER: &str = "__device__ __forceinline__ float pass_through(float v, float x) { return v > 1e30f ? v : 2.5f * x; }\n";

const REFERENCE: &str = r#"
extern "C" __global__ void scale_reference(const float* x, float* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) y[i] = 2.5f * x[i];
}
"#;

/// A right and faster kernel, as an answer's `source`.
pub(crate) const FAST: &str = "#define BLOCK_THREADS BLOCK\nextern \"C\" __global__ void scale(const float* x, float* y) {\n    int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;\n    if (i < N) y[i] = 2.5f * x[i];\n}\n";

/// A folder with the kernel.
pub(crate) fn project() -> TempDir {
    let kernel = format!("{HELPER}{KERNEL}");
    folder(&[
        ("space.yaml", SPACE),
        ("kernel.cu", &kernel),
        ("reference.cu", REFERENCE),
    ])
}

/// A mutator in Python: `request` is the request, and what is printed the answer.
pub(crate) fn python(folder: &Path, name: &str, body: &str) -> String {
    let text = format!("import json, sys\nrequest = json.load(sys.stdin)\n{body}\n");
    crate::program::write(folder, name, &text);
    format!("python3 {name}")
}

/// A mutator that answers with this source.
pub(crate) fn with_source(folder: &Path, source: &str) -> String {
    crate::program::write(folder, "answer.cu", source);
    let body = "print(json.dumps({'id': request['id'], 'source': open('answer.cu').read(), 'note': 'other source'}))";
    python(folder, "with_source.py", body)
}

/// Runs an evolution with a mutator and further arguments.
pub(crate) fn evolve(folder: &Path, mutator: &str, more: &[&str]) -> Ended {
    ended(
        tuner(folder)
            .args([
                "evolve",
                "space.yaml",
                "--mutator",
                mutator,
                "--device",
                "vgpu:h100",
            ])
            .args(["--evals", "2", "--base-evals", "2", "--min-gain", "3%:1"])
            .args(["--db", "t.db"])
            .args(more),
    )
}

/// The stored evolutions.
fn lineages(folder: &Path) -> Vec<Value> {
    crate::program::run(
        folder,
        "leaderboard scale --lineage --db t.db --format json",
    )
    .rows()
}

/// The changes of the latest evolution.
pub(crate) fn changes(folder: &Path) -> Vec<Value> {
    let all = lineages(folder);
    all.last().unwrap()["changes"].as_array().unwrap().clone()
}
