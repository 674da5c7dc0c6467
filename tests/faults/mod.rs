//! Faults at the door to the file system: each operation on the database fails in turn, and power
//! is lost at each moment.
//!
//! A small C library (`shim.c`), preloaded into the program, counts and fails operations and writes
//! a trace. `cargo test --test program faults::` tries a sample of the points; `cargo test --test
//! program faults:: -- --ignored --nocapture` tries them all and prints how many.

mod commands;
mod daemon;
mod io;
mod power;

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const OPEN: i64 = 1;
const READ: i64 = 2;
const WRITE: i64 = 4;
const SYNC: i64 = 8;
const TRUNCATE: i64 = 16;
const UNLINK: i64 = 32;
const PRINT: i64 = 64;
const RENAME: i64 = 128;
/// Half of the bytes are transferred.
const SHORT: i64 = 10_000;
/// Configurations in the recording: enough for a dozen transactions.
const ROWS: usize = 48;

/// The preloaded library, compiled once; a machine with Rust has a C compiler for its linker.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults-shim.so");
        let status = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o"])
            .args([&library, &source])
            .arg("-lpthread")
            .status()
            .unwrap();
        assert!(status.success(), "the shim does not compile");
        library
    })
}

/// A folder with a recording, a database to be, and the shim's control file.
struct Rig {
    folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("control"), [0; 64]).unwrap();
        let rig = Self { folder };
        std::fs::write(rig.recording(), recording()).unwrap();
        rig
    }

    fn db(&self) -> PathBuf {
        self.folder.path().join("data/t.db")
    }

    fn recording(&self) -> PathBuf {
        self.folder.path().join("kernels.json")
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// Lets the operations in `turns`, counted from now on, fail.
    fn arm(&self, operations: i64, error: i64, turns: std::ops::Range<i64>) {
        let fields = [0, turns.start, turns.end, operations, error, 0];
        let bytes: Vec<u8> = fields
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        let control = std::fs::File::options()
            .write(true)
            .open(self.folder.path().join("control"))
            .unwrap();
        control.write_all_at(&bytes, 0).unwrap();
    }

    /// Operations seen and faults injected since.
    fn counted(&self) -> (i64, i64) {
        let bytes = std::fs::read(self.folder.path().join("control")).unwrap();
        let field = |at: usize| i64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        (field(0), field(5))
    }

    /// The program, with the shim around the database's folder.
    fn tuner(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
        command
            .args(arguments)
            .arg("--db")
            .arg(self.db())
            .env("LD_PRELOAD", shim())
            .env("FAULTS_FOLDER", self.folder.path().join("data"))
            .env("FAULTS_CONTROL", self.folder.path().join("control"));
        command
    }

    /// A small run that announces its results on standard output.
    fn run(&self, more: &[&str]) -> Command {
        self.run_of_seed("3", more)
    }

    fn run_of_seed(&self, seed: &str, more: &[&str]) -> Command {
        let device = format!("replay:{}", self.recording().display());
        let mut command = self.tuner(&["run", "--device", &device, "--events", "-"]);
        let limits = ["--strategy", "random", "--seed", seed, "--jobs", "1"];
        command.args(limits).args(more);
        command
    }

    fn clear(&self) {
        let data = self.folder.path().join("data");
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::create_dir(&data).unwrap();
    }
}

/// A Kernel Tuner cache with a row for each configuration.
pub(crate) fn recording() -> String {
    let rows: Vec<String> = (0..ROWS)
        .map(|row| {
            let (a, b) = (row / 8, row % 8);
            let time = 1.0 + ((a * 5 + b * 3) % 17) as f64;
            format!("\"{a},{b}\": {{\"A\": {a}, \"B\": {b}, \"time\": {time}}}")
        })
        .collect();
    format!(
        "{{\"device_name\": \"Stand\", \"kernel_name\": \"faults\", \"problem_size\": 64, \
         \"tune_params_keys\": [\"A\", \"B\"], \
         \"tune_params\": {{\"A\": [0, 1, 2, 3, 4, 5], \"B\": [0, 1, 2, 3, 4, 5, 6, 7]}}, \
         \"cache\": {{{}}}}}",
        rows.join(", ")
    )
}

/// The configuration and verdict of each announced result. A cut last line announces nothing.
fn announced(stdout: &[u8]) -> Vec<(String, String)> {
    String::from_utf8_lossy(stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|event| event["event"] == "trial")
        .map(|event| {
            let verdict = event["verdict"].as_str().unwrap().to_owned();
            (event["config"].to_string(), verdict)
        })
        .collect()
}

/// The program ended in words: with a code of the contract and, where it is not 0, a message.
fn assert_ended_in_words(output: &Output, what: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(
        matches!(code, Some(0..=3)) && !errors.contains("panicked"),
        "{what}: {:?}\n{errors}",
        output.status
    );
    assert!(
        code == Some(0) || errors.contains("error"),
        "{what}: {code:?}\n{errors}"
    );
}
