//! Family trees of changed templates: a table in the report, lines on a terminal.

use super::document::{Block, code, plain};
use std::fmt::Write as _;
use tuner_core::escape;

/// Family tree of an evolution.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyTree {
    /// Kernel, device and evolution.
    pub title: String,
    /// Kind of its times.
    pub timing: &'static str,
    /// The changes, each after its parent; depth 1 is a child of the shipped template.
    pub rows: Vec<FamilyRow>,
    /// Names and values of the figures of merit.
    pub figures: Vec<(String, String)>,
}

/// Change in a family tree.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyRow {
    /// Generation, from 1.
    pub depth: usize,
    /// Number of the change.
    pub change: i64,
    /// Outcome as text, with the verdict of a failure.
    pub outcome: String,
    /// Gains over the shipped template, or the finding.
    pub found: String,
    /// Note of the mutator.
    pub note: String,
    /// Unified diff against the parent; empty without one.
    pub diff: String,
    /// It was accepted or predicted better.
    pub better: bool,
}

impl FamilyTree {
    /// Formats the tree for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n  shipped template\n", escape::line(&self.title));
        for row in &self.rows {
            let indent = "  ".repeat(row.depth + 1);
            let mark = if row.better { "*" } else { "-" };
            let note = match row.note.is_empty() {
                true => String::new(),
                false => format!(" {}", escape::line(&row.note)),
            };
            let found = escape::line(&row.found);
            let _ = writeln!(
                text,
                "{indent}{mark} {}{note}: {}: {found}",
                row.change, row.outcome
            );
        }
        for (name, value) in &self.figures {
            let _ = writeln!(text, "  {name}: {value}");
        }
        text
    }
}

/// Returns the section of a family tree.
pub(super) fn blocks(tree: &FamilyTree) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(2, format!("Changes of the code: {}", plain(&tree.title))),
        Block::text(format!(
            "Each change is below its parent; gains are {} and relative to the shipped template.",
            tree.timing
        )),
    ];
    let rows = tree.rows.iter().map(|row| {
        vec![
            format!("{}{}", "· ".repeat(row.depth), row.change),
            plain(&row.note),
            row.outcome.clone(),
            plain(&row.found),
        ]
    });
    blocks.push(Block::table(
        &["change", "note", "outcome", "found"],
        4,
        rows.collect(),
    ));
    let figures = tree
        .figures
        .iter()
        .map(|(name, value)| format!("{name}: {}", plain(value)));
    blocks.push(Block::List(figures.collect()));
    for row in tree
        .rows
        .iter()
        // Differences of changes without a gain would hide the others.
        .filter(|row| row.better && !row.diff.is_empty())
    {
        blocks.push(Block::Folded {
            summary: format!("Change {}: {}", row.change, code(&row.note)),
            open: false,
            blocks: vec![Block::Code("diff", row.diff.clone())],
        });
    }
    blocks
}
