//! Conversion of other tools' search spaces.

use rand::SeedableRng as _;
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::path::Path;
use tuner_core::escape;
use tuner_core::escape::yaml as quoted;
use tuner_core::value::Value;
use tuner_space::{BareSpace, Space};

/// Converts the space to YAML, with the reason why a T1 problem is not a complete search space. Its
/// kernel's data then are a comment above the parameters.
#[expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]
pub(super) fn yaml(
    bare: &BareSpace,
    space: &Space,
    source: &str,
    file: &Path,
    output: &Path,
) -> (String, Option<String>) {
    let json: Json = serde_json::from_str(source).unwrap_or_default();
    let rest = sections(bare, &defaults(bare, space, &json));
    let (version, name) = (env!("CARGO_PKG_VERSION"), &bare.name);
    let mut text = comment(&format!("{name}: imported by tuner {version}."));
    let kernel = &json["KernelSpecification"];
    if kernel.is_null() {
        return (text + &rest, None);
    }
    match super::t1::whole(&json, bare, file, output, &rest) {
        Ok(whole) => (text + &whole, None),
        Err(why) => {
            described(&mut text, kernel);
            (text + &rest, Some(why))
        }
    }
}

fn comment(line: &str) -> String {
    format!("# {}\n", escape::line(line))
}

/// Returns the defaults that differ from a parameter's first value: those of the file, or if they are not a
/// valid configuration, a valid one with as many of the file's values as possible.
fn defaults(bare: &BareSpace, space: &Space, json: &Json) -> Vec<Option<Value>> {
    let given = |name: &str, values: &[Value]| {
        let default = default_of(json, name)?;
        values.iter().position(|value| *value == default)
    };
    let parameters = bare.parameters.iter();
    let wanted: Vec<u32> = parameters
        .clone()
        .map(|one| given(&one.name, &one.values).unwrap_or(0) as u32)
        .collect();
    let order: Vec<usize> = (0..wanted.len()).collect();
    // A constant: the same file always becomes the same search space.
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let valid = space.nearest(&wanted, &order, &mut rng);
    let choices = valid.map_or(wanted, |config| config.choices().to_vec());
    parameters
        .zip(choices)
        .map(|(one, choice)| {
            let is_first = choice == 0 && given(&one.name, &one.values).is_none();
            let value = one.values.get(choice as usize);
            value.filter(|_| !is_first).cloned()
        })
        .collect()
}

/// Formats parameters and constraints.
fn sections(bare: &BareSpace, defaults: &[Option<Value>]) -> String {
    let mut text = String::new();
    text.push_str("parameters:\n");
    for (parameter, default) in bare.parameters.iter().zip(defaults) {
        let values: Vec<String> = parameter.values.iter().map(scalar).collect();
        let default = default.as_ref().map_or(String::new(), |default| {
            format!(", default: {}", scalar(default))
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
        let said = || format!("the imported file says `{}`", constraint.rule.text());
        let why = constraint.why.clone().unwrap_or_else(said);
        let _ = writeln!(text, "  - {{ rule: {rule}, why: {} }}", quoted(&why));
    }
    text
}

/// Formats a T1 problem's kernel data as comments.
fn described(text: &mut String, kernel: &Json) {
    text.push_str(
        "# A T1 problem says how the kernel is launched, and not what it computes. To tune it here,\n\
         # add version, kernel, source, problems, arguments, launches and reference; the file said:\n",
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
            text.push_str(&comment(&format!("  {key}: {value}")));
        }
    }
}

/// Returns a T1 parameter's default: a value, or a value in Python's spelling.
#[expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]
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
        // Display writes 1.0 as `1`, which YAML reads as an integer.
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}
