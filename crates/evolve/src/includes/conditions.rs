//! Conditions of `#if` and `#elif`: their macros must not form an operator that reads a file.
//!
//! `__has_include` and its variants work wherever a condition is evaluated, even if token pasting or a
//! macro of a header formed them. A condition may therefore use only macros with a known text, none of
//! which pastes tokens.

use super::lines::{logical_lines, without_comments};
use super::{Context, IncludeError};
use std::collections::{BTreeMap, BTreeSet};

/// Words of conditions that are not macros of the source.
const WORDS: [&str; 16] = [
    "defined",
    "true",
    "false",
    "and",
    "or",
    "not",
    "bitand",
    "bitor",
    "xor",
    "compl",
    "not_eq",
    "__cplusplus",
    "__NVCC__",
    "CUDA_VERSION",
    "CUDART_VERSION",
    "__VA_ARGS__",
];

/// Text of a macro.
#[derive(Debug, Clone)]
struct Definition {
    parameters: Vec<String>,
    body: String,
}

type Definitions = BTreeMap<String, Vec<Definition>>;

/// Checks all conditions of a source.
///
/// # Errors
/// The first that uses a macro which pastes tokens, or one that is not known.
pub(super) fn check(source: &str, context: &Context) -> Result<(), IncludeError> {
    // The compiler and this parser may disagree on the start of a comment: both readings are checked.
    let lines = logical_lines(source);
    let raw = lines
        .iter()
        .map(|(line, text)| (*line, uncommented(text).to_owned()));
    let lines: Vec<(usize, String)> = raw
        .chain(logical_lines(&without_comments(source)))
        .collect();
    let mut definitions = Definitions::new();
    for (name, values) in &context.macros {
        let texts = values.iter().map(|value| Definition {
            parameters: Vec::new(),
            body: value.clone(),
        });
        definitions.entry(name.clone()).or_default().extend(texts);
    }
    let headers = context.header_texts.iter();
    let headers = headers.flat_map(|text| logical_lines(&without_comments(text)));
    for (_, line) in headers.chain(lines.iter().cloned()) {
        if let Some((name, definition)) = definition(&line) {
            definitions.entry(name).or_default().push(definition);
        }
    }
    for (line, text) in lines {
        if let Some(condition) = condition(&text) {
            let found = follow(condition, &definitions);
            found.map_err(|(name, why)| IncludeError::Condition { line, name, why })?;
        }
    }
    Ok(())
}

/// Follows the macros of a condition.
fn follow(condition: &str, definitions: &Definitions) -> Result<(), (String, &'static str)> {
    let mut seen = BTreeSet::new();
    let mut open = vec![("#if".to_owned(), Vec::new(), condition.to_owned())];
    while let Some((name, parameters, text)) = open.pop() {
        // The second is the digraph of the first.
        if text.contains("##") || text.contains("%:%:") {
            return Err((name, "pastes tokens"));
        }
        for word in used_words(&text) {
            if parameters.contains(&word) || is_known(&word) {
                continue;
            }
            let Some(found) = definitions.get(&word) else {
                return Err((word, "neither source nor search space defines"));
            };
            if seen.insert(word.clone()) {
                let texts = found.iter().cloned();
                open.extend(texts.map(|one| (word.clone(), one.parameters, one.body)));
            }
        }
    }
    Ok(())
}

/// Returns a line up to its comment.
fn uncommented(line: &str) -> &str {
    let end = ["//", "/*"].iter().filter_map(|open| line.find(open)).min();
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

fn is_known(word: &str) -> bool {
    WORDS.contains(&word) || word.starts_with("__CUDA")
}

/// Returns the expression of `#if` and `#elif`.
fn condition(line: &str) -> Option<&str> {
    let directive = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = directive
        .strip_prefix("elif")
        .or_else(|| directive.strip_prefix("if"))?;
    // `#ifdef`, `#ifndef` and `#elifdef` do not expand macros.
    (!rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')).then_some(rest)
}

/// Returns the name and the text of a `#define`.
fn definition(line: &str) -> Option<(String, Definition)> {
    let directive = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = directive.strip_prefix("define")?.trim_start();
    let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let function = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let (parameters, body) = match function {
        Some((list, body)) => (words(list), body),
        None => (Vec::new(), rest),
    };
    let body = body.to_owned();
    (!name.is_empty()).then(|| (name.to_owned(), Definition { parameters, body }))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Returns the words of a text that the preprocessor may expand: all but those of `defined`.
fn used_words(text: &str) -> Vec<String> {
    let mut used = Vec::new();
    let mut after_defined = false;
    for word in words(text) {
        if !after_defined && word != "defined" {
            used.push(word.clone());
        }
        after_defined = word == "defined";
    }
    used
}

/// Returns the identifiers of a text; numbers and their suffixes are not.
fn words(text: &str) -> Vec<String> {
    let pieces = text.split(|c: char| !is_word(c));
    let names = pieces.filter(|piece| {
        let first = piece.chars().next();
        first.is_some_and(|first| !first.is_ascii_digit())
    });
    names.map(str::to_owned).collect()
}
