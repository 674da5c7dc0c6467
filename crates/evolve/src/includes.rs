//! Headers that a changed source may include: an allow-list by name.
//!
//! A file is read by `#include` and by operators of conditions. A macro cannot form the directive, but it
//! can form an operator, so `conditions` follows the macros of each condition.

mod conditions;
mod lines;

use lines::{logical_lines, without_comments};
use std::collections::{BTreeMap, BTreeSet};

/// CUDA's own device headers.
pub const CUDA_HEADERS: [&str; 14] = [
    "cooperative_groups.h",
    "cooperative_groups/memcpy_async.h",
    "cooperative_groups/reduce.h",
    "cooperative_groups/scan.h",
    "cuda/barrier",
    "cuda/pipeline",
    "cuda_bf16.h",
    "cuda_fp16.h",
    "cuda_fp8.h",
    "cuda_pipeline.h",
    "cuda_pipeline_primitives.h",
    "mma.h",
    "stdint.h",
    "vector_types.h",
];

/// Reason why a source is rejected before it is compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IncludeError {
    /// A header outside the allow-list.
    #[error("line {line}: the header `{name}` is not in the list of allowed headers: {allowed}")]
    Outside {
        /// Line of the source, from 1.
        line: usize,
        /// Name in the directive.
        name: String,
        /// The allowed names.
        allowed: String,
    },
    /// A directive that reads a file in another way.
    #[error(
        "line {line}: `{directive}` may read any file and is refused; include a header by its name"
    )]
    Directive {
        /// Line of the source, from 1.
        line: usize,
        /// The directive.
        directive: String,
    },
    /// A condition whose macros might form an operator that reads a file.
    #[error(
        "line {line}: the condition uses `{name}`, which {why}; use macros that source and search space define"
    )]
    Condition {
        /// Line of the source, from 1.
        line: usize,
        /// The macro.
        name: String,
        /// Its defect.
        why: &'static str,
    },
    /// A `#line` with a file that the parent does not name.
    #[error("line {line}: `#line` with another file would move messages there, and is refused")]
    Line {
        /// Line of the source, from 1.
        line: usize,
    },
    /// A parameter value that is more than a line of text.
    #[error("a value of the parameter `{name}` {why}")]
    Value {
        /// The parameter.
        name: String,
        /// The defect.
        why: &'static str,
    },
}

/// Surroundings of a changed source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// Names that the parent includes.
    pub headers: Vec<String>,
    /// Texts of the headers that are delivered with the kernel.
    pub header_texts: Vec<String>,
    /// Files that the parent's `#line` directives name.
    pub line_files: Vec<String>,
    /// Macros of the search space with their replacement texts; numbers have none.
    pub macros: BTreeMap<String, Vec<String>>,
}

/// Checks every directive and operator of a source that reads a file, and the values of parameters,
/// which become part of it.
///
/// # Errors
/// The first that is not allowed.
pub fn check(source: &str, context: &Context) -> Result<(), IncludeError> {
    for (name, values) in &context.macros {
        for value in values {
            check_value(name, value, context)?;
        }
    }
    // The compiler and this parser may disagree on the start of a comment: both readings are checked.
    for text in [source.to_owned(), without_comments(source)] {
        for (line, text) in logical_lines(&text) {
            check_line(line, &text, context)?;
        }
    }
    conditions::check(source, context)
}

/// Checks the replacement text of a parameter.
fn check_value(name: &str, value: &str, context: &Context) -> Result<(), IncludeError> {
    let refused = |why| {
        let name = name.to_owned();
        Err(IncludeError::Value { name, why })
    };
    if value.contains(['\n', '\r', '\0']) {
        return refused("has more than one line");
    }
    if FILE_WORDS.iter().any(|word| value.contains(word)) {
        return refused("may read any file");
    }
    check_line(0, value, context).or_else(|_| refused("is a directive"))
}

fn check_line(line: usize, text: &str, context: &Context) -> Result<(), IncludeError> {
    let refused = |directive: &str| IncludeError::Directive {
        line,
        directive: directive.chars().take(120).collect(),
    };
    if let Some(word) = FILE_WORDS.iter().find(|word| text.contains(**word)) {
        return Err(refused(word));
    }
    let Some(directive) = text.trim_start().strip_prefix('#') else {
        return Ok(());
    };
    let directive = directive.trim_start();
    if ["include_next", "embed", "import"]
        .iter()
        .any(|name| directive.starts_with(name))
    {
        return Err(refused(directive));
    }
    if let Some(file) = line_file(directive) {
        let known = context.line_files.iter().any(|known| known == file);
        return known.then_some(()).ok_or(IncludeError::Line { line });
    }
    let Some(rest) = directive.strip_prefix("include") else {
        return Ok(());
    };
    let Some(name) = named(rest.trim()) else {
        return Err(refused(&format!("#{directive}")));
    };
    let allowed = context.headers.iter().map(String::as_str);
    let allowed = allowed.chain(CUDA_HEADERS);
    if allowed.clone().any(|one| one == name) {
        return Ok(());
    }
    let allowed: Vec<&str> = allowed.collect();
    Err(IncludeError::Outside {
        line,
        name: name.chars().take(120).collect(),
        allowed: allowed.join(", "),
    })
}

/// Returns the file of a `#line` directive, also of its form without the word; a macro is its own text.
fn line_file(directive: &str) -> Option<&str> {
    let word = directive.strip_prefix("line");
    let word = word.filter(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
    let rest = word.unwrap_or(directive).trim();
    let file = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = file.len() < rest.len();
    match (is_number, file.trim()) {
        (true, "") => None,
        (true, file) => Some(named(file).unwrap_or(file)),
        // `#line MACRO`; other directives do not begin with a number.
        (false, text) => word.is_some().then_some(text),
    }
}

/// Returns the files that the `#line` directives of a source name.
#[must_use]
pub fn line_files(source: &str) -> Vec<String> {
    let lines = logical_lines(source);
    let files = lines.iter().filter_map(|(_, text)| {
        let directive = text.trim_start().strip_prefix('#')?;
        line_file(directive.trim_start()).map(str::to_owned)
    });
    files.collect()
}

/// Reports whether two sources differ only in comments, blank lines and indentation.
#[must_use]
pub fn is_same_code(one: &str, other: &str) -> bool {
    let lines = |source: &str| -> Vec<String> {
        let text = without_comments(source);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    lines(one) == lines(other)
}

/// Returns all allowed names for a parent that includes these, each once.
#[must_use]
pub fn allowed(parent: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names = parent.iter().map(String::as_str).chain(CUDA_HEADERS);
    let names = names.filter(|name| seen.insert(*name));
    names.map(str::to_owned).collect()
}

/// Words outside of `#` directives that make a compiler read a file.
const FILE_WORDS: [&str; 4] = [
    "__has_include",
    "__has_embed",
    ".incbin",
    "_Pragma(\"include",
];

/// Returns the name in `"name"` or `<name>`.
fn named(text: &str) -> Option<&str> {
    let (open, rest) = text.split_at_checked(1)?;
    let close = match open {
        "\"" => '"',
        "<" => '>',
        _ => return None,
    };
    Some(rest.split_once(close)?.0)
}

#[cfg(test)]
mod tests;
