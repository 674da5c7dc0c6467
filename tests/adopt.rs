//! `tuner adopt`: CUDA files as they lie in projects, through to the verdict.

use crate::check::{check, tuner};
use predicates::prelude::*;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/adopt")
        .join(name)
}

/// Adopts a file into `adopted` of a folder; what was said.
fn adopt(folder: &Path, file: &str, more: &[&str], code: i32) -> String {
    let output = tuner()
        .current_dir(folder)
        .arg("adopt")
        .arg(data(file))
        .args(more)
        .output()
        .expect("tuner runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

fn space(folder: &Path, kernel: &str) -> String {
    std::fs::read_to_string(folder.join(format!("adopted/{kernel}.yaml"))).expect("the space")
}

/// The verdict of an adopted kernel, its detail and its hazards.
fn verdict(folder: &Path, kernel: &str) -> (String, String) {
    let (rows, _) = check(
        folder,
        &[&format!("adopted/{kernel}.yaml"), "--problem", "small"],
    );
    let text = |key: &str| rows[0][key].as_str().unwrap_or("").to_owned();
    (text("verdict"), text("detail"))
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn a_whole_program_is_adopted_with_its_launch_and_its_buffers() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "scale.cu", &[], 0);
    has(
        &space(dir.path(), "scale"),
        &[
            "file: { n: 100000 }    # as the file launches it",
            "THREADS: { values: [64, 128, 256, 512, 1024], default: 256",
            "{ name: x, type: f32, role: input, shape: [\"n\"] }\n",
            "{ name: y, type: f32, role: output, shape: [\"n\"] }\n",
            "{ name: n, type: i32, role: scalar }",
            "{ name: factor, type: f32, role: scalar, value: \"3\" }\n",
            "grid: [\"ceil_div(n, THREADS)\", 1, 1], block: [\"THREADS\", 1, 1]",
        ],
    );
    assert_eq!(verdict(dir.path(), "scale").0, "unchecked");
}

#[test]
fn template_arguments_of_the_launch_become_parameters_of_the_entry() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "gemm.cu", &[], 0);
    has(
        &space(dir.path(), "gemm"),
        &[
            "file: { M: 512, N: 256, K: 128 }",
            "TUNE_BM: { values: [4, 8, 16, 32, 64], default: 16",
            "entry: \"lib::gemm<{TUNE_BM}, {TUNE_BN}, {TUNE_BK}, float>\"",
            "grid: [\"ceil_div(N, TUNE_BN)\", \"ceil_div(M, TUNE_BM)\", 1]",
            "block: [\"TUNE_BN\", \"TUNE_BM\", 1]",
            "TUNE_BN * TUNE_BM <= DEVICE_MAX_THREADS",
            "{ name: A, type: f32, role: input, shape: [\"M * K\"] }",
        ],
    );
    let cut = std::fs::read_to_string(dir.path().join("adopted/gemm.cu")).unwrap();
    assert!(
        cut.contains("fused") && !cut.contains("struct Log") && !cut.contains("cudaMalloc"),
        "{cut}"
    );
    assert_eq!(verdict(dir.path(), "gemm").0, "unchecked");
}

#[test]
fn constants_of_the_file_and_of_the_kernel_become_parameters() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "stencil.cu", &[], 0);
    let yaml = space(dir.path(), "stencil");
    has(
        &yaml,
        &[
            "  TILE: { values: [4, 8, 16, 32, 64], default: 16",
            "  BLOCK_ROWS: { values: [2, 4, 8, 16, 32], default: 8",
            "  STEP_TILE: { values: [1, 2, 4, 8], default: 2",
            "grid: [\"ceil_div(width, TILE)\", \"ceil_div(height, TILE)\", 1]",
            "block: [\"TILE\", \"BLOCK_ROWS\", 1]",
        ],
    );
    assert!(!yaml.contains("RADIUS"), "{yaml}");
    assert_eq!(verdict(dir.path(), "stencil").0, "unchecked");
}

#[test]
fn a_hazard_is_told_with_the_originals_line() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "reduce.cu", &[], 0);
    let (found, detail) = verdict(dir.path(), "shift");
    assert_eq!(found, "race", "{detail}");
    has(&detail, &["reduce.cu:23"]);
    has(
        &space(dir.path(), "row_max"),
        &[
            "shared: \"BLOCK_SIZE * 4\"",
            "BLOCK_SIZE: { values: [32, 64, 128, 256, 512], default: 128",
        ],
    );
    has(&space(dir.path(), "shift"), &["role: inout"]);
    assert_eq!(verdict(dir.path(), "row_max").0, "unchecked");
}

#[test]
fn a_file_that_compiles_as_it_is_stays_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let said = adopt(dir.path(), "device_only.cuh", &["--kernel", "doubled"], 0);
    has(
        &said,
        &[
            "the template includes",
            "next: tuner check adopted/doubled.yaml",
        ],
    );
    let template = std::fs::read_to_string(dir.path().join("adopted/doubled.cu")).unwrap();
    has(&template, &["device_only.cuh\""]);
    has(
        &space(dir.path(), "doubled"),
        &["# guessed: block, grid", "# guessed: n; write the sizes"],
    );
    assert_eq!(verdict(dir.path(), "doubled").0, "unchecked");
}

#[test]
fn what_cannot_be_adopted_is_told_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    for (kernel, parts) in [
        ("textured", ["is a texture or surface", "pass a pointer"]),
        ("tables", ["pointer to pointers", "pass one pointer"]),
        ("unknown", ["missing_type", "-I FOLDER"]),
        (
            "absent",
            ["has no kernel `absent`", "it has textured, tables, unknown"],
        ),
    ] {
        has(
            &adopt(dir.path(), "refused.cu", &["--kernel", kernel], 2),
            &parts,
        );
    }
    assert!(!dir.path().join("adopted").exists());
    has(
        &adopt(dir.path(), "util.h", &[], 2),
        &["has no kernel at all", "__global__"],
    );
}

#[test]
fn files_that_are_there_are_replaced_on_request_only() {
    let dir = tempfile::tempdir().unwrap();
    adopt(dir.path(), "scale.cu", &["-o", "adopted"], 0);
    std::fs::write(dir.path().join("adopted/scale.yaml"), "mine").unwrap();
    let again = || {
        tuner()
            .current_dir(dir.path())
            .arg("adopt")
            .arg(data("scale.cu"))
            .assert()
    };
    again()
        .code(2)
        .stderr(predicate::str::contains("--force replaces it"));
    assert_eq!(space(dir.path(), "scale"), "mine");
    adopt(dir.path(), "scale.cu", &["--force"], 0);
    assert!(space(dir.path(), "scale").contains("version: 1"));
}
