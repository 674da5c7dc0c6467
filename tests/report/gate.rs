//! `tuner gate`: what a CI sees.

use crate::program::{ended, replace, tuner, words, write};
use crate::report::support::{json, project, run, tune};
use std::path::Path;

/// A project whose larger problem was tuned exhaustively.
fn tuned() -> tempfile::TempDir {
    let folder = project();
    let line = "run scale --device vgpu:a100 --problem large --strategy exhaustive --db t.db";
    ended(tuner(folder.path()).args(line.split(' '))).says(0, &[]);
    folder
}

fn without<'a>(db: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["gate", "scale", "--device", "vgpu:a100", "--db", db];
    arguments.extend(["--problem", "large"]);
    arguments.extend(more);
    arguments
}

fn gate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    without("t.db", more)
}

/// Exports the winner to a file.
fn ship(folder: &Path, to: &str, file: &str) {
    let line = format!("export scale --db t.db --allow-predicted --to {to} -o {file}");
    crate::program::run(folder, &line).says(0, &[]);
}

fn edit(folder: &Path, from: &str, to: &str) {
    replace(&folder.join("templates/scale/kernel.cu"), from, to);
}

#[test]
fn what_is_best_passes_and_a_slow_configuration_fails_the_same_each_time() {
    let folder = tuned();
    let folder = folder.path();
    let (out, _) = run(folder, &gate(&["--format", "json"]), 0);
    let answer: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(answer["passed"], true);
    assert_eq!(answer["problems"][0]["outcome"], "passed");
    assert_eq!(answer["problems"][0]["timing"], "predicted");
    assert_eq!(answer["problems"][0]["shipped_from"], "best at HEAD");
    assert_eq!(answer["problems"][0]["ratio"], 1.0);

    let slow = [
        "--config", "PAD=0", "--format", "json", "--junit", "gate.xml",
    ];
    let (out, told) = run(folder, &gate(&slow), 4);
    let answer: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(answer["problems"][0]["outcome"], "regression");
    assert!(answer["problems"][0]["ratio"].as_f64().expect("a ratio") > 1.1);
    assert!(told.contains("regression: scale large: +"), "{told}");
    let xml = std::fs::read_to_string(folder.join("gate.xml")).expect("the file");
    assert!(
        xml.contains("failures=\"1\"") && xml.contains("type=\"regression\"/>"),
        "{xml}"
    );
    assert_eq!(run(folder, &gate(&slow), 4).0, out);
    assert_eq!(
        std::fs::read_to_string(folder.join("gate.xml")).expect("the file"),
        xml
    );
    // As slow as is allowed.
    run(
        folder,
        &gate(&["--config", "PAD=0", "--max-regression", "50%"]),
        0,
    );
}

#[test]
fn a_wrong_result_fails_whatever_its_time() {
    let folder = tuned();
    let folder = folder.path();
    let (_, told) = run(
        folder,
        &gate(&["--config", "SYNC=0", "--junit", "gate.xml"]),
        4,
    );
    assert!(told.contains("wrong result: scale large: race"), "{told}");
    let xml = std::fs::read_to_string(folder.join("gate.xml")).expect("the file");
    assert!(xml.contains("type=\"wrong result\"/>"), "{xml}");
    // A template that became wrong since.
    edit(folder, "2.0f * x[i]", "3.0f * x[i]");
    let (_, told) = run(folder, &gate(&[]), 4);
    assert!(
        told.contains("wrong result: scale large: incorrect"),
        "{told}"
    );
}

#[test]
fn a_template_that_became_slower_fails_against_the_stored_time() {
    let folder = tuned();
    let folder = folder.path();
    edit(
        folder,
        "  if (i < N) y[i]",
        "  for (int k = 0; k < 400; ++k) left = left * 1.0001f + 0.5f;\n  if (i < N) y[i]",
    );
    let (out, told) = run(folder, &gate(&[]), 4);
    assert!(out.contains("before the template was edited"), "{out}");
    assert!(told.contains("regression: scale large"), "{told}");
}

