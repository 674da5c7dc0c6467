//! Finds the program of `main.rs` in this folder.

pub(crate) mod database;
pub(crate) mod executable;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// `tuner` with the stand-in for the driver and with faults in workers. `cargo test` builds it with
/// the tests; where only some of them were built, it is built here.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let tuner = Path::new(env!("CARGO_BIN_EXE_tuner"));
        let path = tuner.with_file_name("examples/tuner-testkit");
        let made = |path: &Path| path.metadata().and_then(|file| file.modified());
        let tuner_made = made(tuner).unwrap_or_else(|_| SystemTime::now());
        if made(&path).is_ok_and(|made| made >= tuner_made) {
            return path;
        }
        let mut build = Command::new(env!("CARGO"));
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        // What `cargo test` tells of the package under test: build scripts that look at these variables would
        // run again, and all that depends on them would be compiled again.
        for (name, _) in std::env::vars_os() {
            let of = |prefix: &str| name.to_string_lossy().starts_with(prefix);
            // The last one is set for the harness, which then reports times.
            let single = name == "OUT_DIR" || name == "RUSTC_BOOTSTRAP";
            if of("CARGO_PKG_") || of("CARGO_MANIFEST_") || single {
                build.env_remove(name);
            }
        }
        // With the features of the whole workspace, as `make test` builds it: nothing is compiled twice.
        build.args([
            "build",
            "--workspace",
            "--locked",
            "--example",
            "tuner-testkit",
        ]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        let built = build.status().expect("cargo runs");
        assert!(built.success(), "the program of the tests is not built");
        path
    })
}
