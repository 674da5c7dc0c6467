//! Common form of both file formats: parameters, constraints and rows.

use super::text::{Text, start_of};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use tuner_core::record::{ConfigValues, TimingKind};
use tuner_core::recorded::Recorded;
use tuner_core::value::Value;
use tuner_space::Diagnostics;
use tuner_space::{Config, Constraint, Environment, Expr, Parameter, Place, Space, SpaceError};

/// The top level of either format: slices of the text, so that values parsed later still have a
/// line and column.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Top<'a> {
    pub(super) device_name: Option<&'a RawValue>,
    pub(super) kernel_name: Option<&'a RawValue>,
    pub(super) problem_size: Option<&'a RawValue>,
    pub(super) constraints: Option<&'a RawValue>,
    pub(super) tune_params_keys: Option<&'a RawValue>,
    pub(super) tune_params: Option<&'a RawValue>,
    pub(super) cache: Option<&'a RawValue>,
    pub(super) results: Option<&'a RawValue>,
    pub(super) tuner: Option<&'a RawValue>,
    pub(super) metadata: Option<&'a RawValue>,
}

/// The text being read, relative to which the positions of slices are computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a Text,
    pub(super) whole: &'a str,
}

impl<'a> Source<'a> {
    /// Returns the position of a slice.
    pub(super) fn start(&self, slice: &str) -> usize {
        start_of(self.whole, slice)
    }

    /// Parses a slice as a typed value.
    pub(super) fn parse<T: Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T, Diagnostics> {
        serde_json::from_str(raw.get()).map_err(|error| self.error(raw.get(), &error))
    }

    /// Parses a slice that may be absent; `null` counts as absent.
    pub(super) fn optional<T: Deserialize<'a>>(
        &self,
        raw: Option<&'a RawValue>,
    ) -> Result<Option<T>, Diagnostics> {
        raw.map_or(Ok(None), |raw| self.parse(raw))
    }

    /// Builds a diagnostic from an error in a slice.
    pub(super) fn error(&self, slice: &str, error: &serde_json::Error) -> Diagnostics {
        self.text.json(self.start(slice), slice, error)
    }
}

/// Returns the kind of a file's times: predicted if its `timing` field says so, else recorded.
pub(super) fn timing_of(field: Option<&serde_json::Value>) -> TimingKind {
    match field.and_then(serde_json::Value::as_str) {
        Some(name) if name == TimingKind::Predicted.name() => TimingKind::Predicted,
        _ => TimingKind::Recorded,
    }
}

/// A parsed file.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) timing: TimingKind,
    pub(super) kernel: String,
    pub(super) device: String,
    pub(super) problem: String,
    /// The problem's sizes by name; empty if the file does not have them.
    pub(super) sizes: ConfigValues,
    /// Name and declared values; empty values are collected from the rows.
    pub(super) parameters: Vec<(String, Vec<Value>)>,
    /// Expressions with their position in the text.
    pub(super) constraints: Vec<(String, usize)>,
    pub(super) rows: Vec<Row>,
}

/// One recorded configuration.
#[derive(Debug)]
pub(super) struct Row {
    /// In the order of the parameters.
    pub(super) values: Vec<Value>,
    /// Its position in the text.
    pub(super) offset: usize,
    pub(super) recorded: Recorded,
}

