//! Captures on a GPU. A virtual GPU stands for it: the program runs under `tuner exec --device cuda:0 --capture`, which
//! runs under `tuner exec --device vgpu:a100`, whose driver library it takes for that of the machine.

use super::{exec_in, program};
use crate::program::{Ended, ended, json, root, tuner};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The program that launches kernels by the driver interface.
fn captured() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| program("clients/captured.c"))
}

/// A folder with the kernels of the program.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["scale.cu", "scale_128.ptx"] {
        let from = root().join("tests/data/exec").join(name);
        std::fs::copy(from, folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs a program on what it takes for a GPU.
fn on_gpu(folder: &Path, options: &[&str], program: &Path, words: &[&str]) -> Ended {
    let tuner = PathBuf::from(env!("CARGO_BIN_EXE_tuner"));
    let mut command = exec_in(folder, &["--error-exitcode", "0"], &tuner);
    command.args(["exec", "--device", "cuda:0"]).args(options);
    ended(command.arg("--").arg(program).args(words))
}

fn launches(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("capture.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert!(document["device"].as_str().unwrap().contains("A100"));
    document["launches"].as_array().unwrap().clone()
}

#[test]
fn launches_of_a_gpu_are_captured_with_their_accesses_and_results() {
    let dir = folder();
    let words = ["scale_128.ptx", "1000", "128", "scale", "bump", "library"];
    let captured = on_gpu(dir.path(), &["--capture", "one"], captured(), &words);
    captured.says(
        0,
        &["captured 2 launches of bump, scale in one", "no hazards"],
    );
    assert!(
        captured.stdout.contains("1500.5 1001, 0 failures"),
        "{}",
        captured.stdout
    );
    let found = launches(&dir.path().join("one"));
    let scale = &found[0];
    assert_eq!(scale["kernel"], "scale");
    assert_eq!(
        (&scale["number"], &scale["source"]["line"]),
        (&1.into(), &6.into())
    );
    let bytes = |buffer: usize, access: &str| scale["buffers"][buffer][access]["bytes"].clone();
    let variable = scale["buffers"].as_array().unwrap().iter();
    assert_eq!(variable.filter(|it| it["variable"] == "offset").count(), 1);
    assert_eq!(
        (bytes(0, "read"), bytes(0, "written")),
        (4000.into(), 0.into()),
        "{scale}"
    );
    assert_eq!(
        (bytes(1, "read"), bytes(1, "written")),
        (0.into(), 4000.into()),
        "{scale}"
    );

    ended(tuner(dir.path()).args(["adopt", "scale.cu", "--captured", "one"])).says(0, &[]);
    for kernel in ["scale", "bump"] {
        let (code, rows) = json(dir.path(), &format!("check adopted/{kernel}.yaml"));
        assert_eq!(code, 0, "{rows:?}");
        assert!(rows.iter().all(|row| row["verdict"] == "ok"), "{rows:?}");
    }
}

#[test]
fn memory_that_memory_leads_to_is_followed_and_graphs_are_told() {
    let dir = folder();
    let words = ["scale_128.ptx", "1000", "128", "table", "graph"];
    let captured = on_gpu(dir.path(), &["--capture", "one"], captured(), &words);
    captured.says(
        0,
        &[
            "captured 1 launch of follow in one",
            "part of a CUDA graph",
            "no hazards",
        ],
    );
}

#[test]
fn a_launch_that_is_too_long_to_repeat_is_captured_by_comparison() {
    let dir = folder();
    let words = ["scale_128.ptx", "1000", "128", "scale", "bump"];
    let options = ["--capture", "one", "--max-work", "100"];
    let captured = on_gpu(dir.path(), &options, captured(), &words);
    captured.says(
        0,
        &["captured 2 launches", "did not run a launch to its end"],
    );
    let found = launches(&dir.path().join("one"));
    let written = &found[0]["buffers"][1]["written"];
    assert_eq!(written["bounds"], serde_json::json!([0, 4000]), "{written}");
}

#[test]
fn a_program_sees_the_functions_and_errors_of_the_driver() {
    let dir = folder();
    let ran = on_gpu(
        dir.path(),
        &["--capture", "one"],
        &program("clients/driver.c"),
        &[],
    );
    assert!(
        ran.stdout.contains("0 failures"),
        "{}\n{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_capture_on_a_gpu_needs_a_folder_and_a_gpu() {
    let dir = folder();
    let run = |options: &[&str]| ended(&mut exec_in(dir.path(), options, Path::new("true")));
    run(&["--device", "cuda:0"]).says(2, &["add --capture DIR"]);
    run(&["--device", "cuda:99", "--capture", "one"]).says(2, &["--device cuda:99: "]);
    assert!(!dir.path().join("one").exists());
    run(&["--device", "auto", "--capture", "one"])
        .says(2, &["use --device vgpu:a100, or --device cuda:0"]);
}
