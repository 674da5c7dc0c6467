//! CUDA source as text: code and other text, words with their positions, directives.
//!
//! Not a C++ parser: the compiler determines types. This finds the positions for messages, and the
//! macros that a declaration can depend on.

use crate::compile::Template;
use cuda_source::{blanked, is_word};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tuner_core::files;

/// One file of a template, prepared for analysis.
#[derive(Debug)]
pub(super) struct File {
    /// The path in messages.
    pub(super) name: String,
    /// Its name in an `#include`; `None` for the template itself.
    pub(super) spelled: Option<String>,
    /// The original text.
    pub(super) text: String,
    /// The text with comments and literals blanked out, byte for byte.
    pub(super) code: String,
    /// Preprocessor directives, in order.
    pub(super) directives: Vec<Directive>,
    /// Words and punctuation outside of directives.
    pub(super) tokens: Vec<Range<usize>>,
}

/// One directive.
#[derive(Debug)]
pub(super) struct Directive {
    /// Its bytes, from the `#` to the end of its last line.
    pub(super) at: Range<usize>,
    /// Its word: `define`, `ifndef`, …
    pub(super) word: String,
    /// Words and punctuation after that.
    pub(super) tokens: Vec<Range<usize>>,
}

impl File {
    #[expect(
        clippy::indexing_slicing,
        reason = "every place is checked against the length by the loop around it, or was found in the same text"
    )]
    fn new(name: &str, spelled: Option<&str>, text: &str) -> Self {
        let code = blanked(text, true);
        let mut directives = Vec::new();
        let mut plain = code.clone().into_bytes();
        for at in directive_lines(&code) {
            let mut tokens = tokens_of(&code, at.start + 1..at.end);
            let word = match tokens.first() {
                Some(first) => code[first.clone()].to_owned(),
                None => String::new(),
            };
            tokens.drain(..tokens.len().min(1));
            for byte in &mut plain[at.clone()] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            directives.push(Directive { at, word, tokens });
        }
        let plain = String::from_utf8(plain).unwrap_or_default();
        let tokens = tokens_of(&plain, 0..plain.len());
        Self {
            name: name.to_owned(),
            spelled: spelled.map(str::to_owned),
            text: text.to_owned(),
            code,
            directives,
            tokens,
        }
    }

    /// Returns the files of a template, itself first.
    pub(super) fn from_template(template: &Template) -> Vec<Self> {
        let mut files = vec![Self::new(&template.name, None, &template.text)];
        for header in template.headers.iter() {
            files.push(Self::new(&header.path, Some(&header.spelled), &header.text));
        }
        files
    }

    /// Reads a file that the compiler names but the template does not include, if it is in one of the
    /// folders of headers, with links resolved. A `#line` directive may name any file, and messages quote
    /// its content.
    pub(super) fn from_disk(name: &str, folders: &[PathBuf]) -> Option<Self> {
        let real = Path::new(name).canonicalize().ok()?;
        let inside = |folder: &PathBuf| folder.canonicalize().is_ok_and(|it| real.starts_with(it));
        if !folders.iter().any(inside) {
            return None;
        }
        let text = files::read_text(&real, files::MAX_TEXT_BYTES).ok()?;
        Some(Self::new(name, None, &text))
    }

    /// Returns the text of a token.
    pub(super) fn word(&self, at: &Range<usize>) -> &str {
        self.code.get(at.clone()).unwrap_or_default()
    }

    /// Returns the text of the token of that number; empty if absent.
    pub(super) fn word_at(&self, index: Option<usize>) -> &str {
        let token = index.and_then(|index| self.tokens.get(index));
        token.map_or("", |token| self.word(token))
    }

    /// Returns the line of a byte, from 1.
    #[expect(
        clippy::indexing_slicing,
        reason = "every place is checked against the length by the loop around it, or was found in the same text"
    )]
    pub(super) fn line(&self, at: usize) -> usize {
        self.text.as_bytes()[..at.min(self.text.len())]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    }

    /// Formats `file:line:column` of a byte.
    pub(super) fn format_position(&self, at: usize) -> String {
        let start = self.code[..at].rfind('\n').map_or(0, |end| end + 1);
        let column = self.text[start..at].chars().count() + 1;
        format!("{}:{}:{column}", self.name, self.line(at))
    }
}

/// Reports whether a token is a name.
pub(super) fn is_name(word: &str) -> bool {
    word.bytes()
        .next()
        .is_some_and(|first| is_word(first) && !first.is_ascii_digit())
}

/// Returns the lines of directives with their continuation lines.
fn directive_lines(code: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut at, mut continues) = (0, false);
    for line in code.split_inclusive('\n') {
        let end = at + line.len();
        let body = line.trim_end();
        if continues {
            if let Some(last) = found.last_mut() {
                last.end = end;
            }
            continues = body.ends_with('\\');
        } else if body.trim_start().starts_with('#') {
            let start = at + line.len() - line.trim_start().len();
            found.push(start..end);
            continues = body.ends_with('\\');
        }
        at = end;
    }
    found
}

/// Splits into words, numbers, and single characters of punctuation.
#[expect(
    clippy::indexing_slicing,
    reason = "every place is checked against the length by the loop around it, or was found in the same text"
)]
fn tokens_of(code: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let bytes = code.as_bytes();
    let mut tokens = Vec::new();
    let mut at = within.start;
    while at < within.end {
        let byte = bytes[at];
        let start = at;
        at += 1;
        if is_word(byte) {
            while at < within.end && is_word(bytes[at]) {
                at += 1;
            }
        // With literals blanked, a backslash only joins two lines.
        } else if byte.is_ascii_whitespace() || byte == b'\\' {
            continue;
        }
        tokens.push(start..at);
    }
    tokens
}

#[cfg(test)]
mod tests;
