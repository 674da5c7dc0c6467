//! Kernel template as read from disk: its text, the included files, and their hash.

use cuda_source::{blanked, is_word};
use std::path::PathBuf;
use std::sync::Arc;
use tuner_core::units::ContentHash;

/// A file that a template includes, held in memory so that the compiled content is the hashed one,
/// even if the file is edited during a run.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize
)]
pub struct Header {
    /// The name as the `#include` directive spells it.
    pub spelled: String,
    /// The path in diagnostics.
    pub path: String,
    /// The content.
    pub text: String,
}

/// A template with everything that its identity depends on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Template {
    /// The path in diagnostics: relative to the working directory if below it, absolute otherwise.
    pub name: Arc<str>,
    /// The text, without the parameter block.
    pub text: Arc<str>,
    /// The files it includes by `#include "…"`, transitively.
    pub headers: Arc<[Header]>,
    /// Additional folders for `#include`, absolute, from the search space's `compile.include`.
    pub include_dirs: Arc<[PathBuf]>,
    /// Hash of the text and of the headers, names and contents.
    pub hash: ContentHash,
}

impl Template {
    /// Assembles a template and hashes it.
    #[must_use]
    pub fn new(name: &str, text: &str, headers: Vec<Header>, include_dirs: Vec<PathBuf>) -> Self {
        let mut parts = vec![text.as_bytes()];
        for header in &headers {
            parts.push(header.spelled.as_bytes());
            parts.push(header.text.as_bytes());
        }
        let hash = ContentHash::from_parts(parts);
        Self {
            name: name.into(),
            text: text.into(),
            headers: headers.into(),
            include_dirs: include_dirs.into(),
            hash,
        }
    }

    /// Returns those of the template's headers that another text includes, transitively.
    #[must_use]
    pub fn headers_for(&self, text: &str) -> Vec<Header> {
        let mut names = included_names(text);
        let mut found: Vec<Header> = Vec::new();
        while let Some((name, _)) = names.pop() {
            let header = self.headers.iter().find(|header| header.spelled == name);
            let Some(header) = header.filter(|_| found.iter().all(|one| one.spelled != name))
            else {
                continue;
            };
            names.extend(included_names(&header.text));
            found.push(header.clone());
        }
        // In the template's order, which is part of its identity.
        let at = |name: &str| self.headers.iter().position(|one| one.spelled == name);
        found.sort_by_key(|header| at(&header.spelled));
        found
    }

    /// Returns the template without folders of headers: the files included from them are in `headers`.
    #[must_use]
    pub fn without_folders(&self) -> Self {
        Self {
            include_dirs: Arc::from([]),
            ..self.clone()
        }
    }

    /// Returns the macros of `#include MACRO` that none of the files defines: their files are only found by
    /// a compile with the folders of headers.
    #[must_use]
    pub fn undefined_includes(&self) -> Vec<String> {
        let headers = self.headers.iter().map(|header| header.text.as_str());
        let texts = std::iter::once(&*self.text).chain(headers);
        let unknown = |text: &str| {
            let mut names = included_macros(text);
            names.retain(|name| definitions(text, name).is_empty());
            names
        };
        texts.flat_map(unknown).collect()
    }

    /// Reports whether the template or an included file mentions the identifier outside comments.
    #[must_use]
    pub fn mentions(&self, identifier: &str) -> bool {
        let texts = self.headers.iter().map(|header| header.text.as_str());
        std::iter::once(&*self.text).chain(texts).any(|text| {
            let stripped = blanked(text, false);
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            stripped
                .split(|c| !is_word(c))
                .any(|word| word == identifier)
        })
    }

    /// Returns the defaults that let the template compile alone: the value and the line of each
    /// `#ifndef NAME` directly followed by `#define NAME value`.
    #[must_use]
    pub fn defaults(&self) -> Vec<MacroDefault> {
        let stripped = blanked(&self.text, false);
        let mut directives = stripped
            .lines()
            .enumerate()
            .map(|(index, line)| (index, line.trim()))
            .filter(|(_, line)| !line.is_empty())
            .peekable();
        let mut defaults = Vec::new();
        while let Some((_, line)) = directives.next() {
            let Some(name) = directive(line, "ifndef") else {
                continue;
            };
            let Some((index, next)) = directives.peek() else {
                break;
            };
            let Some(body) = directive(next, "define") else {
                continue;
            };
            if let Some(value) = body.strip_prefix(name.trim()) {
                // `#define NAME_2 …` after `#ifndef NAME` is another macro, not a default.
                if value.is_empty() || value.starts_with(char::is_whitespace) {
                    defaults.push(MacroDefault {
                        name: name.trim().to_owned(),
                        value: value.trim().to_owned(),
                        line: *index as u32 + 1,
                    });
                }
            }
        }
        defaults
    }
}

/// One `#ifndef NAME` / `#define NAME value` pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacroDefault {
    /// The macro.
    pub name: String,
    /// Its text, without comments.
    pub value: String,
    /// The line of the `#define`, from 1.
    pub line: u32,
}

/// Returns the names in `#include "…"` and `#include <…>` directives of a text, with whether they
/// are quoted. Conditional compilation is not evaluated: a conditional include counts.
#[must_use]
pub fn included_names(text: &str) -> Vec<(String, bool)> {
    let stripped = blanked(text, false);
    stripped
        .lines()
        .filter_map(|line| {
            let rest = directive(line.trim(), "include")?.trim();
            let (open, close) = (rest.chars().next()?, rest.get(1..)?);
            let (end, quoted) = match open {
                '"' => (close.find('"')?, true),
                '<' => (close.find('>')?, false),
                _ => return None,
            };
            Some((close[..end].to_owned(), quoted))
        })
        .collect()
}

/// Returns the macros in `#include NAME` directives of a text.
#[must_use]
pub(crate) fn included_macros(text: &str) -> Vec<String> {
    let stripped = blanked(text, false);
    let names = stripped
        .lines()
        .filter_map(|line| directive(line.trim(), "include"));
    let is_name = |name: &&str| !name.is_empty() && name.bytes().all(is_word);
    names.filter(is_name).map(str::to_owned).collect()
}

/// Returns the expressions of `#if` and `#elif` directives with their lines, from 1.
pub(crate) fn conditions(text: &str) -> Vec<(u32, String)> {
    let stripped = blanked(text, false);
    let condition = |line: &str| {
        let line = line.trim();
        directive(line, "if")
            .or_else(|| directive(line, "elif"))
            .map(str::to_owned)
    };
    let lines = (1..).zip(stripped.lines());
    lines
        .filter_map(|(at, line)| Some((at, condition(line)?)))
        .collect()
}

/// Returns the values that a text defines for a macro.
pub(crate) fn definitions(text: &str, name: &str) -> Vec<String> {
    let stripped = blanked(text, false);
    let definition = |line: &str| {
        let value = directive(line.trim(), "define")?.strip_prefix(name)?;
        let ends = value.starts_with(char::is_whitespace);
        ends.then(|| value.trim().to_owned())
    };
    stripped.lines().filter_map(definition).collect()
}

/// Returns the rest of a `# name rest` line.
fn directive<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix('#')?.trim_start().strip_prefix(name)?;
    (!rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')).then(|| rest.trim())
}

#[cfg(test)]
mod tests;
