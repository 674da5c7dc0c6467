//! Checks of a template against its search space without compiling: different defaults and
//! parameters that it never mentions.

use crate::compile::{MacroDefault, Template, conditions};
use cuda_source::{blanked, is_word};
use tuner_core::value::Value;
use tuner_space::{Expr, Launch, Parameter};

/// A finding about one parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The two defaults differ: an error, because the template alone would be a different kernel.
    DefaultsDiffer {
        /// The parameter.
        name: String,
        /// Default of the search space.
        space: String,
        /// Text of the template's `#define`.
        template: String,
        /// Its line in the template.
        line: u32,
    },
    /// The template's default is not a literal and cannot be compared.
    NotComparable {
        /// The parameter.
        name: String,
        /// Text of the template's `#define`.
        template: String,
        /// Its line in the template.
        line: u32,
    },
    /// The template does not mention the parameter.
    NeverMentioned {
        /// The parameter.
        name: String,
    },
}

/// Compares the parameters with the template. A parameter in compiler options as `{NAME}`, or in the
/// kernel's name or an expression of a launch, counts as mentioned.
#[must_use]
#[expect(
    clippy::indexing_slicing,
    reason = "the default is a place among the values, which the reader of the space has checked"
)]
pub fn examine(
    template: &Template,
    parameters: &[Parameter],
    options: &[String],
    launches: &[Launch],
) -> Vec<Finding> {
    let defaults = template.defaults();
    let mut findings = Vec::new();
    for parameter in parameters {
        let name = &parameter.name;
        let placeholder = format!("{{{name}}}");
        let in_options = options.iter().any(|option| option.contains(&placeholder));
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let in_launches = launches.iter().any(|launch| {
            let mut words = launch.entry.split(|c| !word(c));
            let mut names = expressions(launch).flat_map(Expr::names);
            words.any(|word| word == name) || names.any(|(known, _)| known == name)
        });
        if !in_options && !in_launches && !template.mentions(name) {
            findings.push(Finding::NeverMentioned { name: name.clone() });
        }
        let Some(own) = defaults.iter().find(|default| default.name == *name) else {
            continue;
        };
        let value = &parameter.values[parameter.default as usize];
        findings.extend(compare(name, value, own));
    }
    findings
}

/// Iterates over the expressions of a launch.
fn expressions(launch: &Launch) -> impl Iterator<Item = &Expr> {
    let extents = launch.grid.iter().chain(&launch.block);
    extents
        .chain(launch.cluster.iter().flatten())
        .chain([&launch.shared])
        .chain(&launch.when)
}

/// Describes each parameter with several word values that `#if` evaluates as 0, because they are
/// not macros: the condition is the same for all of them.
#[must_use]
pub fn words_in_conditions(template: &Template, parameters: &[Parameter]) -> Vec<String> {
    let headers = template
        .headers
        .iter()
        .map(|header| (&*header.path, &*header.text));
    let texts: Vec<_> = std::iter::once((&*template.name, &*template.text))
        .chain(headers)
        .collect();
    let stripped: String = texts
        .iter()
        .map(|(_, text)| blanked(text, false) + "\n")
        .collect();
    let words_of = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let defined = |name: &str| {
        let directives = stripped
            .lines()
            .map(|line| words_of(line.trim_start_matches([' ', '\t', '#'])));
        let mut names =
            directives.filter(|words| words.first().is_some_and(|word| word == "define"));
        names.any(|words| words.get(1).is_some_and(|word| word == name))
    };
    let is_zero = |value: &&Value| match value {
        Value::Text(text) => {
            let digit = text.starts_with(|c: char| c.is_ascii_digit());
            // In C++ `#if` knows `true` and `false`, and replaces any other undefined word by 0.
            let known = matches!(&**text, "true" | "false") || defined(text);
            !text.is_empty() && !digit && text.bytes().all(is_word) && !known
        }
        _ => false,
    };
    let mut told = Vec::new();
    for parameter in parameters {
        let words: Vec<String> = parameter
            .values
            .iter()
            .filter(is_zero)
            .map(Value::to_string)
            .collect();
        let place = texts.iter().find_map(|(file, text)| {
            let tests = |words: Vec<String>| {
                let at = words.iter().position(|word| *word == parameter.name);
                at.is_some_and(|at| {
                    // `defined NAME` tests only the name, which is defined for every value.
                    at == 0 || words.get(at - 1).is_none_or(|word| word != "defined")
                })
            };
            let mut all = conditions(text).into_iter();
            let (line, condition) = all.find(|(_, condition)| tests(words_of(condition)))?;
            Some((file, line, condition))
        });
        if let (Some((file, line, condition)), [_, _, ..]) = (place, words.as_slice()) {
            told.push(format!(
                "{file}:{line}: the values {} of {} are text, and `#if {condition}` takes each of them \
                 as 0, so that all are the same code; write true and false, or numbers",
                words.join(", "),
                parameter.name
            ));
        }
    }
    told
}

fn compare(name: &str, value: &Value, own: &MacroDefault) -> Option<Finding> {
    let differ = || Finding::DefaultsDiffer {
        name: name.to_owned(),
        space: value.to_string(),
        template: own.value.clone(),
        line: own.line,
    };
    let text = own.value.split_whitespace().collect::<Vec<_>>().join(" ");
    if text == value.to_string() {
        return None;
    }
    let Some(wanted) = value.as_f64() else {
        return Some(differ());
    };
    match literal(&text) {
        Some(number) if number == wanted => None,
        Some(_) => Some(differ()),
        None => Some(Finding::NotComparable {
            name: name.to_owned(),
            template: own.value.clone(),
            line: own.line,
        }),
    }
}

/// Parses a C++ number literal: of any radix, with suffix, in parentheses.
fn literal(text: &str) -> Option<f64> {
    let inner = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    if let Some(inner) = inner {
        return literal(inner.trim());
    }
    match text {
        "true" => return Some(1.0),
        "false" => return Some(0.0),
        _ => {}
    }
    // C++14 separates digits by quotes: 1'000.
    let lower = text.to_ascii_lowercase().replace('\'', "");
    let whole = lower.trim_end_matches(['u', 'l']);
    if let Some((digits, radix)) = cuda_source::radix_of(whole) {
        return i64::from_str_radix(digits, radix)
            .ok()
            .map(|number| number as f64);
    }
    lower.trim_end_matches(['u', 'l', 'f']).parse().ok()
}

#[cfg(test)]
mod tests;
