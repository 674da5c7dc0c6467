//! Predictions of kernels whose control flow depends on data: none is faster for data that only the
//! prediction has.

use crate::program::words;
use assert_cmd::Command;

/// More than 1 MiB of floats, and scratch memory.
const SPACE: &str = r#"
version: 1
kernel: scale
source: kernel.cu
problems:
  main: { N: 600000 }
parameters:
  BLOCK: { values: [64, 128], default: 64 }
arguments:
  - { name: x, type: f32, role: input, shape: [N], fill: { uniform: { min: 0, max: 1 } } }
  - { name: y, type: f32, role: output, shape: [N] }
  - { name: flags, type: u32, role: scratch, shape: [64] }
launches:
  - { entry: prepare, grid: ["N // BLOCK"], block: [BLOCK] }
  - { entry: scale, grid: ["N // BLOCK"], block: [BLOCK] }
reference: { source: kernel.cu, entry: scale, grid: ["N // BLOCK"], block: [BLOCK] }
"#;

/// The second launch works for long where `CONDITION` holds; the first one does `PREPARE`.
const KERNEL: &str = r#"
__device__ unsigned variable;
extern "C" __global__ void prepare(const float* x, float* y, unsigned* flags) {
    if (blockIdx.x == 0 && threadIdx.x == 0) { PREPARE; }
}
extern "C" __global__ void scale(const float* x, float* y, unsigned* flags) {
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    float v = x[i];
    if (CONDITION)
        for (int pass = 0; pass < 400; ++pass) v = v * 1.0000001f;
    y[i] = v;
}
"#;

struct Prediction {
    us: f64,
    reliability: String,
}

fn predict(prepare: &str, condition: &str) -> Prediction {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kernel = KERNEL.replace("PREPARE", prepare);
    let kernel = kernel.replace("CONDITION", condition);
    for (name, text) in [
        ("space.yaml", SPACE),
        ("kernel.cu", &kernel),
        ("one.csv", "BLOCK\n64\n"),
    ] {
        std::fs::write(folder.path().join(name), text).expect("the file is written");
    }
    let mut command = Command::new(crate::rig::program());
    command
        .current_dir(&folder)
        .env("TUNER_CACHE", folder.path());
    command.args(words(
        "predict space.yaml --device vgpu:l4 --configs one.csv --format json",
    ));
    let output = command.assert().success().get_output().clone();
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("rows");
    Prediction {
        us: rows[0]["time_us"].as_f64().expect("a time"),
        reliability: rows[0]["reliability"].as_str().expect("words").to_owned(),
    }
}

#[test]
fn a_kernel_that_does_less_for_zeros_is_not_predicted_faster() {
    let honest = predict("flags[0] = 1", "true");
    assert_eq!(honest.reliability, "ok");
    let cheat = predict("flags[0] = 1", "v != 0.0f");
    assert!(
        cheat.us > 0.9 * honest.us,
        "{} against {}",
        cheat.us,
        honest.us
    );
    let named = "control flow depends on the data of `x`";
    assert!(cheat.reliability.contains(named), "{}", cheat.reliability);
}

#[test]
fn data_of_an_earlier_launch_that_decide_the_time_are_named() {
    for (prepare, condition, name) in [
        ("flags[0] = 1", "flags[0] == 1", "`flags`"),
        ("y[7] = 1.0f", "y[7] == 1.0f", "`y`"),
        ("variable = 1", "variable == 1", "variables of the module"),
    ] {
        let found = predict(prepare, condition).reliability;
        let named = "depends on what earlier launches leave in ";
        assert!(found.contains(named) && found.contains(name), "{found}");
    }
    let first = predict("flags[0] = 1; if (y[1] == 2.0f) flags[1] = 1", "true");
    assert_eq!(first.reliability, "ok");
}
