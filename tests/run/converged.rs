//! `--until-converged`: what further trials may still bring is shown, stored, and ends a run.

use super::{finish, recorded, report_pages, tuner_run};
use std::process::Command;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_run_ends_when_the_search_says_that_little_is_left_and_keeps_what_it_said() {
    let dir = tempfile::tempdir().unwrap();
    let (db, events) = (dir.path().join("a.db"), dir.path().join("events.jsonl"));
    let evals = ["--evals", "2000", "--seed", "1", "--no-knowledge"];
    let written = ["--events", events.to_str().unwrap(), "--until-converged=5%"];
    let output = finish(&mut tuner_run(&db, &[&evals[..], &written].concat()));
    assert!(text(&output.stderr).contains("converged"), "{output:?}");
    let said = text(&output.stdout);
    assert!(
        said.contains("expected gain of further trials: < 5.0 %"),
        "{said}"
    );

    let events = std::fs::read_to_string(events).unwrap();
    let events: Vec<serde_json::Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let trials = || events.iter().filter(|event| event["event"] == "trial");
    assert!(trials().next().unwrap().get("left").is_none());
    assert_eq!(trials().next_back().unwrap()["left"], 0.05);
    let end = events.last().unwrap();
    assert_eq!(end["reason"], "converged");
    let done = end["evals"].as_u64().unwrap();
    assert!((80..1000).contains(&done), "{done}");

    let page = report_pages(&db, &dir.path().join("report"));
    assert!(
        page.contains("further trials bring less than 5.0 %"),
        "{page}"
    );
    assert!(page.contains("--until-converged=0.05"), "{page}");
}

#[test]
fn a_budget_stays_the_upper_limit_and_other_strategies_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("a.db");
    let output = finish(&mut tuner_run(&db, &["--until-converged", "--evals", "12"]));
    assert!(text(&output.stderr).contains("all evaluations done"));
    let cases: [(&[&str], &str); 3] = [
        (&["--until-converged=90%"], "from 1% to 20%"),
        (&["--until-converged=x"], "such as 2%"),
        (
            &["--until-converged", "--strategy", "random"],
            "or use evolve",
        ),
    ];
    for (arguments, hint) in cases {
        let output = tuner_run(&db, arguments).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(hint), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_study_tells_how_many_runs_were_right_to_end() {
    let study = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tuner"))
            .arg("replay")
            .arg(recorded())
            .args(["--seeds", "2", "--evals", "300", "--until-converged=10%"])
            .args(["--format", "json"])
            .args(arguments)
            .output()
            .unwrap()
    };
    let output = study(&["--strategy", "random,evolve"]);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let [row] = rows.as_array().unwrap().as_slice() else {
        panic!("{rows}")
    };
    assert_eq!((&row["ended"], &row["right"]), (&1.0.into(), &1.0.into()));
    assert!(row["mean_evals"].as_f64().unwrap() < 300.0, "{row}");
    let refused = study(&["--strategy", "random"]);
    assert_eq!(refused.status.code(), Some(2));
}
