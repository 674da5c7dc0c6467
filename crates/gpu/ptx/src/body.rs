//! Parser of function bodies, with the scopes of inline PTX.
#![expect(clippy::indexing_slicing, reason = "a body has at least its own scope")]

use std::collections::HashMap;

use super::ast::{Body, Instruction, Location, Operand, Reg, Type, Variable};
use super::lexer::Token;
use super::parser::{Parser, describe};
use super::tensor_maps::split_tensor_maps;
use super::vector_atomics::split_vector_atomics;
use super::wide::{join_results, split_wide};
use super::{PtxError, PtxErrorKind};

type Result<T> = std::result::Result<T, PtxError>;

/// Most registers that one function may declare; more indicate an attack rather than a kernel.
const MAX_REGISTERS: usize = 1 << 20;
/// Deepest nesting of braces.
const MAX_DEPTH: usize = 64;

/// Registers declared as `%r<10>`: first index and count.
#[derive(Clone, Copy)]
struct Family {
    first: u32,
    count: u32,
}

#[derive(Default)]
struct Scope<'a> {
    id: u32,
    families: HashMap<&'a str, Family>,
    names: HashMap<&'a str, Reg>,
    variables: HashMap<&'a str, u32>,
}

struct BodyParser<'p, 'a> {
    p: &'p mut Parser<'a>,
    body: Body<'a>,
    scopes: Vec<Scope<'a>>,
    /// Mask of a pragma, for the next instruction.
    used_bytes: Option<u32>,
}

impl<'a> Parser<'a> {
    /// Parses a function body, from `{` to its `}`.
    pub(super) fn body(&mut self) -> Result<Body<'a>> {
        self.expect('{')?;
        let mut parser = BodyParser {
            p: self,
            body: Body::default(),
            scopes: vec![Scope::default()],
            used_bytes: None,
        };
        // The outermost scope is its own parent.
        parser.body.scopes.push(0);
        while !parser.scopes.is_empty() {
            parser.statement()?;
        }
        let mut body = parser.body;
        split_wide(&mut body);
        split_vector_atomics(&mut body);
        split_tensor_maps(&mut body);
        Ok(body)
    }

    fn loc(&mut self) -> Result<()> {
        let file = self.small("a file number")?;
        let line = self.small("a line")?;
        let column = self.small("a column")?;
        let mut inlined_at = 0;
        if self.accept(',') {
            self.ident("function_name")?;
            self.ident("a label")?;
            self.plus_offset()?;
            self.expect(',')?;
            self.ident("inlined_at")?;
            let key = (
                self.small("a file")?,
                self.small("a line")?,
                self.small("a column")?,
            );
            // The call itself may have no `.loc` of its own.
            inlined_at = match self.latest.get(&key) {
                Some(index) => *index,
                None => {
                    let (file, line, column) = key;
                    self.ast.locations.push(Location {
                        file,
                        line,
                        column,
                        inlined_at: 0,
                    });
                    self.ast.locations.len() as u32
                }
            };
        }
        self.ast.locations.push(Location {
            file,
            line,
            column,
            inlined_at,
        });
        self.location = self.ast.locations.len() as u32;
        self.latest.insert((file, line, column), self.location);
        Ok(())
    }
}

