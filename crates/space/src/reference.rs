//! The reference page of search spaces: every key, word, name and function, from the types that read
//! them.
#![expect(
    clippy::indexing_slicing,
    reason = "indexing JSON gives null where a key is missing"
)]

use crate::expr::{FUNCTIONS, Op};
use crate::{DeviceLimits, json_schema};
use serde_json::Value as Json;
use std::fmt::Write as _;

/// The operators in the order in which they bind, the weakest first, with how each is written.
const OPERATORS: [(Op, &str); 24] = [
    (Op::If, "a if b else c"),
    (Op::Or, "a or b"),
    (Op::And, "a and b"),
    (Op::Not, "not a"),
    (Op::In, "a in b"),
    (Op::NotIn, "a not in b"),
    (Op::Lt, "a < b"),
    (Op::Le, "a <= b"),
    (Op::Gt, "a > b"),
    (Op::Ge, "a >= b"),
    (Op::Eq, "a == b"),
    (Op::Ne, "a != b"),
    (Op::BitOr, "a \\| b"),
    (Op::BitXor, "a ^ b"),
    (Op::BitAnd, "a & b"),
    (Op::Shl, "a << b"),
    (Op::Shr, "a >> b"),
    (Op::Add, "a + b"),
    (Op::Sub, "a - b"),
    (Op::Mul, "a * b"),
    (Op::Div, "a / b"),
    (Op::FloorDiv, "a // b"),
    (Op::Mod, "a % b"),
    (Op::Pow, "a ** b"),
];
/// Those with one operand, and lists.
const OTHERS: [(Op, &str); 4] = [
    (Op::Neg, "-a"),
    (Op::Pos, "+a"),
    (Op::Invert, "~a"),
    (Op::List, "[a, b, …]"),
];

fn meaning(op: Op) -> &'static str {
    match op {
        Op::Neg => "Negative",
        Op::Pos => "The number itself",
        Op::Invert => "Bitwise complement",
        Op::Not => "True where `a` is false",
        Op::Add => "Sum",
        Op::Sub => "Difference",
        Op::Mul => "Product",
        Op::Div => {
            "True division: `7 / 2` is 3.5; false rules and an error elsewhere where `b` is 0"
        }
        Op::FloorDiv => "Division rounded down: `7 // 2` is 3, `-7 // 2` is -4",
        Op::Mod => "Remainder with the sign of `b`",
        Op::Pow => "Power",
        Op::BitAnd => "Bitwise and",
        Op::BitOr => "Bitwise or",
        Op::BitXor => "Bitwise exclusive or",
        Op::Shl => "Shift to the left",
        Op::Shr => "Shift to the right",
        Op::Lt => "Less; comparisons chain: `1 <= a < b`",
        Op::Le => "Less or equal",
        Op::Gt => "Greater",
        Op::Ge => "Greater or equal",
        Op::Eq => "Equal",
        Op::Ne => "Not equal",
        Op::In => "Whether the list `b` has the element `a`",
        Op::NotIn => "Whether it has not",
        Op::And => "`a` where it is false, else `b`",
        Op::Or => "`a` where it is true, else `b`",
        Op::If => "`a` where `b` is true, else `c`",
        Op::List => "A list",
        Op::Min => "The smallest argument, or element of a list",
        Op::Max => "The largest argument, or element of a list",
        Op::Abs => "Absolute value",
        Op::CeilDiv => "`a / b` rounded up: `ceil_div(7, 2)` is 4",
        Op::Sqrt => "Square root",
        Op::Log2 => "Logarithm to base 2",
        Op::Int => "Whole number, rounded towards zero",
        Op::Float => "Floating-point number",
        Op::Bool => "True or false",
        Op::Len => "Number of elements of a list, of characters of a text",
        Op::Round => "Rounded, halves to even; with a second argument to that many digits",
        Op::Floor => "Rounded down",
        Op::Ceil => "Rounded up",
    }
}

/// Arguments as a reader sees them.
fn arguments(fewest: usize, most: usize) -> &'static str {
    match (fewest, most) {
        (1, 1) => "a",
        (1, 2) => "a, b",
        (2, 2) => "a, b",
        _ => "a, b, …",
    }
}

/// The page, as Markdown.
#[must_use]
pub fn reference() -> String {
    let schema = json_schema();
    let mut text = String::from(
        "# Reference of search spaces\n\n\
         Every key of a search space file and everything an expression may say. Generated from the \
         types that read them: `TUNER_UPDATE_SCHEMA=1 cargo test --test program space_schema::` \
         writes this file again. A file of one's own begins with `tuner new NAME`.\n\n\
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

/// A table of an object's keys.
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

/// What a value is, in words.
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

/// The definition that a schema names.
fn named(value: &Json) -> Option<&str> {
    value["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// The definitions that an object's keys lead to, each with the path to it.
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
    // What stands behind names of the user's choice.
    for (_, name) in &mut found {
        if let Some(inner) = name.strip_prefix("Named_") {
            *name = inner.to_owned();
        }
    }
    found
}

/// A table of words and of keys that stand alone.
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
         Expressions are Python's, so that constraints of Kernel Tuner files work as they stand. \
         Names in them are parameters, derived values, the sizes of the problem, and those of the \
         device. Whole numbers are exact to 127 bits.\n\n\
         | name | |\n|---|---|\n",
    );
    let limits = DeviceLimits {
        sm_count: 0,
        shared_bytes: 0,
        cc: 0,
        max_threads: 0,
    };
    for (name, _) in limits.constants() {
        let what = match name.as_str() {
            "DEVICE_SM_COUNT" => "Streaming multiprocessors",
            "DEVICE_SHARED_BYTES" => {
                "Shared memory that a block may opt in to, static included, bytes"
            }
            "DEVICE_CC" => "Compute capability, such as 90",
            "DEVICE_MAX_THREADS" => "Threads that a block may have",
            _ => "",
        };
        let _ = writeln!(text, "| `{name}` | {what} |");
    }
    text.push_str("\n| function | |\n|---|---|\n");
    for (name, op, fewest, most) in FUNCTIONS {
        let arguments = arguments(fewest, most);
        let _ = writeln!(text, "| `{name}({arguments})` | {} |", meaning(op));
    }
    text.push_str("\nOperators, the weakest first:\n\n| operator | |\n|---|---|\n");
    for (op, written) in OPERATORS.into_iter().chain(OTHERS) {
        let _ = writeln!(text, "| `{written}` | {} |", meaning(op));
    }
    text.push_str(
        "\n`math.ceil(a)` and the like are the functions of the same name. A rule in which a number \
         is divided by zero is false; such an expression elsewhere is an error at its place.\n",
    );
}

#[cfg(test)]
mod tests;
