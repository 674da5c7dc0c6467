//! `--objective`: the front of two objectives is looked for, listed and drawn.

use super::{finish, report_pages, tuner_run};
use std::path::Path;
use std::process::{Command, Output};

fn tuner(db: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tuner"))
        .args(arguments)
        .arg("--db")
        .arg(db)
        .output()
        .unwrap()
}

#[test]
fn a_run_with_two_objectives_has_a_front_that_is_listed_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("a.db");
    let output = finish(&mut tuner_run(
        &db,
        &["--evals", "80", "--objective", "time,p90"],
    ));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("--pareto=time,p90"), "{said}");

    let board = |arguments: &[&str]| -> Vec<(f64, f64)> {
        let all = [&["leaderboard", "--format", "json"], arguments].concat();
        let output = tuner(&db, &all);
        assert!(output.status.success(), "{output:?}");
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let number = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
        rows.iter()
            .map(|row| (number(row, "time_us_p50"), number(row, "time_us_p90")))
            .collect()
    };
    let (front, all) = (board(&["--pareto=time,p90"]), board(&[]));
    assert!(!front.is_empty() && front.len() < all.len());
    for pair in front.windows(2) {
        assert!(pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1, "{front:?}");
    }
    let beaten = |(p50, p90): &(f64, f64)| front.iter().any(|f| f.0 <= *p50 && f.1 <= *p90);
    assert!(all.iter().all(beaten));
    assert!(
        board(&["--pareto"]).is_empty(),
        "recorded files have no registers"
    );

    let page = report_pages(&db, &dir.path().join("report"));
    assert!(
        page.contains("Two objectives") && page.contains("--objective"),
        "{page}"
    );
}

#[test]
fn objectives_that_nobody_knows_are_refused_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("a.db");
    let cases: [(&[&str], &str); 5] = [
        (&["--objective", "time,registers"], "time,p90"),
        (
            &["--objective", "time,energy"],
            "a recorded file does not say `energy`",
        ),
        (&["--objective", "speed"], "time,registers"),
        (
            &["--objective", "time,p90", "--strategy", "local"],
            "or use evolve",
        ),
        (
            &["--objective", "time,p90", "--until-converged"],
            "leave it",
        ),
    ];
    for (arguments, hint) in cases {
        let output = tuner_run(&db, arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(hint), "{arguments:?}: {errors}");
    }
}
