//! Kernel Tuner cache files.
//!
//! The format is that of Kernel Tuner's `process_cache` and `store_cache`: times in milliseconds,
//! failures as `__error__` (in old files as a string in `time`), keys of the cache as values joined
//! by commas.

use super::outcome;
use super::table::{Row, Source, Table, Top, timing_of};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use tuner_core::record::ConfigValues;
use tuner_core::recorded::{Outcome, Recorded};
use tuner_core::value::Value;
use tuner_space::Diagnostics;

pub(super) fn read<'a>(
    source: &Source<'a>,
    top: &Top<'a>,
    cache: &'a RawValue,
) -> Result<Table, Diagnostics> {
    let stem = || source.text.stem();
    let raw_rows: Entries<'a, &'a RawValue> = source.parse(cache)?;
    let mut parameters = parameters(source, top)?;
    if parameters.is_empty() {
        parameters = parameters_of_first_row(source, &raw_rows)?;
    }
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let rows = raw_rows
        .0
        .iter()
        .map(|(key, raw)| row(source, &names, key, raw))
        .collect::<Result<Vec<_>, _>>()?;
    let (problem, sizes) = problem(source.optional(top.problem_size)?);
    // Kernel Tuner's own writer preserves unknown keys, such as this one.
    let tuner: Option<serde_json::Value> = source.optional(top.tuner)?;
    Ok(Table {
        timing: timing_of(tuner.as_ref().and_then(|tuner| tuner.get("timing"))),
        kernel: source.optional(top.kernel_name)?.unwrap_or_else(stem),
        device: source.optional(top.device_name)?.unwrap_or_else(stem),
        problem,
        sizes,
        constraints: Table::constraints(source, top)?,
        parameters,
        rows,
    })
}

/// Returns the declared parameters, in the order of `tune_params_keys`.
fn parameters<'a>(
    source: &Source<'a>,
    top: &Top<'a>,
) -> Result<Vec<(String, Vec<Value>)>, Diagnostics> {
    let declared: Option<Entries<'a, &'a RawValue>> = source.optional(top.tune_params)?;
    let mut declared = declared
        .map_or_else(Vec::new, |entries| entries.0)
        .into_iter()
        .map(|(name, raw)| Ok((name.into_owned(), source.parse(raw)?)))
        .collect::<Result<Vec<(String, Vec<Value>)>, Diagnostics>>()?;
    let order: Option<Vec<String>> = source.optional(top.tune_params_keys)?;
    let Some(order) = order else {
        return Ok(declared);
    };
    let place = |name: &str| order.iter().position(|key| key == name);
    if let Some((stray, _)) = declared.iter().find(|(name, _)| place(name).is_none()) {
        let start = top
            .tune_params_keys
            .map_or(0, |raw| source.start(raw.get()));
        return Err(source.text.error(
            start,
            format!("`{stray}` is in `tune_params` but not in `tune_params_keys`"),
            format!("add \"{stray}\" to `tune_params_keys`"),
        ));
    }
    for key in &order {
        if !declared.iter().any(|(name, _)| name == key) {
            declared.push((key.clone(), Vec::new()));
        }
    }
    declared.sort_by_key(|(name, _)| place(name));
    Ok(declared)
}

/// Fields of a row that are not parameters.
const FIELDS: [&str; 11] = [
    "time",
    "times",
    "compile_time",
    "verification_time",
    "benchmark_time",
    "strategy_time",
    "framework_time",
    "timestamp",
    "__error__",
    "GFLOP/s",
    "energy",
];

/// Returns the fields before the first measured one as parameters, for files without declarations.
fn parameters_of_first_row<'a>(
    source: &Source<'a>,
    rows: &Entries<'a, &'a RawValue>,
) -> Result<Vec<(String, Vec<Value>)>, Diagnostics> {
    let Some((_, raw)) = rows.0.first() else {
        return Ok(Vec::new());
    };
    let fields: Entries<'a, IgnoredAny> = source.parse(raw)?;
    Ok(fields
        .0
        .into_iter()
        .take_while(|(name, _)| !FIELDS.contains(&&**name))
        .map(|(name, _)| (name.into_owned(), Vec::new()))
        .collect())
}

