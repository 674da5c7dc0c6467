//! Python `str()` of values: the keys of Kernel Tuner's cache.

use tuner_core::value::Value;

/// Formats `str(value)`.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Float(value) => float(*value),
        other => other.to_string(),
    }
}

/// Formats `repr` of a float: the shortest digits that read back, as a plain number between 1e-4
/// and 1e16, else with an exponent of at least two digits.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        // Rust's plain form has the same digits, but no `.0` on integers.
        let plain = format!("{value}");
        return if plain.contains('.') {
            plain
        } else {
            format!("{plain}.0")
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests;
