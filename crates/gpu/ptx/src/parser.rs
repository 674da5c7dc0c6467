//! Parser of the module level; `body` parses function bodies.
#![expect(
    clippy::indexing_slicing,
    reason = "the tokens end with one that is never passed"
)]

mod variables;

use std::collections::HashMap;

use super::ast::{Ast, ClusterDirectives, Function, StateSpace, Variable};
use super::lexer::{Placed, Token, tokens};
use super::reserved::declare_reserved;
use super::{PtxError, PtxErrorKind};

/// Supported major ISA versions.
const VERSIONS: std::ops::RangeInclusive<u32> = 6..=9;

pub(super) struct Parser<'a> {
    tokens: Vec<Placed<'a>>,
    at: usize,
    pub(super) ast: Ast<'a>,
    /// Latest location by file, line and column, for references by `inlined_at`.
    pub(super) latest: HashMap<(u32, u32, u32), u32>,
    /// Index of the current location plus 1; 0 for none.
    pub(super) location: u32,
}

type Result<T> = std::result::Result<T, PtxError>;

/// Parses a module.
pub fn parse(text: &str) -> Result<Ast<'_>> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        ast: Ast::default(),
        latest: HashMap::new(),
        location: 0,
    };
    parser.header()?;
    while parser.peek() != Token::End {
        parser.module_item()?;
    }
    declare_reserved(&mut parser.ast);
    Ok(parser.ast)
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Token<'a> {
        self.tokens[self.at].token
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Token<'a> {
        self.tokens
            .get(self.at + ahead)
            .map_or(Token::End, |t| t.token)
    }

    pub(super) fn line(&self) -> u32 {
        self.tokens[self.at].line
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    pub(super) fn error<T>(&self, kind: PtxErrorKind, message: impl Into<String>) -> Result<T> {
        let place = &self.tokens[self.at];
        Err(PtxError {
            line: place.line,
            column: place.column,
            kind,
            message: message.into(),
        })
    }

    pub(super) fn unexpected<T>(&self, expected: &str) -> Result<T> {
        if self.peek() == Token::End {
            return self.error(
                PtxErrorKind::Truncated,
                format!("the text ends where {expected} is expected"),
            );
        }
        let found = describe(self.peek());
        self.error(
            PtxErrorKind::Syntax,
            format!("expected {expected}, found {found}"),
        )
    }

    pub(super) fn accept(&mut self, c: char) -> bool {
        let hit = self.peek() == Token::Punct(c);
        if hit {
            self.at += 1;
        }
        hit
    }

    pub(super) fn expect(&mut self, c: char) -> Result<()> {
        if self.accept(c) {
            Ok(())
        } else {
            self.unexpected(&format!("`{c}`"))
        }
    }

    pub(super) fn accept_dot(&mut self, word: &str) -> bool {
        let hit = self.peek() == Token::Dot(word);
        if hit {
            self.at += 1;
        }
        hit
    }

    pub(super) fn ident(&mut self, what: &str) -> Result<&'a str> {
        match self.peek() {
            Token::Ident(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => self.unexpected(what),
        }
    }

    pub(super) fn int(&mut self, what: &str) -> Result<u64> {
        match self.peek() {
            Token::Int(value) => {
                self.at += 1;
                Ok(value)
            }
            _ => self.unexpected(what),
        }
    }

    pub(super) fn small(&mut self, what: &str) -> Result<u32> {
        let value = self.int(what)?;
        u32::try_from(value)
            .or_else(|_| self.error(PtxErrorKind::Syntax, format!("{what} {value} is too large")))
    }

    fn header(&mut self) -> Result<()> {
        if !self.accept_dot("version") {
            return self.unexpected("`.version` at the start of a PTX module");
        }
        let version = match self.next() {
            Token::F64(bits) => f64::from_bits(bits),
            Token::Int(major) => major as f64,
            _ => return self.unexpected("a version such as 9.0"),
        };
        let major = version as u32;
        if !VERSIONS.contains(&major) {
            return self.error(
                PtxErrorKind::UnknownDirective,
                format!("PTX version {version} is not known; 6.0 to 9.x are"),
            );
        }
        self.ast.version = (major, ((version - f64::from(major)) * 10.0).round() as u32);
        if !self.accept_dot("target") {
            return self.unexpected("`.target`");
        }
        self.ast.target = self.ident("a target such as sm_80")?;
        // Options such as `debug` and `texmode_unified` follow.
        while self.accept(',') {
            self.ident("a target")?;
        }
        if self.accept_dot("address_size") && self.int("32 or 64")? != 64 {
            return self.error(PtxErrorKind::Syntax, "only 64-bit addresses are supported");
        }
        Ok(())
    }

    fn module_item(&mut self) -> Result<()> {
        let mut external = false;
        loop {
            match self.peek() {
                Token::Dot("extern") => external = true,
                Token::Dot("visible" | "weak" | "common") => {}
                _ => break,
            }
            self.next();
        }
        match self.peek() {
            Token::Dot("entry") => self.function(true),
            Token::Dot("func") => self.function(false),
            Token::Dot("global" | "const" | "shared") => {
                let variables = self.variables(external)?;
                self.ast.variables.extend(variables);
                Ok(())
            }
            Token::Dot("file") => self.file(),
            // Sections have debug information, which no instruction reads.
            Token::Dot("section") => self.skip_section(),
            Token::Dot("alias" | "pragma" | "loc") => self.skip_to_semicolon_or_line(),
            Token::Dot(word) => self.error(
                PtxErrorKind::UnknownDirective,
                format!("unknown directive `.{word}` at module level"),
            ),
            _ => self.unexpected("a directive"),
        }
    }

    fn file(&mut self) -> Result<()> {
        self.next();
        let number = self.small("a file number")?;
        let Token::Str(name) = self.next() else {
            return self.unexpected("a file name");
        };
        while self.accept(',') {
            self.int("a time or size")?;
        }
        self.ast.files.insert(number, name);
        Ok(())
    }

    fn skip_section(&mut self) -> Result<()> {
        self.next();
        self.next();
        self.expect('{')?;
        let mut depth = 1;
        while depth > 0 {
            match self.next() {
                Token::Punct('{') => depth += 1,
                Token::Punct('}') => depth -= 1,
                Token::End => return self.unexpected("`}` of a section"),
                _ => {}
            }
        }
        Ok(())
    }

    fn skip_to_semicolon_or_line(&mut self) -> Result<()> {
        let line = self.line();
        while self.peek() != Token::End && self.line() == line {
            if self.next() == Token::Punct(';') {
                break;
            }
        }
        Ok(())
    }

    fn function(&mut self, entry: bool) -> Result<()> {
        let line = self.line();
        self.next();
        let returns = if !entry && self.peek() == Token::Punct('(') {
            self.params()?
        } else {
            Vec::new()
        };
        let name = self.ident("a function name")?;
        let params = if self.peek() == Token::Punct('(') {
            self.params()?
        } else {
            Vec::new()
        };
        let mut function = Function {
            name,
            entry,
            returns,
            params,
            body: None,
            max_threads: None,
            required_threads: None,
            min_blocks: None,
            max_registers: None,
            cluster: ClusterDirectives::default(),
            line,
        };
        self.performance_directives(&mut function)?;
        if !self.accept(';') {
            // A location does not extend into the next function.
            self.location = 0;
            function.body = Some(self.body()?);
        }
        self.ast.functions.push(function);
        Ok(())
    }

    fn params(&mut self) -> Result<Vec<Variable<'a>>> {
        self.expect('(')?;
        let mut out = Vec::new();
        while !self.accept(')') {
            if !(self.accept_dot("param") || self.accept_dot("reg")) {
                return self.unexpected("`.param`");
            }
            let (ty, lanes, align) = self.type_and_align()?;
            out.push(self.declarator(StateSpace::Param, ty, lanes, align)?);
            if !self.accept(',') && self.peek() != Token::Punct(')') {
                return self.unexpected("`,` or `)`");
            }
        }
        Ok(out)
    }

    fn performance_directives(&mut self, f: &mut Function<'a>) -> Result<()> {
        while let Token::Dot(word) = self.peek() {
            self.next();
            match word {
                "maxntid" => f.max_threads = Some(self.three()?),
                "reqntid" => f.required_threads = Some(self.three()?),
                "minnctapersm" => f.min_blocks = Some(self.small("a number of blocks")?),
                "maxnreg" => f.max_registers = Some(self.small("a number of registers")?),
                // Deprecated in favour of `.minnctapersm`.
                "maxnctapersm" => {
                    self.int("a number")?;
                }
                "reqnctapercluster" => f.cluster.required = Some(self.three()?),
                "maxclusterrank" => {
                    f.cluster.max_blocks = Some(self.small("a number of blocks")?);
                }
                "explicitcluster" => f.cluster.explicit = true,
                "blocksareclusters" => f.cluster.grid_of_clusters = true,
                "noreturn" | "unique" => {}
                "pragma" => {
                    self.next();
                    self.expect(';')?;
                }
                _ => {
                    return self.error(
                        PtxErrorKind::UnknownDirective,
                        format!("unknown directive `.{word}` before a function body"),
                    );
                }
            }
        }
        Ok(())
    }

    fn three(&mut self) -> Result<[u32; 3]> {
        let mut out = [1; 3];
        for (i, slot) in out.iter_mut().enumerate() {
            if i > 0 && !self.accept(',') {
                break;
            }
            *slot = self.small("a number of threads")?;
        }
        Ok(out)
    }
}

pub(super) fn describe(token: Token<'_>) -> String {
    match token {
        Token::Ident(name) => format!("`{name}`"),
        Token::Dot(name) => format!("`.{name}`"),
        Token::Int(value) => format!("`{value}`"),
        Token::F32(_) | Token::F64(_) => "a number".to_owned(),
        Token::Str(_) => "a string".to_owned(),
        Token::Punct(c) => format!("`{c}`"),
        Token::End => "the end of the text".to_owned(),
    }
}
