//! Generator of the reference page of search spaces from the types that read them: all keys, words, names
//! and functions.

use crate::expr::FUNCTIONS;
use crate::{DEVICE_NAMES, json_schema};
use serde_json::Value as Json;
use std::fmt::Write as _;

/// Notation and meaning of the operators: binary ones from the lowest precedence to the highest,
/// then unary ones and lists.
const OPERATORS: [(&str, &str); 28] = [
    ("a if b else c", "`a` if `b` is true, else `c`"),
    ("a or b", "`a` if it is true, else `b`"),
    ("a and b", "`a` if it is false, else `b`"),
    ("not a", "True if `a` is false"),
    ("a in b", "True if the list `b` contains `a`"),
    ("a not in b", "True if it does not"),
    ("a < b", "Less; comparisons chain: `1 <= a < b`"),
    ("a <= b", "Less or equal"),
    ("a > b", "Greater"),
    ("a >= b", "Greater or equal"),
    ("a == b", "Equal"),
    ("a != b", "Not equal"),
    ("a \\| b", "Bitwise or"),
    ("a ^ b", "Bitwise exclusive or"),
    ("a & b", "Bitwise and"),
    ("a << b", "Shift to the left"),
    ("a >> b", "Shift to the right"),
    ("a + b", "Sum"),
    ("a - b", "Difference"),
    ("a * b", "Product"),
    (
        "a / b",
        "True division: `7 / 2` is 3.5; if `b` is 0, a rule is false and other expressions fail",
    ),
    (
        "a // b",
        "Division rounded down: `7 // 2` is 3, `-7 // 2` is -4",
    ),
    ("a % b", "Remainder with the sign of `b`"),
    ("a ** b", "Power"),
    ("-a", "Negative"),
    ("+a", "The number itself"),
    ("~a", "Bitwise complement"),
    ("[a, b, …]", "A list"),
];

/// Meanings of the functions.
const MEANINGS: [(&str, &str); 14] = [
    ("abs", "Absolute value"),
    ("bool", "True or false"),
    ("ceil", "Rounded up"),
    ("ceil_div", "`a / b` rounded up: `ceil_div(7, 2)` is 4"),
    ("float", "Floating-point number"),
    ("floor", "Rounded down"),
    ("int", "Whole number, rounded towards zero"),
    (
        "len",
        "Number of elements of a list, of characters of a text",
    ),
    ("log2", "Logarithm to base 2"),
    ("max", "The largest argument, or element of a list"),
    ("min", "The smallest argument, or element of a list"),
    ("pow", "Power"),
    (
        "round",
        "Rounded, halves to even; with a second argument to that many digits",
    ),
    ("sqrt", "Square root"),
];

/// Formats a function's arguments.
fn arguments(fewest: usize, most: usize) -> &'static str {
    match (fewest, most) {
        (1, 1) => "a",
        (1, 2) => "a, b",
        (2, 2) => "a, b",
        _ => "a, b, …",
    }
}

/// Returns the page as Markdown.
#[must_use]
#[expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]
pub fn reference() -> String {
    let schema = json_schema();
    let mut text = String::from(
        "# Reference of search spaces\n\n\
         All keys of a search space file, and the language of its expressions. Generated from the \
         types that parse them: `TUNER_UPDATE_SCHEMA=1 cargo test --test program space_schema::` \
         regenerates this file. `tuner new NAME` creates a new search space.\n\n\
         ## Keys of the file\n\n",
    );
    keys(&schema, &schema, &mut text);
    let mut open: Vec<(String, String)> = sections(&schema, "");
    let mut written: Vec<String> = Vec::new();
    while !open.is_empty() {
        let (path, name) = open.remove(0);
        if written.contains(&name) {
            continue;
        }
        let section = &schema["$defs"][&name];
        written.push(name);
        if section["properties"].is_object() {
            let _ = write!(text, "\n## `{path}`\n\n{}\n\n", plain(section));
            keys(section, &schema, &mut text);
            open.extend(sections(section, &format!("{path}.")));
        } else if section["oneOf"].is_array() {
            let _ = write!(text, "\n## `{path}`\n\n{}\n\n", plain(section));
            words(section, &mut text);
        }
    }
    expressions(&mut text);
    text
}

fn plain(schema: &Json) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.replace('\n', " ").replace('|', "\\|")
}

/// Writes a table of an object's keys.
fn keys(object: &Json, schema: &Json, text: &mut String) {
    text.push_str("| key | value | |\n|---|---|---|\n");
    let required = object["required"].as_array();
    let required = |key: &str| required.is_some_and(|all| all.iter().any(|name| name == key));
    for (key, value) in object["properties"].as_object().into_iter().flatten() {
        let needed = if required(key) { "Required. " } else { "" };
        let _ = writeln!(
            text,
            "| `{key}` | {} | {needed}{} |",
            kind(value, schema),
            plain(value)
        );
    }
}

