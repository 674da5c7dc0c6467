//! One line of the answer, in the contract's form.

use crate::cli::output::{self, Format};
use crate::record::{ConfigValues, Hazard, Verdict, config_as_object};
use serde::Serialize;

/// The judgement on one (configuration, problem).
#[derive(Debug, Clone, Serialize)]
pub(super) struct CheckRow {
    pub(super) kernel: String,
    pub(super) problem: String,
    #[serde(with = "config_as_object")]
    pub(super) config: ConfigValues,
    pub(super) verdict: Verdict,
    pub(super) hazards: Vec<Hazard>,
    pub(super) detail: String,
    pub(super) registers: Option<u32>,
    pub(super) spill_bytes: Option<u64>,
    pub(super) shared_bytes: Option<u64>,
    pub(super) max_error: Option<f64>,
    pub(super) device: String,
    /// Hash of the machine code; null where there is none.
    pub(super) cubin_hash: Option<String>,
    /// The parameters that differ from their defaults, for people.
    #[serde(skip)]
    pub(super) changed: ConfigValues,
}

const HEADINGS: [&str; 10] = [
    "kernel",
    "problem",
    "device",
    "verdict",
    "registers",
    "spill_bytes",
    "shared_bytes",
    "max_error",
    "config",
    "detail",
];

/// The rows in the asked-for format.
pub(super) fn format_rows(format: Format, rows: &[CheckRow]) -> Result<String, serde_json::Error> {
    if format == Format::Json {
        return serde_json::to_string_pretty(rows);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(format, row)).collect();
    Ok(output::rows(format, &HEADINGS, &cells))
}

fn cells(format: Format, row: &CheckRow) -> Vec<String> {
    let optional = |value: Option<String>| value.unwrap_or_default();
    // A table shows what is special about a configuration; a file keeps all of it.
    let config = match format {
        Format::Csv | Format::Json => assignments(&row.config),
        Format::Table | Format::Md if row.changed.is_empty() => "default".to_owned(),
        Format::Table | Format::Md => assignments(&row.changed),
    };
    let detail = match format {
        Format::Csv | Format::Json => row.detail.clone(),
        Format::Table | Format::Md => row.detail.lines().next().unwrap_or_default().to_owned(),
    };
    vec![
        row.kernel.clone(),
        row.problem.clone(),
        row.device.clone(),
        row.verdict.to_string(),
        optional(row.registers.map(|count| count.to_string())),
        optional(row.spill_bytes.map(|bytes| bytes.to_string())),
        optional(row.shared_bytes.map(|bytes| bytes.to_string())),
        optional(row.max_error.map(|error| format!("{error:.3}"))),
        config,
        detail,
    ]
}

/// `A=1,B=2`, as `--config` takes it.
pub(super) fn assignments(config: &ConfigValues) -> String {
    let pairs: Vec<String> = config
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(",")
}
