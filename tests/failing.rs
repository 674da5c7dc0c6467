//! A run in which everything fails: the first error, how often it came, and a command that works.

use std::path::Path;
use std::process::{Command, Output};

fn tuner(folder: &Path, command: &str) -> Output {
    let mut tuner = Command::new("sh");
    tuner.args(["-c", command]).current_dir(folder);
    let bin = Path::new(env!("CARGO_BIN_EXE_tuner")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    tuner.env("PATH", format!("{}:{path}", bin.display()));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cuda/nvidia/cu13/lib");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        tuner.env("TUNER_NVRTC", own);
    }
    tuner.output().unwrap()
}

/// The command after `next:` in a run's summary.
fn next(summary: &str) -> &str {
    let line = summary.lines().find_map(|line| line.strip_prefix("next: "));
    line.unwrap_or_else(|| panic!("no next command: {summary}"))
}

#[test]
fn the_first_error_is_shown_with_its_count_and_next_works() {
    let folder = tempfile::tempdir().unwrap();
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/write-a-kernel.md");
    crate::readme::write_files(&std::fs::read_to_string(readme).unwrap(), folder.path());
    let source = folder.path().join("scale_reference.cu");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, text.replace("2.0f", "3.0f")).unwrap();
    let output = tuner(folder.path(), "tuner run scale.yaml --evals 4 --db a.db");
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{summary}");
    assert!(
        summary.contains("  first error: incorrect: 1001 of 1001"),
        "{summary}"
    );
    assert!(summary.contains(" (4 times)"), "{summary}");
    // What it points to says the same.
    let check = next(&summary);
    assert!(
        check.starts_with("tuner check scale.yaml --problem large"),
        "{check}"
    );
    let checked = tuner(
        folder.path(),
        &check.replace("--problem large", "--problem ragged"),
    );
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(4), "{check}: {said}");
    assert!(said.contains("incorrect"), "{said}");
    // All that fail in the same way are one row.
    let checked = tuner(folder.path(), "tuner check scale.yaml --problem ragged");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(said.contains("default and 10 more"), "{said}");
    assert_eq!(said.matches("incorrect").count(), 1, "{said}");
    std::fs::write(&source, &text).unwrap();
    // Nobody listens any more.
    for closed in [">&- 2>&-", "2>&1 | true; tuner leaderboard --db c.db"] {
        let command = format!("tuner run scale.yaml --evals 1 --db c.db {closed}");
        let output = tuner(folder.path(), &command);
        assert_eq!(output.status.code(), Some(0), "{command}");
    }
    let output = tuner(folder.path(), "tuner run scale.yaml --evals 1 --db b.db");
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    for command in [next(&summary), summary.lines().last().unwrap().trim()] {
        let output = tuner(folder.path(), command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {errors}");
    }
}
