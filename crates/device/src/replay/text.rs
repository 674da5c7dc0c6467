//! Text of a recorded file, with positions.

use serde::de::IgnoredAny;
use serde_json::error::Category;
use std::path::{Path, PathBuf};
use tuner_core::files;
use tuner_space::{Diagnostic, Diagnostics, ExprError};

/// Advice for a damaged file: repairing it would require guesses.
const REPAIR_ADVICE: &str = "get the file again, or cut it back to its last whole row";

/// A recorded file, decompressed.
#[derive(Debug)]
pub(super) struct Text {
    path: PathBuf,
    text: String,
}

impl Text {
    /// Decompresses gzip data (detected by the magic number, not the file name).
    pub(super) fn decode(path: &Path, bytes: Vec<u8>) -> Result<Self, Diagnostics> {
        let files::GzipContent { bytes, damage } = files::unpack(bytes, files::MAX_RECORDING_BYTES)
            .map_err(|error| plain(path, format!("cannot read the recorded file: {error}")))?;
        let (text, invalid) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(valid);
                (String::from_utf8(bytes).unwrap_or_default(), Some(valid))
            }
        };
        let decoded = Self {
            path: path.to_owned(),
            text: without_python_numbers(text),
        };
        // Decompressing the part before the damage gives the error a position.
        if let Some(error) = damage {
            return Err(decoded.error(
                decoded.text.len(),
                format!("the gzip data are truncated or corrupt after this place: {error}"),
                REPAIR_ADVICE,
            ));
        }
        if let Some(offset) = invalid {
            return Err(decoded.error(offset, "the file is not UTF-8 text", REPAIR_ADVICE));
        }
        if decoded.text.trim().is_empty() {
            return Err(decoded.error(
                0,
                "the file is empty",
                "name a Kernel Tuner cache file or T4 results",
            ));
        }
        Ok(decoded)
    }

    /// Returns the file's name without folders and extensions.
    pub(super) fn stem(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        name.strip_suffix(".json").unwrap_or(name).to_owned()
    }

    /// Returns the text as one JSON document, closing open brackets: Kernel Tuner appends one row and comma
    /// at a time. `buffer` holds the text if it had to be changed.
    pub(super) fn complete<'a>(&'a self, buffer: &'a mut String) -> Result<&'a str, Diagnostics> {
        let trimmed = self.text.trim_end();
        if let Some(rows) = trimmed.strip_suffix(',') {
            *buffer = format!("{rows}}}}}");
            return Ok(buffer);
        }
        let check = |text: &str| serde_json::from_str::<IgnoredAny>(text);
        match check(trimmed) {
            // A complete row without comma and closing braces.
            Err(error) if error.is_eof() && trimmed.ends_with(['}', '{']) => {
                let closed = ["}}", "}"]
                    .map(|end| format!("{trimmed}{end}"))
                    .into_iter()
                    .find(|text| check(text).is_ok());
                *buffer = closed.ok_or_else(|| self.json(0, trimmed, &error))?;
                Ok(buffer)
            }
            Err(error) => Err(self.json(0, trimmed, &error)),
            Ok(IgnoredAny) => Ok(trimmed),
        }
    }

    /// Builds a diagnostic from an error of `serde_json` in a slice of the text that starts at
    /// `start`.
    pub(super) fn json(&self, start: usize, slice: &str, error: &serde_json::Error) -> Diagnostics {
        let offset = start + offset_of(slice, error.line(), error.column());
        let text = error.to_string();
        let message = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(head, _)| head);
        match error.classify() {
            Category::Eof => self.error(
                offset,
                "the file ends in the middle of a value",
                format!("{REPAIR_ADVICE} (delete everything after the last `}},`)"),
            ),
            Category::Syntax => self.error(offset, format!("not JSON: {message}"), REPAIR_ADVICE),
            Category::Data | Category::Io => self.error(
                offset,
                message,
                "Kernel Tuner cache files and T4 results have fixed types here",
            ),
        }
    }

    /// Builds a diagnostic at a byte of the text.
    pub(super) fn error(
        &self,
        offset: usize,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Diagnostics {
        let at = offset.min(self.text.len());
        self.diagnostics(Diagnostic::new(message, at..at + 1).help(help))
    }

    /// Builds a diagnostic about a quoted expression at a byte of the text.
    pub(super) fn expression(&self, offset: usize, error: &ExprError) -> Diagnostics {
        let at = offset.min(self.text.len());
        let end = (at + error.text.len() + 2).min(self.text.len());
        self.diagnostics(Diagnostic::in_expression(error, at..end, &self.text))
    }

    fn diagnostics(&self, diagnostic: Diagnostic) -> Diagnostics {
        let file = self.path.display().to_string();
        Diagnostics::new(file, &self.text, vec![diagnostic])
    }
}

/// Replaces `NaN`, `Infinity` and `-Infinity`, which Python's `json` writes although they are not valid
/// JSON, by `null`. Positions are unchanged if a blank precedes a `NaN`, as in Python's output.
fn without_python_numbers(text: String) -> String {
    const NUMBERS: [(&str, &str); 4] = [
        (" NaN", "null"),
        ("NaN", "null"),
        ("-Infinity", "null     "),
        ("Infinity", "null    "),
    ];
    if !text.contains("NaN") && !text.contains("Infinity") {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut in_string) = (&*text, false);
    while let Some(first) = rest.chars().next() {
        let number = NUMBERS.iter().find(|(number, _)| rest.starts_with(number));
        if let Some((number, null)) = number.filter(|_| !in_string) {
            out.push_str(null);
            rest = rest.get(number.len()..).unwrap_or_default();
            continue;
        }
        in_string ^= first == '"';
        // The character after a backslash is part of the text, even if it is a quote.
        let count = if first == '\\' { 2 } else { 1 };
        let bytes = rest.chars().take(count).map(char::len_utf8).sum();
        let (taken, left) = rest.split_at(bytes);
        out.push_str(taken);
        rest = left;
    }
    out
}

/// Builds a diagnostic about a file that could not be read.
pub(super) fn plain(path: &Path, message: String) -> Diagnostics {
    let problem = Diagnostic::of_file(message)
        .help("name an existing Kernel Tuner cache file or T4 results: replay:FILE.json.gz");
    Diagnostics::new(path.display().to_string(), "", vec![problem])
}

/// Returns the position of a slice in the whole text.
pub(super) fn start_of(whole: &str, slice: &str) -> usize {
    (slice.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// Returns the byte offset of a line and a column, both from 1, as `serde_json` counts them.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let mut offset = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
