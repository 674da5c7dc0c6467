//! The best rows as JSON, for programs.

use super::ExportError;
use serde::Serialize;
use tuner_core::entry::Entry;
use tuner_core::escape;
use tuner_core::record::LeaderboardRow;
use tuner_core::record::{ConfigValues, config_as_object};

#[derive(Serialize)]
struct Document<'e> {
    format: &'static str,
    version: u32,
    kernel: &'e str,
    entries: Vec<JsonEntry<'e>>,
}

#[derive(Serialize)]
struct JsonEntry<'e> {
    #[serde(with = "config_as_object")]
    sizes: ConfigValues,
    driver: Option<&'e str>,
    #[serde(flatten)]
    row: &'e LeaderboardRow,
}

/// Writes the best rows with the sizes, as JSON.
///
/// # Errors
/// Nothing to export.
pub fn json(kernel: &str, entries: &[Entry]) -> Result<String, ExportError> {
    if entries.is_empty() {
        return Err(ExportError::Empty);
    }
    let document = Document {
        format: "tuner-export",
        version: 1,
        kernel,
        entries: entries
            .iter()
            .map(|entry| JsonEntry {
                sizes: entry.sizes.clone(),
                driver: entry.driver.as_deref(),
                row: &entry.best,
            })
            .collect(),
    };
    // Every field is a number, text, or an object under text keys: this cannot fail.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    Ok(escape::json(&text))
}
