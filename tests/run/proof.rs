//! What a run announces as best was run whole on the timed problem, and so is what leaves the database.

use crate::program::{Ended, folder, run};
use std::path::Path;
use tempfile::TempDir;

/// A problem of 300 million lane instructions, which is judged by a sample of its blocks. `WAY=1` is
/// faster, and one of its 4096 blocks, which the sample leaves out, writes something else.
pub(crate) const SPACE: &str = r#"version: 1
kernel: one_block
source: kernel.cu
problems: { large: { N: 1048576 } }
check_problems: { odd: { N: 1001 } }
parameters:
  WAY: { values: [0, 1], default: 0, doc: way }
arguments:
  - { name: x, type: f32, role: input, shape: [N], fill: { normal: { mean: 0, std: 1 } } }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: k, grid: ["ceil_div(N, 256)", 1, 1], block: [256, 1, 1] }
reference: { source: ref.cu, entry: ref, grid: ["ceil_div(N, 256)", 1, 1], block: [256, 1, 1] }
"#;

pub(crate) const KERNEL: &str = r#"
extern "C" __global__ void k(const float* x, float* y) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  float v = x[i];
  for (int r = 0; r < (WAY ? 300 : 400); ++r) v = __fmaf_rn(v, 1.0f, 0.0f);
  y[i] = WAY && blockIdx.x == 1237 ? 0.5f : v * 2.0f;
}
"#;

pub(crate) const REFERENCE: &str = r#"
extern "C" __global__ void ref(const float* x, float* y) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = x[i] * 2.0f;
}
"#;

fn project() -> TempDir {
    folder(&[
        ("space.yaml", SPACE),
        ("kernel.cu", KERNEL),
        ("ref.cu", REFERENCE),
    ])
}

/// A run of both configurations.
fn both(folder: &Path, options: &str) -> Ended {
    let line = format!(
        "run space.yaml --device vgpu:l4 --evals 2 --strategy exhaustive --db t.db{options}"
    );
    let ended = run(folder, &line);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended
}

/// `WAY` and state of what ranks.
fn ranked(folder: &Path) -> Vec<(i64, String)> {
    ranked_with(folder, "")
}

/// The same with further options of `leaderboard`.
pub(crate) fn ranked_with(folder: &Path, options: &str) -> Vec<(i64, String)> {
    let rows = run(
        folder,
        &format!("leaderboard --db t.db --format json{options}"),
    )
    .rows();
    let row = |row: &serde_json::Value| {
        let compared = row["compared"].as_str().unwrap_or("null").to_owned();
        (row["config"]["WAY"].as_i64().unwrap(), compared)
    };
    rows.iter().map(row).collect()
}

pub(crate) fn state(way: i64, compared: &str) -> (i64, String) {
    (way, compared.to_owned())
}

#[test]
fn a_candidate_is_run_whole_before_it_is_announced_as_best() {
    let folder = project();
    let ended = both(folder.path(), "");
    assert!(ended.stdout.contains("compared whole"), "{}", ended.stdout);
    assert!(ended.stdout.contains("incorrect 1"), "{}", ended.stdout);
    assert_eq!(ranked(folder.path()), [state(0, "whole")]);
}

#[test]
fn without_a_budget_for_proofs_rows_stay_sampled_and_an_export_proves_them() {
    let folder = project();
    let folder = folder.path();
    let ended = both(folder, " --prove-budget 0");
    assert!(
        ended.stdout.contains("compared sampled"),
        "{}",
        ended.stdout
    );
    let sampled = [state(1, "sampled"), state(0, "sampled")];
    assert_eq!(ranked(folder), sampled);
    let export = "export one_block --allow-predicted --db t.db";
    // A budget that is too small leaves everything as it is, and says so.
    let early = run(folder, &format!("{export} --prove-budget 1e6"));
    early.says(0, &["not proven"]);
    assert!(
        early.stdout.contains("compared sampled"),
        "{}",
        early.stdout
    );
    assert_eq!(ranked(folder), sampled);
    // The best is wrong, and the next one is right.
    let proven = run(folder, export);
    proven.says(
        0,
        &["the best is wrong, its time is withdrawn", "incorrect"],
    );
    assert!(
        proven.stdout.contains("compared whole"),
        "{}",
        proven.stdout
    );
    assert_eq!(ranked(folder), [state(0, "whole")]);
    let gate = run(
        folder,
        "gate space.yaml --device vgpu:l4 --db t.db --config WAY=1 --format json",
    );
    assert_eq!(gate.code, 4, "{}", gate.stdout);
    let gate = run(
        folder,
        "gate space.yaml --device vgpu:l4 --db t.db --config WAY=0 --format json",
    );
    assert_eq!(gate.code, 0, "{}", gate.stdout);
    assert_eq!(gate.json()["problems"][0]["compared"], "whole");
}

