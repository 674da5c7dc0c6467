//! Lexer: PTX text to tokens with line and column.

use super::{PtxError, PtxErrorKind};

/// A token. Names keep their spelling; numbers are decoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    /// A name, `%` and `$` included.
    Ident(&'a str),
    /// A dot and the following name: `.f32` is `Dot("f32")`.
    Dot(&'a str),
    /// An integer.
    Int(u64),
    /// A single given by its bits (`0f…`).
    F32(u32),
    /// A double given by its bits (`0d…`) or in decimal.
    F64(u64),
    /// Text in quotes.
    Str(&'a str),
    /// Any other character.
    Punct(char),
    /// The end of the text.
    End,
}

/// A token with its position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placed<'a> {
    /// The token.
    pub token: Token<'a>,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
}

/// Splits `text` into tokens; the last one is [`Token::End`].
pub fn tokens(text: &str) -> Result<Vec<Placed<'_>>, PtxError> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        line_start: 0,
    };
    let mut out = Vec::with_capacity(text.len() / 4);
    loop {
        lexer.skip_blanks()?;
        let (line, column) = (lexer.line, lexer.column());
        let token = lexer.token()?;
        out.push(Placed {
            token,
            line,
            column,
        });
        if token == Token::End {
            return Ok(out);
        }
    }
}

fn name_char(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

impl<'a> Lexer<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn column(&self) -> u32 {
        (self.at - self.line_start) as u32 + 1
    }

    fn error(&self, kind: PtxErrorKind, message: impl Into<String>) -> PtxError {
        PtxError {
            line: self.line,
            column: self.column(),
            kind,
            message: message.into(),
        }
    }

    fn newline(&mut self) {
        self.line += 1;
        self.line_start = self.at;
    }

    fn skip_blanks(&mut self) -> Result<(), PtxError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) => {
                    self.at += 1;
                    self.newline();
                }
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                (b'/', b'/') => {
                    while self.at < self.text.len() && self.peek(0) != b'\n' {
                        self.at += 1;
                    }
                }
                (b'/', b'*') => self.skip_block_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_block_comment(&mut self) -> Result<(), PtxError> {
        // Built here for its position: the end of the text would tell nothing.
        let open = self.error(PtxErrorKind::Truncated, "a comment `/*` is never closed");
        self.at += 2;
        while self.at < self.text.len() {
            if self.peek(0) == b'*' && self.peek(1) == b'/' {
                self.at += 2;
                return Ok(());
            }
            let newline = self.peek(0) == b'\n';
            self.at += 1;
            if newline {
                self.newline();
            }
        }
        Err(open)
    }

    fn take(&mut self, keep: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.at < self.text.len() && keep(self.peek(0)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn token(&mut self) -> Result<Token<'a>, PtxError> {
        let Some(&c) = self.bytes().get(self.at) else {
            return Ok(Token::End);
        };
        match c {
            b'0'..=b'9' => self.number(),
            b'.' if name_char(self.peek(1)) => {
                self.at += 1;
                Ok(Token::Dot(self.dotted()))
            }
            b'"' => self.string(),
            _ if name_char(c) || (c == b'%' && name_char(self.peek(1))) => {
                let start = self.at;
                self.at += 1;
                self.take(name_char);
                Ok(Token::Ident(&self.text[start..self.at]))
            }
            _ if c.is_ascii_graphic() => {
                self.at += 1;
                Ok(Token::Punct(c as char))
            }
            _ => Err(self.error(
                PtxErrorKind::Lexical,
                format!("unexpected character (byte 0x{c:02x}); PTX is ASCII text"),
            )),
        }
    }

    /// Reads the name after a dot; `::` joins parts, as in `.shared::cta`.
    fn dotted(&mut self) -> &'a str {
        let start = self.at;
        loop {
            self.take(name_char);
            if self.peek(0) == b':' && self.peek(1) == b':' && name_char(self.peek(2)) {
                self.at += 2;
            } else {
                return &self.text[start..self.at];
            }
        }
    }

    fn string(&mut self) -> Result<Token<'a>, PtxError> {
        let start = self.at + 1;
        let rest = &self.text[start..];
        let line = rest.lines().next().unwrap_or_default();
        match line.split_once('"') {
            Some((string, _)) => {
                self.at = start + string.len() + 1;
                Ok(Token::Str(string))
            }
            None => Err(self.error(
                PtxErrorKind::Truncated,
                "a string is not closed on its line",
            )),
        }
    }

    fn number(&mut self) -> Result<Token<'a>, PtxError> {
        let start = self.at;
        match (self.peek(0), self.peek(1)) {
            (b'0', b'f' | b'F') => return self.hex_float(8).map(|b| Token::F32(b as u32)),
            (b'0', b'd' | b'D') => return self.hex_float(16).map(Token::F64),
            _ => {}
        }
        let word = self.take(|c| c.is_ascii_alphanumeric());
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() && !word.starts_with("0x") {
            self.at += 1;
            self.take(|c| c.is_ascii_alphanumeric());
            let text = &self.text[start..self.at];
            return match text.parse::<f64>() {
                Ok(value) => Ok(Token::F64(value.to_bits())),
                Err(_) => Err(self.error(PtxErrorKind::Lexical, format!("bad number `{text}`"))),
            };
        }
        let digits = word.trim_end_matches(['U', 'u']);
        let value = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            u64::from_str_radix(hex, 16)
        } else if let Some(bin) = digits.strip_prefix("0b").or(digits.strip_prefix("0B")) {
            u64::from_str_radix(bin, 2)
        } else if digits.len() > 1 && digits.starts_with('0') {
            u64::from_str_radix(&digits[1..], 8)
        } else {
            digits.parse()
        };
        value
            .map(Token::Int)
            .map_err(|_| self.error(PtxErrorKind::Lexical, format!("bad number `{word}`")))
    }

    fn hex_float(&mut self, digits: usize) -> Result<u64, PtxError> {
        self.at += 2;
        let word = self.take(|c| c.is_ascii_hexdigit());
        let ok = word.len() == digits;
        u64::from_str_radix(word, 16)
            .ok()
            .filter(|_| ok)
            .ok_or_else(|| {
                self.error(
                    PtxErrorKind::Lexical,
                    format!("a number given by its bits needs {digits} hexadecimal digits"),
                )
            })
    }
}