impl<'a> BodyParser<'_, 'a> {
    fn scope(&mut self) -> &mut Scope<'a> {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    fn statement(&mut self) -> Result<()> {
        match self.p.peek() {
            Token::Punct('{') => self.open_scope(),
            Token::Punct('}') => {
                self.p.next();
                self.scopes.pop();
                Ok(())
            }
            Token::Punct(';') => {
                self.p.next();
                Ok(())
            }
            Token::Dot(word) => self.directive(word),
            Token::Ident(name) if self.p.peek_at(1) == Token::Punct(':') => self.label(name),
            Token::Ident(_) | Token::Punct('@') => self.instruction(),
            _ => self.p.unexpected("an instruction"),
        }
    }

    fn open_scope(&mut self) -> Result<()> {
        self.p.next();
        if self.scopes.len() >= MAX_DEPTH {
            return self
                .p
                .error(PtxErrorKind::Syntax, "braces are nested too deeply");
        }
        let parent = self.scope().id;
        let id = self.body.scopes.len() as u32;
        self.body.scopes.push(parent);
        self.scopes.push(Scope {
            id,
            ..Scope::default()
        });
        Ok(())
    }

    fn label(&mut self, name: &'a str) -> Result<()> {
        self.p.next();
        self.p.next();
        if self.p.accept_dot("branchtargets") {
            let mut targets = Vec::new();
            loop {
                targets.push(self.p.ident("a label")?);
                if !self.p.accept(',') {
                    break;
                }
            }
            self.body.tables.push((name, targets));
            return self.p.expect(';');
        }
        if matches!(self.p.peek(), Token::Dot("callprototype" | "calltargets")) {
            return self.skip_statement();
        }
        let scope = self.scope().id;
        if self
            .body
            .labels
            .iter()
            .any(|(s, n, _)| *s == scope && *n == name)
        {
            return self.p.error(
                PtxErrorKind::Name,
                format!("label `{name}` is declared twice"),
            );
        }
        let at = self.body.instructions.len();
        self.body.labels.push((scope, name, at));
        Ok(())
    }

    fn skip_statement(&mut self) -> Result<()> {
        loop {
            match self.p.next() {
                Token::Punct(';') => return Ok(()),
                Token::End => return self.p.unexpected("`;`"),
                _ => {}
            }
        }
    }

    fn directive(&mut self, word: &'a str) -> Result<()> {
        match word {
            "reg" => self.registers(),
            "local" | "shared" | "param" | "global" | "const" | "extern" => {
                let external = word == "extern";
                if external {
                    self.p.next();
                }
                let variables = self.p.variables(external)?;
                for variable in variables {
                    self.declare_variable(variable)?;
                }
                Ok(())
            }
            "loc" => {
                self.p.next();
                self.p.loc()
            }
            "pragma" => self.pragma(),
            _ => self.p.error(
                PtxErrorKind::UnknownDirective,
                format!("unknown directive `.{word}` in a function body"),
            ),
        }
    }

    /// Reads a pragma: `.pragma "used_bytes_mask 3";` applies to the next load; others are hints.
    fn pragma(&mut self) -> Result<()> {
        if let Token::Str(text) = self.p.peek() {
            let mask = text.trim_matches('"').strip_prefix("used_bytes_mask");
            let number = mask
                .map(str::trim)
                .and_then(|m| match m.strip_prefix("0x") {
                    Some(hex) => u32::from_str_radix(hex, 16).ok(),
                    None => m.parse().ok(),
                });
            // Another pragma may stand between the mask and its load.
            self.used_bytes = number.or(self.used_bytes);
        }
        self.skip_statement()
    }

    fn declare_variable(&mut self, variable: Variable<'a>) -> Result<()> {
        let index = self.body.variables.len() as u32;
        let name = variable.name;
        self.body.variables.push(variable);
        if self.scope().variables.insert(name, index).is_some() {
            return self
                .p
                .error(PtxErrorKind::Name, format!("`{name}` is declared twice"));
        }
        Ok(())
    }

    fn registers(&mut self) -> Result<()> {
        self.p.next();
        let ty = match self.p.next() {
            Token::Dot(word) => Type::parse(word),
            _ => None,
        };
        let Some(ty) = ty else {
            return self.p.unexpected("a register type after `.reg`");
        };
        loop {
            let name = self.p.ident("a register name")?;
            let mut count = 1;
            let family = self.p.accept('<');
            if family {
                count = self.p.small("a number of registers")?;
                self.p.expect('>')?;
            }
            let first = self.body.registers.len() as u32;
            if self.body.registers.len() + count as usize > MAX_REGISTERS {
                return self.p.error(PtxErrorKind::Syntax, "too many registers");
            }
            self.body
                .registers
                .extend(std::iter::repeat_n(Some(ty), count as usize));
            if family {
                self.scope().families.insert(name, Family { first, count });
            } else {
                self.scope().names.insert(name, Reg(first));
            }
            if !self.p.accept(',') {
                break;
            }
        }
        self.p.expect(';')
    }

    fn find_register(&self, name: &str) -> Option<Reg> {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u32> = name[stem.len()..].parse().ok();
        for scope in self.scopes.iter().rev() {
            if let Some(reg) = scope.names.get(name) {
                return Some(*reg);
            }
            if let (Some(family), Some(n)) = (scope.families.get(stem), number)
                // A greater number may belong to a family of the same name in an outer scope.
                && n < family.count
            {
                return Some(Reg(family.first + n));
            }
        }
        None
    }

    fn find_variable(&self, name: &str) -> Option<u32> {
        self.scopes
            .iter()
            .rev()
            .find_map(|s| s.variables.get(name).copied())
    }

    fn instruction(&mut self) -> Result<()> {
        let mut guard = None;
        let line = self.p.line();
        if self.p.accept('@') {
            let negated = self.p.accept('!');
            let name = self.p.ident("a predicate")?;
            match self.find_register(name) {
                Some(reg) => guard = Some((reg, negated)),
                None => return self.undeclared(name),
            }
        }
        let opcode = self.p.ident("an instruction")?;
        let mut modifiers = Vec::new();
        while let Token::Dot(word) = self.p.peek() {
            self.p.next();
            modifiers.push(word);
        }
        let (mut operands, mut parts) = (Vec::new(), Vec::new());
        if self.p.peek() != Token::Punct(';') {
            loop {
                // Only `vmad` negates registers; a minus before a number belongs to it.
                if opcode == "vmad" && self.p.accept('-') {
                    parts.push((operands.len(), "-"));
                }
                operands.push(self.operand()?);
                if let Token::Dot(part) = self.p.peek() {
                    self.p.next();
                    // All threads of the warp load from one address: a hint.
                    parts.extend((part != "unified").then_some((operands.len() - 1, part)));
                }
                if !self.p.accept(',') {
                    break;
                }
            }
        }
        if !self.p.accept(';') {
            // After the last instruction of inline PTX a label or a brace may follow only after
            // `;`.
            return self.p.unexpected(&format!("`;` after `{opcode}`"));
        }
        if opcode == "tcgen05" && modifiers.starts_with(&["ld", "red"]) {
            join_results(&mut operands);
        }
        let scope = self.scope().id;
        let location = self.p.location;
        self.body.instructions.push(Instruction {
            guard,
            opcode,
            modifiers,
            operands,
            parts,
            line,
            scope,
            location,
            used_bytes: self.used_bytes.take(),
        });
        Ok(())
    }

    fn undeclared<T>(&self, name: &str) -> Result<T> {
        self.p.error(
            PtxErrorKind::Name,
            format!("register `{name}` is not declared"),
        )
    }

    fn operand(&mut self) -> Result<Operand<'a>> {
        let first = match self.p.peek() {
            Token::Punct('{') => Operand::Vector(self.operands_until('{', '}')?),
            Token::Punct('(') => Operand::List(self.operands_until('(', ')')?),
            Token::Punct('[') => self.address()?,
            _ => self.simple()?,
        };
        if self.p.accept('|') {
            let second = self.simple()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn operands_until(&mut self, open: char, close: char) -> Result<Vec<Operand<'a>>> {
        self.p.expect(open)?;
        let mut out = Vec::new();
        while !self.p.accept(close) {
            out.push(self.simple()?);
            if !self.p.accept(',') && self.p.peek() != Token::Punct(close) {
                return self.p.unexpected(&format!("`,` or `{close}`"));
            }
        }
        Ok(out)
    }

    fn address(&mut self) -> Result<Operand<'a>> {
        self.p.expect('[')?;
        let base = self.simple()?;
        let (base, mut offset) = match base {
            Operand::Name(name, n) => (Operand::Name(name, 0), n),
            Operand::Variable(index, n) => (Operand::Variable(index, 0), n),
            other => (other, 0),
        };
        offset += self.p.plus_offset()?;
        if self.p.accept(',') {
            // A tensor map with coordinates, or a texture.
            let mut parts = vec![Operand::Address(Box::new(base), offset)];
            while !self.p.accept(']') {
                parts.push(self.operand()?);
                self.p.accept(',');
            }
            return Ok(Operand::List(parts));
        }
        self.p.expect(']')?;
        Ok(Operand::Address(Box::new(base), offset))
    }

    fn simple(&mut self) -> Result<Operand<'a>> {
        let negative = self.p.accept('-');
        match self.p.peek() {
            Token::Int(value) => {
                self.p.next();
                Ok(Operand::Int(if negative {
                    value.wrapping_neg()
                } else {
                    value
                }))
            }
            Token::F32(bits) => {
                self.p.next();
                Ok(Operand::F32(bits ^ (u32::from(negative) << 31)))
            }
            Token::F64(bits) => {
                self.p.next();
                Ok(Operand::F64(bits ^ (u64::from(negative) << 63)))
            }
            Token::Punct('!') if !negative => {
                self.p.next();
                let name = self.p.ident("a predicate")?;
                self.find_register(name)
                    .map(Operand::Not)
                    .map_or_else(|| self.undeclared(name), Ok)
            }
            Token::Ident(name) if !negative => {
                self.p.next();
                self.named(name)
            }
            other => {
                let found = describe(other);
                self.p.unexpected(&format!("an operand instead of {found}"))
            }
        }
    }

    fn named(&mut self, name: &'a str) -> Result<Operand<'a>> {
        if name == "_" {
            return Ok(Operand::Sink);
        }
        if let Some(reg) = self.find_register(name) {
            return Ok(Operand::Reg(reg));
        }
        if let Some(special) = name.strip_prefix('%') {
            let component = match self.p.peek() {
                Token::Dot(c @ ("x" | "y" | "z" | "w")) => {
                    self.p.next();
                    c
                }
                _ => "",
            };
            // A name such as `%r5` looks like a special register but is one that was not declared.
            let known = special.starts_with(|c: char| c.is_ascii_lowercase());
            if !known || special.ends_with(|c: char| c.is_ascii_digit()) && !is_special(special) {
                return self.undeclared(name);
            }
            return Ok(Operand::Special(special, component));
        }
        if name == "WARP_SZ" {
            return Ok(Operand::Int(32));
        }
        let offset = self.p.plus_offset()?;
        Ok(match self.find_variable(name) {
            Some(index) => Operand::Variable(index, offset),
            None => Operand::Name(name, offset),
        })
    }
}

/// Reports whether a name that ends in a digit is a special register.
fn is_special(name: &str) -> bool {
    name == "clock64"
        || ["pm", "envreg", "reserved_smem_offset_"]
            .iter()
            .any(|p| name.starts_with(p))
}
