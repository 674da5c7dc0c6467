//! A search space file out of another tool's.
#![expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]

use serde_json::Value as Json;
use std::fmt::Write as _;
use tuner_core::value::Value;
use tuner_space::BareSpace;

/// The bare space as YAML; what a T1 problem says of the kernel besides stands above it.
pub(super) fn yaml(bare: &BareSpace, source: &str) -> String {
    let json: Json = serde_json::from_str(source).unwrap_or_default();
    let mut text = String::new();
    heading(&mut text, bare, &json);
    text.push_str("parameters:\n");
    for parameter in &bare.parameters {
        let values: Vec<String> = parameter.values.iter().map(scalar).collect();
        let default = default_of(&json, &parameter.name)
            .filter(|default| parameter.values.contains(default))
            .map_or(String::new(), |default| {
                format!(", default: {}", scalar(&default))
            });
        let _ = writeln!(
            text,
            "  {}: {{ values: [{}]{default} }}",
            quoted(&parameter.name),
            values.join(", ")
        );
    }
    if !bare.constraints.is_empty() {
        text.push_str("constraints:\n");
    }
    for constraint in &bare.constraints {
        let rule = quoted(constraint.rule.text());
        let why = constraint
            .why
            .as_deref()
            .unwrap_or("as in the imported file");
        let _ = writeln!(text, "  - {{ rule: {rule}, why: {} }}", quoted(why));
    }
    text
}

fn heading(text: &mut String, bare: &BareSpace, json: &Json) {
    let comment = |text: &mut String, line: &str| {
        let line = line.replace(['\n', '\r'], " ");
        let _ = writeln!(text, "# {line}");
    };
    comment(
        text,
        &format!(
            "{}: imported by tuner {}.",
            bare.name,
            env!("CARGO_PKG_VERSION")
        ),
    );
    let kernel = &json["KernelSpecification"];
    if kernel.is_null() {
        return;
    }
    comment(
        text,
        "A T1 problem says how the kernel is launched, and not what it computes. To tune it here,",
    );
    comment(
        text,
        "add version, kernel, source, problems, arguments, launches and reference; the file said:",
    );
    for key in [
        "Language",
        "KernelName",
        "KernelFile",
        "ProblemSize",
        "GlobalSize",
        "LocalSize",
        "GridDivX",
        "GridDivY",
        "GridDivZ",
        "CompilerOptions",
        "Arguments",
    ] {
        let value = &kernel[key];
        if !value.is_null() {
            comment(text, &format!("  {key}: {value}"));
        }
    }
}

/// A T1 parameter's default: a value, or a value in Python's spelling.
fn default_of(json: &Json, name: &str) -> Option<Value> {
    let parameters = json["ConfigurationSpace"]["TuningParameters"].as_array()?;
    let default = &parameters.iter().find(|one| one["Name"] == name)?["Default"];
    let plain: Option<Value> = serde_json::from_value(default.clone()).ok();
    match plain {
        Some(Value::Text(text)) => {
            let spelled = match &*text {
                "True" => Some(Value::Bool(true)),
                "False" => Some(Value::Bool(false)),
                other => serde_json::from_str(other).ok(),
            };
            Some(spelled.unwrap_or(Value::Text(text)))
        }
        other => other,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// A double-quoted YAML scalar: JSON's form is one.
fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}
