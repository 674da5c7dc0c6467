//! A document as a tree of blocks, written as Markdown and as HTML with the same content.

use super::svg::Drawing;

/// One block.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// A heading, level 1 to 4.
    Heading(u8, String),
    /// A paragraph. Text between backticks is code.
    Text(String),
    /// A list.
    List(Vec<String>),
    /// A table; columns from this one on are numbers, right-aligned.
    Table {
        head: Vec<String>,
        rows: Vec<Vec<String>>,
        numbers_from: usize,
    },
    /// A drawing with its file name without extension, and its text alternative.
    Plot {
        name: String,
        svg: Drawing,
        caption: String,
    },
    /// Preformatted text in a language (`diff`, `sh`).
    Code(&'static str, String),
    /// A prominent warning.
    Warning(String),
    /// Key figures: value and label.
    Tiles(Vec<(String, String)>),
    /// Content shown on demand.
    Folded {
        summary: String,
        open: bool,
        blocks: Vec<Block>,
    },
}

impl Block {
    /// Creates a table with text headings.
    pub(super) fn table(head: &[&str], numbers_from: usize, rows: Vec<Vec<String>>) -> Self {
        Self::Table {
            head: head.iter().map(ToString::to_string).collect(),
            rows,
            numbers_from,
        }
    }

    /// Creates a paragraph.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// Formats an external value as code in a paragraph: its text cannot end the code early.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace(['\n', '\r'], " "))
}

/// Formats an external value as plain text in a paragraph.
pub(super) fn plain(text: &str) -> String {
    text.replace('`', "'").replace(['\n', '\r'], " ")
}

/// Splits a paragraph into alternating text and code, text first.
pub(super) fn parts(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.split('`')
        .enumerate()
        .map(|(at, part)| (at % 2 == 1, part))
}
