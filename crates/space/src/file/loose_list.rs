//! Values that were written without the brackets of a YAML list, as the list that they mean.

use std::ops::Range;

/// Returns the list that a scalar at `span` of the file means: in `{ values: 64, 128 }` YAML ends the
/// value at the comma. `text`: the value of a text, which may be in quotes.
pub(super) fn bracketed(text: Option<&str>, span: Range<usize>, source: &str) -> String {
    let written = source.get(span.clone()).unwrap_or_default();
    let whole = match text {
        Some(text) if written.starts_with(['"', '\'']) => text.to_owned(),
        _ => format!(
            "{written}{}",
            continuation(source.get(span.end..).unwrap_or_default())
        ),
    };
    let whole = whole.trim();
    let inside = enclosed(whole).unwrap_or(whole);
    let elements = at_commas(inside)
        .into_iter()
        .flat_map(|element| words(element).unwrap_or_else(|| vec![element]));
    let elements: Vec<String> = elements.map(scalar).collect();
    format!("[{}]", elements.join(", "))
}

/// Returns the text after a scalar that belongs to it: what follows commas and is no key with a
/// value.
fn continuation(rest: &str) -> &str {
    let line = rest.lines().next().unwrap_or_default();
    let line = line.split_once(" #").map_or(line, |(line, _)| line);
    let line = line.split_once('}').map_or(line, |(line, _)| line);
    let mut end = 0;
    for (at, _) in line.match_indices(',') {
        let piece = line.get(at + 1..).unwrap_or_default();
        let piece = piece.split(',').next().unwrap_or_default();
        let is_first = line
            .get(..at)
            .is_some_and(|before| before.trim().is_empty());
        if piece.contains(':') || piece.trim().is_empty() || end == 0 && !is_first {
            break;
        }
        end = at + 1 + piece.len();
    }
    line.get(..end).unwrap_or_default()
}

/// Returns the inside of parentheses around a whole text.
fn enclosed(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('(')?.strip_suffix(')')?;
    let mut depth = 0_i32;
    let closes_early = inside.chars().any(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    });
    (!closes_early).then_some(inside)
}

/// Splits at commas outside of parentheses.
fn at_commas(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let parts = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth <= 0
    });
    let parts = parts.map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns values that are separated by blanks or semicolons; `None` for an expression.
fn words(text: &str) -> Option<Vec<&str>> {
    let separates = |c: char| c.is_whitespace() || c == ';';
    let words: Vec<&str> = text
        .split(separates)
        .filter(|word| !word.is_empty())
        .collect();
    let is_value = |word: &&str| {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
        word.chars().all(plain) && word.chars().any(char::is_alphanumeric)
    };
    (words.len() > 1 && words.iter().all(is_value)).then_some(words)
}

/// Returns numbers that are separated by blanks, semicolons or commas as YAML separates them; `None`
/// for any other text.
pub(super) fn comma_separated(text: &str) -> Option<String> {
    let parts = text.split(|c: char| c.is_whitespace() || c == ';' || c == ',');
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let numbers = parts.iter().all(|part| part.parse::<f64>().is_ok());
    (numbers && parts.len() > 1).then(|| parts.join(", "))
}

/// Quotes an element that YAML would read otherwise.
fn scalar(text: &str) -> String {
    let special = |c: char| ",[]{}#:\"\\'`".contains(c);
    let begins =
        text.starts_with(['&', '*', '!', '|', '>', '%', '@', '?']) || text.starts_with("- ");
    if !begins && !text.contains(special) {
        return text.to_owned();
    }
    match text.contains(['"', '\\']) {
        true => format!("'{}'", text.replace('\'', "''")),
        false => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests;
