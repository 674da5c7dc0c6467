//! Markdown writer (GitHub's dialect). Plots are separate files.

use super::document::{Block, parts};
use std::fmt::Write as _;
use tuner_core::escape;

/// Writes the document; plots are referenced as `plots/NAME.svg`.
pub(super) fn write(blocks: &[Block]) -> String {
    let mut text = String::new();
    add(&mut text, blocks);
    text
}

fn add(text: &mut String, blocks: &[Block]) {
    for block in blocks {
        if !text.is_empty() && !text.ends_with("\n\n") {
            text.push('\n');
        }
        match block {
            Block::Heading(level, title) => {
                let _ = writeln!(
                    text,
                    "{} {}",
                    "#".repeat(usize::from(*level)),
                    inline(title)
                );
            }
            Block::Text(line) => {
                let _ = writeln!(text, "{}", opening(&inline(line)));
            }
            Block::List(items) => {
                for item in items {
                    let _ = writeln!(text, "- {}", opening(&inline(item)));
                }
            }
            Block::Table {
                head,
                rows,
                numbers_from,
            } => table(text, head, rows, *numbers_from),
            Block::Plot { name, caption, .. } => {
                // A bracket in the caption would end the alternative text.
                let _ = writeln!(
                    text,
                    "![{}](plots/{name}.svg)",
                    inline(caption).replace(['[', ']'], "")
                );
            }
            Block::Code(language, code) => {
                let code = escape::lines(code);
                // A fence longer than any in the text.
                let fence = "`".repeat(longest_fence(&code).max(2) + 1);
                let _ = writeln!(text, "{fence}{language}\n{}\n{fence}", code.trim_end());
            }
            Block::Warning(warning) => {
                let _ = writeln!(text, "> **Warning:** {}", inline(warning));
            }
            Block::Tiles(tiles) => {
                for (value, what) in tiles {
                    let _ = writeln!(text, "- **{}** {}", inline(value), inline(what));
                }
            }
            Block::Folded {
                summary, blocks, ..
            } => {
                let _ = writeln!(text, "**{}**", inline(summary));
                add(text, blocks);
            }
        }
    }
}

fn longest_fence(code: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for character in code.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

fn table(text: &mut String, head: &[String], rows: &[Vec<String>], numbers_from: usize) {
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.collect();
        format!("| {} |\n", cells.join(" | "))
    };
    // GitHub separates cells at bars even within code.
    let cell = |cell: &String| inline(cell).replace('|', "\\|");
    text.push_str(&line(&mut head.iter().map(cell)));
    let rule = |at: usize| if at >= numbers_from { "---:" } else { "---" }.to_owned();
    text.push_str(&line(&mut (0..head.len()).map(rule)));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(cell)));
    }
}

/// Escapes text outside of code: values cannot become Markdown or HTML markup.
fn inline(text: &str) -> String {
    let mut line = String::new();
    for (code, part) in parts(text) {
        match code {
            true if part.is_empty() => {}
            true => line.push_str(&format!("`{}`", escape::line(part))),
            false => line.push_str(&escape::markdown(part)),
        }
    }
    line
}

/// Escapes a line so that it does not start a heading, list or code block.
fn opening(line: &str) -> String {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = rest.len() < line.len() && rest.starts_with(['.', ')']);
    match line.strip_suffix(rest) {
        Some(digits) if number => format!("{digits}\\{rest}"),
        _ if line.starts_with(['#', '-', '+', '=']) => format!("\\{line}"),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
