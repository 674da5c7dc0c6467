//! Changes of a search space: parameters, derived values, constraints and launches of its document.

use crate::protocol::SpaceChange;
use serde_json::{Map, Value, json};

/// Most parameters of a changed space.
const MAX_PARAMETERS: usize = 64;

/// Most configurations that a change adds to the seeds.
const MAX_SEEDS: usize = 8;

/// Defect of a change, or of the document that it is made to.
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

/// Applies a change to a document.
///
/// # Errors
/// Something to remove that is not there; the search space's own reader checks the rest.
pub fn apply(document: &mut Map<String, Value>, change: &SpaceChange) -> Result<(), SpaceError> {
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
        document.insert("launches".to_owned(), json!(launches));
    }
    if !change.seeds.is_empty() {
        let known = document.entry("seeds").or_insert_with(|| json!([]));
        let mut seeds: Vec<Value> = change
            .seeds
            .iter()
            .take(MAX_SEEDS)
            .map(|one| json!(one))
            .collect();
        seeds.extend(known.as_array().cloned().unwrap_or_default());
        *known = Value::Array(seeds);
    }
    if !change.parameters.is_empty() {
        keep_known_seeds(document);
    }
    Ok(())
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

/// Drops the values of removed parameters from the seeds.
fn keep_known_seeds(document: &mut Map<String, Value>) {
    let parameters = map(document, "parameters");
    let Some(seeds) = document.get_mut("seeds").and_then(Value::as_array_mut) else {
        return;
    };
    for seed in seeds.iter_mut().filter_map(Value::as_object_mut) {
        seed.retain(|name, _| parameters.contains_key(name));
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
