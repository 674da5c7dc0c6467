//! Reader of shipped results: headers of `export` and records of `record`.
#![expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tuner_core::entry::Entry;
use tuner_core::escape;
use tuner_core::record::{Compared, ConfigValues, TimingKind, config_as_object};
use tuner_space::{Diagnostic, Diagnostics};

/// One shipped configuration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Shipped {
    /// Device name.
    pub device: String,
    /// Problem name.
    pub problem: String,
    /// The configuration.
    #[serde(with = "config_as_object")]
    pub config: ConfigValues,
    /// Its median at shipping, µs.
    #[serde(rename = "time_us_p50")]
    pub p50_us: f64,
    /// Source of that time; `None` in headers of earlier versions.
    #[serde(default)]
    pub timing: Option<TimingKind>,
    /// Comparison of its results at shipping; `None` in older files and for recorded results.
    #[serde(default)]
    pub compared: Option<Compared>,
}

/// Reads a header or a record, distinguished by their first character; `path` names it in messages.
///
/// # Errors
/// The error with its position.
pub fn read(text: &str, path: &str) -> Result<Vec<Shipped>, Diagnostics> {
    if text.trim_start().starts_with('{') {
        record(text, path)
    } else {
        header(text, path)
    }
}

fn record(text: &str, path: &str) -> Result<Vec<Shipped>, Diagnostics> {
    let json: Json =
        serde_json::from_str(text).map_err(|error| Diagnostics::of_json(path, text, &error))?;
    let foreign = |message: String| {
        let item = Diagnostic::new(message, 0..1)
            .help("name a file that `tuner record` or `tuner export --to json` wrote");
        Diagnostics::new(path, text, vec![item])
    };
    let entries = json["entries"]
        .as_array()
        .filter(|_| json["format"] == "tuner-export")
        .ok_or_else(|| foreign("this JSON is no record of results".to_owned()))?;
    entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            Shipped::deserialize(entry).map_err(|_| {
                foreign(format!(
                    "entry {} has no device, problem, config and time_us_p50",
                    at + 1
                ))
            })
        })
        .collect()
}

/// Start of an entry in a header's comment.
const MARK: &str = "/* tuner-entry ";

/// Formats an entry as a comment of a header. JSON can escape `*`, so nothing in it ends the
/// comment.
pub(super) fn as_comment(entry: &Entry) -> String {
    let json = json!({
        "device": entry.best.device,
        "problem": entry.best.problem,
        "config": super::object(&entry.best.config),
        "time_us_p50": entry.best.time_us_p50,
        "timing": entry.best.timing,
        "compared": entry.best.compared,
    });
    let json = escape::json(&json.to_string()).replace('*', "\\u002a");
    format!("{MARK}{json} */\n")
}

fn header(text: &str, path: &str) -> Result<Vec<Shipped>, Diagnostics> {
    let wrong = |at: usize, message: &str| {
        let item = Diagnostic::new(message, at..at + 1)
            .help("name a header that `tuner export` wrote, unedited; export older ones again");
        Diagnostics::new(path, text, vec![item])
    };
    let mut entries = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if let Some(json) = line.strip_prefix(MARK) {
            let json = json.trim_end().strip_suffix("*/").unwrap_or_default();
            let entry = serde_json::from_str(json);
            entries.push(entry.map_err(|_| wrong(offset, "this entry cannot be read"))?);
        }
        offset += line.len();
    }
    if entries.is_empty() {
        return Err(wrong(0, "this is no header of tuned configurations"));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