/// Returns a problem's name and sizes: the sizes joined by `x`, named like Kernel Tuner's macros.
pub(super) fn problem(size: Option<serde_json::Value>) -> (String, ConfigValues) {
    let part = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let sizes = match size {
        None | Some(serde_json::Value::Null) => return ("recorded".to_owned(), Vec::new()),
        Some(serde_json::Value::Array(sizes)) => sizes,
        Some(one) => vec![one],
    };
    let name = sizes.iter().map(part).collect::<Vec<_>>().join("x");
    let named = ["problem_size_x", "problem_size_y", "problem_size_z"]
        .into_iter()
        .zip(&sizes)
        .filter_map(|(name, size)| Some((name.to_owned(), Value::Int(size.as_i64()?))))
        .collect();
    (name, named)
}

fn row<'a>(
    source: &Source<'a>,
    names: &[&str],
    key: &str,
    raw: &'a RawValue,
) -> Result<Row, Diagnostics> {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    let fields = RowSeed { names }
        .deserialize(&mut deserializer)
        .map_err(|error| source.error(raw.get(), &error))?;
    let offset = source.start(raw.get());
    let values = match fields.values.into_iter().collect::<Option<Vec<_>>>() {
        Some(values) => values,
        None => values_of_key(key, names.len()).ok_or_else(|| {
            source.text.error(
                offset,
                format!("the row `{key}` does not have a value for every parameter"),
                format!("a row needs the fields {}", names.join(", ")),
            )
        })?,
    };
    Ok(Row {
        values,
        offset,
        recorded: Recorded {
            outcome: fields.outcome,
            compile_us: outcome::micros(fields.compile_ms, 1e3),
            benchmark_us: outcome::micros(fields.benchmark_ms, 1e3),
        },
    })
}

/// Splits a key such as `64,3,True` into values.
fn values_of_key(key: &str, count: usize) -> Option<Vec<Value>> {
    let values: Vec<Value> = key
        .split(',')
        .map(|part| match part {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            _ => match (part.parse(), part.parse::<f64>()) {
                (Ok(whole), _) => Value::Int(whole),
                (_, Ok(number)) if number.is_finite() => Value::Float(number),
                _ => Value::Text(part.into()),
            },
        })
        .collect();
    (values.len() == count).then_some(values)
}

/// The relevant fields of a row.
struct Fields {
    values: Vec<Option<Value>>,
    outcome: Outcome,
    compile_ms: Option<f64>,
    benchmark_ms: Option<f64>,
}

struct RowSeed<'n> {
    names: &'n [&'n str],
}

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Fields;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Fields, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the parameters and the results of one configuration")
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the parameter is a place in the list of names, and there is a value for each name"
    )]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut values: Vec<Option<Value>> = vec![None; self.names.len()];
        let (mut time, mut times, mut error) = (serde_json::Value::Null, Vec::new(), None);
        let (mut compile_ms, mut benchmark_ms) = (None, None);
        // Rows keep the order of the parameters, so the next name is nearly always the expected
        // one.
        let mut expected = 0;
        while let Some(Key(key)) = map.next_key()? {
            let parameter = if self.names.get(expected) == Some(&&*key) {
                Some(expected)
            } else {
                self.names.iter().position(|name| *name == key)
            };
            if let Some(parameter) = parameter {
                values[parameter] = Some(map.next_value()?);
                expected = parameter + 1;
                continue;
            }
            match &*key {
                "time" => time = map.next_value()?,
                "times" => {
                    let given = map.next_value::<Option<Vec<Option<f64>>>>()?;
                    // Python's NaN has become `null`, which is not a time.
                    times = given.into_iter().flatten().flatten().collect();
                }
                "__error__" => error = map.next_value::<Option<String>>()?,
                "compile_time" => compile_ms = map.next_value()?,
                "benchmark_time" => benchmark_ms = map.next_value()?,
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        let outcome = match (error, &time) {
            (Some(error), _) => outcome::kernel_tuner_error(&error),
            (None, serde_json::Value::String(error)) => outcome::kernel_tuner_error(error),
            (None, time) => outcome::timed(time.as_f64(), &times),
        };
        Ok(Fields {
            values,
            outcome,
            compile_ms,
            benchmark_ms,
        })
    }
}

/// A key, borrowed from the text if it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object as pairs, in the order of the file.
struct Entries<'a, T>(Vec<(Cow<'a, str>, T)>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Entries<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<'a, T>(PhantomData<(&'a (), T)>);
        impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for Pairs<'a, T> {
            type Value = Entries<'a, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    pairs.push((key, map.next_value()?));
                }
                Ok(Entries(pairs))
            }
        }
        deserializer.deserialize_map(Pairs(PhantomData))
    }
}
