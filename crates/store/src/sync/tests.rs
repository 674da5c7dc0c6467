use super::*;

/// A column that a later migration adds must be copied too.
#[tokio::test]
async fn every_column_of_every_table_is_taken_over() {
    let folder = std::env::temp_dir().join(format!("tuner-sync-{}", std::process::id()));
    let path = folder.join("t.db");
    let mut connection = open::writable(&path).await.unwrap();
    let text = statements().join("\n");
    // The queue and the daemon are local to one machine; best times are maintained by triggers, and the
    // consequences of verdicts are equal in every database.
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

/// Adds an evolution with two changes, the second a child of the first.
async fn evolve(connection: &mut SqliteConnection, name: &str) {
    let text = format!(
        "INSERT INTO evolutions (name, kernel, template_hash, device, timing, seed, mutator, settings,
             state, started_at) VALUES ('{name}', 'k', 'h', 'd', 'predicted', '1', 'm', '{{}}', 'finished', 't');
         INSERT INTO changes (evolution, round, parent, mutator, note, diff, tokens, cost, seconds, outcome,
             detail, code, behaviour, made_at)
         SELECT max(id), 1, NULL, 'm', 'first', '', 0, 0, 0, 'predicted_better', '', '', '[]', 't'
             FROM evolutions;
         INSERT INTO changes (evolution, round, parent, mutator, note, diff, tokens, cost, seconds, outcome,
             detail, code, behaviour, made_at)
         SELECT max(evolution), 2, max(id), 'm', 'second', '', 0, 0, 0, 'failed', '', '', '[]', 't'
             FROM changes;
         INSERT INTO change_times SELECT max(id), 'p', 1, 2, 3, '{{}}' FROM changes;"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(text))
        .execute(connection)
        .await
        .unwrap();
}

#[tokio::test]
async fn changes_of_code_keep_their_parents_and_are_taken_over_once() {
    let folder = std::env::temp_dir().join(format!("tuner-sync-changes-{}", std::process::id()));
    let (path, other) = (folder.join("t.db"), folder.join("other.db"));
    let mut source = open::writable(&other).await.unwrap();
    evolve(&mut source, "theirs").await;
    source.close().await.unwrap();
    let mut connection = open::writable(&path).await.unwrap();
    evolve(&mut connection, "ours").await;
    for _ in 0..2 {
        let attach = format!("ATTACH '{}' AS other", other.display());
        let steps = std::iter::once(attach).chain(statements());
        for text in steps {
            sqlx::raw_sql(sqlx::AssertSqlSafe(text))
                .execute(&mut connection)
                .await
                .unwrap();
        }
        let question = "SELECT e.name, c.note, p.note, t.us FROM changes c
            JOIN evolutions e ON e.id = c.evolution LEFT JOIN changes p ON p.id = c.parent
            LEFT JOIN change_times t ON t.change = c.id ORDER BY e.id, c.round";
        type Row = (String, String, Option<String>, Option<f64>);
        let found: Vec<Row> = sqlx::query_as(question)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let row = |name: &str, note: &str, parent: Option<&str>, us| {
            (
                name.to_owned(),
                note.to_owned(),
                parent.map(str::to_owned),
                us,
            )
        };
        let all = ["ours", "theirs"].map(|name| {
            [
                row(name, "first", None, None),
                row(name, "second", Some("first"), Some(1.0)),
            ]
        });
        assert_eq!(found, all.concat());
        connection.close().await.unwrap();
        connection = open::writable(&path).await.unwrap();
    }
    connection.close().await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
