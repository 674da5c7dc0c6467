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