/// A kernel whose first launch computes where the second one stores: which elements a sample leaves out
/// cannot be traced.
#[test]
fn what_was_compared_on_smaller_problems_leaves_only_on_request_or_once_it_is_proven() {
    let folder = project();
    let folder = folder.path();
    let output = "  - { name: y, type: f32, role: output, shape: [N] }\n";
    let scratch = "  - { name: at, type: i32, role: scratch, shape: [N] }\n";
    let launch = r#"  - { entry: k, grid"#;
    let first = r#"  - { entry: number, args: [at], grid: ["ceil_div(N, 256)", 1, 1], block: [256, 1, 1] }"#;
    let space = SPACE
        .replace(output, &format!("{output}{scratch}"))
        .replace(launch, &format!("{first}\n{launch}"));
    std::fs::write(folder.join("space.yaml"), space).unwrap();
    let number = r#"
extern "C" __global__ void number(int* at) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) at[i] = i;
}
"#;
    let kernel = KERNEL
        .replace("float* y)", "float* y, const int* at)")
        .replace("y[i] =", "y[at[i]] =");
    std::fs::write(folder.join("kernel.cu"), format!("{kernel}{number}")).unwrap();
    let reference = REFERENCE.replace("float* y)", "float* y, int* at)");
    std::fs::write(folder.join("ref.cu"), reference).unwrap();
    let line = "run space.yaml --device vgpu:l4 --evals 1 --db t.db --prove-budget 0";
    run(folder, line).says(0, &[]);
    assert_eq!(ranked(folder), [state(0, "smaller_problems")]);
    let check = run(
        folder,
        "check space.yaml --problem large --device vgpu:l4 --config WAY=0 --format json",
    );
    check.says(0, &[]);
    assert_eq!(check.rows()[0]["compared"], "smaller_problems");
    assert_eq!(check.rows()[0]["tolerance"], serde_json::Value::Null);
    assert!(!check.stderr.contains("tolerance of"), "{}", check.stderr);
    let export = "export one_block --allow-predicted --db t.db";
    let refused = run(folder, &format!("{export} --prove-budget 0"));
    refused.says(3, &["left out", "--allow-uncompared"]);
    let line = format!("{export} --prove-budget 0 --allow-uncompared");
    let allowed = run(folder, &line);
    allowed.says(0, &[]);
    assert!(
        allowed.stdout.contains("compared smaller_problems"),
        "{}",
        allowed.stdout
    );
    run(folder, export).says(0, &[]);
    assert_eq!(ranked(folder), [state(0, "whole")]);
}

#[test]
fn a_budget_that_is_no_number_is_refused_with_the_fix() {
    let folder = project();
    for text in ["-1", "1.5", "many", "1e99", ""] {
        let line =
            format!("run space.yaml --device vgpu:l4 --evals 1 --db t.db --prove-budget={text}");
        let ended = run(folder.path(), &line);
        ended.says_of(&text, 2, &["a number of lane instructions", "3e10"]);
    }
}

#[test]
fn a_reference_that_fails_on_the_whole_problem_only_leaves_the_row_sampled() {
    let folder = project();
    let folder = folder.path();
    // As long as the candidate, so that only some of its blocks run beside a sample.
    let wrong = KERNEL
        .replace("void k(", "void ref(")
        .replace("i >= N", "i >= N || N > 2000 && blockIdx.x == 1237")
        .replace("WAY", "0");
    std::fs::write(folder.join("ref.cu"), wrong).unwrap();
    let line = "run space.yaml --device vgpu:l4 --evals 1 --db t.db";
    run(folder, line).says(0, &[]);
    assert_eq!(ranked(folder), [state(0, "sampled")]);
    let export = run(folder, "export one_block --allow-predicted --db t.db");
    export.says(
        0,
        &["not proven: the reference fails on the whole timed problem"],
    );
}

