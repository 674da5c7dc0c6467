//! Compile targets: features of one architecture in a search space, found from a refusal, and `--arch`.

use crate::program::{folder, json, replace, run};
use std::path::Path;

/// An elementwise kernel of which one parameter value needs an architecture-specific target.
const SPACE: &str = "\
version: 1
kernel: scale
source: k.cu
problems: { p: { N: 1000 } }
parameters:
  SPECIFIC: { values: [0, 1], default: 0 }
arguments:
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: k, grid: [\"ceil_div(N, 128)\", 1, 1], block: [128, 1, 1] }
reference: { source: ref.cu, entry: r, grid: [\"ceil_div(N, 64)\", 1, 1], block: [64, 1, 1] }
";

const REFERENCE: &str = "\
extern \"C\" __global__ void r(const float* x, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < N) y[i] = 2.0f * x[i];
}
";

const KERNEL: &str = "\
extern \"C\" __global__ void __launch_bounds__(128) k(const float* x, float* y) {
#if SPECIFIC
  asm volatile(\"setmaxnreg.dec.sync.aligned.u32 24;\");
#endif
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < N) y[i] = 2.0f * x[i];
}
";

/// Creates the project with these options of the compiler.
fn project(compile: &str) -> tempfile::TempDir {
    let space = format!("{SPACE}{compile}");
    folder(&[
        ("space.yaml", &space),
        ("ref.cu", REFERENCE),
        ("k.cu", KERNEL),
    ])
}

/// Checks a configuration and returns the messages.
fn check(folder: &Path, arguments: &str, code: i32) -> String {
    let ended = run(folder, &format!("check space.yaml --config {arguments}"));
    assert_eq!(ended.code, code, "{}\n{}", ended.stdout, ended.stderr);
    ended.stderr
}

#[test]
fn a_refused_instruction_is_compiled_for_its_architecture_and_reported_once() {
    let dir = project("");
    let told = check(dir.path(), "SPECIFIC=1 --config SPECIFIC=0", 0);
    let note = "k.cu:3: `setmaxnreg.dec` is not in sm_90, so the code is for sm_90a: it runs on \
                compute capability 9.0 only; write `compile: { arch_features: a }`";
    assert_eq!(told.matches(note).count(), 1, "{told}");
    assert!(
        told.contains("scale for sm_90 and sm_90a: 2 pairs: 2 ok"),
        "{told}"
    );
    let told = check(dir.path(), "SPECIFIC=0", 0);
    assert!(told.contains("scale for sm_90: 1 pair: 1 ok"), "{told}");
    assert!(!told.contains("is not in"), "{told}");
}

#[test]
fn a_space_asks_for_features_of_the_device() {
    let dir = project("compile: { arch_features: a }\n");
    let told = check(dir.path(), "SPECIFIC=1", 0);
    assert!(told.contains("scale for sm_90a: 1 pair: 1 ok"), "{told}");
    assert!(!told.contains("is not in"), "{told}");
    let told = check(dir.path(), "SPECIFIC=0 --device vgpu:a100", 0);
    assert!(told.contains("scale for sm_80: "), "{told}");
    let told = check(dir.path(), "SPECIFIC=1 --device vgpu:b200", 0);
    assert!(told.contains("scale for sm_100a: "), "{told}");
    replace(
        &dir.path().join("space.yaml"),
        "arch_features: a",
        "arch_features: f",
    );
    let told = check(dir.path(), "SPECIFIC=1 --device vgpu:rtx5090", 0);
    assert!(told.contains("scale for sm_120f: "), "{told}");
    replace(
        &dir.path().join("space.yaml"),
        "arch_features: f",
        "arch_features: b",
    );
    let told = check(dir.path(), "SPECIFIC=0", 2);
    assert!(told.contains("space.yaml:13:27: error"), "{told}");
}

#[test]
fn code_for_another_gpu_is_refused_at_its_line() {
    let dir = project("compile: { options: [\"-arch=sm_90a\"] }\n");
    let told = check(dir.path(), "SPECIFIC=1 --device vgpu:b200", 4);
    for part in [
        "space.yaml:13:22: error: no kernel image for this device: the code is for sm_90a, which \
         runs on compute capability 9.0 only; the GPU is sm_100",
        "choose a GPU of that compute capability with --device",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let yaml = dir.path().join("space.yaml");
    replace(&yaml, "-arch=sm_90a", "-arch=sm_90");
    let told = check(dir.path(), "SPECIFIC=1", 4);
    for part in [
        "k.cu:3: error: Instruction 'setmaxnreg.dec' not supported on .target 'sm_90'",
        "help: where the instruction belongs to sm_90a, write `compile: { arch_features: a }` in \
         the search space in place of an option that names sm_90",
    ] {
        assert!(told.contains(part), "{told}");
    }
    replace(&yaml, "compile: { options: [\"-arch=sm_90\"] }\n", "");
    replace(
        &dir.path().join("k.cu"),
        "setmaxnreg.dec.sync.aligned.u32 24;",
        "wgmma.fence.sync.aligned;",
    );
    let told = check(dir.path(), "SPECIFIC=1 --device vgpu:rtx5090", 4);
    for part in [
        "k.cu:3: error: Instruction 'wgmma.fence' not supported on .target 'sm_120'",
        "help: `wgmma` exists on sm_90a (compute capability 9.0, such as vgpu:h100)",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn every_command_compiles_for_a_requested_target() {
    let dir = project("");
    let told = check(dir.path(), "SPECIFIC=1 --device vgpu:h100 --arch sm_90a", 0);
    assert!(told.contains("scale for sm_90a: 1 pair: 1 ok"), "{told}");
    assert!(!told.contains("is not in"), "{told}");
    let (code, rows) = json(dir.path(), "predict space.yaml --arch sm_80");
    assert_eq!((code, &rows[0]["verdict"]), (0, &"ok".into()), "{rows:?}");
    run(
        dir.path(),
        "run space.yaml --device vgpu:h100 --evals 2 --arch sm_90a",
    )
    .says(0, &[]);
    for command in ["run", "predict", "check"] {
        for (arguments, parts) in [
            (
                "--device vgpu:a100 --arch sm_90a",
                ["--arch sm_90a: the code is for sm_90a", "the GPU is sm_80"],
            ),
            (
                "--arch hopper",
                ["`hopper` is not a compile target", "type --arch sm_90"],
            ),
            (
                "--device vgpu:h100 --arch sm_70",
                ["this NVRTC does not compile for sm_70", "it knows sm_75"],
            ),
        ] {
            let line = format!("{command} space.yaml {arguments}");
            run(dir.path(), &line).says_of(&line, 2, &parts);
        }
    }
    let refused = "run --device replay:x.json --arch sm_90 --evals 1";
    run(dir.path(), refused).says(2, &["--arch needs a kernel to compile"]);
}

#[test]
fn a_clock_is_part_of_the_device() {
    let dir = project("");
    for clock in ["", "@900MHz"] {
        let line = format!("run space.yaml --device vgpu:h100{clock} --evals 2 --db t.db");
        run(dir.path(), &line).says(0, &[]);
    }
    let best = |device: &str| {
        let line = format!("leaderboard scale --device {device} --db t.db");
        let (code, rows) = json(dir.path(), &line);
        assert_eq!(code, 0, "{rows:?}");
        assert!(rows.iter().all(|row| row["device"] == device), "{rows:?}");
        rows[0]["time_us_p50"].as_f64().expect("a time")
    };
    let (usual, slow) = (best("vgpu:h100"), best("vgpu:h100@900MHz"));
    assert!(slow > usual, "{slow} at 900 MHz, {usual} at 1830 MHz");
    for command in ["run", "predict", "check", "space"] {
        let line = format!("{command} space.yaml --device vgpu:h100@fast");
        run(dir.path(), &line).says_of(&line, 2, &["invalid clock `fast`", "vgpu:h100@1500MHz"]);
    }
}
