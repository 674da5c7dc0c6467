//! `tuner replay` through the binary: recorded time, noise, plots, and what it refuses.

use super::recorded;
use std::process::{Command, Output};
use tuner_search::StrategyName;

fn replay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tuner"))
        .arg("replay")
        .arg(recorded())
        .args(["--seeds", "2", "--evals", "12"])
        .args(arguments)
        .output()
        .unwrap()
}

fn rows(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = replay(&[arguments, &["--format", "json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn all_strategies_stand_side_by_side_and_repeat_themselves() {
    let all: Vec<&str> = StrategyName::ALL.iter().map(|it| it.name()).collect();
    let all = &all.join(",");
    let scores = || -> Vec<(String, f64)> {
        let row = |row: serde_json::Value| {
            let name = row["strategy"].as_str().unwrap().to_owned();
            (name, row["mean"].as_f64().unwrap())
        };
        rows(&["--strategy", all]).into_iter().map(row).collect()
    };
    let first = scores();
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.join(","), *all);
    assert!(first.iter().all(|(_, mean)| *mean > 0.0 && *mean <= 1.0));
    assert_eq!(first, scores());
}

#[test]
fn budgets_of_recorded_time_add_rows_with_their_seconds() {
    let rows = rows(&["--strategy", "random", "--time", "1s,90s"]);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["evals"], 12);
    assert!(rows[0].get("recorded_s").is_none());
    assert_eq!(rows[1]["recorded_s"], 1.0);
    assert!(rows[1]["evals"].is_null());
    assert!(rows[1]["mean"].as_f64() <= rows[2]["mean"].as_f64());
}

#[test]
fn noise_changes_the_runs_and_none_does_not() {
    let means = |noise: &str| {
        let rows = rows(&["--strategy", "genetic", "--noise", noise, "--evals", "60"]);
        rows[rows.len() - 1]["mean"].as_f64().unwrap()
    };
    assert_eq!(means("0%"), means("0"));
    assert_ne!(means("0%"), means("40%"));
}

#[test]
fn a_plot_is_written_as_its_name_says() {
    let dir = tempfile::tempdir().unwrap();
    for (name, start) in [("curves.svg", "<svg"), ("curves.html", "<!doctype html>")] {
        let path = dir.path().join(name);
        let output = replay(&[
            "--strategy",
            "random,local",
            "--plot",
            path.to_str().unwrap(),
        ]);
        assert!(output.status.success(), "{output:?}");
        let picture = std::fs::read_to_string(&path).unwrap();
        assert!(picture.starts_with(start) && picture.contains("<polyline"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_way_out() {
    let cases: [(&[&str], &str); 4] = [
        (&["--strategy", "magic"], "evolve, random"),
        (&["--noise", "200%"], "such as 2%"),
        (&["--time", "soon"], "90s, 10m"),
        (&["--plot", "curves.png"], "curves.svg"),
    ];
    for (arguments, hint) in cases {
        let output = replay(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(hint), "{arguments:?}: {text}");
    }
}
