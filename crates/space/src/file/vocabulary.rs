//! JSON schemas of the types that `tuner_core` defines. The core does not depend on a schema
//! library, so their schemas are here, with the file format.

use super::fills::FillText;
use schemars::json_schema;
use serde_json::{Value, json};
use tuner_core::plan;

/// Implements `JsonSchema` for a type, under the name that other schemas use.
macro_rules! schema {
    ($ty:ty, $name:literal, $generator:ident => $schema:expr) => {
        impl schemars::JsonSchema for $ty {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
pub(super) use schema;

/// Builds the schema of a choice of words, each with its meaning.
fn words(words: &[(&str, &str)]) -> Vec<Value> {
    let word = |(name, meaning): &(&str, &str)| json!({ "type": "string", "const": name, "description": meaning });
    words.iter().map(word).collect()
}

/// Builds the schema of one key with its value.
fn keyed(key: &str, value: &Value, meaning: &str) -> Value {
    json!({
        "type": "object",
        "properties": { key: value },
        "required": [key],
        "additionalProperties": false,
        "description": meaning,
    })
}

/// Builds the schema of two numbers, each with its meaning.
fn pair([(first, its), (second, meaning)]: [(&str, &str); 2]) -> Value {
    let number =
        |meaning: &str| json!({ "description": meaning, "type": "number", "format": "double" });
    json!({
        "type": "object",
        "properties": { first: number(its), second: number(meaning) },
        "additionalProperties": false,
        "required": [first, second],
    })
}

/// The schema of [`tuner_core::element::Element`].
pub(super) struct ElementType;

schema!(ElementType, "ElementType", _generator => {
    let elements: Vec<Value> = super::types::names()
        .iter()
        .map(|name| json!({ "type": "string", "const": name }))
        .collect();
    json_schema!({ "oneOf": elements, "description": "Numbers: IEEE f16, f32, f64, bf16, 8-bit floats (f8e4m3, f8e5m2), signed and unsigned \
        integers of 8 to 64 bit, bool; and the vectors of CUDA by name." })
});

/// The schema of [`tuner_core::plan::Role`].
pub(super) struct Role;

schema!(Role, "Role", _generator => {
    let roles: Vec<(&str, &str)> = plan::Role::ALL
        .iter()
        .map(|role| (role.name(), role.describe()))
        .collect();
    let roles = words(&roles);
    json_schema!({ "oneOf": roles, "description": "Use of an argument by the kernel." })
});

/// The schema of [`tuner_core::target::ArchFeatures`].
pub(super) struct ArchFeatures;

schema!(ArchFeatures, "ArchFeatures", _generator => {
    let features = words(&[
        (
            "a",
            "Target sm_90a on a GPU of compute capability 9.0, sm_100a on one of 10.0, and so on: all \
             features, on that compute capability alone. A GPU before 9.0 keeps its portable target.",
        ),
        (
            "f",
            "Target sm_100f on a GPU of compute capability 10.0, and so on: the features that later \
             minor revisions share. A GPU before 10.0 keeps its portable target.",
        ),
    ]);
    json_schema!({ "oneOf": features, "description": "Suffix of the compile target." })
});

schema!(FillText, "Fill", _generator => {
    let normal = pair([
        ("mean", "Mean."),
        ("std", "Standard deviation, not negative."),
    ]);
    let uniform = pair([("min", "Smallest."), ("max", "Largest.")]);
    let constant = json!({ "type": "number", "format": "double" });
    let mut fills = vec![
        keyed("normal", &normal, "Normally distributed numbers."),
        keyed("uniform", &uniform, "Uniformly distributed numbers."),
        keyed("constant", &constant, "The same number everywhere."),
    ];
    let text = json!({ "type": "string" });
    let some = json!({ "type": "object" });
    fills.extend([
        keyed("sorted", &uniform, "Ascending numbers."),
        keyed("sparse", &some, "Zero except for a share `rate` of the elements."),
        keyed("boxes", &uniform, "Boxes: low corner, high corner."),
        keyed(
            "csr",
            &some,
            "A graph: `offsets: NNZ` for the row offsets, `rows` and `columns` for the indices.",
        ),
        keyed("file", &text, "A .npy file or raw numbers, relative to this file."),
        keyed("kernel", &text, "A generator in the template."),
    ]);
    fills.extend(words(&[
        ("arange", "0, 1, 2, …"),
        ("zeros", "0 everywhere."),
        ("permutation", "0, 1, 2, … in random order."),
        ("sorted", "Ascending numbers: -1 to 1, whole ones 0 to 100."),
        ("sparse", "Nine of ten elements are zero."),
        ("boxes", "Boxes between 0 and 100."),
    ]));
    json_schema!({ "oneOf": fills, "description": "Initial contents of a buffer." })
});

/// Reports whether a text can be a kernel's name, and so part of a file's name.
#[must_use]
pub fn is_kernel_name(name: &str) -> bool {
    let valid = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(valid)
}
