//! Lexer of the expression language.

use super::{ExprError, val::Val};
use std::ops::Range;

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'t> {
    Number(Val),
    Text(String),
    Name(&'t str),
    /// An operator or a bracket, as written.
    Sign(&'static str),
    End,
}

/// Operators and brackets, longest first, so that `**` is not read as two `*`.
const SIGNS: [&str; 29] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "(", ")", "[", "]",
    ",", "<", ">", "&", "|", "^", "~", ".", "=", ":", "{", "}",
];

/// Splits the text into tokens with their byte ranges.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, Range<usize>)>, ExprError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let (token, length) = if next.is_ascii_digit()
            || (next == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            number(text, at)?
        } else if next.is_alphabetic() || next == '_' {
            let length = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            (Token::Name(&rest[..length]), length)
        } else if next == '"' || next == '\'' {
            quoted(text, at, next)?
        } else {
            sign(text, at, next)?
        };
        found.push((token, at..at + length));
        at += length;
    }
    found.push((Token::End, text.len()..text.len()));
    Ok(found)
}

fn sign(text: &str, at: usize, next: char) -> Result<(Token<'_>, usize), ExprError> {
    let rest = &text[at..];
    let end = at + next.len_utf8();
    for (written, instead) in [("&&", "and"), ("||", "or")] {
        if rest.starts_with(written) {
            return Err(ExprError::new(
                text,
                at..at + 2,
                format!("`{written}` is not an operator here"),
            )
            .help(format!("expressions are Python's: write `{instead}`")));
        }
    }
    if next == '!' && !rest.starts_with("!=") {
        return Err(ExprError::new(text, at..end, "`!` is not an operator here")
            .help("expressions are Python's: write `not`"));
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => Ok((Token::Sign(sign), sign.len())),
        None => Err(ExprError::new(
            text,
            at..end,
            format!("unexpected character `{next}`"),
        )),
    }
}

/// Reads a whole number (decimal, `0x`, `0o`, `0b`, underscores) or a float.
fn number(text: &str, at: usize) -> Result<(Token<'_>, usize), ExprError> {
    let rest = &text[at..];
    let bytes = rest.as_bytes();
    let mut length = 0;
    while let Some(byte) = bytes.get(length) {
        let exponent_sign = matches!(byte, b'+' | b'-')
            && length
                .checked_sub(1)
                .and_then(|at| bytes.get(at))
                .is_some_and(|last| matches!(last, b'e' | b'E'))
            // In a hexadecimal number `e` is a digit: `0x1e+5` is a sum.
            && !rest.starts_with("0x")
            && !rest.starts_with("0X")
            && bytes.get(length + 1).is_some_and(u8::is_ascii_digit);
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || exponent_sign {
            length += 1;
        } else {
            break;
        }
    }
    let written = &rest[..length];
    let bad = |message: String| ExprError::new(text, at..at + length, message);
    if written.ends_with('_') || written.contains("__") || written.contains("_.") {
        return Err(bad(format!("`{written}` is not a number")));
    }
    let digits = written.replace('_', "").to_ascii_lowercase();
    let radix = match digits.get(..2) {
        Some("0x") => Some(16),
        Some("0o") => Some(8),
        Some("0b") => Some(2),
        _ => None,
    };
    let value = if let Some(radix) = radix {
        whole(&digits[2..], radix)
    } else if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Python rejects a leading zero, which C reads as octal.
        if digits.len() > 1 && digits.starts_with('0') && digits.bytes().any(|byte| byte != b'0') {
            return Err(bad(format!("`{written}` begins with a zero"))
                .help("leave the leading zeros out, or write 0o… for an octal number"));
        }
        whole(&digits, 10)
    } else {
        float(&digits)
    };
    match value {
        Ok(value) => Ok((Token::Number(value), length)),
        Err(why) => Err(bad(format!("`{written}` {why}"))),
    }
}

fn whole(digits: &str, radix: u32) -> Result<Val, &'static str> {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err("is not a number");
    }
    i128::from_str_radix(digits, radix)
        .map(Val::Int)
        .map_err(|_| "is larger than 127 bits")
}

fn float(digits: &str) -> Result<Val, &'static str> {
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'+' | b'-');
    match digits.parse::<f64>() {
        Ok(value) if digits.bytes().all(plain) => match value.is_infinite() {
            true => Err("is larger than the largest float"),
            false => Ok(Val::Float(value)),
        },
        _ => Err("is not a number"),
    }
}

fn quoted(text: &str, at: usize, quote: char) -> Result<(Token<'_>, usize), ExprError> {
    let mut value = String::new();
    let mut chars = text[at + 1..].char_indices();
    while let Some((offset, next)) = chars.next() {
        match next {
            _ if next == quote => return Ok((Token::Text(value), offset + 2)),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, escaped @ ('\\' | '\'' | '"'))) => value.push(escaped),
                Some((_, other)) => value.extend(['\\', other]),
                None => break,
            },
            _ => value.push(next),
        }
    }
    Err(ExprError::new(text, at..text.len(), "the text has no end")
        .help(format!("close it with {quote}")))
}
