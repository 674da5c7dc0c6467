//! Spaces without a kernel: the tuner's bare YAML form, the JSON of published spaces, T1 input
//! files, and the headers of Kernel Tuner's recorded caches.

use super::check::Checker;
use super::{Origin, node, python, read};
use crate::parameter::repeated;
use crate::{
    Config, Constraint, Diagnostic, Diagnostics, Environment, Expr, Parameter, Space, SpaceError,
};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use tuner_core::value::Value;

/// Parameters with constraints or recorded rows, read from a file of any supported format.
#[derive(Debug, Clone)]
pub struct BareSpace {
    /// The space's name.
    pub name: String,
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// Derived values.
    pub derived: Vec<(String, Expr)>,
    /// The constraints.
    pub constraints: Vec<Constraint>,
    /// The configurations, if the file lists them instead of constraints.
    pub rows: Option<Vec<Config>>,
    /// The source text.
    pub(super) origin: Origin,
}

impl BareSpace {
    /// Reports whether the text is a bare space or another tool's file rather than a kernel's
    /// space.
    #[must_use]
    pub fn recognises(text: &str) -> bool {
        let other = |key: &str| text.contains(key);
        // Recorded files are large, so only their keys are searched for.
        if is_json(text) && (other("\"tune_params\"") || other("\"ConfigurationSpace\"")) {
            return true;
        }
        match node::read(text) {
            Ok(node) => read::is_bare(&node) || (is_json(text) && !read::is_kernel(&node)),
            Err(_) => is_json(text),
        }
    }

    /// Reads and checks a file. `path` names it in messages.
    ///
    /// # Errors
    /// All errors of the text.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Diagnostics> {
        let failed = |items| Diagnostics::new(path.display().to_string(), text, items);
        if is_json(text) {
            let json: Json = parse_json(text)
                .map_err(|error| Diagnostics::of_json(path.display().to_string(), text, &error))?;
            // A flow mapping of the tuner's own format is valid JSON as well.
            if json.get("parameters").is_none() {
                no_key_twice(&json, text).map_err(failed)?;
                return from_json(&json, text, path).map_err(failed);
            }
        }
        let node = node::read(text).map_err(|item| failed(vec![item]))?;
        let bare = super::schema::Bare::read(&node, text).map_err(failed)?;
        let mut checker = Checker::new(text, path);
        let space = Self {
            name: bare.name.unwrap_or_else(|| stem(path)),
            parameters: checker.parameters(&bare.parameters),
            derived: checker.derived(bare.derived.as_ref()),
            constraints: checker.constraints(bare.constraints.unwrap_or_default()),
            rows: None,
            origin: Origin::new(path, &checker),
        };
        space.checked(checker).map_err(failed)
    }

    fn checked(self, mut checker: Checker<'_>) -> Result<Self, Vec<Diagnostic>> {
        if checker.errors.is_empty() {
            checker.resolve(&self.parameters, &self.constraints, &self.environment());
        }
        if checker.errors.is_empty() {
            Ok(self)
        } else {
            Err(checker.errors)
        }
    }

    fn environment(&self) -> Environment {
        Environment {
            derived: self.derived.clone(),
            constants: Vec::new(),
        }
    }

    /// Builds the space.
    ///
    /// # Errors
    /// As [`Space::build`].
    pub fn space(&self) -> Result<Space, SpaceError> {
        let parameters = self.parameters.clone();
        match &self.rows {
            Some(rows) => Space::from_rows(&self.name, parameters, rows),
            None => Space::build(
                &self.name,
                parameters,
                &self.constraints,
                &self.environment(),
            ),
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Rejects repeated keys: JSON readers use the last of two equal keys, but a repeated key of a space is a
/// mistake. Recorded caches are written by programs and too large to be read twice.
fn no_key_twice(json: &Json, text: &str) -> Result<(), Vec<Diagnostic>> {
    if json.get("cache").is_some() {
        return Ok(());
    }
    match node::read(text) {
        Err(error) if error.message.ends_with("given twice") => Err(vec![error]),
        _ => Ok(()),
    }
}

/// Returns the file name without its extensions.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Parses JSON, or the recorded cache of an interrupted run, which ends after a row's comma.
fn parse_json(text: &str) -> serde_json::Result<Json> {
    serde_json::from_str(text).or_else(|error| {
        let open = text.trim_end();
        match open.strip_suffix(',') {
            Some(rows) if open.contains("\"cache\"") => {
                serde_json::from_str(&format!("{rows}}}}}"))
            }
            _ => Err(error),
        }
    })
}

/// Reader of another tool's JSON.
struct Foreign<'t> {
    checker: Checker<'t>,
}

/// Contents of such a file: its name (null if missing), parameters, constraints, and the rows if the file
/// has only rows.
type Contents<'j> = (
    &'j Json,
    Vec<Parameter>,
    Vec<Constraint>,
    Option<Vec<Config>>,
);

