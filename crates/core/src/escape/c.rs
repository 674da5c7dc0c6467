//! Escaping of external text in C and C++ source: comments, string literals and macro bodies.

use super::is_hidden;
use std::fmt;

/// Text inside a C comment, on one line: it neither ends the comment nor opens another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CComment(String);

impl CComment {
    /// Escapes the text. Hidden characters become `?`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let shown = |character| match character {
            '\n' | '\r' | '\t' => ' ',
            hidden if is_hidden(hidden) => '?',
            other => other,
        };
        let text: String = text.chars().map(shown).collect();
        Self(text.replace("*/", "* /").replace("/*", "/ *"))
    }
}

impl fmt::Display for CComment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A C string literal with its quotes; bytes outside printable ASCII are octal escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CLiteral(String);

impl CLiteral {
    /// Quotes the text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut literal = String::from("\"");
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => {
                    literal.push('\\');
                    literal.push(char::from(byte));
                }
                // `??` may start a trigraph.
                b'?' => literal.push_str("\\?"),
                0x20..=0x7e => literal.push(char::from(byte)),
                _ => literal.push_str(&format!("\\{byte:03o}")),
            }
        }
        literal.push('"');
        Self(literal)
    }
}

impl fmt::Display for CLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reason why a text is not valid as a macro body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MacroBodyError {
    /// A line break, another control character, or an invisible one.
    #[error("it has a line break, a control or an invisible character")]
    Hidden,
    /// A backslash or its trigraph at the end continues on the next line.
    #[error("a backslash at its end joins the next line to it")]
    Continued,
    /// `/*` or `//` hides the following text.
    #[error("it begins a comment")]
    Comment,
    /// An unclosed quotation or bracket.
    #[error("it has a quotation mark or a bracket without its partner")]
    Open,
}

/// Text as the body of a macro: tokens on one line without open brackets or quotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CMacroBody(String);

impl CMacroBody {
    /// Checks the text, which stays unchanged: `float4`, `std::plus<float>`, `"row"`.
    ///
    /// # Errors
    /// A text that affects more of a source file than the uses of the macro.
    pub fn new(text: &str) -> Result<Self, MacroBodyError> {
        if text.contains(is_hidden) {
            return Err(MacroBodyError::Hidden);
        }
        if text.trim_end().ends_with('\\') || text.contains("??/") {
            return Err(MacroBodyError::Continued);
        }
        let (mut quote, mut escaped, mut open) = (None, false, Vec::new());
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match (quote, character) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), '\\') => escaped = true,
                (Some(mark), _) => quote = quote.filter(|_| character != mark),
                (None, '"' | '\'') => quote = Some(character),
                (None, '/') if matches!(characters.peek(), Some('/' | '*')) => {
                    return Err(MacroBodyError::Comment);
                }
                (None, '(') => open.push(')'),
                (None, '[') => open.push(']'),
                (None, '{') => open.push('}'),
                (None, ')' | ']' | '}') if open.pop() != Some(character) => {
                    return Err(MacroBodyError::Open);
                }
                _ => {}
            }
        }
        match quote.is_none() && open.is_empty() {
            true => Ok(Self(text.to_owned())),
            false => Err(MacroBodyError::Open),
        }
    }
}

impl fmt::Display for CMacroBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
