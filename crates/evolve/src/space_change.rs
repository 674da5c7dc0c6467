//! Changes of a search space: parameters, derived values, constraints and launches of its document.

use crate::protocol::{MAX_LAUNCHES, MAX_SPACE_BYTES, SpaceChange};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Maximum number of parameters of a changed space.
const MAX_PARAMETERS: usize = 64;

/// Maximum configurations that a change adds to the seeds.
const MAX_SEEDS: usize = 8;

/// Defect of a change, or of the document that it changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// The document is not a map.
    #[error("the search space cannot be read: {0}")]
    Unreadable(String),
    /// A rule to remove does not exist.
    #[error("there is no constraint `{0}` to remove")]
    NoConstraint(String),
    /// A name to remove does not exist.
    #[error("there is no {kind} `{name}` to remove")]
    NoName {
        /// `parameter` or `derived value`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Too many parameters.
    #[error("there are more than {MAX_PARAMETERS} parameters")]
    TooMany,
    /// Too many launches.
    #[error("there are more than {MAX_LAUNCHES} launches")]
    TooManyLaunches,
    /// Too large.
    #[error("the changed search space has more than {MAX_SPACE_BYTES} bytes as JSON")]
    TooLarge,
}

/// Reads the YAML of a search space as a JSON value.
///
/// # Errors
/// Text that is not a map.
pub fn document(yaml: &str) -> Result<Map<String, Value>, SpaceError> {
    let mut options = serde_yaml::Options::default();
    // Only `true` and `false` are booleans, as in a search space: an argument may be called `y`.
    options.strict_booleans = true;
    serde_yaml::from_str_with_options(yaml, options)
        .map_err(|error| SpaceError::Unreadable(error.to_string()))
}

/// Returns the part of a document that a mutator may change.
#[must_use]
pub fn changeable(document: &Map<String, Value>) -> Value {
    let part = |key: &str| document.get(key).cloned().unwrap_or(Value::Null);
    json!({
        "parameters": part("parameters"),
        "derived": part("derived"),
        "constraints": part("constraints"),
        "launches": part("launches"),
    })
}

/// Returns the macros that a search space defines for its source, with their text values.
#[must_use]
pub fn macros(document: &Map<String, Value>) -> BTreeMap<String, Vec<String>> {
    let mut macros = BTreeMap::new();
    for (name, parameter) in map(document, "parameters") {
        let values = parameter["values"].as_array().into_iter().flatten();
        let values = values.chain([&parameter["default"]]);
        let texts = values.filter_map(Value::as_str).map(str::to_owned);
        macros.insert(name, texts.collect());
    }
    let problems = map(document, "problems");
    let sizes = problems.values().filter_map(Value::as_object);
    let sizes = sizes.flat_map(Map::keys).cloned();
    let derived = map(document, "derived");
    for name in sizes.chain(derived.keys().cloned()) {
        macros.entry(name).or_default();
    }
    let options = document.get("compile").and_then(|part| part.get("options"));
    let options = options.and_then(Value::as_array).into_iter().flatten();
    let defined = options.filter_map(|one| one.as_str()?.trim().strip_prefix("-D"));
    for option in defined {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        macros.insert(name.trim().to_owned(), vec![value.to_owned()]);
    }
    macros
}

