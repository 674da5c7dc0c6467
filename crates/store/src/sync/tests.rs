use super::*;

/// A column that a later migration adds must be copied too.
#[tokio::test]
async fn every_column_of_every_table_is_taken_over() {
    let folder = std::env::temp_dir().join(format!("tuner-sync-{}", std::process::id()));
    let path = folder.join("t.db");
    let mut connection = open::writable(&path).await.unwrap();
    let text = statements().join("\n");
    // The queue and the daemon belong to one machine; best times are maintained by triggers, and the
    // consequences of verdicts are the same in every database.
    let question = "SELECT m.name, p.name FROM sqlite_schema m, pragma_table_info(m.name) p
            WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE '_sqlx%'
              AND m.name NOT IN ('queue', 'daemon', 'best_times', 'verdict_facts') AND p.name <> 'id'";
    let columns: Vec<(String, String)> = sqlx::query_as(question)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert!(columns.len() > 60, "{columns:?}");
    for (table, column) in columns {
        let insert = text
            .split("INSERT")
            .find(|part| part.contains(&format!("INTO {table} (")));
        let insert = insert.unwrap_or_else(|| panic!("{table} is left out"));
        let listed = insert.split(')').next().unwrap_or_default();
        let mut words = listed.split(|c: char| !c.is_alphanumeric() && c != '_');
        assert!(
            words.any(|word| word == column),
            "{table}.{column} is left out"
        );
    }
    connection.close().await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
