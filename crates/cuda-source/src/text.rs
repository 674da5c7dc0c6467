//! Source as text: comments, literals, words.

/// Reports whether a byte is part of a name or a number.
#[must_use]
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Blanks comments and, with `literals`, strings and character literals; keeps length and lines.
#[expect(
    clippy::indexing_slicing,
    reason = "every place is checked against the length by the loop around it"
)]
#[must_use]
pub fn blanked(text: &str, literals: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        // `1'000` is a number, and `u8R"(…)"` a raw string.
        let begins = is_prefix(bytes, at);
        let (end, is_blank) = match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'/')) => (line_end(bytes, at), true),
            (b'/', Some(b'*')) => (find(bytes, at + 2, b"*/"), true),
            (b'R', Some(b'"')) if begins => (raw_end(bytes, at + 2), literals),
            (b'"', _) => (literal_end(bytes, at), literals),
            (b'\'', _) if begins => (literal_end(bytes, at), literals),
            _ => (at + 1, false),
        };
        for byte in &mut out[at..end] {
            if is_blank && *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Blanked parts begin and end at ASCII bytes, so no character is cut.
    String::from_utf8(out).unwrap_or_default()
}

/// Prefixes of literals that name their encoding.
const PREFIXES: [&[u8]; 5] = [b"", b"L", b"u", b"U", b"u8"];

/// Reports whether the word before a position is empty or a prefix of a literal.
fn is_prefix(bytes: &[u8], at: usize) -> bool {
    // One byte more than the longest prefix: a longer word is not a prefix.
    let before = bytes.get(at.saturating_sub(3)..at).unwrap_or_default();
    let start = before.iter().rposition(|byte| !is_word(*byte));
    let word = before.get(start.map_or(0, |last| last + 1)..);
    word.is_some_and(|word| PREFIXES.contains(&word))
}

fn find(bytes: &[u8], from: usize, pattern: &[u8]) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.windows(pattern.len())
        .position(|window| window == pattern)
        .map_or(bytes.len(), |found| from + found + pattern.len())
}

/// Returns the length of a backslash and the line's end after it.
fn continuation(bytes: &[u8], at: usize) -> Option<usize> {
    match (bytes.get(at + 1), bytes.get(at + 2)) {
        (Some(b'\n'), _) => Some(2),
        (Some(b'\r'), Some(b'\n')) => Some(3),
        _ => None,
    }
}

/// Finds the end of a line comment, which continues after a backslash at the line's end.
#[expect(
    clippy::indexing_slicing,
    reason = "every place is checked against the length by the loop around it"
)]
fn line_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => return at,
            b'\\' => at += continuation(bytes, at).unwrap_or(1),
            _ => at += 1,
        }
    }
    bytes.len()
}

#[expect(
    clippy::indexing_slicing,
    reason = "every place is checked against the length by the loop around it"
)]
fn literal_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += continuation(bytes, at).unwrap_or(2),
            b'\n' => return at,
            byte if byte == bytes[from] => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_end(bytes: &[u8], from: usize) -> usize {
    let open = find(bytes, from, b"(");
    let delimiter = bytes.get(from..open.saturating_sub(1)).unwrap_or_default();
    let close = [b")", delimiter, b"\""].concat();
    find(bytes, open, &close)
}

/// Returns the digits and the radix of a whole literal in lower case without a suffix; `None` if it is
/// decimal or not a whole number.
#[must_use]
pub fn radix_of(literal: &str) -> Option<(&str, u32)> {
    let prefixed = |prefix: &str, radix| Some((literal.strip_prefix(prefix)?, radix));
    if let Some(found) = prefixed("0x", 16).or_else(|| prefixed("0b", 2)) {
        return Some(found);
    }
    let digits = literal.strip_prefix('0')?;
    let is_octal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_octal.then_some((digits, 8))
}

#[cfg(test)]
mod tests;
