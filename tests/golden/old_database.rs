//! A database of an earlier build opens, is brought up to date, and says what it said.

use crate::golden::{folder, json, lines, pretty, recorded, stdout};
use std::path::Path;

#[test]
fn the_leaderboard_of_an_old_database_is_the_same() {
    let folder = folder();
    let rows = json(folder.path(), &["leaderboard", "--db", "old.db"], 0);
    insta::assert_snapshot!(lines(&rows));
}

#[test]
fn an_old_database_that_is_knowledge_stays_as_it_is() {
    let folder = folder();
    let old = folder.path().join("old.db");
    let before = std::fs::read(&old).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = tuner_store::Store::open_unchanged(&old).await.unwrap();
        assert!(!store.kernels().await.unwrap().is_empty());
        store.close().await.unwrap();
    });
    assert_eq!(std::fs::read(&old).unwrap(), before);
}

#[test]
fn the_history_of_an_old_database_is_the_same() {
    let folder = folder();
    let rows = json(
        folder.path(),
        &["leaderboard", "--history", "--db", "old.db"],
        0,
    );
    insta::assert_snapshot!(pretty(&rows));
}

#[test]
fn runs_and_the_queue_of_an_old_database_are_the_same() {
    let folder = folder();
    let rows = json(folder.path(), &["status", "--db", "old.db"], 0);
    insta::assert_snapshot!(pretty(&rows));
}

#[test]
fn a_record_of_an_old_database_is_the_same() {
    let folder = folder();
    stdout(
        folder.path(),
        &["record", "sum_with_defects", "--db", "old.db"],
        0,
    );
    let file = "leaderboard/fake_GPU_of_the_tests/sum_with_defects.json";
    insta::assert_snapshot!(std::fs::read_to_string(folder.path().join(file)).unwrap());
}

#[test]
fn a_report_of_an_old_database_is_the_same() {
    let folder = folder();
    let arguments = ["report", "--db", "old.db", "-o", "report", "--no-profile"];
    stdout(folder.path(), &arguments, 0);
    let report = folder.path().join("report");
    let text = std::fs::read_to_string(report.join("report.md")).unwrap();
    insta::assert_binary_snapshot!("report.md", text.into_bytes());
    let mut plots: Vec<String> = std::fs::read_dir(report.join("plots"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    plots.sort();
    insta::assert_snapshot!("the_plots_of_the_report", plots.join("\n"));
    assert!(report.join("report.html").is_file());
}

/// What every verdict of the database says and of which candidate, one a line, oldest first.
async fn verdicts(path: &Path) -> String {
    let mut connection = crate::rig::database::connected(path).await;
    let rows: Vec<String> = sqlx::query_scalar(
        "SELECT format('%s %s %s %s %s %s %s %s', k.name, p.name, d.name,
                lower(hex(c.hash)), v.sequence, v.verdict, v.max_error, v.origin)
         FROM verdicts v
         JOIN candidates c ON c.id = v.candidate
         JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
         JOIN problems p ON p.id = t.problem JOIN kernels k ON k.id = p.kernel
         JOIN devices d ON d.id = r.device
         ORDER BY v.id",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    rows.join("\n")
}

#[tokio::test]
async fn old_rows_stay_as_they_are_when_a_run_is_added() {
    let folder = folder();
    let database = folder.path().join("old.db");
    let before = verdicts(&database).await;
    let device = format!("replay:{}", recorded().display());
    let arguments = [
        "run", "--device", &device, "--evals", "3", "--seed", "9", "--db", "old.db",
    ];
    stdout(folder.path(), &arguments, 0);
    let after = verdicts(&database).await;
    assert!(after.starts_with(&before), "{before}\n\n{after}");
    assert_eq!(after.lines().count(), before.lines().count() + 3);
    insta::assert_snapshot!(before);
}
