//! Escaping functions, one for each output that shows external text: names of recorded files,
//! values of configurations, messages of compilers, paths.
//!
//! Text for C has separate types, because the exported headers are composed of many small texts.

mod c;

pub use c::{CComment, CLiteral, CMacroBody, MacroBodyError};

use std::fmt::Write as _;

/// Returns true for characters that move a cursor, change colours, break lines or are invisible.
///
/// Controls (C0, DEL, C1), bidirectional marks and overrides (UAX #9), line and paragraph
/// separators, zero-width characters, and tags.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'
                | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Escapes text for a terminal. Line breaks and tabs are kept.
#[must_use]
pub fn lines(text: &str) -> String {
    let shown = |character| match character {
        '\n' | '\t' => character,
        hidden if is_hidden(hidden) => '\u{fffd}',
        other => other,
    };
    text.chars().map(shown).collect()
}

/// Escapes text for a single line.
#[must_use]
pub fn line(text: &str) -> String {
    lines(text).replace(['\n', '\t'], " ")
}

/// Quotes a word for a shell. A word with control characters uses the form `$'…'` of bash and zsh.
#[must_use]
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:+,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.contains(is_hidden) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let mut quoted = String::from("$'");
    for character in word.chars() {
        let _ = match character {
            '\\' | '\'' => write!(quoted, "\\{character}"),
            hidden if is_hidden(hidden) => write!(quoted, "\\U{:08x}", u32::from(hidden)),
            other => write!(quoted, "{other}"),
        };
    }
    quoted + "'"
}

/// Escapes serialised JSON: hidden characters become `\u` escapes, so that the value is unchanged
/// and a terminal is not affected.
#[must_use]
pub fn json(document: &str) -> String {
    let raw = |character: char| is_hidden(character) && !matches!(character, '\n' | '\t' | '\r');
    if !document.contains(raw) {
        return document.to_owned();
    }
    let mut escaped = String::with_capacity(document.len());
    for character in document.chars() {
        if raw(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Quotes text as a YAML scalar in double quotes.
#[must_use]
pub fn yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        let _ = match character {
            '"' | '\\' => write!(quoted, "\\{character}"),
            '\n' => write!(quoted, "\\n"),
            '\t' => write!(quoted, "\\t"),
            hidden if is_hidden(hidden) => write!(quoted, "\\U{:08x}", u32::from(hidden)),
            other => write!(quoted, "{other}"),
        };
    }
    quoted + "\""
}

/// Escapes text for HTML, SVG and XML, in elements and in attributes between double quotes.
#[must_use]
pub fn markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            // XML forbids controls and noncharacters, even as references.
            hidden if is_hidden(hidden) || matches!(hidden, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// Escapes text for a line of Markdown (GitHub's dialect): no Markdown or HTML markup remains.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in line(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '*' | '_' | '[' | ']' | '\\' | '`' | '~' | '$' => {
                let _ = write!(escaped, "\\{character}");
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// Escapes a cell of a CSV file: a spreadsheet shows it and does not evaluate it. Numbers and
/// intervals, with or without a unit, are unchanged.
#[must_use]
pub fn csv(text: &str) -> String {
    let text = line(text);
    let formula = match text.trim_start().chars().next() {
        Some('=' | '@' | '\u{fffd}' | '＝' | '＠' | '＋' | '－') => true,
        Some('+' | '-') => text != "-" && !text.split(' ').all(is_figure),
        _ => false,
    };
    if formula { format!("'{text}") } else { text }
}

/// Returns true for a number, its unit, or the word between the ends of an interval.
fn is_figure(word: &str) -> bool {
    let number = word.trim_end_matches(['%', 'x', ',']);
    matches!(word, "%" | "x" | ".." | "to") || number.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests;
