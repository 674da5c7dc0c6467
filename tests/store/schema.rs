//! All migrations on an empty file make this schema.

#[tokio::test]
async fn the_migrations_make_the_schema_that_is_written_down() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuner.db");
    let store = tuner_store::Store::open(&path).await.unwrap();
    store.close().await.unwrap();
    let mut connection = crate::rig::database::connected(&path).await;
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT t.name || iif(l.strict, ' (strict)', ''),
                group_concat(c.name || ' ' || c.type || iif(c.pk, ' key', '')
                    || iif(c.\"notnull\" OR c.pk, '', ' or null'), ', ')
         FROM sqlite_schema t JOIN pragma_table_info(t.name) c
         JOIN pragma_table_list l ON l.name = t.name
         WHERE t.type = 'table' AND t.name NOT LIKE '\\_%' ESCAPE '\\'
         GROUP BY t.name ORDER BY t.name",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let text: String = columns
        .into_iter()
        .map(|(table, columns)| format!("{table}: {columns}\n"))
        .collect();
    insta::assert_snapshot!(text);
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test]
async fn a_database_that_disagrees_about_a_verdict_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuner.db");
    tuner_store::Store::open(&path)
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
    let mut connection = crate::rig::database::connected(&path).await;
    let referenced: String = sqlx::query_scalar(
        "SELECT \"table\" FROM pragma_foreign_key_list('verdicts') WHERE \"from\" = 'verdict'",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(referenced, "verdict_facts");
    for change in [
        "UPDATE verdict_facts SET class = 'limit' WHERE name = 'race'",
        "UPDATE verdict_facts SET class = 'wrong', knowledge = 0 WHERE name = 'race'",
        "DELETE FROM verdict_facts WHERE name = 'race'",
    ] {
        sqlx::query(sqlx::AssertSqlSafe(change))
            .execute(&mut connection)
            .await
            .unwrap();
        let error = tuner_store::Store::open(&path).await.err().unwrap();
        assert!(error.to_string().contains("about `race`"), "{error}");
    }
}
