//! Outcome of a check of a shipped configuration, and the slowdown that it allows.

use serde::Serialize;

/// Outcome of a check of a shipped configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Passed,
    Regression,
    Wrong,
    #[default]
    Skipped,
}

impl Outcome {
    /// Reports whether the check found a fault.
    pub(crate) fn is_fault(self) -> bool {
        matches!(self, Self::Regression | Self::Wrong)
    }

    /// Returns the word for a table, in which faults are emphasized.
    pub(crate) fn table_word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Regression => "REGRESSION",
            Self::Wrong => "WRONG",
            Self::Skipped => "skipped",
        }
    }
}

/// Parses an allowed slowdown, such as `2%`.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err(format!("`{text}` is not a percentage; type 2% (or 0.5%)")),
    }
}