#[test]
fn shipped_headers_and_records_are_read_back() {
    let folder = tuned();
    let folder = folder.path();
    ship(folder, "header", "s.h");
    ship(folder, "json", "s.json");
    for file in ["s.h", "s.json"] {
        let (out, _) = run(folder, &gate(&["--shipped", file]), 0);
        assert!(out.contains(file), "{out}");
    }
    // Without a database, against the time it was shipped with.
    let (out, _) = run(folder, &without("none.db", &["--shipped", "s.h"]), 0);
    assert!(out.contains("the time it was shipped with"), "{out}");
    // A committed record is found by itself.
    write(
        folder,
        "leaderboard/vgpu_a100/scale.json",
        &std::fs::read_to_string(folder.join("s.json")).expect("JSON"),
    );
    let (out, _) = run(folder, &gate(&[]), 0);
    assert!(out.contains("leaderboard/vgpu_a100/scale.json"), "{out}");
    // A configuration that is no longer in the space.
    let text = std::fs::read_to_string(folder.join("s.json")).expect("JSON");
    write(folder, "s.json", &text.replace("\"PAD\": 1", "\"PAD\": 7"));
    let (_, told) = run(folder, &gate(&["--shipped", "s.json"]), 4);
    assert!(told.contains("no longer in the space"), "{told}");
}

#[test]
fn acceptance_rules_judge_the_leaderboards_best() {
    let folder = tuned();
    let folder = folder.path();
    let accept = |rules: &'static str| {
        let fixed = "--config PAD=0 --max-regression 50% --format json";
        let mut arguments = gate(&words(fixed));
        arguments.extend(words(rules));
        let answer = json(folder, &arguments);
        answer["promotion"]["accepted"]
            .as_bool()
            .expect("an answer")
    };
    assert!(accept("--min-gain 10%:1 --p90-no-worse --no-spills"));
    assert!(accept("--min-gain 10%:1 --max-registers 32"));
    assert!(!accept("--min-gain 10%:2"));
    assert!(!accept("--min-gain 10%:1 --min-sm-busy 70%"));
    let answer = json(folder, &gate(&words("--max-regression 50% --format json")));
    assert!(answer["promotion"].is_null(), "{answer}");
    let (_, told) = run(folder, &gate(&["--min-gain", "10%:none"]), 2);
    assert!(told.contains("type 10%:2"), "{told}");
}

#[test]
fn what_cannot_be_gated_is_answered() {
    let folder = tuned();
    let folder = folder.path();
    for (arguments, hint) in [
        (gate(&["--max-regression", "much"]), "2%"),
        (gate(&["--config", "PAD=9"]), "PAD"),
        (gate(&["--shipped", "none.h"]), "none.h: cannot be read"),
        (
            gate(&["--shipped", "templates/scale/kernel.cu"]),
            "kernel.cu:1:1: error: this is not a header",
        ),
        (without("none.db", &[]), "`tuner run` makes some"),
        (
            vec!["gate", "stranger", "--device", "vgpu:a100"],
            "there is no kernel `stranger`",
        ),
    ] {
        let (_, told) = run(folder, &arguments, 2);
        assert!(told.contains(hint), "{arguments:?}: {told}");
    }
    ship(folder, "header", "s.h");
    let other = "gate scale --device vgpu:l4 --db t.db --shipped s.h";
    let told = "s.h has nothing for vgpu:l4; it has vgpu:a100";
    crate::program::run(folder, other).says(2, &[told]);
}

#[test]
fn outside_git_the_best_of_all_is_what_is_shipped() {
    let folder = project();
    let folder = folder.path();
    std::fs::remove_dir_all(folder.join(".git")).expect("it is removed");
    tune(folder, "1");
    let mut command = tuner(folder);
    let line = "gate scale --device vgpu:a100 --problem small --db t.db";
    command
        .args(line.split(' '))
        .env("GIT_CEILING_DIRECTORIES", "/");
    ended(&mut command).says(0, &[]);
}
