//! Values as Python's `str()` writes them: the keys of Kernel Tuner's cache.

use tuner_core::value::Value;

/// `str(value)`.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Float(value) => float(*value),
        other => other.to_string(),
    }
}

/// `repr` of a float: the shortest digits that read back, as a plain number between 1e-4 and 1e16,
/// else with an exponent of at least two digits.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        // Rust's plain form has the same digits, but no `.0` on whole numbers.
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
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_writes_them() {
        for (value, expected) in [
            (Value::Bool(true), "True"),
            (Value::Int(-3), "-3"),
            (Value::Float(0.5), "0.5"),
            (Value::Float(2.0), "2.0"),
            (Value::Float(1e15), "1000000000000000.0"),
            (Value::Float(1e16), "1e+16"),
            (Value::Float(1.5e-7), "1.5e-07"),
            (Value::Float(0.0001), "0.0001"),
            (Value::Float(0.00001), "1e-05"),
            (Value::Text("float4".into()), "float4"),
        ] {
            assert_eq!(text(&value), expected);
        }
    }
}
