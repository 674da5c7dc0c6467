//! HTML writer: one self-contained file without network or script, light and dark.

use super::document::{Block, parts};
use std::fmt::Write as _;
use tuner_core::escape::markup;

/// Colours and layout. The `svg` rules are also embedded in standalone plot files.
const STYLE: &str = include_str!("style.css");
pub(super) const SVG_STYLE: &str = include_str!("plot.css");

/// Writes the whole file.
pub(super) fn write(title: &str, blocks: &[Block]) -> String {
    // Names, notes and code are foreign text: the file must not run or load anything.
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; img-src data:\">\n\
         <title>{}</title>\n<style>\n{STYLE}{SVG_STYLE}</style>\n</head>\n<body>\n<main>\n",
        markup(title)
    );
    contents(&mut text, blocks);
    add(&mut text, blocks, &mut 0);
    text.push_str("</main>\n</body>\n</html>\n");
    text
}

fn contents(text: &mut String, blocks: &[Block]) {
    let titles: Vec<&String> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Heading(2, title) => Some(title),
            _ => None,
        })
        .collect();
    if titles.len() < 2 {
        return;
    }
    text.push_str("<nav aria-label=\"Contents\"><ul>\n");
    for (number, title) in titles.iter().enumerate() {
        let _ = writeln!(
            text,
            "<li><a href=\"#s{number}\">{}</a></li>",
            inline(title)
        );
    }
    text.push_str("</ul></nav>\n");
}

/// Writes blocks. Anchors of second-level headings are numbered: names of kernels may be repeated or
/// contain markup.
fn add(text: &mut String, blocks: &[Block], next: &mut usize) {
    for block in blocks {
        match block {
            Block::Heading(2, title) => {
                let _ = writeln!(text, "<h2 id=\"s{}\">{}</h2>", next, inline(title));
                *next += 1;
            }
            Block::Heading(level, title) => {
                let _ = writeln!(text, "<h{level}>{}</h{level}>", inline(title));
            }
            Block::Text(line) => {
                let _ = writeln!(text, "<p>{}</p>", inline(line));
            }
            Block::List(items) => {
                text.push_str("<ul>\n");
                for item in items {
                    let _ = writeln!(text, "<li>{}</li>", inline(item));
                }
                text.push_str("</ul>\n");
            }
            Block::Table {
                head,
                rows,
                numbers_from,
            } => table(text, head, rows, *numbers_from),
            Block::Plot { svg, caption, .. } => {
                let _ = writeln!(
                    text,
                    "<figure>{svg}<figcaption>{}</figcaption></figure>",
                    inline(caption)
                );
            }
            Block::Code(language, code) => code_block(text, language, code),
            Block::Warning(warning) => {
                let _ = writeln!(
                    text,
                    "<p class=\"warning\" role=\"note\"><strong>Warning</strong> {}</p>",
                    inline(warning)
                );
            }
            Block::Tiles(tiles) => {
                text.push_str("<dl class=\"tiles\">\n");
                for (value, what) in tiles {
                    let (what, value) = (inline(what), inline(value));
                    let _ = writeln!(text, "<div><dt>{what}</dt><dd>{value}</dd></div>");
                }
                text.push_str("</dl>\n");
            }
            Block::Folded {
                summary,
                open,
                blocks,
            } => {
                let open = if *open { " open" } else { "" };
                let summary = inline(summary);
                let _ = writeln!(text, "<details{open}><summary>{summary}</summary>");
                add(text, blocks, next);
                text.push_str("</details>\n");
            }
        }
    }
}

/// Writes code; lines of a difference have their kind for colouring.
fn code_block(text: &mut String, language: &str, code: &str) {
    text.push_str("<pre tabindex=\"0\"><code>");
    for line in code.trim_end().lines() {
        let class = match (language, line.as_bytes().first()) {
            ("diff", Some(b'+')) => "add",
            ("diff", Some(b'-')) => "del",
            ("diff", Some(b'@')) => "at",
            _ => "",
        };
        if class.is_empty() {
            let _ = writeln!(text, "{}", markup(line));
        } else {
            let _ = writeln!(text, "<span class=\"{class}\">{}</span>", markup(line));
        }
    }
    text.push_str("</code></pre>\n");
}

fn table(text: &mut String, head: &[String], rows: &[Vec<String>], numbers_from: usize) {
    text.push_str("<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>");
    let class = |at: usize| {
        if at >= numbers_from {
            " class=\"n\""
        } else {
            ""
        }
    };
    for (at, cell) in head.iter().enumerate() {
        let _ = write!(text, "<th scope=\"col\"{}>{}</th>", class(at), inline(cell));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(text, "<td{}>{}</td>", class(at), inline(cell));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
}

fn inline(text: &str) -> String {
    let mut line = String::new();
    for (code, part) in parts(text) {
        if code {
            let _ = write!(line, "<code>{}</code>", markup(part));
        } else {
            line.push_str(&markup(part));
        }
    }
    line
}

#[cfg(test)]
mod tests;
