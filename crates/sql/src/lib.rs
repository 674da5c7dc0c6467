//! The parts of sqlx that SQLite needs. Other crates use it by the name `sqlx`.
//!
//! The crate `sqlx` itself puts the drivers of MySQL and PostgreSQL, and what they depend on, into
//! `Cargo.lock`, although they are never built: its features name them as optional. It also lets
//! SQLite load shared libraries as extensions. Paths are those of `sqlx`, because derived code uses
//! them.

#[doc(hidden)]
pub extern crate sqlx_macros;

pub use sqlx_core::arguments::{Arguments, IntoArguments};
pub use sqlx_core::column::ColumnIndex;
pub use sqlx_core::connection::{ConnectOptions, Connection};
pub use sqlx_core::database::{self, Database};
pub use sqlx_core::error::{self, Error, Result};
pub use sqlx_core::executor::{Execute, Executor};
pub use sqlx_core::from_row::FromRow;
pub use sqlx_core::migrate;
pub use sqlx_core::query_as::{query_as, query_as_with};
pub use sqlx_core::query_builder::{self, QueryBuilder};
pub use sqlx_core::query_scalar::{query_scalar, query_scalar_with};
pub use sqlx_core::raw_sql::raw_sql;
pub use sqlx_core::row::Row;
pub use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr, SqlStr};
pub use sqlx_core::transaction::Transaction;
pub use sqlx_core::types::Type;
pub use sqlx_core::value::{Value, ValueRef};
pub use sqlx_core::{arguments, from_row, query_as, query_scalar, row, type_info, value};
pub use sqlx_macros::{FromRow, Type};
pub use sqlx_sqlite::{self as sqlite, Sqlite, SqliteConnection};

/// Statements without a type of their rows.
pub mod query {
    pub use sqlx_core::query::*;
    pub use sqlx_core::query_as::QueryAs;
}
pub use query::{query, query_with};

/// Conversions between Rust and SQL types.
pub mod types {
    pub use sqlx_core::types::*;
    #[doc(hidden)]
    pub use sqlx_macros::Type;
}

/// Encoding of values for the database.
pub mod encode {
    pub use sqlx_core::encode::{Encode, IsNull};
    #[doc(hidden)]
    pub use sqlx_macros::Encode;
}
pub use encode::Encode;

/// Decoding of values of the database.
pub mod decode {
    pub use sqlx_core::decode::Decode;
    #[doc(hidden)]
    pub use sqlx_macros::Decode;
}
pub use decode::Decode;

/// Wraps the error of a conversion, as derived code asks for it.
#[doc(hidden)]
#[macro_export]
macro_rules! __spec_error {
    ($error:expr) => {
        ::std::string::ToString::to_string(&$error).into()
    };
}
