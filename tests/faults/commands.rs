//! Each operation of the commands beside `run` fails: of those that write the database or a file, and of
//! those that only read.

use super::io::{kinds, lengths};
use super::{Rig, assert_ended_in_words};
use crate::run::stored;
use std::collections::BTreeMap;
use std::path::Path;

/// A command that changes something, and what it needs.
struct Case {
    arguments: fn(&Rig) -> Vec<String>,
    /// Whether the database and another one are there before.
    databases: bool,
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

const CASES: [Case; 4] = [
    Case {
        arguments: |rig| vec!["import".to_owned(), text(&rig.recording())],
        databases: false,
    },
    Case {
        arguments: |rig| vec!["import".to_owned(), text(&rig.recording())],
        databases: true,
    },
    Case {
        arguments: |rig| vec!["sync".to_owned(), text(&other(rig))],
        databases: true,
    },
    Case {
        arguments: |rig| {
            let header = text(&rig.folder.path().join("data/out.h"));
            vec!["export", "faults", "-o", &header]
                .into_iter()
                .map(str::to_owned)
                .collect()
        },
        databases: true,
    },
];

fn other(rig: &Rig) -> std::path::PathBuf {
    rig.folder.path().join("data/other.db")
}

/// What there is to see of a command afterwards.
#[derive(Debug, PartialEq)]
struct Seen {
    databases: Vec<BTreeMap<String, String>>,
    header: Option<String>,
}

fn seen(rig: &Rig) -> Seen {
    let databases = [rig.db(), other(rig)];
    let there = databases.iter().filter(|file| file.is_file());
    Seen {
        databases: there.map(|file| stored(file)).collect(),
        header: std::fs::read_to_string(rig.folder.path().join("data/out.h")).ok(),
    }
}

/// Databases of a short and of another short run, to be copied.
fn databases() -> tempfile::TempDir {
    let rig = Rig::new();
    rig.arm(0, 0, 0..0);
    let kept = tempfile::tempdir().unwrap();
    for (name, seed) in [("t.db", "3"), ("other.db", "4")] {
        let output = rig.run_of_seed(seed, &["--evals", "20"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        std::fs::copy(rig.db(), kept.path().join(name)).unwrap();
        rig.clear();
    }
    kept
}

/// Tries every `step`-th point of every kind, starting at a different one for each.
fn try_points(step: usize) -> usize {
    let rig = Rig::new();
    let kept = databases();
    let mut points = 0;
    for case in &CASES {
        let prepare = || {
            rig.clear();
            rig.arm(0, 0, 0..0);
            if case.databases {
                for name in ["t.db", "other.db"] {
                    let to = rig.folder.path().join("data").join(name);
                    std::fs::copy(kept.path().join(name), to).unwrap();
                }
            }
        };
        let arguments = (case.arguments)(&rig);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let command = || rig.tuner(&arguments).output().unwrap();
        prepare();
        assert!(command().status.success(), "{arguments:?}");
        let after = seen(&rig);
        for (kind, (operations, error, name)) in kinds().into_iter().enumerate() {
            prepare();
            rig.arm(operations, 0, 0..0);
            assert!(command().status.success());
            let turns = rig.counted().0;
            for turn in (0..turns).skip((7 * kind) % step).step_by(step) {
                for length in lengths(error) {
                    let what = format!("{arguments:?}: {name} at {turn} for {length}");
                    prepare();
                    rig.arm(operations, error, turn..turn + length);
                    let output = command();
                    assert_ended_in_words(&output, &what);
                    rig.arm(0, 0, 0..0);
                    let header = rig.folder.path().join("data/out.h");
                    if output.status.success() {
                        assert_eq!(seen(&rig), after, "{what}");
                    } else if header.exists() {
                        assert_eq!(seen(&rig).header, after.header, "{what}: half a file");
                    }
                    let again = command();
                    let errors = String::from_utf8_lossy(&again.stderr);
                    assert!(again.status.success(), "{what}, again: {errors}");
                    assert_eq!(seen(&rig), after, "{what}, again");
                    points += 1;
                }
            }
        }
    }
    points
}

#[test]
fn writing_commands_survive_faults_of_the_file_system() {
    let points = try_points(61);
    assert!(points >= 40, "only {points} points");
}

#[test]
#[ignore = "every point; half an hour"]
fn writing_commands_survive_every_fault_of_the_file_system() {
    println!("{} points", try_points(1));
}

/// Tries every `step`-th point of commands that only read.
fn try_reading(step: usize) -> usize {
    let rig = Rig::new();
    rig.arm(0, 0, 0..0);
    assert!(rig.run(&[]).output().unwrap().status.success());
    let mut points = 0;
    for arguments in [
        &["leaderboard", "--format", "json"][..],
        &["leaderboard", "--history"],
        &["status"],
        &["export", "faults"],
    ] {
        rig.arm(0, 0, 0..0);
        let expected = rig.tuner(arguments).output().unwrap();
        assert!(expected.status.success(), "{expected:?}");
        for (operations, error, name) in kinds().into_iter().take(7) {
            rig.arm(operations, 0, 0..0);
            rig.tuner(arguments).output().unwrap();
            let turns = rig.counted().0;
            for turn in (0..turns).step_by(step) {
                for length in lengths(error) {
                    let what = format!("{arguments:?}: {name} at {turn} for {length}");
                    rig.arm(operations, error, turn..turn + length);
                    let output = rig.tuner(arguments).output().unwrap();
                    assert_ended_in_words(&output, &what);
                    // An answer is the whole answer.
                    if output.status.success() {
                        assert_eq!(output.stdout, expected.stdout, "{what}");
                    }
                    points += 1;
                }
            }
        }
    }
    points
}

#[test]
fn reading_commands_survive_faults_of_the_file_system() {
    let points = try_reading(7);
    assert!(points >= 40, "only {points} points");
}

#[test]
#[ignore = "every point; minutes"]
fn reading_commands_survive_every_fault_of_the_file_system() {
    println!("{} points", try_reading(1));
}
