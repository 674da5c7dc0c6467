//! Input configurations of `tuner predict`.

use super::Args;
use crate::cli::{CliError, usage};
use std::io::Read as _;
use std::path::Path;
use tuner_core::files;
use tuner_core::record::{ConfigValues, assignments};
use tuner_core::value::Value;
use tuner_device::replay::Recording;
use tuner_kernel::catalog::{Kernel, near_text};
use tuner_space::{Config, Space, suggest};

/// Reads the configurations to predict, all of them valid.
///
/// # Errors
/// A file that cannot be read or has none.
pub(super) fn read(args: &Args, kernel: &Kernel, space: &Space) -> Result<Vec<Config>, CliError> {
    let Some(path) = &args.configs else {
        let mut configs = vec![space.default_config()];
        for seed in &kernel.spec.seeds {
            let config = space
                .config_from_values(seed)
                .map_err(|error| usage(format!("seeds: {error}")))?;
            if !configs.contains(&config) {
                configs.push(config);
            }
        }
        // A seed may be for other GPUs: `run` omits it, too.
        configs.retain(|config| space.contains(config));
        return Ok(configs);
    };
    let shown = if path.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let found = if is_recording(path) {
        recorded(path, space, args.strict)?
    } else {
        let text = text_of(path, &shown)?;
        read_csv(&text, space, args.strict).map_err(|wrong| {
            let Wrong { line, column, why } = wrong;
            usage(format!("{shown}:{line}:{column}: {why}"))
        })?
    };
    if !found.ignored.is_empty() {
        say!(
            "note: {shown}: ignored columns that are not parameters of `{}`: {}",
            space.name(),
            found.ignored.join(", ")
        );
    }
    if let Some(first) = &found.first_outside {
        let all = found.configs.len() + found.outside;
        let text = format!(
            "{} of {all} rows are outside the space; the first: {}",
            found.outside,
            first.shown(&shown)
        );
        if found.configs.is_empty() {
            refuse!("{shown}: {text}");
        }
        say!("note: {shown}: left out: {text}");
    }
    Ok(found.configs)
}

/// Reports whether the file is another tool's recording and not CSV.
fn is_recording(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with(".json") || name.ends_with(".json.gz")
}

fn text_of(path: &Path, shown: &str) -> Result<String, CliError> {
    let bad = |why: &dyn std::fmt::Display| usage(format!("{shown}: {why}"));
    let mut text = String::new();
    if path.as_os_str() == "-" {
        std::io::stdin()
            // An endless pipe must not exhaust the memory.
            .take(files::MAX_RECORDING_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| bad(&error))?;
        return Ok(text);
    }
    files::read_text(path, files::MAX_RECORDING_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => bad(&"not UTF-8 text"),
        _ => bad(&format!(
            "{error}; name a CSV file whose first line names parameters, or a Kernel Tuner cache"
        )),
    })
}

/// Contents of a file for a space.
#[derive(Debug, Default, PartialEq)]
struct ParsedConfigs {
    configs: Vec<Config>,
    /// Number of rows outside the space.
    outside: usize,
    first_outside: Option<Wrong>,
    /// Columns that are not parameters.
    ignored: Vec<String>,
}

impl ParsedConfigs {
    fn outside(&mut self, wrong: Wrong) {
        self.outside += 1;
        self.first_outside.get_or_insert(wrong);
    }
}

/// Reads the configurations of a recording; parameters are matched by name.
fn recorded(path: &Path, space: &Space, strict: bool) -> Result<ParsedConfigs, CliError> {
    let recording = Recording::load(path)?;
    let theirs = &recording.space;
    let known = |name: &str| space.parameters().iter().any(|p| p.name == name);
    let names = theirs.parameters().iter().map(|p| p.name.clone());
    let mut found = ParsedConfigs {
        ignored: names.filter(|name| !known(name)).collect(),
        ..ParsedConfigs::default()
    };
    let (file, name, ours) = (path.display(), space.name(), names_of(space).join(", "));
    if found.ignored.len() == theirs.parameters().len() && !space.parameters().is_empty() {
        let ignored = found.ignored.join(", ");
        refuse!("{file}: none of its parameters ({ignored}) is one of `{name}`: {ours}");
    }
    if let (true, Some(first)) = (strict, found.ignored.first()) {
        refuse!("{file}: `{first}` is not a parameter of `{name}`: {ours}");
    }
    for (row, config) in (1..).zip(recording.configs()) {
        let values: ConfigValues = theirs.values(config);
        let text = assignments(&values, ",");
        let values: ConfigValues = values.into_iter().filter(|(name, _)| known(name)).collect();
        let why = match space.config_from_values(&values) {
            Ok(config) => match space.reject_reason(&config) {
                None => {
                    found.configs.push(config);
                    continue;
                }
                Some(why) => format!("{text}: {why}"),
            },
            Err(error) => error.to_string(),
        };
        if strict {
            refuse!("{file}: row {row} is not in the space: {why}");
        }
        // A row of such a file has no line number.
        let (line, column) = (0, 0);
        found.outside(Wrong { line, column, why });
    }
    Ok(found)
}

fn names_of(space: &Space) -> Vec<&str> {
    space.parameters().iter().map(|p| p.name.as_str()).collect()
}

/// An error in the file of configurations with its line and column, both from 1.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: u64,
    column: usize,
    why: String,
}

impl Wrong {
    fn shown(&self, file: &str) -> String {
        match self.line {
            0 => self.why.clone(),
            line => format!("{file}:{line}:{}: {}", self.column, self.why),
        }
    }
}