fn from_json(json: &Json, text: &str, path: &Path) -> Result<BareSpace, Vec<Diagnostic>> {
    let mut foreign = Foreign {
        checker: Checker::new(text, path),
    };
    let said = if json.get("params").is_some() {
        foreign.published(json)
    } else if json.get("ConfigurationSpace").is_some() {
        foreign.t1(json)
    } else if json.get("tune_params").is_some() {
        foreign.recorded(json)
    } else {
        let error = Diagnostic::new("this JSON is not a search space", 0..1);
        return Err(vec![error.help(
            "known are `params` and `constraints`, T1 files with `ConfigurationSpace`, and Kernel Tuner caches with `tune_params`",
        )]);
    };
    let mut checker = foreign.checker;
    match said {
        Ok((name, parameters, constraints, rows)) => BareSpace {
            name: name.as_str().map_or_else(|| stem(path), str::to_owned),
            parameters,
            derived: Vec::new(),
            constraints,
            rows,
            origin: Origin::new(path, &checker),
        }
        .checked(checker),
        Err(error) => {
            checker.errors.push(error);
            Err(checker.errors)
        }
    }
}

impl Foreign<'_> {
    /// Returns the bytes of a text that occurs verbatim in the source, otherwise those of the
    /// beginning.
    fn locate(&self, text: &str) -> Range<usize> {
        let quoted = Json::from(text).to_string();
        let found = self.checker.source.find(&quoted);
        found.map_or(0..1, |at| at..at + quoted.len())
    }

    fn constraints<'j>(&mut self, rules: impl Iterator<Item = &'j Json>) -> Vec<Constraint> {
        let mut constraints = Vec::new();
        for rule in rules {
            let Some(rule) = rule.as_str() else {
                let error = Diagnostic::new(format!("the constraint {rule} is not text"), 0..1);
                let error = error.help("write every constraint as text: \"a * b <= 64\"");
                self.checker.errors.push(error);
                continue;
            };
            let at = self.locate(rule);
            match Expr::parse(rule) {
                Ok(rule) => {
                    self.checker.rules.push(at);
                    constraints.push(Constraint { rule, why: None });
                }
                Err(error) => {
                    let error = Diagnostic::in_expression(&error, at, self.checker.source);
                    self.checker.errors.push(error);
                }
            }
        }
        constraints
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "a place is of the list that it was found in; indexing JSON gives null where a key is missing"
    )]
    fn parameter(&self, name: Option<&str>, values: Vec<Value>) -> Result<Parameter, Diagnostic> {
        let Some(name) = name else {
            return Err(Diagnostic::new("a parameter has no name", 0..1)
                .help("give every parameter a name and values"));
        };
        let at = self.locate(name);
        if values.is_empty() {
            return Err(Diagnostic::new(format!("`{name}` has no values"), at)
                .help("list at least one value"));
        }
        if let Some(index) = repeated(&values) {
            let message = format!("`{name}` has the value {} twice", values[index]);
            return Err(Diagnostic::new(message, at).help("list every value once"));
        }
        Ok(Parameter::new(name, values))
    }

    fn values(&self, name: &str, values: &Json) -> Result<Vec<Value>, Diagnostic> {
        serde_json::from_value(values.clone()).map_err(|error| {
            Diagnostic::new(
                format!("the values of `{name}`: {error}"),
                self.locate(name),
            )
            .help("list integers, floats, booleans or strings")
        })
    }

    /// Reads the JSON of published spaces: `params` and `constraints`.
    fn published<'j>(&mut self, json: &'j Json) -> Result<Contents<'j>, Diagnostic> {
        let mut parameters = Vec::new();
        for each in elements(&json["params"]) {
            let name = each["name"].as_str();
            let values = self.values(name.unwrap_or_default(), &each["values"])?;
            parameters.push(self.parameter(name, values)?);
        }
        let constraints = self.constraints(elements(&json["constraints"]));
        Ok((&json["name"], parameters, constraints, None))
    }

    /// Reads T1: values and conditions are Python source, limited here to lists and expressions.
    #[expect(
        clippy::indexing_slicing,
        reason = "a place is of the list that it was found in; indexing JSON gives null where a key is missing"
    )]
    fn t1<'j>(&mut self, json: &'j Json) -> Result<Contents<'j>, Diagnostic> {
        let space = &json["ConfigurationSpace"];
        let mut parameters = Vec::new();
        for each in elements(&space["TuningParameters"]) {
            let name = each["Name"].as_str();
            let values = match &each["Values"] {
                Json::String(source) => python::list(source).map_err(|error| {
                    Diagnostic::in_expression(&error, self.locate(source), self.checker.source)
                })?,
                values => self.values(name.unwrap_or_default(), values)?,
            };
            parameters.push(self.parameter(name, values)?);
        }
        let conditions = elements(&space["Conditions"]);
        let constraints = self.constraints(conditions.map(|condition| &condition["Expression"]));
        let kernel = &json["KernelSpecification"]["KernelName"];
        Ok((kernel, parameters, constraints, None))
    }

    /// Reads a recorded cache: its constraints define the space if it has any, otherwise its rows.
    #[expect(
        clippy::indexing_slicing,
        reason = "a place is of the list that it was found in; indexing JSON gives null where a key is missing"
    )]
    fn recorded<'j>(&mut self, json: &'j Json) -> Result<Contents<'j>, Diagnostic> {
        let keys: Vec<&str> = match &json["tune_params_keys"] {
            Json::Array(keys) => keys.iter().filter_map(Json::as_str).collect(),
            _ => json["tune_params"]
                .as_object()
                .into_iter()
                .flat_map(|params| params.keys().map(String::as_str))
                .collect(),
        };
        let mut parameters = Vec::new();
        for key in keys {
            let values = self.values(key, &json["tune_params"][key])?;
            parameters.push(self.parameter(Some(key), values)?);
        }
        let (constraints, rows) = match &json["constraints"] {
            Json::Array(rules) => (self.constraints(rules.iter()), None),
            _ => (Vec::new(), Some(self.rows(&json["cache"], &parameters)?)),
        };
        Ok((&json["kernel_name"], parameters, constraints, rows))
    }

    fn rows(&self, cache: &Json, parameters: &[Parameter]) -> Result<Vec<Config>, Diagnostic> {
        // Caches have many rows: a table avoids a search through the list for each value.
        let places: Vec<HashMap<String, u32>> = parameters
            .iter()
            .map(|parameter| {
                let values = parameter.values.iter().enumerate();
                values
                    .map(|(at, value)| (value.to_string(), at as u32))
                    .collect()
            })
            .collect();
        let mut rows = Vec::new();
        for (key, row) in cache.as_object().into_iter().flatten() {
            let choice = |(parameter, places): (&Parameter, &HashMap<String, u32>)| {
                let value: Value = serde_json::from_value(row[&parameter.name].clone()).ok()?;
                let place = places.get(&value.to_string()).copied();
                // `index_of` compares numbers by value, so that 1 also finds 1.0.
                place.or_else(|| parameter.index_of(&value))
            };
            let choices: Option<Vec<u32>> = parameters.iter().zip(&places).map(choice).collect();
            match choices {
                Some(choices) => rows.push(Config::new(choices)),
                None => {
                    let message = format!("the row \"{key}\" does not fit `tune_params`");
                    return Err(Diagnostic::new(message, self.locate(key))
                        .help("every parameter of a row takes one of its listed values"));
                }
            }
        }
        Ok(rows)
    }
}

fn elements(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}
