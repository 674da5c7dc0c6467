//! Runs the program on files in a folder of their own.

use std::path::Path;
use std::process::{Command, Output};

/// What `tuner space` did.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The printed JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// What the user is told of a bad file: exit code 2 and nothing on standard output.
    #[track_caller]
    pub(crate) fn refusal(&self) -> &str {
        assert_eq!(self.code, Some(2), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        &self.stderr
    }
}

/// Runs `tuner space` in a folder.
pub(crate) fn space_in(folder: &Path, arguments: &[&str]) -> Ran {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .arg("space")
        .args(arguments)
        .current_dir(folder)
        .env_remove("TUNER_LOG")
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `tuner space FILE …` where the file holds these bytes.
pub(crate) fn space(file: &str, content: impl AsRef<[u8]>, arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), content).unwrap();
    let arguments: Vec<&str> = std::iter::once(file)
        .chain(arguments.iter().copied())
        .collect();
    space_in(folder.path(), &arguments)
}

/// What the user is told of a bad bare space.
#[track_caller]
pub(crate) fn refused(content: &str) -> String {
    space("s.yaml", content, &[]).refusal().to_owned()
}

/// A kernel's file, complete and correct.
pub(crate) const KERNEL: &str = "\
version: 1
kernel: saxpy
source: kernel.cu
problems:
  small: { N: 1024 }
  large: { N: 4096 }
parameters:
  BLOCK: { values: [64, 128, 256, 512, 1024, 2048], default: 128 }
  UNROLL: { range: { from: 1, to: 4 } }
derived:
  TILE: BLOCK * UNROLL
constraints:
  - { rule: BLOCK <= DEVICE_MAX_THREADS, why: a block has no more threads }
  - { rule: TILE <= N, why: the tile must fit in the vector }
arguments:
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: saxpy, grid: [\"ceil_div(N, TILE)\", 1, 1], block: [BLOCK, 1, 1] }
reference: { oracle: gemm }
";

/// The kernel's file with one text replaced by another, and what the user is told of it.
#[track_caller]
pub(crate) fn kernel_refused(from: &str, to: &str) -> String {
    assert!(KERNEL.contains(from), "{from}");
    let text = KERNEL.replacen(from, to, 1);
    space("k.yaml", text, &[]).refusal().to_owned()
}