/// Applies a change to a document, and returns remarks on seeds that it removes.
///
/// # Errors
/// An entry to remove does not exist; the search space's own reader checks the rest.
pub fn apply(
    document: &mut Map<String, Value>,
    change: &SpaceChange,
) -> Result<Vec<String>, SpaceError> {
    merge(document, "parameters", "parameter", &change.parameters)?;
    merge(document, "derived", "derived value", &change.derived)?;
    if map(document, "parameters").len() > MAX_PARAMETERS {
        return Err(SpaceError::TooMany);
    }
    if !change.add_constraints.is_empty() || !change.remove_constraints.is_empty() {
        let known = document.entry("constraints").or_insert_with(|| json!([]));
        let mut constraints = known.as_array().cloned().unwrap_or_default();
        for rule in &change.remove_constraints {
            let at = constraints
                .iter()
                .position(|one| one["rule"] == json!(rule));
            let at = at.ok_or_else(|| SpaceError::NoConstraint(rule.clone()))?;
            constraints.remove(at);
        }
        constraints.extend(change.add_constraints.iter().map(|one| json!(one)));
        *known = Value::Array(constraints);
    }
    if let Some(launches) = &change.launches {
        if launches.len() > MAX_LAUNCHES {
            return Err(SpaceError::TooManyLaunches);
        }
        document.insert("launches".to_owned(), json!(launches));
    }
    let mut notes = Vec::new();
    if !change.parameters.is_empty() {
        notes = keep_known_seeds(document);
    }
    if !change.seeds.is_empty() {
        add_seeds(document, &change.seeds);
    }
    let size = serde_json::to_string(document).map_or(0, |text| text.len());
    if size > MAX_SPACE_BYTES {
        return Err(SpaceError::TooLarge);
    }
    Ok(notes)
}

/// Inserts configurations before the seeds of the search space.
fn add_seeds(document: &mut Map<String, Value>, more: &[Map<String, Value>]) {
    let known = document.entry("seeds").or_insert_with(|| json!([]));
    let more = more.iter().take(MAX_SEEDS).map(|one| json!(one));
    let mut seeds: Vec<Value> = more.collect();
    seeds.extend(known.as_array().cloned().unwrap_or_default());
    *known = Value::Array(seeds);
}

/// Sets or removes entries of a map in the document.
fn merge(
    document: &mut Map<String, Value>,
    key: &str,
    kind: &'static str,
    changes: &Map<String, Value>,
) -> Result<(), SpaceError> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut entries = map(document, key);
    for (name, value) in changes {
        if !value.is_null() {
            entries.insert(name.clone(), value.clone());
        } else if entries.remove(name).is_none() {
            let name = name.clone();
            return Err(SpaceError::NoName { kind, name });
        }
    }
    document.insert(key.to_owned(), Value::Object(entries));
    Ok(())
}

fn map(document: &Map<String, Value>, key: &str) -> Map<String, Value> {
    let entries = document.get(key).and_then(Value::as_object);
    entries.cloned().unwrap_or_default()
}

/// Drops the values of removed parameters from the seeds, and seeds with values that no longer exist.
fn keep_known_seeds(document: &mut Map<String, Value>) -> Vec<String> {
    let parameters = map(document, "parameters");
    let Some(seeds) = document.get_mut("seeds").and_then(Value::as_array_mut) else {
        return Vec::new();
    };
    for seed in seeds.iter_mut().filter_map(Value::as_object_mut) {
        seed.retain(|name, _| parameters.contains_key(name));
    }
    let has_gone = |(name, value): (&String, &Value)| {
        parameters
            .get(name)
            .is_some_and(|parameter| !has_value(parameter, value))
    };
    let mut notes = Vec::new();
    seeds.retain(|seed| {
        let gone = seed
            .as_object()
            .and_then(|seed| seed.iter().find(|one| has_gone(*one)));
        if let Some((name, value)) = gone {
            notes.push(format!("a seed with {name} = {value} is dropped"));
        }
        gone.is_none()
    });
    notes
}