/// Describes a value's type.
#[expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]
fn kind(value: &Json, schema: &Json) -> String {
    if let Some(word) = value["const"].as_str() {
        return format!("`{word}`");
    }
    let either = value["anyOf"].as_array().or(value["oneOf"].as_array());
    if let Some(options) = either {
        let not_null = options.iter().filter(|one| one["type"] != "null");
        let kinds: Vec<String> = not_null.map(|one| kind(one, schema)).collect();
        return kinds.join(" or ");
    }
    if let Some(name) = named(value) {
        let target = &schema["$defs"][name];
        return match name {
            "Expression" => "expression".to_owned(),
            "Value" => "value".to_owned(),
            _ if target["additionalProperties"].is_object() => {
                format!(
                    "names, each with {}",
                    kind(&target["additionalProperties"], schema)
                )
            }
            _ if target["properties"].is_object() => "keys (below)".to_owned(),
            _ if target["oneOf"].is_array() => "one of those below".to_owned(),
            other => other.to_owned(),
        };
    }
    let types: Vec<&str> = match &value["type"] {
        Json::Array(all) => all.iter().filter_map(Json::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    match types.into_iter().find(|one| *one != "null") {
        Some("array") => format!("list of {}", kind(&value["items"], schema)),
        Some("string") => "text".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(other) => other.to_owned(),
        None => "value".to_owned(),
    }
}

/// Returns the name of the definition that a schema refers to.
fn named(value: &Json) -> Option<&str> {
    value["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// Returns the definitions that an object's keys refer to, each with its path.
fn sections(object: &Json, before: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (key, value) in object["properties"].as_object().into_iter().flatten() {
        let path = format!("{before}{key}");
        let either = [&value["anyOf"], &value["oneOf"]];
        let options = either.into_iter().filter_map(Json::as_array).flatten();
        for option in options.chain([value]) {
            found.extend(named(option).map(|name| (path.clone(), name.to_owned())));
            let element = named(&option["items"]);
            found.extend(element.map(|name| (path.clone(), name.to_owned())));
        }
    }
    // Definitions of the values under user-chosen names.
    for (_, name) in &mut found {
        if let Some(inner) = name.strip_prefix("Named_") {
            *name = inner.to_owned();
        }
    }
    found
}

/// Writes a table of words and of single keys.
#[expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]
fn words(section: &Json, text: &mut String) {
    text.push_str("| value | |\n|---|---|\n");
    for one in section["oneOf"].as_array().into_iter().flatten() {
        let written = match (&one["const"], one["required"][0].as_str()) {
            (Json::String(word), _) => word.clone(),
            (_, Some(key)) => {
                let inner = one["properties"][key]["properties"].as_object();
                let names: Vec<String> = inner
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| format!("{name}: …"))
                    .collect();
                if names.is_empty() {
                    format!("{key}: …")
                } else {
                    format!("{key}: {{ {} }}", names.join(", "))
                }
            }
            _ if one["type"] == "array" => "[NAME, …]".to_owned(),
            _ => continue,
        };
        let _ = writeln!(text, "| `{written}` | {} |", plain(one));
    }
}

fn expressions(text: &mut String) {
    text.push_str(
        "\n## Expressions\n\n\
         Expressions are Python's, so that constraints of Kernel Tuner files work unchanged. Names \
         are those of parameters, derived values, sizes of the problem and limits of the device. \
         Integers are exact to 127 bits.\n\n\
         | name | |\n|---|---|\n",
    );
    for (name, what) in DEVICE_NAMES {
        let _ = writeln!(text, "| `{name}` | {what} |");
    }
    text.push_str("\n| function | |\n|---|---|\n");
    for (name, _, fewest, most) in FUNCTIONS {
        let arguments = arguments(fewest, most);
        let meaning = MEANINGS.iter().find(|(known, _)| *known == name);
        let meaning = meaning.map_or("", |(_, meaning)| meaning);
        let _ = writeln!(text, "| `{name}({arguments})` | {meaning} |");
    }
    text.push_str("\nOperators, the weakest first:\n\n| operator | |\n|---|---|\n");
    for (written, meaning) in OPERATORS {
        let _ = writeln!(text, "| `{written}` | {meaning} |");
    }
    text.push_str(
        "\n`math.ceil(a)` and the like are the functions of the same name. A rule with a division by \
         zero is false; such a division elsewhere is an error with its position.\n",
    );
}

#[cfg(test)]
mod tests;
