//! `tuner doctor` and `tuner completions`, as a user runs them.

use assert_cmd::Command;
use predicates::prelude::*;

fn tuner() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tuner"))
}

#[test]
fn doctor_names_the_nvrtc_it_found_and_compiles_with_it() {
    let output = tuner()
        .args(["doctor", "--format", "json"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let find = |check: &str| {
        findings
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["check"] == check)
            .unwrap()
            .clone()
    };
    assert_eq!(find("nvrtc")["status"], "ok");
    assert_eq!(find("trial compile")["status"], "ok");
    assert!(
        find("nvrtc")["detail"]
            .as_str()
            .unwrap()
            .contains("libnvrtc")
    );
}

#[test]
fn doctor_without_nvrtc_says_what_to_type() {
    tuner()
        .args(["doctor"])
        .env("TUNER_NVRTC", "/nonexistent")
        .assert()
        .success()
        .stdout(
            predicate::str::contains("MISSING")
                .and(predicate::str::contains("pip install --target")),
        );
}

/// The XDG Base Directory Specification ignores them.
#[test]
fn relative_folders_of_the_environment_are_ignored() {
    let at = tempfile::tempdir().unwrap();
    let home = at.path().join("home");
    let work = at.path().join("work");
    for folder in [&home, &work] {
        std::fs::create_dir(folder).unwrap();
    }
    let output = tuner()
        .args(["doctor", "--format", "json"])
        .current_dir(&work)
        .env("HOME", &home)
        .env("XDG_CACHE_HOME", "cache")
        .env("XDG_DATA_HOME", "data")
        .env_remove("TUNER_CACHE")
        .output()
        .unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found.as_array().unwrap();
    let cache = rows.iter().find(|row| row["check"] == "compile cache");
    let expected = home.join(".cache/tuner").display().to_string();
    assert_eq!(cache.unwrap()["detail"], expected.as_str());
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0);
}

#[test]
fn doctor_reports_a_file_that_is_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tuner.db");
    std::fs::write(
        &path,
        "not a database, but longer than a header of one hundred bytes",
    )
    .unwrap();
    tuner()
        .args(["doctor", "--db", path.to_str().unwrap()])
        .assert()
        .success()
        .stdout(predicate::str::contains("database").and(predicate::str::contains("MISSING")));
}

#[test]
fn completions_are_printed_for_the_common_shells() {
    for shell in ["bash", "zsh", "fish"] {
        tuner()
            .args(["completions", shell])
            .assert()
            .success()
            .stdout(predicate::str::contains("doctor"));
    }
}