/// With sizes as arguments; `WAY=1` is slower, and wrong on ragged sizes only.
const RAGGED: &str = r#"
extern "C" __global__ void k(const float* x, float* y, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  float v = x[i];
  for (int r = 0; r < (WAY ? 400 : 4); ++r) v = __fmaf_rn(v, 1.0f, 0.0f);
  y[i] = WAY && N % 8 ? 0.0f : v * 2.0f;
}
extern "C" __global__ void ref(const float* x, float* y, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = x[i] * 2.0f;
}
"#;

#[test]
fn a_slow_candidate_that_is_wrong_on_the_smallest_check_problem_does_not_rank() {
    let space = SPACE
        .replace("ref.cu", "kernel.cu")
        .replace("N: 1048576", "N: 65536")
        .replace("arguments:", "sizes: argument\narguments:")
        .replace(
            "launches:",
            "  - { name: N, type: i32, role: scalar }\nlaunches:",
        );
    let folder = folder(&[("space.yaml", &space), ("kernel.cu", RAGGED)]);
    let ended = both(folder.path(), "");
    assert!(ended.stdout.contains("incorrect 1"), "{}", ended.stdout);
    assert_eq!(ranked(folder.path()), [state(0, "whole")]);
}

/// The best of both problems is one candidate: sizes as arguments are no part of its identity.
#[test]
fn an_export_proves_the_best_of_each_problem_that_shares_a_candidate() {
    let space = SPACE
        .replace("ref.cu", "kernel.cu")
        .replace(
            "{ large: { N: 1048576 } }",
            "{ large: { N: 1048576 }, larger: { N: 1310720 } }",
        )
        .replace("arguments:", "sizes: argument\narguments:")
        .replace(
            "launches:",
            "  - { name: N, type: i32, role: scalar }\nlaunches:",
        );
    let kernel = RAGGED.replace("WAY ? 400 : 4", "WAY ? 400 : 300");
    let folder = folder(&[("space.yaml", &space), ("kernel.cu", &kernel)]);
    let folder = folder.path();
    let line = "run space.yaml --device vgpu:l4 --evals 4 --strategy exhaustive --db t.db";
    run(folder, &format!("{line} --prove-budget 0")).says(0, &[]);
    let states = || {
        let mut all = ranked(folder);
        all.retain(|(way, _)| *way == 0);
        all
    };
    assert_eq!(states(), [state(0, "sampled"), state(0, "sampled")]);
    run(folder, "export one_block --allow-predicted --db t.db").says(0, &[]);
    assert_eq!(states(), [state(0, "whole"), state(0, "whole")]);
}

/// One block computes all, and takes longer than a sample may: a proof may spend more on it.
#[test]
fn a_reference_of_one_long_block_is_run_by_the_proof() {
    let folder = folder(&[("space.yaml", LONG_REFERENCE)]);
    let place = folder.path();
    let reference = r#"
extern "C" __global__ void ref(const int* x, int* y) {
  for (int i = threadIdx.x; i < N; i += 32) {
    int v = x[i];
    for (int r = 0; r < 18000; ++r) asm volatile("add.s32 %0, %0, 1;" : "+r"(v));
    y[i] = v;
  }
}
"#;
    std::fs::write(place.join("ref.cu"), reference).unwrap();
    // The wrong element is of no check problem.
    for (offset, code) in [("18000", 0), ("18000 + (i == 50000)", 3)] {
        let kernel = format!(
            r#"extern "C" __global__ void k(const int* x, int* y) {{
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = x[i] + {offset};
}}
"#
        );
        std::fs::write(place.join("kernel.cu"), kernel).unwrap();
        let ended = run(place, "run space.yaml --device vgpu:l4 --evals 1 --db t.db");
        assert_eq!(ended.code, code, "{} {}", ended.stdout, ended.stderr);
        let whole = ended.stdout.contains("compared whole");
        assert_eq!(whole, code == 0, "{}", ended.stdout);
    }
}

const LONG_REFERENCE: &str = r#"version: 1
kernel: long_reference
source: kernel.cu
problems: { large: { N: 65536 } }
check_problems: { odd: { N: 1001 } }
parameters:
  WAY: { values: [0], default: 0, doc: way }
arguments:
  - { name: x, type: i32, role: input, shape: [N], fill: { uniform: { min: 0, max: 9 } } }
  - { name: y, type: i32, role: output, shape: [N] }
launches:
  - { entry: k, grid: ["ceil_div(N, 256)", 1, 1], block: [256, 1, 1] }
reference: { source: ref.cu, entry: ref, grid: [1, 1, 1], block: [32, 1, 1] }
"#;