impl Table {
    /// Returns the constraints of the top level, each with its position.
    pub(super) fn constraints<'a>(
        source: &Source<'a>,
        top: &Top<'a>,
    ) -> Result<Vec<(String, usize)>, Diagnostics> {
        let list: Option<Vec<&'a RawValue>> = source.optional(top.constraints)?;
        list.unwrap_or_default()
            .into_iter()
            .map(|raw| Ok((source.parse(raw)?, source.start(raw.get()))))
            .collect()
    }

    /// Builds the space and maps the rows to its configurations; of two rows for one configuration
    /// the later one counts, as in Kernel Tuner. Also returns the number of rows outside the space.
    pub(super) fn build(
        &self,
        text: &Text,
    ) -> Result<(Space, HashMap<Config, Recorded>, usize), Diagnostics> {
        let domains = self.domains();
        let configs = self
            .rows
            .iter()
            .map(|row| self.config(row, &domains, text))
            .collect::<Result<Vec<_>, _>>()?;
        let space = self.space(domains, &configs, text)?;
        let mut rows = HashMap::with_capacity(configs.len());
        let mut excluded = 0;
        for (config, row) in configs.into_iter().zip(&self.rows) {
            if space.contains(&config) {
                rows.insert(config, row.recorded.clone());
            } else {
                excluded += 1;
            }
        }
        if rows.is_empty() {
            return Err(text.error(
                0,
                "no recorded row belongs to the space",
                "the file needs at least one row, and its `constraints` must allow it",
            ));
        }
        Ok((space, rows, excluded))
    }

    /// Returns the declared values, or those that occur, sorted if all of them are numbers.
    fn domains(&self) -> Vec<Vec<Value>> {
        let collect = |index: usize| {
            let occurring = self.rows.iter().filter_map(|row| row.values.get(index));
            let mut seen = HashSet::new();
            let mut values: Vec<Value> = occurring
                .filter(|value| seen.insert(*value))
                .cloned()
                .collect();
            if values.iter().all(|value| value.as_f64().is_some()) {
                values.sort_by(|a, b| {
                    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
                    number(a).total_cmp(&number(b))
                });
            }
            values
        };
        self.parameters
            .iter()
            .enumerate()
            .map(|(index, (_, declared))| {
                if declared.is_empty() {
                    collect(index)
                } else {
                    declared.clone()
                }
            })
            .collect()
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "every row has a value for each parameter, and constraints are numbered by their own list"
    )]
    fn config(
        &self,
        row: &Row,
        domains: &[Vec<Value>],
        text: &Text,
    ) -> Result<Config, Diagnostics> {
        let mut choices = Vec::with_capacity(domains.len());
        for (index, value) in row.values.iter().enumerate() {
            let domain = &domains[index];
            let exact = domain.iter().position(|known| known == value);
            // Python writes 1 and 1.0 for the same value, depending on its origin.
            let same = || {
                let number = value.as_f64()?;
                domain
                    .iter()
                    .position(|known| known.as_f64() == Some(number))
            };
            let choice = exact.or_else(same).ok_or_else(|| {
                let name = &self.parameters[index].0;
                text.error(
                    row.offset,
                    format!("`{name}` = {value} is not among the values that `tune_params` lists"),
                    format!("add {value} to `tune_params`, or remove this row"),
                )
            })?;
            choices.push(choice as u32);
        }
        Ok(Config::new(choices))
    }

    /// Returns the set that the constraints define, or the recorded rows without constraints.
    #[expect(
        clippy::indexing_slicing,
        reason = "every row has a value for each parameter, and constraints are numbered by their own list"
    )]
    fn space(
        &self,
        domains: Vec<Vec<Value>>,
        configs: &[Config],
        text: &Text,
    ) -> Result<Space, Diagnostics> {
        let parameters = self
            .parameters
            .iter()
            .zip(domains)
            .map(|((name, _), values)| Parameter::new(name.as_str(), values))
            .collect();
        let built = if self.constraints.is_empty() {
            Space::from_rows(&self.kernel, parameters, configs)
        } else {
            let constraints = self
                .constraints
                .iter()
                .map(|(rule, offset)| self.constraint(rule, *offset, text))
                .collect::<Result<Vec<_>, _>>()?;
            Space::build(
                &self.kernel,
                parameters,
                &constraints,
                &Environment::default(),
            )
        };
        let space = built.map_err(|error| match &error {
            SpaceError::Expression {
                place: Place::Constraint(index),
                error,
                ..
            } => text.expression(self.constraints[*index].1, error),
            _ => text.error(
                self.constraints.first().map_or(0, |(_, offset)| *offset),
                error.to_string(),
                "the parameters and constraints of the file must define a space",
            ),
        })?;
        match space.empty_reason() {
            None => Ok(space),
            Some(reason) => Err(text.error(
                self.constraints.first().map_or(0, |(_, offset)| *offset),
                format!("no configuration is valid: {reason}"),
                "loosen the constraint, or remove it so that the rows define the space",
            )),
        }
    }

    fn constraint(
        &self,
        rule: &str,
        offset: usize,
        text: &Text,
    ) -> Result<Constraint, Diagnostics> {
        let rule = Expr::parse(rule).map_err(|error| text.expression(offset, &error))?;
        Ok(Constraint { rule, why: None })
    }
}
