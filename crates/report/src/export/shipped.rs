//! Reads back what was shipped: headers that `export` wrote and records that `record` wrote.

use serde_json::Value as Json;
use std::collections::HashMap;
use tuner_core::record::ConfigValues;
use tuner_core::value::Value;
use tuner_space::{Diagnostic, Diagnostics};

/// One shipped configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Shipped {
    /// Device name.
    pub device: String,
    /// Problem name.
    pub problem: String,
    /// The configuration.
    pub config: ConfigValues,
    /// Its median as shipped, µs.
    pub p50_us: f64,
}

/// Reads a header or a record, told apart by their first character; `path` names it in messages.
///
/// # Errors
/// What is wrong, with its place.
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
            shipped(entry).ok_or_else(|| {
                foreign(format!(
                    "entry {} has no device, problem, config and time_us_p50",
                    at + 1
                ))
            })
        })
        .collect()
}

fn shipped(entry: &Json) -> Option<Shipped> {
    let config = entry["config"].as_object()?;
    let config = config.iter().map(|(name, value)| {
        let value: Value = serde_json::from_value(value.clone()).ok()?;
        Some((name.clone(), value))
    });
    Some(Shipped {
        device: entry["device"].as_str()?.to_owned(),
        problem: entry["problem"].as_str()?.to_owned(),
        config: config.collect::<Option<_>>()?,
        p50_us: entry["time_us_p50"].as_f64()?,
    })
}

/// The names of the configuration's members stand behind them, the values in macros, and the table
/// joins both with device and problem.
fn header(text: &str, path: &str) -> Result<Vec<Shipped>, Diagnostics> {
    let mut names: Vec<&str> = Vec::new();
    let mut macros: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut rows: Vec<(usize, &str)> = Vec::new();
    let (mut inside, mut offset) = (false, 0);
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let line = line.trim_end();
        if line.starts_with("typedef struct ") && line.ends_with("_config {") {
            inside = true;
        } else if inside && line.starts_with('}') {
            inside = false;
        } else if inside {
            let name = line
                .split_once("/* ")
                .and_then(|(_, rest)| rest.strip_suffix(" */"));
            names.extend(name);
        } else if let Some((name, values)) = line
            .strip_prefix("#define ")
            .and_then(|rest| rest.split_once(' '))
        {
            macros.insert(name, (start, values));
        } else if line.starts_with("  {\"") {
            rows.push((start, line));
        }
    }
    let wrong = |at: usize, message: &str| {
        let at = at.min(text.len());
        let item = Diagnostic::new(message, at..at + 1)
            .help("name a header that `tuner export` wrote, unedited");
        Diagnostics::new(path, text, vec![item])
    };
    if names.is_empty() || rows.is_empty() {
        return Err(wrong(0, "this is no header of tuned configurations"));
    }
    rows.into_iter()
        .map(|(start, line)| {
            row(line, &names, &macros)
                .ok_or_else(|| wrong(start, "this row of the table cannot be read"))
        })
        .collect()
}

/// `{"device", "problem", sizes…, p50, {MACRO}},`.
fn row(line: &str, names: &[&str], macros: &HashMap<&str, (usize, &str)>) -> Option<Shipped> {
    let (device, rest) = c_string(line.trim_start().strip_prefix('{')?)?;
    let (problem, rest) = c_string(rest.strip_prefix(", ")?)?;
    let (numbers, name) = rest.rsplit_once(", {")?;
    let p50_us: f64 = numbers.rsplit(", ").next()?.parse().ok()?;
    let (_, values) = macros.get(name.split('}').next()?)?;
    let values = c_values(values)?;
    if values.len() != names.len() {
        return None;
    }
    Some(Shipped {
        device,
        problem,
        config: names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(values)
            .collect(),
        p50_us,
    })
}

/// A C string at the beginning of a text, and what follows it.
fn c_string(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut characters = body.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &body[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

fn c_values(mut text: &str) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    loop {
        text = text.trim_start();
        if text.starts_with('"') {
            let (value, rest) = c_string(text)?;
            values.push(Value::Text(value.into()));
            text = rest;
        } else {
            let end = text.find(',').unwrap_or(text.len());
            let word = text[..end].trim();
            let number = word.trim_matches(['(', ')']).trim_end_matches(['f', 'L']);
            values.push(match (word, number.parse::<i64>(), number.parse::<f64>()) {
                ("true", ..) => Value::Bool(true),
                ("false", ..) => Value::Bool(false),
                (_, Ok(whole), _) => Value::Int(whole),
                (_, _, Ok(real)) => Value::Float(real),
                _ => return None,
            });
            text = &text[end..];
        }
        match text.strip_prefix(',') {
            Some(rest) => text = rest,
            None => return text.trim().is_empty().then_some(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_file_is_refused_with_its_place() {
        for (text, hint) in [
            ("int main() {}\n", "no header of tuned configurations"),
            ("{\"entries\": []}", "no record of results"),
            (
                "{\"format\": \"tuner-export\", \"entries\": [{}]}",
                "entry 1 has no device",
            ),
            ("{\"a\": }", "f.json:1:"),
        ] {
            let error = read(text, "f.json").unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn values_of_c_are_read_as_they_were_written() {
        let values = c_values("128, -1, 0.5, true, \"a, \\\"b\\\"\"").unwrap();
        let expected = [
            Value::Int(128),
            Value::Int(-1),
            Value::Float(0.5),
            Value::Bool(true),
            Value::Text("a, \"b\"".into()),
        ];
        assert_eq!(values, expected);
    }
}
