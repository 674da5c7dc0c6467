//! Databases of the program, read and changed as another program would.

use sqlx::Connection as _;
use std::path::Path;

/// A connection to a database that is there.
pub(crate) async fn connected(path: &Path) -> sqlx::SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let connection = sqlx::SqliteConnection::connect_with(&options).await;
    connection.expect("the database opens")
}