/// Reports whether a parameter has this value; accepts anything but lists and ranges, which the reader of
/// search spaces checks.
fn has_value(parameter: &Value, value: &Value) -> bool {
    if let Some(values) = parameter["values"].as_array() {
        let same =
            |one: &Value| one == value || (one.is_number() && one.as_f64() == value.as_f64());
        return values.iter().any(same);
    }
    let range = parameter["range"].as_object();
    let end = |name: &str| range?.get(name)?.as_f64();
    match (end("from"), end("to"), value.as_f64()) {
        (Some(from), Some(to), Some(value)) => {
            let step = end("step").filter(|step| *step > 0.0).unwrap_or(1.0);
            let steps = (value - from) / step;
            (from..=to).contains(&value) && (steps - steps.round()).abs() < 1e-9
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Constraint;

    const YAML: &str = "kernel: k\nparameters: { A: { values: [1, 2], default: 1 }, B: { values: [1], default: 1 } }\n\
                        constraints: [{ rule: A <= 2, why: small }]\nlaunches: [{ entry: k }]\nseeds: [{ A: 2, B: 1 }]\n";

    #[test]
    fn parameters_constraints_and_launches_change() {
        let mut space = document(YAML).unwrap();
        let change = SpaceChange {
            parameters: serde_json::from_value(json!({"C": {"values": [4]}, "B": null})).unwrap(),
            derived: serde_json::from_value(json!({"D": "A * C"})).unwrap(),
            add_constraints: vec![Constraint {
                rule: "D < 9".to_owned(),
                why: "room".to_owned(),
            }],
            remove_constraints: vec!["A <= 2".to_owned()],
            seeds: vec![serde_json::from_value(json!({"C": 4})).unwrap()],
            launches: Some(vec![json!({"entry": "other"})]),
        };
        apply(&mut space, &change).unwrap();
        let names: Vec<&String> = space["parameters"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["A", "C"]);
        assert_eq!(
            space["constraints"],
            json!([{"rule": "D < 9", "why": "room"}])
        );
        assert_eq!(space["seeds"], json!([{"C": 4}, {"A": 2}]));
        assert_eq!(space["launches"][0]["entry"], "other");
        assert_eq!(space["kernel"], "k");
    }

    #[test]
    fn a_name_is_no_boolean() {
        let space = document("arguments: [{ name: y }, { name: no }]").unwrap();
        assert_eq!(space["arguments"], json!([{"name": "y"}, {"name": "no"}]));
    }

    #[test]
    fn narrowed_values_drop_seeds_that_have_others() {
        let mut space = document(YAML).unwrap();
        let parameters = serde_json::from_value(json!({"A": {"values": [1], "default": 1}}));
        let change = SpaceChange {
            parameters: parameters.unwrap(),
            seeds: vec![serde_json::from_value(json!({"A": 1})).unwrap()],
            ..SpaceChange::default()
        };
        let notes = apply(&mut space, &change).unwrap();
        assert_eq!(notes, ["a seed with A = 2 is dropped"]);
        assert_eq!(space["seeds"], json!([{"A": 1}]));
        let range = json!({"range": {"from": 2, "to": 8, "step": 2}});
        for (value, is_in) in [(2, true), (8, true), (5, false), (10, false)] {
            assert_eq!(has_value(&range, &json!(value)), is_in, "{value}");
        }
    }

    #[test]
    fn the_macros_of_a_source_are_those_of_its_space() {
        let space = document(
            "parameters: { T: { values: [float, half] }, N: { values: [1] } }\nderived: { D: N }\n\
             problems: { p: { R: 2 } }\ncompile: { options: [-DX=1, --fmad] }\n",
        );
        let all = macros(&space.unwrap());
        let names: Vec<&String> = all.keys().collect();
        assert_eq!(names, ["D", "N", "R", "T", "X"]);
        assert_eq!(all["T"], ["float", "half"]);
    }

    #[test]
    fn something_to_remove_must_be_there() {
        let mut space = document(YAML).unwrap();
        let parameters = serde_json::from_value(json!({"X": null})).unwrap();
        let change = SpaceChange {
            parameters,
            ..SpaceChange::default()
        };
        assert!(
            apply(&mut space, &change)
                .unwrap_err()
                .to_string()
                .contains("`X`")
        );
        let remove_constraints = vec!["A < 2".to_owned()];
        let change = SpaceChange {
            remove_constraints,
            ..SpaceChange::default()
        };
        assert!(apply(&mut space, &change).is_err());
    }

    #[test]
    fn a_change_has_no_key_for_what_decides_the_verdict() {
        for key in [
            "reference",
            "gate",
            "arguments",
            "problems",
            "check_problems",
            "metric",
            "compile",
        ] {
            let text = format!("{{\"{key}\": null}}");
            let read: Result<SpaceChange, _> = serde_json::from_str(&text);
            assert!(
                read.unwrap_err().to_string().contains("unknown field"),
                "{key}"
            );
        }
    }
}
