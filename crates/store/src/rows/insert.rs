//! Insertion of many rows.

use sqlx::error::BoxDynError;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, SqliteConnection};

/// Rows of an insert statement, largest first. Few sizes, so that all stay prepared.
const CHUNKS: [usize; 3] = [64, 8, 1];

/// Inserts rows in chunks; `add` pushes the values of one row.
pub(crate) async fn insert_many<T>(
    connection: &mut SqliteConnection,
    head: &str,
    row: &str,
    tail: &str,
    items: &[T],
    add: impl Fn(&mut SqliteArguments, &T) -> Result<(), BoxDynError>,
) -> Result<(), sqlx::Error> {
    let mut rest = items;
    while !rest.is_empty() {
        let size = CHUNKS
            .into_iter()
            .find(|size| *size <= rest.len())
            .unwrap_or(1);
        let (now, later) = rest.split_at(size);
        let sql = format!("{head}{}{tail}", vec![row; size].join(","));
        let mut arguments = SqliteArguments::default();
        for item in now {
            add(&mut arguments, item).map_err(sqlx::Error::Encode)?;
        }
        sqlx::query_with(AssertSqlSafe(sql), arguments)
            .execute(&mut *connection)
            .await?;
        rest = later;
    }
    Ok(())
}
