//! Text from outside (names of recorded files, values of configurations, messages of compilers),
//! made harmless for the place where it is shown.

use std::fmt::Write as _;

/// What moves a terminal's cursor, changes its colours or turns the direction of writing.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text for a terminal: lines and tabs stay, nothing else in it commands.
#[must_use]
pub fn lines(text: &str) -> String {
    let shown = |character| match character {
        '\n' | '\t' => character,
        hidden if is_hidden(hidden) => '\u{fffd}',
        other => other,
    };
    text.chars().map(shown).collect()
}

/// Text for a single line.
#[must_use]
pub fn line(text: &str) -> String {
    lines(text).replace(['\n', '\t'], " ")
}

/// A word as a shell takes it.
#[must_use]
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:+,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Text in HTML, SVG and XML, in elements and in attributes between double quotes.
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
            // No document may hold them, however they are written.
            hidden if hidden.is_control() || matches!(hidden, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text in a line of Markdown: nothing of it becomes markup, of Markdown or of HTML.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in line(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '*' | '_' | '[' | ']' | '\\' | '`' => {
                let _ = write!(escaped, "\\{character}");
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// A cell of a CSV file: a spreadsheet shows it and never computes it. Numbers, with a unit or
/// without, stay as they are.
#[must_use]
pub fn csv(text: &str) -> String {
    let text = line(text);
    let number = |character: char| character.is_ascii_digit() || ".,eE+-% x".contains(character);
    let formula = match text.chars().next() {
        Some('=' | '@' | '\u{fffd}') => true,
        Some('+' | '-') => !text.chars().all(number),
        _ => false,
    };
    if formula { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests;
