//! Errors of an input file: position, reason, the line with a caret, and a fix.

use super::ExprError;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One error of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Diagnostic {
    /// Description of the error, a lowercase fragment.
    pub message: String,
    /// Suggested replacement.
    pub help: Option<String>,
    /// Source bytes of the error; `None` for the file as a whole.
    pub at: Option<Range<usize>>,
}

impl Diagnostic {
    /// Creates an error for a range of bytes.
    #[must_use]
    pub fn new(message: impl Into<String>, at: Range<usize>) -> Self {
        Self {
            message: message.into(),
            help: None,
            at: Some(at),
        }
    }

    /// Creates an error for the file as a whole.
    #[must_use]
    pub fn of_file(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
            at: None,
        }
    }

    /// Adds a suggested fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Creates an error inside an expression. The caret points at the wrong characters if the
    /// source contains the expression verbatim (possibly in quotes), otherwise at its beginning.
    #[must_use]
    pub fn in_expression(error: &ExprError, scalar: Range<usize>, source: &str) -> Self {
        let inside = [scalar.start, scalar.start + 1]
            .into_iter()
            .find(|start| {
                source
                    .get(*start..)
                    .is_some_and(|rest| rest.starts_with(&*error.text))
            })
            .map(|start| start + error.at.start..start + error.at.end);
        Self {
            message: error.message.clone(),
            help: error.help.clone(),
            at: Some(inside.unwrap_or(scalar)),
        }
    }
}

/// All errors of one file; displayed as `file:line:column: error: …` with the line, a caret and the
/// fix for each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostics {
    file: String,
    text: Arc<str>,
    items: Vec<Diagnostic>,
}

/// Maximum number of displayed errors: later ones are often consequences of the first.
const MAX_SHOWN: usize = 20;

impl Diagnostics {
    /// Sorts the errors of a file by position.
    #[must_use]
    pub fn new(file: impl Into<String>, source: &str, mut items: Vec<Diagnostic>) -> Self {
        items.sort_by_key(|item| item.at.as_ref().map_or(usize::MAX, |at| at.start));
        items.dedup();
        Self {
            file: file.into(),
            text: source.into(),
            items,
        }
    }

    /// Creates a single error for the file as a whole, such as an unreadable file.
    #[must_use]
    pub fn of_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(file, "", vec![Diagnostic::of_file(message)])
    }

    /// Converts an error of `serde_json`.
    #[must_use]
    pub fn of_json(file: impl Into<String>, source: &str, error: &serde_json::Error) -> Self {
        let start: usize = source
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        let mut at = (start + error.column().saturating_sub(1)).min(source.len());
        // `serde_json` counts columns in bytes, so one may lie inside a character.
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
        Self::new(file, source, vec![Diagnostic::new(message, at..at + 1)])
    }

    /// Returns the errors, sorted by position.
    #[must_use]
    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }

    /// Returns the given name of the file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns line and column, from 1, of the first error with a position.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        let at = self.items.iter().find_map(|item| item.at.as_ref())?;
        let (line, column, _) = locate(&self.text, at.start);
        Some((line, column))
    }
}

/// Returns line and column (from 1, the column in characters), and the bytes of the line.
fn locate(source: &str, at: usize) -> (usize, usize, Range<usize>) {
    let mut at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    let before = &source[..at];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = source[start..]
        .find('\n')
        .map_or(source.len(), |length| start + length);
    let line = before.matches('\n').count() + 1;
    (line, source[start..at].chars().count() + 1, start..end)
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, item) in self.items.iter().take(MAX_SHOWN).enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            self.render(item, f)?;
        }
        match self.items.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{}: {more} more errors", self.file),
        }
    }
}

impl Diagnostics {
    fn render(&self, item: &Diagnostic, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &item.at {
            None => write!(f, "{}: error: {}", self.file, item.message)?,
            Some(at) => {
                let (line, column, bytes) = locate(&self.text, at.start);
                write!(f, "{}:{line}:{column}: error: {}", self.file, item.message)?;
                let text = self.text[bytes.clone()].trim_end();
                if !text.is_empty() {
                    let marked = at.end.min(bytes.end).saturating_sub(at.start);
                    excerpt(text, column, marked, line, f)?;
                }
            }
        }
        match &item.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// Formats the line with carets under the error; cuts a long line around them.
fn excerpt(
    text: &str,
    column: usize,
    marked: usize,
    line: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    const WIDTH: usize = 110;
    let skipped = if column > WIDTH * 3 / 4 {
        column - WIDTH / 2
    } else {
        0
    };
    let shown: String = text
        .chars()
        .skip(skipped)
        .take(WIDTH)
        // A control character would move the cursor and misplace the caret below.
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let before = column - 1 - skipped;
    let room = shown.chars().count().saturating_sub(before).max(1);
    let (left, right) = (
        if skipped > 0 { "…" } else { "" },
        if text.chars().count() > skipped + WIDTH {
            "…"
        } else {
            ""
        },
    );
    let number = line.to_string();
    write!(f, "\n {number} | {left}{shown}{right}")?;
    write!(
        f,
        "\n {} | {}{}{}",
        " ".repeat(number.len()),
        " ".repeat(left.chars().count()),
        " ".repeat(before),
        "^".repeat(marked.clamp(1, room))
    )
}
