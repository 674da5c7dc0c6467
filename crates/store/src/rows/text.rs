//! Text form of configurations and samples in the database.

use serde::{Deserialize, Serialize};
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Sqlite, Type};
use std::fmt::Write as _;
use tuner_core::record::{ConfigValues, config_as_object};

/// Returns a configuration as the JSON object of the database; equal configurations have equal
/// text.
pub(crate) fn config_text(config: &ConfigValues) -> String {
    // Values are finite numbers, booleans and text with text keys, so this cannot fail.
    serde_json::to_string(&ConfigRef(config)).unwrap_or_default()
}

/// Parses the result of [`config_text`].
pub(crate) fn config_from_text(text: &str) -> Result<ConfigValues, serde_json::Error> {
    serde_json::from_str::<Config>(text).map(Config::into)
}

/// Formats samples as a JSON array whose numbers read back to the same bits.
pub(crate) fn samples_text(samples: &[f64]) -> String {
    let mut text = String::with_capacity(12 * samples.len() + 2);
    text.push('[');
    for (index, sample) in samples.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Rust's shortest digits read back to the same bits.
        let _ = write!(text, "{comma}{sample:?}");
    }
    text.push(']');
    text
}

/// Parses the result of [`samples_text`]; the standard parser is exact, serde_json's default is
/// not.
pub(crate) fn samples_from_text(text: &str) -> Vec<f64> {
    text.trim_matches(['[', ']'])
        .split(',')
        .filter_map(|number| number.trim().parse().ok())
        .collect()
}

/// A column with a configuration.
#[derive(Deserialize)]
pub(crate) struct Config(#[serde(with = "config_as_object")] ConfigValues);

impl From<Config> for ConfigValues {
    fn from(config: Config) -> Self {
        config.0
    }
}

impl Type<Sqlite> for Config {
    fn type_info() -> SqliteTypeInfo {
        <str as Type<Sqlite>>::type_info()
    }
}

impl<'r> Decode<'r, Sqlite> for Config {
    fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        let text = <&str as Decode<Sqlite>>::decode(value)?;
        let config = config_from_text(text).map_err(|error| format!("config: {error}"))?;
        Ok(Self(config))
    }
}

/// A configuration that is serialized as an object.
#[derive(Serialize)]
pub(crate) struct ConfigRef<'c>(#[serde(with = "config_as_object")] pub(crate) &'c ConfigValues);
