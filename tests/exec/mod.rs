//! `tuner exec`: programs on the virtual CUDA device.

mod adopt_run;
mod calls;
mod capture;
mod clients;
mod forward;
mod interfaces;
mod launcher;
mod launcher_names;
mod nvcc;
mod runtime;
mod static_runtime;

use crate::program::{Ended, ended, tuner};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The PTX of the programs' kernels.
fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/kernels.ptx")
}

/// A C program of this folder, compiled once in the life of the test process.
fn program(source: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exec-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for programs");
    let binary = folder.join(Path::new(source).file_stem().expect("a name"));
    let compiled = Command::new("cc")
        .args(["-O1", "-w", "-o"])
        .arg(&binary)
        .arg(root.join("tests/exec").join(source))
        .arg("-ldl")
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    binary
}

/// The program that calls the runtime interface.
fn runtime_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| program("program.c"))
}

/// `tuner exec` with options, of a scenario of the program.
fn exec(options: &[&str], scenario: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tuner"))
        .arg("exec")
        .args(options)
        .arg("--")
        .arg(runtime_program())
        .arg(scenario)
        .arg(kernels())
        .arg(kernels().with_file_name("calls.ptx"))
        .output()
        .expect("tuner")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `tuner exec` of a program in a folder.
fn exec_in(folder: &Path, options: &[&str], program: &Path) -> Command {
    let mut command = tuner(folder);
    command.arg("exec").args(options).arg("--").arg(program);
    command
}

/// Runs a command that must succeed.
fn run_to_success(command: &mut Command) -> Ended {
    let ended = ended(command);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    ended
}
