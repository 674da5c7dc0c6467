//! Limits of a run.

use std::time::Duration;

/// Limits of a run; the first one reached ends it. Both count the whole run, over all of its
/// kernels and problems, including work before an interruption (only wall-clock time restarts when
/// a run is resumed).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Unique valid configurations judged, with any verdict.
    pub evals: Option<u64>,
    /// Time on the device's clock: wall time, or recorded time on replay.
    pub budget: Option<Duration>,
    /// Share of the best time; a kernel and problem is done when further trials gain at most this,
    /// with a chance of [`tuner_search::LEFT_CHANCE`].
    pub converged: Option<f64>,
}

/// Parses a share: `2%` or `0.02`, from 0 to 1.
///
/// # Errors
/// A description of the syntax, for anything else.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 0.01),
        None => (text.trim(), 1.0),
    };
    number
        .parse::<f64>()
        .ok()
        .map(|number| number * unit)
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a share from 0% to 100% is needed, such as 2%".to_owned())
}

/// An invalid `--budget`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid budget; type a time such as 90s, 10m, 2h or 1h30m")]
pub struct BudgetError(pub String);

/// Parses `90s`, `10m`, `2h`, `1h30m`, `1d`, `500ms`: whole or decimal numbers with units.
///
/// # Errors
/// [`BudgetError`] for anything else, and for an empty text and zero.
pub fn parse_budget(text: &str) -> Result<Duration, BudgetError> {
    let bad = || BudgetError(text.to_owned());
    let mut rest = text.trim();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(bad)?;
        let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
        let tail = &rest[digits..];
        let letters = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        seconds += number
            * match tail[..letters].trim() {
                "ms" => 1e-3,
                "s" | "sec" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                _ => return Err(bad()),
            };
        rest = &tail[letters..];
    }
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(bad)
}

/// Formats a duration like a budget: `1h30m`, `90s`, `0.4s`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) if seconds < 10 && duration.subsec_millis() > 0 => {
            format!("{:.1}s", duration.as_secs_f64())
        }
        (0, 0) => format!("{rest}s"),
        (0, _) if rest == 0 => format!("{minutes}m"),
        (0, _) => format!("{minutes}m{rest:02}s"),
        (_, 0) if rest == 0 => format!("{hours}h"),
        _ => format!("{hours}h{minutes:02}m"),
    }
}

#[cfg(test)]
mod tests;
