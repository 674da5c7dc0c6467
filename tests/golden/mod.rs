//! What a change of the program's structure must not change: stored identities, old databases,
//! results of seeds, JSON documents, exported files, exit codes and names of options.
//!
//! Each test compares with files in `snapshots/`, written by an earlier build. A difference is a
//! broken promise to somebody's scripts or database: it needs a reason in CHANGELOG.md before
//! `INSTA_UPDATE=always cargo test --test program golden::` makes it the new state. `old.db` is never written
//! again; README.md beside it says how it was made.

mod commands;
mod exports;
mod identities;
mod interface;
mod old_database;
mod seeds;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The NVRTC whose machine code the snapshots hold, `major.minor`.
const NVRTC: &str = "13.0";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The project's recorded file.
fn recorded() -> PathBuf {
    root().join("tests/data/recorded/convbat_RTX3090.json.gz")
}

/// A folder that holds a copy of the old database as `old.db`, and nothing else.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(
        root().join("tests/golden/old.db"),
        folder.path().join("old.db"),
    )
    .unwrap();
    folder
}

/// A folder with a space of four configurations, of which one is right, and its kernel.
fn folder_with_defects() -> tempfile::TempDir {
    let folder = folder();
    for name in ["sum.yaml", "sum.cu"] {
        let source = root().join("tests/defects").join(name);
        std::fs::copy(source, folder.path().join(name)).unwrap();
    }
    folder
}

/// The program in a folder, with the project's own NVRTC where it has one, and a cache of its own.
fn tuner(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    command.current_dir(folder).args(arguments);
    command.env(
        "TUNER_CACHE",
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden-cache"),
    );
    for variable in [
        "TUNER_FAKE_GPU",
        "TUNER_TOKEN",
        "TUNER_ARCH_DIR",
        "TUNER_LOG",
    ] {
        command.env_remove(variable);
    }
    let own = root().join(".cuda/nvidia/cu13/lib");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        command.env("TUNER_NVRTC", own);
    }
    command.output().unwrap()
}

/// Standard output of a command that must end with that code.
fn stdout(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = tuner(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON document of a command that must end with that code.
fn json(folder: &Path, arguments: &[&str], code: i32) -> Value {
    let arguments = [arguments, &["--format", "json"]].concat();
    serde_json::from_str(&stdout(folder, &arguments, code)).unwrap()
}

/// Replaces the values of these keys wherever they stand, so that their presence is still compared.
fn masked(mut value: Value, keys: &[&str]) -> Value {
    fn walk(value: &mut Value, keys: &[&str]) {
        match value {
            Value::Object(map) => {
                for (key, value) in map.iter_mut() {
                    if keys.contains(&key.as_str()) {
                        *value = Value::from("[masked]");
                    }
                    walk(value, keys);
                }
            }
            Value::Array(all) => all.iter_mut().for_each(|value| walk(value, keys)),
            _ => {}
        }
    }
    walk(&mut value, keys);
    value
}

/// One line a key, in order: its path and the kind of its value. Elements of a list share a path.
fn shape(value: &Value) -> String {
    fn walk(path: &str, value: &Value, lines: &mut Vec<String>) {
        let kind = match value {
            Value::Object(map) => {
                for (key, value) in map {
                    walk(&format!("{path}.{key}"), value, lines);
                }
                return;
            }
            Value::Array(all) if !all.is_empty() => {
                for value in all {
                    walk(&format!("{path}[]"), value, lines);
                }
                return;
            }
            Value::Array(_) => "[]",
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "text",
        };
        let line = format!("{path}: {kind}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let mut lines = Vec::new();
    walk("", value, &mut lines);
    lines.join("\n")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// One line a row, for long lists.
fn lines(value: &Value) -> String {
    let rows = value.as_array().unwrap();
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    rows.join("\n")
}

/// Whether the NVRTC found is the one whose machine code and predicted times the snapshots hold.
/// With another one only what does not depend on it is compared.
fn nvrtc_is_the_snapshots(folder: &Path) -> bool {
    let checks = json(folder, &["doctor"], 0);
    let checks = checks.as_array().unwrap();
    let nvrtc = checks
        .iter()
        .find(|check| check["check"] == "nvrtc")
        .unwrap();
    let detail = nvrtc["detail"].as_str().unwrap();
    assert_eq!(nvrtc["status"], "ok", "{detail}");
    detail.starts_with(&format!("{NVRTC} "))
}
