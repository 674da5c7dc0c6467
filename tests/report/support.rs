//! A small project with a kernel, in a git tree of its own.

use crate::virtual_run::REFERENCE;
use assert_cmd::Command;
use std::path::Path;
use tempfile::TempDir;

const KERNEL: &str = r#"
extern "C" __global__ void scale(const float* x, float* y) {
  __shared__ float tile[32][32 + PAD];
  int t = threadIdx.x;
  int row = t / 32, column = t % 32;
  int i = blockIdx.x * BLOCK + t;
  tile[column][row] = i < N ? x[i] : 0.0f;
  if (SYNC) __syncthreads();
  float left = tile[(column + 1) % 32][row];
  if (i < N) y[i] = 2.0f * x[i] + 0.0f * left;
}
"#;

const SPACE: &str = r#"
version: 1
kernel: scale
summary: "y = 2 x <in> one & two"
source: ../templates/scale/kernel.cu
problems:
  small: { N: 4096 }
  large: { N: 65536 }
parameters:
  BLOCK: { values: [32, 64, 128, 256], default: 64, doc: threads a block }
  PAD: { values: [0, 1], default: 0, doc: floats added to a shared-memory row }
  SYNC: { values: [1, 0], default: 1 }
derived:
  SHARED_BYTES: "4 * 32 * (32 + PAD)"
constraints:
  - { rule: "SHARED_BYTES <= DEVICE_SHARED_BYTES", why: the tile must fit in shared memory }
arguments:
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: scale, grid: ["ceil_div(N, BLOCK)", 1, 1], block: [BLOCK, 1, 1] }
reference: { source: ../templates/scale/reference.cu, entry: plain, grid: [4, 1, 1], block: [64, 1, 1] }
metric: { flops: "N", bytes: "8 * N" }
"#;

/// Writes the project and commits it.
pub(crate) fn project() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [
        ("search_spaces/scale.yaml", SPACE),
        ("templates/scale/kernel.cu", KERNEL),
        ("templates/scale/reference.cu", REFERENCE),
    ] {
        write(folder.path(), name, text);
    }
    git(folder.path(), &["init", "-q"]);
    commit(folder.path());
    folder
}

pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
    std::fs::write(path, text).expect("the file is written");
}

/// Changes the template.
pub(crate) fn edit(folder: &Path, line: &str) {
    let path = folder.join("templates/scale/kernel.cu");
    let text = std::fs::read_to_string(&path).expect("the template is there");
    std::fs::write(path, format!("{text}{line}\n")).expect("the file is written");
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .arg("-C")
        .arg(folder)
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{arguments:?} {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Commits everything and gives the hash.
pub(crate) fn commit(folder: &Path) -> String {
    git(folder, &["add", "search_spaces", "templates"]);
    git(folder, &["commit", "-qm", "a state"]);
    git(folder, &["rev-parse", "HEAD"])
}

pub(crate) fn tuner(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    command.current_dir(folder).args(arguments);
    // The compiler that the project's own set-up has fetched.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cuda/nvidia/cu13/lib");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        command.env("TUNER_NVRTC", own);
    }
    command
}

/// Runs a command that must end with that code; gives standard output and error.
pub(crate) fn run(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    let output = tuner(folder, arguments).output().expect("tuner runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?} {}\n{out}\n{err}",
        output.status
    );
    (out, err)
}

/// Tunes the small problem a little.
pub(crate) fn tune(folder: &Path, seed: &str) {
    let arguments = [
        "run",
        "scale",
        "--device",
        "vgpu:a100",
        "--problem",
        "small",
        "--evals",
        "6",
        // What a run tries depends on its seed alone.
        "--no-knowledge",
        "--seed",
        seed,
        "--db",
        "t.db",
    ];
    run(folder, &arguments, 0);
}

pub(crate) fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let (out, _) = run(folder, arguments, 0);
    serde_json::from_str(&out).expect("JSON")
}
