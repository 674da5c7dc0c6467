//! Names and values of entries as C constants.

use super::ExportError;
use super::names::check_macro;
use tuner_core::entry::Entry;
use tuner_core::escape::{CLiteral, CMacroBody};
use tuner_core::value::Value;

/// Rejects names and values of an entry that are invalid in C.
pub(super) fn check_entry(entry: &Entry) -> Result<(), ExportError> {
    let parameters = entry.definition.parameters.iter().map(|p| &p.name);
    let constants = entry.sizes.iter().chain(&entry.environment);
    for name in parameters.chain(constants.map(|(name, _)| name)) {
        check_macro(name)?;
    }
    for (name, value) in &entry.best.config {
        check_macro(name)?;
        if let Value::Text(text) = value {
            CMacroBody::new(text).map_err(|why| ExportError::NotABody {
                name: name.clone(),
                value: text.to_string(),
                why,
            })?;
        }
    }
    Ok(())
}

/// Reports whether a size must match exactly: booleans, text, and 0 (which has no ratio).
pub(super) fn is_flag(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Int(value)) => *value <= 0,
        Some(Value::Float(value)) => *value <= 0.0,
        Some(Value::Bool(_) | Value::Text(_)) | None => true,
    }
}

pub(super) fn c_type(values: &[Option<&Value>]) -> &'static str {
    let any = |test: fn(&Value) -> bool| values.iter().flatten().any(|value| test(value));
    if any(|value| matches!(value, Value::Text(_))) {
        "const char *"
    } else if any(|value| matches!(value, Value::Float(_))) {
        "double"
    } else if any(|value| value.as_i64().is_some_and(|v| i32::try_from(v).is_err())) {
        "long long"
    } else {
        "int"
    }
}

/// Formats a value as a C constant; booleans are 0 and 1, which C11 accepts without an include.
pub(super) fn c_value(value: Option<&Value>, c_type: &str) -> String {
    match value {
        None if c_type == "const char *" => "\"\"".to_owned(),
        None => "0".to_owned(),
        Some(Value::Bool(value)) => u8::from(*value).to_string(),
        Some(Value::Int(value)) if c_type == "const char *" => {
            CLiteral::new(&value.to_string()).to_string()
        }
        Some(Value::Int(value)) if i32::try_from(*value).is_err() => format!("{value}LL"),
        Some(Value::Text(text)) => CLiteral::new(text).to_string(),
        Some(other) if c_type == "const char *" => CLiteral::new(&other.to_string()).to_string(),
        Some(other) => other.to_string(),
    }
}
