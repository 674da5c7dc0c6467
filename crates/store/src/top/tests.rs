use super::*;
use crate::{open, runs};
use sqlx::Connection as _;

/// What a page asks for again and again must not go through all results: no table is read whole but
/// that of the problems, no index is made for one question, and no view is worked out whole.
#[tokio::test]
async fn questions_of_a_page_are_index_scans() {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = open::writable(&folder.path().join("t.db")).await.unwrap();
    let one_trial = format!("{TRIAL_COLUMNS} WHERE v.id = ?1");
    for (question, allowed) in [
        (ATTEMPTS_OF, "SCAN p"),
        (one_trial.as_str(), "no scan"),
        (runs::RUN_TRIALS, "SCAN latest"),
        (&crate::times::question("best_times", ""), "no scan"),
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
