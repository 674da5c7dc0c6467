//! Programs of the driver interface: one in C of ours, Python packages of others, and the tuner.

use super::{exec_in, run_to_success};
use crate::program::{Ended, ended, folder, root, words};
use std::path::PathBuf;
use std::process::Command;

fn client(name: &str) -> PathBuf {
    root().join("tests/exec/clients").join(name)
}

/// Compiles and runs a C program of the clients' folder; returns what it and the tuner said.
fn run_program(name: &str, options: &[&str]) -> Ended {
    let folder = folder(&[]);
    let program = folder.path().join("program");
    let mut compiler = Command::new("cc");
    compiler.arg(client(name)).arg("-o").arg(&program);
    let compiled = ended(compiler.arg("-ldl"));
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
    let ended = run_to_success(&mut exec_in(folder.path(), options, &program));
    assert!(ended.stdout.contains("0 failures"), "{}", ended.stdout);
    ended
}

#[test]
fn a_c_program_finds_the_functions_and_errors_of_the_driver() {
    let ended = run_program("driver.c", &["--error-exitcode", "0"]);
    for part in ["twice", "out_of_bounds", "cuGetExportTable"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

#[test]
fn handles_have_a_context_of_their_own() {
    let ended = run_program("contexts.c", &[]);
    assert!(ended.stderr.contains("no hazards"), "{}", ended.stderr);
}

#[test]
fn memory_is_mapped_at_reserved_addresses_and_streams_wait_for_words() {
    let ended = run_program("mappings.c", &[]);
    assert!(ended.stderr.contains("no hazards"), "{}", ended.stderr);
}

#[test]
fn the_runtime_loads_libraries() {
    let ended = run_program("libraries.c", &[]);
    assert!(ended.stderr.contains("no hazards"), "{}", ended.stderr);
}

/// Runs a script with the packages of `scripts/get-cuda-python`.
fn run_script(name: &str) {
    let folder = folder(&[]);
    let named = std::env::var_os("TUNER_CUDA_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| root().join(".cuda-python/bin/python"));
    let mut command = exec_in(folder.path(), &[], &python);
    let ended = run_to_success(command.arg(client(name)));
    assert!(ended.stdout.contains("right"), "{}", ended.stdout);
    assert!(ended.stderr.contains("no hazards"), "{}", ended.stderr);
}

#[test]
#[cfg_attr(
    not(cuda_python),
    ignore = "no CUDA for Python is here: scripts/get-cuda-python"
)]
fn the_bindings_of_the_driver_add_vectors() {
    run_script("bindings.py");
}

#[test]
#[cfg_attr(
    not(cuda_python),
    ignore = "no CUDA for Python is here: scripts/get-cuda-python"
)]
fn cuda_core_launches_a_kernel_template() {
    run_script("core.py");
}

#[test]
#[cfg_attr(
    not(cuda_python),
    ignore = "no CUDA for Python is here: scripts/get-cuda-python"
)]
fn numba_compiles_and_launches_kernels() {
    run_script("jit.py");
}

#[test]
fn the_tuner_examines_the_virtual_gpu_as_a_real_one() {
    let folder = folder(&[]);
    let tuner = PathBuf::from(env!("CARGO_BIN_EXE_tuner"));
    let mut command = exec_in(folder.path(), &[], &tuner);
    // Without a compiler it does not calibrate the GPU, which takes minutes.
    command.env("TUNER_NVRTC", folder.path());
    let ended = ended(command.args(words("doctor --format json")));
    let checks: Vec<serde_json::Value> = ended.rows();
    let status = |name: &str| {
        let found = checks.iter().find(|row| row["check"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {}", ended.stdout))["status"].clone()
    };
    assert_eq!(status("cuda driver"), "ok", "{}", ended.stdout);
    assert_eq!(status("gpu"), "ok", "{}", ended.stdout);
}
