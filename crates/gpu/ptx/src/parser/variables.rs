//! Declarations of variables with initial values.

use super::{Parser, Result};
use crate::PtxErrorKind;
use crate::ast::{Init, StateSpace, Type, Variable};
use crate::lexer::Token;

impl<'a> Parser<'a> {
    /// Parses one or more variables after a state space, up to `;`.
    pub(crate) fn variables(&mut self, external: bool) -> Result<Vec<Variable<'a>>> {
        let space = match self.next() {
            Token::Dot("global") => StateSpace::Global,
            Token::Dot("const") => StateSpace::Const,
            Token::Dot("shared" | "shared::cta") => StateSpace::Shared,
            Token::Dot("local") => StateSpace::Local,
            Token::Dot("param") => StateSpace::Param,
            _ => return self.unexpected("a state space"),
        };
        let mut out = Vec::new();
        let (ty, lanes, align) = self.type_and_align()?;
        loop {
            let mut variable = self.declarator(space, ty, lanes, align)?;
            variable.external = external;
            out.push(variable);
            if !self.accept(',') {
                break;
            }
        }
        self.expect(';')?;
        Ok(out)
    }

    pub(super) fn type_and_align(&mut self) -> Result<(Type, u32, u32)> {
        let mut align = 0;
        let mut lanes = 1;
        loop {
            match self.peek() {
                Token::Dot("align") => {
                    self.next();
                    align = self.small("an alignment")?;
                    if !align.is_power_of_two() {
                        return self.error(PtxErrorKind::Syntax, "an alignment is a power of two");
                    }
                }
                Token::Dot("v2") => (_, lanes) = (self.next(), 2),
                Token::Dot("v4") => (_, lanes) = (self.next(), 4),
                Token::Dot("attribute") => {
                    self.next();
                    while self.next() != Token::Punct(')') {
                        if self.peek() == Token::End {
                            return self.unexpected("`)`");
                        }
                    }
                }
                // Pointer attributes of parameters: `.ptr .global .align 16`.
                Token::Dot("ptr" | "global" | "const" | "shared" | "local") => {
                    self.next();
                }
                Token::Dot(word) => match Type::parse(word) {
                    Some(ty) => {
                        self.next();
                        // `.u64 .ptr .global .align 16 name`: these attributes describe the target
                        // of the pointer.
                        let own = align.max(ty.bytes().max(1) * lanes);
                        if self.peek() == Token::Dot("ptr") {
                            while let Token::Dot(_) = self.peek() {
                                if self.next() == Token::Dot("align") {
                                    self.int("an alignment")?;
                                }
                            }
                        }
                        return Ok((ty, lanes, own));
                    }
                    None => {
                        return self.error(
                            PtxErrorKind::UnknownDirective,
                            format!("`.{word}` is not a type"),
                        );
                    }
                },
                _ => return self.unexpected("a type"),
            }
        }
    }

    pub(super) fn declarator(
        &mut self,
        space: StateSpace,
        ty: Type,
        lanes: u32,
        align: u32,
    ) -> Result<Variable<'a>> {
        let line = self.line();
        let name = self.ident("a variable name")?;
        let mut count = Some(1u64);
        while self.accept('[') {
            if self.accept(']') {
                // The initialiser decides the size, or the launch for dynamic shared memory.
                count = Some(0);
                continue;
            }
            let n = self.int("an array size")?;
            count = count.and_then(|c| c.checked_mul(n));
            self.expect(']')?;
        }
        let each = u64::from(ty.bytes().max(1) * lanes);
        let Some(bytes) = count
            .and_then(|c| c.checked_mul(each))
            .filter(|b| *b < 1 << 40)
        else {
            return self.error(PtxErrorKind::Syntax, format!("`{name}` is too large"));
        };
        let init = if self.accept('=') {
            self.initialiser()?
        } else {
            Vec::new()
        };
        let bytes = if bytes == 0 {
            init.len() as u64 * each
        } else {
            bytes
        };
        Ok(Variable {
            name,
            space,
            ty,
            align,
            bytes,
            external: false,
            init,
            line,
        })
    }

    /// Parses a value, or flattens nested braces.
    fn initialiser(&mut self) -> Result<Vec<Init<'a>>> {
        let mut out = Vec::new();
        let mut depth = 0u32;
        loop {
            match self.peek() {
                Token::Punct('{') => {
                    depth += 1;
                    self.next();
                    continue;
                }
                // Braces may be empty, and a comma may precede the closing one.
                Token::Punct('}') if depth > 0 => {}
                _ => out.push(self.init_value()?),
            }
            while depth > 0 && self.accept('}') {
                depth -= 1;
            }
            if depth == 0 {
                return Ok(out);
            }
            if !self.accept(',') && self.peek() != Token::Punct('}') {
                return self.unexpected("`,` or `}`");
            }
        }
    }

    fn init_value(&mut self) -> Result<Init<'a>> {
        let negative = self.accept('-');
        Ok(match self.next() {
            Token::Int(value) if negative => Init::Bits(value.wrapping_neg()),
            Token::Int(mask) if self.accept('(') => {
                let mut address = self.init_value()?;
                self.expect(')')?;
                match &mut address {
                    Init::Address { mask: bits, .. } => *bits = mask,
                    _ => return self.unexpected("a masked address"),
                }
                address
            }
            Token::Int(value) => Init::Bits(value),
            Token::F32(bits) => Init::F32(bits),
            Token::F64(bits) => Init::F64(bits ^ (u64::from(negative) << 63)),
            Token::Ident("generic") => {
                self.expect('(')?;
                let symbol = self.ident("a variable")?;
                self.expect(')')?;
                let offset = self.plus_offset()?;
                Init::Address {
                    symbol,
                    offset,
                    generic: true,
                    mask: u64::MAX,
                }
            }
            Token::Ident(symbol) => {
                let offset = self.plus_offset()?;
                Init::Address {
                    symbol,
                    offset,
                    generic: false,
                    mask: u64::MAX,
                }
            }
            _ => return self.unexpected("an initial value"),
        })
    }

    /// Parses `+ 4`, `+-4`, `- 4` or nothing.
    pub(crate) fn plus_offset(&mut self) -> Result<i64> {
        let mut sign = 1i64;
        if self.accept('+') {
            if self.accept('-') {
                sign = -1;
            }
        } else if self.accept('-') {
            sign = -1;
        } else {
            return Ok(0);
        }
        Ok((self.int("an offset")? as i64).wrapping_mul(sign))
    }
}
