//! `tuner exec`: programs on the virtual GPU.

mod clients;

use crate::program::{Ended, ended, tuner};
use std::path::Path;
use std::process::Command;

/// `tuner exec` of a program in a folder.
fn exec(folder: &Path, options: &[&str], program: &Path) -> Command {
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