/// Returns the column at which a field begins. Fields have no quotes, because parameter values need
/// none.
fn column(line: &str, field: usize) -> usize {
    let before: usize = line.split(',').take(field).map(|f| f.len() + 1).sum();
    let blank =
        line[before.min(line.len())..].len() - line[before.min(line.len())..].trim_start().len();
    before.min(line.len()) + blank + 1
}

/// Reads comma-separated values under parameter names. Other columns are ignored, unless `strict`.
fn read_csv(text: &str, space: &Space, strict: bool) -> Result<ParsedConfigs, Wrong> {
    let lines: Vec<&str> = text.lines().collect();
    let line_text = |line: u64| {
        lines
            .get(line.max(1) as usize - 1)
            .copied()
            .unwrap_or_default()
    };
    let malformed = |error: csv::Error| match error.kind() {
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => {
            let line = pos.as_ref().map_or(1, csv::Position::line);
            let text = line_text(line);
            let (column, what) = if len > expected_len {
                let first = column(text, usize::try_from(*expected_len).unwrap_or(0));
                (first, "leave out what has no name")
            } else {
                (text.len() + 1, "give each name a value")
            };
            let why = format!("{len} values under {expected_len} names; {what}");
            Wrong { line, column, why }
        }
        _ => Wrong {
            line: error.position().map_or(1, csv::Position::line),
            column: 1,
            why: "not text of comma-separated values; save the file as UTF-8 CSV".to_owned(),
        },
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let names: Vec<String> = reader
        .headers()
        .map_err(malformed)?
        .iter()
        .map(str::to_owned)
        .collect();
    let known = names_of(space);
    let mut found = ParsedConfigs {
        ignored: further_columns(&names, line_text(1), space, strict)?,
        ..ParsedConfigs::default()
    };
    for record in reader.records() {
        let record = record.map_err(malformed)?;
        let line = record.position().map_or(0, csv::Position::line);
        let fields = names.iter().zip(&record).enumerate();
        let fields: Vec<_> = fields
            .filter(|(_, (name, _))| known.contains(&name.as_str()))
            .collect();
        match one_row(space, &fields) {
            Ok(config) => found.configs.push(config),
            Err((field, why)) => {
                let column = column(line_text(line), field);
                let wrong = Wrong { line, column, why };
                if strict {
                    return Err(wrong);
                }
                found.outside(wrong);
            }
        }
    }
    Ok(found)
}

/// Counts the configurations of a table.
pub(in crate::cli) fn count_rows(text: &str, space: &Space, strict: bool) -> Result<usize, String> {
    let found = read_csv(text, space, strict).map_err(|wrong| wrong.shown("fuzz.csv"))?;
    Ok(found.configs.len())
}

/// Returns columns that are not parameters. A column with a name similar to a missing parameter is
/// an error.
fn further_columns(
    names: &[String],
    line: &str,
    space: &Space,
    strict: bool,
) -> Result<Vec<String>, Wrong> {
    let known = names_of(space);
    if names.iter().all(String::is_empty) {
        return Err(Wrong {
            line: 1,
            column: 1,
            why: format!(
                "the file is empty; its first line names parameters, each other line gives their \
                 values: {}",
                known.join(",")
            ),
        });
    }
    let missing = known
        .iter()
        .copied()
        .filter(|name| !names.iter().any(|given| given == name));
    let missing: Vec<&str> = missing.collect();
    let mut ignored = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if known.contains(&name.as_str()) {
            continue;
        }
        let near = suggest(name, missing.iter().copied());
        let nothing_known = missing.len() == known.len() && !known.is_empty();
        if strict || near.is_some() || nothing_known {
            return Err(Wrong {
                line: 1,
                column: column(line, index),
                why: format!(
                    "`{name}` is not a parameter of `{}`{}; the first line names parameters: {}",
                    space.name(),
                    near_text(&near),
                    known.join(",")
                ),
            });
        }
        ignored.push(name.clone());
    }
    Ok(ignored)
}

/// Returns the configuration of a row, or the wrong field and the reason.
fn one_row(space: &Space, fields: &[(usize, (&String, &str))]) -> Result<Config, (usize, String)> {
    let mut values = ConfigValues::with_capacity(fields.len());
    for (index, (name, text)) in fields {
        let value = value_of(space, name, text).map_err(|why| (*index, why))?;
        values.push(((*name).clone(), value));
    }
    let config = space.config_from_values(&values);
    let config = config.map_err(|error| (0, error.to_string()))?;
    match space.reject_reason(&config) {
        Some(why) => Err((0, format!("not in the space: {why}"))),
        None => Ok(config),
    }
}

/// Returns the parameter's value with this spelling; numbers and booleans in other programs'
/// spelling (`16.0`, `True`) are accepted.
fn value_of(space: &Space, name: &str, text: &str) -> Result<Value, String> {
    let parameter = space.parameters().iter().find(|p| p.name == name);
    let values = parameter.map(|p| &*p.values).unwrap_or_default();
    let same = |value: &&Value| {
        let value = value.to_string();
        let numbers = (value.parse::<f64>(), text.parse::<f64>());
        value == text
            || value.eq_ignore_ascii_case(text) && matches!(value.as_str(), "true" | "false")
            || matches!(numbers, (Ok(one), Ok(other)) if one == other)
    };
    values.iter().find(same).cloned().ok_or_else(|| {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        format!(
            "`{name}` cannot be `{text}`; it is one of {}",
            values.join(", ")
        )
    })
}
