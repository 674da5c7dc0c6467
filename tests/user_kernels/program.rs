//! The program under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the program in a folder.
pub(crate) fn tuner(folder: &Path, command: &str, files: &[PathBuf], more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tuner"))
        .current_dir(folder)
        .arg(command)
        .args(files)
        .args(more)
        .output()
        .unwrap()
}

/// What a program printed as JSON; its standard error where it printed none.
pub(crate) fn rows(output: &Output) -> Result<Vec<serde_json::Value>, String> {
    serde_json::from_slice(&output.stdout).map_err(|_| {
        format!(
            "exit code {:?}, no JSON: {}",
            output.status.code(),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}
