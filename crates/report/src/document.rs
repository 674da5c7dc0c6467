//! A document as a tree of blocks, written twice: as Markdown and as HTML. What a report says is
//! decided once.

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
    /// A table; columns from this one on are numbers and stand to the right.
    Table {
        head: Vec<String>,
        rows: Vec<Vec<String>>,
        numbers_from: usize,
    },
    /// A drawing, its file name without extension, and what it shows for those who do not see it.
    Plot {
        name: String,
        svg: Drawing,
        caption: String,
    },
    /// Text as it stands, in a language (`diff`, `sh`).
    Code(&'static str, String),
    /// Something that must not be overlooked.
    Warning(String),
    /// Figures that matter most: value and what it is.
    Tiles(Vec<(String, String)>),
    /// What is shown on demand.
    Folded {
        summary: String,
        open: bool,
        blocks: Vec<Block>,
    },
}

impl Block {
    /// A table whose headings are given as text.
    pub(super) fn table(head: &[&str], numbers_from: usize, rows: Vec<Vec<String>>) -> Self {
        Self::Table {
            head: head.iter().map(ToString::to_string).collect(),
            rows,
            numbers_from,
        }
    }

    /// A paragraph.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// A value from outside as code in a paragraph: nothing in it can end the code early.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace(['\n', '\r'], " "))
}

/// A value from outside as plain text in a paragraph.
pub(super) fn plain(text: &str) -> String {
    text.replace('`', "'").replace(['\n', '\r'], " ")
}

/// The parts of a paragraph: text and code in turn, text first.
pub(super) fn parts(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.split('`')
        .enumerate()
        .map(|(at, part)| (at % 2 == 1, part))
}
