use super::*;
use crate::{open, runs, times};
use sqlx::Connection as _;

/// Frequent queries of a page must not read all results: no full scan except of the problems' table, no
/// automatic index, and no materialized view.
#[tokio::test]
async fn questions_of_a_page_are_index_scans() {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = open::writable(&folder.path().join("t.db")).await.unwrap();
    let one_trial = format!("{TRIAL_COLUMNS} WHERE v.id = ?1");
    for (question, allowed) in [
        (ATTEMPTS_OF, "SCAN p"),
        (one_trial.as_str(), "no scan"),
        (runs::RUN_TRIALS, "SCAN latest"),
        (&times::question(times::TABLE, times::SEARCH), "no scan"),
        (&times::question(times::TABLE, times::FINAL), "no scan"),
    ] {
        let explained = format!("EXPLAIN QUERY PLAN {question}");
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(AssertSqlSafe(explained))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        assert!(!steps.is_empty());
        for (_, _, _, step) in steps {
            let whole = ["SCAN", "AUTOMATIC", "MATERIALIZE"]
                .iter()
                .any(|word| step.contains(word));
            let aside = step == allowed || step.ends_with("VIRTUAL TABLE INDEX 1:");
            assert!(!whole || aside, "{step}: {question}");
        }
    }
    connection.close().await.unwrap();
}
