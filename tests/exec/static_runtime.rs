//! Programs and libraries that hold the CUDA runtime.

use super::{exec_in, run_to_success, text};
use crate::program::ended;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the program of this test with options.
fn compile(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/static_runtime.c");
    let binary = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-w", "-o"]).arg(&binary).arg(source);
    let status = compiler.args(options).current_dir(folder).status();
    assert!(status.expect("a C compiler").success());
    binary
}

#[test]
fn calls_of_a_runtime_in_the_program_reach_the_virtual_gpu() {
    let folder = tempfile::tempdir().unwrap();
    for (option, version) in [("-DCUDA12", 12), ("-DCUDA13", 13)] {
        let program = compile(folder.path(), "app", &[option]);
        let ended = run_to_success(&mut exec_in(folder.path(), &[], &program));
        let expected = format!("program: 0, CUDA {version}, through, own 999\n");
        assert_eq!(ended.stdout, expected, "{}", ended.stderr);
        // A shell starts it.
        let mut shell = exec_in(folder.path(), &[], Path::new("sh"));
        let ended = run_to_success(shell.args(["-c", "./app && echo done"]));
        assert_eq!(ended.stdout, expected + "done\n", "{}", ended.stderr);
    }
}

#[test]
fn a_runtime_without_room_for_jumps_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "app", &["-DPACKED", "-Os"]);
    let ended = ended(&mut exec_in(folder.path(), &[], &program));
    let own = "program: 999, CUDA 0, , own 999\n";
    assert_eq!(ended.stdout, own, "{}", ended.stderr);
}

#[test]
fn initializers_of_a_library_with_a_runtime_reach_the_virtual_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let shared = ["-DLIBRARY", "-DCUDA12", "-shared", "-fPIC"];
    compile(folder.path(), "libkernels.so", &shared);
    let linked = ["-DLINKED", "-L.", "-lkernels", "-Wl,-rpath,$ORIGIN"];
    let program = compile(folder.path(), "app", &linked);
    let mut command = exec_in(folder.path(), &[], &program);
    let ended = run_to_success(command.env("KEPT", "1"));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let expected = [
        "library: 0, CUDA 12, through, own 999",
        "program: 0, CUDA 13, through, own 999",
    ];
    assert_eq!(lines, expected, "{}", ended.stderr);
}

#[test]
fn a_runtime_that_cannot_be_redirected_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, options: &[&str]| {
        let program = compile(folder.path(), name, options);
        let output = exec_in(folder.path(), &[], &program).output();
        let output = output.expect("tuner");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(refused("stripped", &["-s"]).contains("do not strip it"));
    let old = refused("old", &["-DCUDA11"]);
    assert!(old.contains("CUDA 11 or older"), "{old}");
}
