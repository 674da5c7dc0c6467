//! How kernels of other projects are described: sizes as arguments, no parameters, no reference.

mod data;

use crate::program::{Ended, folder, run};
use std::path::Path;

/// The rows of `check`, and its exit code.
fn check(folder: &Path) -> (Vec<serde_json::Value>, i32) {
    let ran = run(folder, "check k.yaml --format json");
    (ran.rows(), ran.code)
}

/// Its own sizes as parameters, and nothing to tune.
const ADD: &str = "\
extern \"C\" __global__ void add(const float* a, const float* b, float* c, int n, float scale) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + scale * b[i];
}
";

const SPACE: &str = "\
version: 1
kernel: add
source: k.cu
sizes: argument
problems: { large: { n: 5000 }, small: { n: 700 } }
check_problems: { ragged: { n: 1001 } }
arguments:
  - { name: a, type: f32, role: input, shape: [n] }
  - { name: b, type: f32, role: input, shape: [n] }
  - { name: c, type: f32, role: output, shape: [n] }
  - { name: n, type: i32, role: scalar }
  - { name: scale, type: f32, role: scalar, value: 2 }
launches:
  - { entry: add, grid: [\"ceil_div(n, 128)\"], block: [128] }
reference: { source: r.cu, entry: add, grid: [\"ceil_div(n, 64)\"], block: [64] }
";

fn no_reference(space: &str) -> String {
    let (front, _) = space.split_once("reference:").expect("a reference");
    format!("{front}reference: none\n")
}

fn assert_ragged_is_out_of_bounds(rows: &[serde_json::Value]) {
    let ragged = rows.iter().find(|row| row["problem"] == "ragged");
    let ragged = ragged.expect("a row");
    assert_eq!(ragged["verdict"], "out_of_bounds", "{ragged:#}");
}

#[test]
fn a_kernel_that_takes_its_sizes_needs_neither_macros_nor_parameters() {
    let folder = folder(&[("k.cu", ADD), ("r.cu", ADD), ("k.yaml", SPACE)]);
    let (rows, exit) = check(folder.path());
    assert_eq!(exit, 0, "{rows:#?}");
    assert_eq!(rows.len(), 3, "one a problem: {rows:#?}");
    assert!(rows.iter().all(|row| row["verdict"] == "ok"), "{rows:#?}");
    // One compilation serves all problems.
    let hashes: std::collections::BTreeSet<_> = rows
        .iter()
        .map(|row| row["cubin_hash"].as_str().expect("a hash"))
        .collect();
    assert_eq!(hashes.len(), 1);
    // What has no parameters can be run all the same.
    let ran = run(
        folder.path(),
        "run k.yaml --evals 3 --device vgpu:h100 --db t.db",
    );
    ran.says(0, &[]);
}

#[test]
fn a_kernel_that_ignores_its_size_argument_is_caught() {
    let wrong = ADD.replace("i < n", "i < 1024");
    let folder = folder(&[("k.cu", &wrong), ("r.cu", ADD), ("k.yaml", SPACE)]);
    let (rows, exit) = check(folder.path());
    assert_eq!(exit, 4);
    assert_ragged_is_out_of_bounds(&rows);
}

#[test]
fn a_size_that_the_kernel_declares_is_told_before_the_compiler_stumbles_over_it() {
    let space = SPACE.replace("sizes: argument\n", "").replace(
        "  - { name: n, type: i32, role: scalar }",
        "  - { name: n, type: i32, role: scalar, value: n }",
    );
    let sources = [
        ADD.to_owned(),
        "struct Config { int n; };\n".to_owned()
            + &ADD.replace("int n,", "int m,").replace("i < n", "i < m"),
        ADD.replace("int n,", "Config c2,")
            .replace("i < n", "i < c2.n"),
        "template <int n> __device__ int f() { return 1; }\n".to_owned()
            + &ADD.replace("int n,", "int m,").replace("i < n", "i < m"),
    ];
    for source in &sources {
        let folder = folder(&[("k.cu", source), ("r.cu", ADD), ("k.yaml", &space)]);
        let output = run(folder.path(), "check k.yaml");
        let parts = [
            "k.cu:",
            "`n` is a macro, the problem size of the search space, and names nothing here",
            "write `sizes: argument`",
        ];
        output.says_of(source, 2, &parts);
        let stumbled = output.stderr.contains("expected an identifier");
        assert!(!stumbled, "{}", output.stderr);
    }
}

#[test]
fn a_macro_that_is_only_used_collides_with_nothing() {
    let source = "\
#ifndef n
#define n 256
#endif
#if 0
int n = 5;
#endif
__device__ int twice(int a, unsigned b) { return a * n + int(n) + (unsigned)n + b; }
extern \"C\" __global__ void add(const float* a, const float* b, float* c, int m, float scale) {
  int k = n; float t[n > 4 ? 4 : n]; t[0] = scale; while (k-->n) { t[0] += twice(k, n); }
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + t[0] * b[i];
}
";
    let space = SPACE.replace("sizes: argument\n", "").replace(
        "  - { name: n, type: i32, role: scalar }",
        "  - { name: m, type: i32, role: scalar, value: n }",
    );
    let folder = folder(&[("k.cu", source), ("r.cu", source), ("k.yaml", &space)]);
    let (rows, exit) = check(folder.path());
    assert_eq!(exit, 0, "{rows:#?}");
}

#[test]
fn without_a_reference_hazards_are_found_and_nothing_is_said_of_results() {
    let space = no_reference(SPACE);
    let right = folder(&[("k.cu", ADD), ("k.yaml", &space)]);
    let (rows, exit) = check(right.path());
    assert_eq!(exit, 0, "{rows:#?}");
    for row in &rows {
        assert_eq!(row["verdict"], "unchecked", "{row:#}");
        let detail = row["detail"].as_str().expect("a detail");
        assert!(
            detail.starts_with("hazards only, results not compared"),
            "{detail}"
        );
    }
    let wrong = ADD.replace("i < n", "i <= n");
    let wrong = folder(&[("k.cu", &wrong), ("k.yaml", &space)]);
    let (rows, exit) = check(wrong.path());
    assert_eq!(exit, 4);
    assert_ragged_is_out_of_bounds(&rows);
}

/// Whole tiles of 128 columns and rows: with fewer, threads would leave the buffers.
const TILED: &str = "\
extern \"C\" __global__ void damped(const float* a, float* b, int n) {
  int x = blockIdx.x * 128 + threadIdx.x, y = blockIdx.y * 128;
  for (int j = 0; j < 128; ++j) b[(y + j) * n + x] = 0.5f * b[(y + j) * n + x] + a[(y + j) * n + x];
}
";
const TILED_SPACE: &str = "\
version: 1
kernel: damped
source: k.cu
problems: { large: { N: 1024 } }
check_problems: { small: { N: 128 } }
sizes: argument
parameters: {}
arguments:
  - { name: a, type: f32, role: input, shape: [N, N] }
  - { name: b, type: f32, role: inout, shape: [N, N] }
  - { name: n, type: i32, role: scalar, value: N }
launches: [{ entry: damped, grid: [\"ceil_div(N, 128)\", \"ceil_div(N, 128)\"], block: [128] }]
reference: none
";

#[test]
fn without_a_reference_a_problem_is_judged_on_its_own_sizes() {
    let folder = folder(&[("k.cu", TILED), ("k.yaml", TILED_SPACE)]);
    for problem in ["", " --problem small"] {
        let checked = run(
            folder.path(),
            &format!("check k.yaml --format json{problem}"),
        );
        checked.says(0, &[]);
        let rows = checked.rows();
        assert!(!rows.is_empty());
        for row in rows {
            assert_eq!(row["verdict"], "unchecked", "{row:#}");
        }
    }
}

#[test]
fn without_a_reference_no_output_is_needed_and_what_is_left_unwritten_is_told() {
    let scratch = no_reference(SPACE).replace("role: output", "role: scratch");
    let scratch = folder(&[("k.cu", ADD), ("k.yaml", &scratch)]);
    let (rows, exit) = check(scratch.path());
    assert_eq!(exit, 0, "{rows:#?}");
    let half = ADD.replace("if (i < n)", "if (i < n && i % 2)");
    let half = folder(&[("k.cu", &half), ("k.yaml", &no_reference(SPACE))]);
    let (rows, exit) = check(half.path());
    assert_eq!(exit, 0, "{rows:#?}");
    let detail = rows[0]["detail"].as_str().expect("a detail");
    assert!(detail.contains("are never written"), "{detail}");
    let compared = SPACE.replace("role: output", "role: scratch");
    let compared = folder(&[("k.cu", ADD), ("r.cu", ADD), ("k.yaml", &compared)]);
    let refused = run(compared.path(), "check k.yaml");
    refused.says(2, &["write `reference: none`"]);
}

#[test]
fn what_has_no_reference_is_never_ranked() {
    let folder = folder(&[("k.cu", ADD), ("k.yaml", &no_reference(SPACE))]);
    let ran = run(
        folder.path(),
        "run k.yaml --evals 1 --device vgpu:h100 --db t.db",
    );
    ran.says(2, &["`reference: none` compares no results"]);
    let predict = run(folder.path(), "predict k.yaml --format json");
    predict.says(0, &["results are not compared"]);
    let rows = predict.rows();
    assert!(rows[0]["time_us"].as_f64().expect("a time") > 0.0);
}

#[test]
fn a_wrong_word_for_sizes_or_reference_is_shown_with_what_to_write() {
    for (from, to, says) in [
        (
            "sizes: argument",
            "sizes: arguments",
            "did you mean `argument`?",
        ),
        ("reference: {", "reference: nothing #", "or the word none"),
        ("role: input", "role: in_out", "did you mean `inout`?"),
    ] {
        let folder = folder(&[
            ("k.cu", ADD),
            ("r.cu", ADD),
            ("k.yaml", &SPACE.replace(from, to)),
        ]);
        let output = run(folder.path(), "check k.yaml");
        output.says(2, &[says, "k.yaml:"]);
    }
}

/// A kernel with parameters, for `predict --configs`.
const TUNED: &str = "\
#ifndef BLOCK
#define BLOCK 128
#define WIDE 1
#define n 4096
#endif
extern \"C\" __global__ void add(const float* a, float* c) {
  for (int w = 0; w < WIDE; ++w) {
    const int i = (blockIdx.x * WIDE + w) * BLOCK + threadIdx.x;
    if (i < n) c[i] = 2 * a[i];
  }
}
";

const TUNED_SPACE: &str = "\
version: 1
kernel: add
source: k.cu
problems: { large: { n: 4096 } }
parameters:
  BLOCK: { values: [64, 128, 256], default: 128 }
  WIDE: { values: [1, 2, 4] }
constraints:
  - { rule: \"BLOCK * WIDE <= 512\", why: the test says so }
arguments:
  - { name: a, type: f32, role: input, shape: [n] }
  - { name: c, type: f32, role: output, shape: [n] }
launches:
  - { entry: add, grid: [\"ceil_div(n, BLOCK * WIDE)\"], block: [BLOCK] }
reference: none
";

#[test]
fn predict_takes_what_other_programs_write_and_leaves_out_what_is_no_configuration() {
    let folder = folder(&[
        ("k.cu", TUNED),
        ("k.yaml", TUNED_SPACE),
        (
            "c.csv",
            "time,BLOCK,WIDE,note\n1.5,64.0,2,fast\n0.5,256,4,outside\n2,99,1,no value\n3,256,1,\n",
        ),
        ("typo.csv", "BLOK,WIDE\n64,1\n"),
        (
            "cache.json",
            r#"{"device_name": "X", "kernel_name": "add", "problem_size": "4096",
            "tune_params_keys": ["BLOCK", "WIDE", "other"],
            "tune_params": {"BLOCK": [64, 512], "WIDE": [1], "other": [7]},
            "objective": "time",
            "cache": {"64,1,7": {"BLOCK": 64, "WIDE": 1, "other": 7, "time": 0.2},
                      "512,1,7": {"BLOCK": 512, "WIDE": 1, "other": 7, "time": 0.3}}}"#,
        ),
    ]);
    let predict = |more: &str| -> Ended {
        let line = format!("predict k.yaml --format csv --configs {more}");
        run(folder.path(), &line)
    };
    let csv = predict("c.csv");
    let parts = [
        "time, note",
        "2 of 4 rows are outside the space",
        "c.csv:3:",
    ];
    csv.says(0, &parts);
    let lines: Vec<&str> = csv.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(
        lines[1].starts_with("64,2,") && lines[2].starts_with("256,1,"),
        "{lines:#?}"
    );
    for (arguments, says) in [
        ("c.csv --strict", "`time` is not a parameter"),
        ("typo.csv", "did you mean `BLOCK`?"),
        ("cache.json --strict", "`other` is not a parameter"),
    ] {
        let refused = predict(arguments);
        refused.says_of(&arguments, 2, &[says]);
        assert_eq!(refused.stdout, "");
    }
    let cache = predict("cache.json");
    cache.says(0, &["1 of 2 rows"]);
    assert_eq!(cache.stdout.lines().count(), 2, "{}", cache.stdout);
}

#[test]
fn a_texture_is_refused_by_name() {
    let source = "extern \"C\" __global__ void add(cudaTextureObject_t image, float* c, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) c[i] = tex1Dfetch<float>(image, i);
}
";
    let space = no_reference(SPACE)
        .replace("  - { name: b, type: f32, role: input, shape: [n] }\n", "")
        .replace(
            "  - { name: scale, type: f32, role: scalar, value: 2 }\n",
            "",
        );
    let folder = folder(&[("k.cu", source), ("k.yaml", &space)]);
    let output = run(folder.path(), "check k.yaml");
    output.says(2, &["k.cu:1:", "`image` of the kernel `add`"]);
}

#[test]
fn a_size_that_a_header_of_the_installation_declares_is_told_by_its_name() {
    // As `template <unsigned int N>` stands in headers of CUDA, outside of the project.
    let elsewhere = folder(&[(
        "vendor.cuh",
        "template <unsigned int n> struct Vendor { };\n",
    )]);
    let header = elsewhere.path().join("vendor.cuh");
    let source = format!(
        "#define VENDOR \"{}\"\n#include VENDOR\n{}",
        header.display(),
        ADD.replace("int n,", "int m,").replace("i < n", "i < m")
    );
    let space = SPACE.replace("sizes: argument\n", "").replace(
        "  - { name: n, type: i32, role: scalar }",
        "  - { name: m, type: i32, role: scalar, value: n }",
    );
    let named = elsewhere.path().display();
    let space = format!("{space}compile: {{ include: [{named}] }}\n");
    let folder = folder(&[("k.cu", &source), ("r.cu", &source), ("k.yaml", &space)]);
    let output = run(folder.path(), "check k.yaml");
    output.says(2, &["vendor.cuh:1:", "`n` is a macro"]);
}
