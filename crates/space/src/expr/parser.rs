//! Parser of the expression language: builds a flat syntax tree with operands before their
//! operation.
#![expect(
    clippy::indexing_slicing,
    reason = "the tokens end with one that is never passed, and nodes are numbered as they are pushed"
)]

use super::lexer::{Token, tokens};
use super::op::Op;
use super::ops::FUNCTIONS;
use super::{ExprError, nearest_or_all, val::Val};
use std::ops::Range;
use std::sync::Arc;

/// Maximum nesting (Python itself rejects 200 brackets), so that no input can exhaust the stack of a small
/// thread.
const MAX_NESTING: u32 = 100;

/// One node; operands are indices of earlier nodes.
#[derive(Debug, Clone)]
pub enum Node {
    /// A literal.
    Const(Val),
    /// A parameter, a derived value, a size of the problem or a limit of the device.
    Name(Arc<str>),
    /// An operation, and the nodes of its operands.
    Op(Op, Vec<u32>),
}

/// A parsed expression with its source text.
#[derive(Debug, Clone)]
pub struct Expr {
    pub(crate) text: Arc<str>,
    pub(crate) nodes: Vec<(Node, Range<u32>)>,
}

impl Expr {
    /// Returns the syntax tree, operands before their operations, with the byte range of each node
    /// in the text. The last node is the whole expression.
    #[must_use]
    pub fn nodes(&self) -> &[(Node, Range<u32>)] {
        &self.nodes
    }

    /// Parses an expression.
    ///
    /// # Errors
    /// An [`ExprError`] with position and suggestion.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        let mut parser = Parser {
            text,
            tokens: tokens(text)?,
            next: 0,
            depth: 0,
            nodes: Vec::new(),
        };
        if matches!(parser.peek(), Token::End) {
            return Err(ExprError::whole(text, "the expression is empty"));
        }
        if matches!(parser.peek(), Token::Name("lambda")) {
            let at = parser.span();
            return Err(ExprError::new(text, at, "a lambda cannot be evaluated")
                .help("write the condition itself, over the parameters' names"));
        }
        let root = parser.expression()?;
        if !matches!(parser.peek(), Token::End) {
            return Err(parser.unexpected());
        }
        debug_assert_eq!(root as usize + 1, parser.nodes.len());
        Ok(Self {
            text: text.into(),
            nodes: parser.nodes,
        })
    }

    /// Returns the source text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Iterates over the names in order of appearance, each with the bytes of its first use.
    pub fn names(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.nodes.iter().filter_map(|(node, span)| match node {
            Node::Name(name) => Some((&**name, span.start as usize..span.end as usize)),
            _ => None,
        })
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, Range<usize>)>,
    next: usize,
    depth: u32,
    nodes: Vec<(Node, Range<u32>)>,
}

/// Returns a binary operator with its precedence. Comparisons have lower precedence and are parsed
/// separately.
fn operator(sign: &str) -> Option<(u8, Op)> {
    Some(match sign {
        "|" => (1, Op::BitOr),
        "^" => (2, Op::BitXor),
        "&" => (3, Op::BitAnd),
        "<<" => (4, Op::Shl),
        ">>" => (4, Op::Shr),
        "+" => (5, Op::Add),
        "-" => (5, Op::Sub),
        "*" => (6, Op::Mul),
        "/" => (6, Op::Div),
        "//" => (6, Op::FloorDiv),
        "%" => (6, Op::Mod),
        _ => return None,
    })
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &Token<'t> {
        &self.tokens[self.next].0
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.next].1.clone()
    }

    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(next) if *next == sign);
        if found {
            self.advance();
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(next) if *next == word);
        if found {
            self.advance();
        }
        found
    }

    fn unexpected(&self) -> ExprError {
        let at = self.span();
        let (message, help) = match self.peek() {
            Token::End => (
                "the expression ends too early".to_owned(),
                Some("an operand or a bracket is missing at its end"),
            ),
            Token::Sign("=") => (
                "`=` is not an operator here".to_owned(),
                Some("expressions are Python's: write `==`"),
            ),
            Token::Sign("[") => (
                "values have no elements to index".to_owned(),
                Some("write the parameter's name alone"),
            ),
            Token::Sign(".") => (
                "values have no attributes".to_owned(),
                Some("write the function's name alone, for example `sqrt(x)`"),
            ),
            _ => (
                format!("unexpected `{}`", &self.text[at.clone()]),
                Some("an operator such as `and` or `*` is missing before it"),
            ),
        };
        let error = ExprError::new(self.text, at, message);
        match help {
            Some(help) => error.help(help),
            None => error,
        }
    }

    fn push(&mut self, node: Node, span: Range<usize>) -> u32 {
        self.nodes.push((node, span.start as u32..span.end as u32));
        self.nodes.len() as u32 - 1
    }

    fn op(&mut self, op: Op, args: Vec<u32>) -> u32 {
        let spans = args.iter().map(|arg| &self.nodes[*arg as usize].1);
        let start = spans.clone().map(|span| span.start).min().unwrap_or(0);
        let end = spans.map(|span| span.end).max().unwrap_or(0);
        self.push(Node::Op(op, args), start as usize..end as usize)
    }

    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, ExprError>,
    ) -> Result<T, ExprError> {
        if self.depth == MAX_NESTING {
            return Err(ExprError::new(
                self.text,
                self.span(),
                "the expression is nested too deeply",
            )
            .help("name parts of it under `derived:`"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Parses `a if c else b`, or an expression of higher precedence.
    fn expression(&mut self) -> Result<u32, ExprError> {
        self.nested(|parser| {
            let value = parser.disjunction()?;
            if !parser.take_word("if") {
                return Ok(value);
            }
            let condition = parser.disjunction()?;
            if !parser.take_word("else") {
                return Err(parser.unexpected());
            }
            let otherwise = parser.expression()?;
            Ok(parser.op(Op::If, vec![condition, value, otherwise]))
        })
    }

    fn disjunction(&mut self) -> Result<u32, ExprError> {
        let mut parts = vec![self.conjunction()?];
        while self.take_word("or") {
            parts.push(self.conjunction()?);
        }
        Ok(self.join(Op::Or, parts))
    }

    fn conjunction(&mut self) -> Result<u32, ExprError> {
        let mut parts = vec![self.negation()?];
        while self.take_word("and") {
            parts.push(self.negation()?);
        }
        Ok(self.join(Op::And, parts))
    }

    fn join(&mut self, op: Op, parts: Vec<u32>) -> u32 {
        match parts[..] {
            [only] => only,
            _ => self.op(op, parts),
        }
    }

    fn negation(&mut self) -> Result<u32, ExprError> {
        let start = self.span().start;
        if self.take_word("not") {
            let operand = self.nested(Self::negation)?;
            let end = self.nodes[operand as usize].1.end as usize;
            return Ok(self.push(Node::Op(Op::Not, vec![operand]), start..end));
        }
        self.comparison()
    }

    /// Parses comparisons: `a < b <= c` means `a < b and b <= c`.
    fn comparison(&mut self) -> Result<u32, ExprError> {
        let mut left = self.binary(0)?;
        let mut parts = Vec::new();
        while let Some(op) = self.comparator()? {
            let right = self.binary(0)?;
            parts.push(self.op(op, vec![left, right]));
            // One node for both comparisons: as in Python the middle operand is evaluated once.
            left = right;
        }
        if parts.is_empty() {
            return Ok(left);
        }
        Ok(self.join(Op::And, parts))
    }

    fn comparator(&mut self) -> Result<Option<Op>, ExprError> {
        let op = match self.peek() {
            Token::Sign("<") => Op::Lt,
            Token::Sign("<=") => Op::Le,
            Token::Sign(">") => Op::Gt,
            Token::Sign(">=") => Op::Ge,
            Token::Sign("==") => Op::Eq,
            Token::Sign("!=") => Op::Ne,
            Token::Name("in") => Op::In,
            Token::Name("not") => {
                self.advance();
                if !matches!(self.peek(), Token::Name("in")) {
                    return Err(self.unexpected());
                }
                Op::NotIn
            }
            Token::Name("is") => {
                return Err(ExprError::new(
                    self.text,
                    self.span(),
                    "`is` compares identity, not values",
                )
                .help("write `==`"));
            }
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(op))
    }

    /// Parses operators of at least the precedence `least`.
    fn binary(&mut self, least: u8) -> Result<u32, ExprError> {
        let mut left = self.unary()?;
        loop {
            let found = match self.peek() {
                Token::Sign(sign) => operator(sign),
                _ => None,
            };
            let Some((binds, op)) = found.filter(|(binds, _)| *binds >= least) else {
                return Ok(left);
            };
            self.advance();
            // Operators of equal precedence associate to the left: `a - b - c` is `(a - b) - c`.
            let right = self.binary(binds + 1)?;
            left = self.op(op, vec![left, right]);
        }
    }

    fn unary(&mut self) -> Result<u32, ExprError> {
        let start = self.span().start;
        let op = match self.peek() {
            Token::Sign("-") => Op::Neg,
            Token::Sign("+") => Op::Pos,
            Token::Sign("~") => Op::Invert,
            _ => return self.power(),
        };
        self.advance();
        let operand = self.nested(Self::unary)?;
        let end = self.nodes[operand as usize].1.end as usize;
        Ok(self.push(Node::Op(op, vec![operand]), start..end))
    }

    /// Parses `**`, which takes precedence over a sign on its left but not on its right.
    fn power(&mut self) -> Result<u32, ExprError> {
        let base = self.atom()?;
        if self.take("**") {
            let exponent = self.nested(Self::unary)?;
            return Ok(self.op(Op::Pow, vec![base, exponent]));
        }
        Ok(base)
    }

    fn atom(&mut self) -> Result<u32, ExprError> {
        let (token, at) = self.tokens[self.next].clone();
        match token {
            Token::Number(value) => {
                self.advance();
                Ok(self.push(Node::Const(value), at))
            }
            Token::Text(value) => {
                self.advance();
                Ok(self.push(Node::Const(Val::Text(value.into())), at))
            }
            Token::Sign("(") => self.bracketed(at),
            // A set in braces is read as a list, the right operand of `in`.
            Token::Sign(open @ ("[" | "{")) => {
                self.advance();
                let items = self.arguments(if open == "[" { "]" } else { "}" })?;
                Ok(self.list(items, at.start))
            }
            Token::Name(name) => self.named(name, at),
            _ => Err(self.unexpected()),
        }
    }

    /// Parses parentheses: a group, or a tuple if there is a comma.
    fn bracketed(&mut self, at: Range<usize>) -> Result<u32, ExprError> {
        self.advance();
        if self.take(")") {
            return Ok(self.list(Vec::new(), at.start));
        }
        let first = self.expression()?;
        if self.take(")") {
            return Ok(first);
        }
        if !self.take(",") {
            return Err(match self.peek() {
                Token::End => ExprError::new(self.text, at, "this bracket is never closed"),
                _ => self.unexpected(),
            });
        }
        let mut items = vec![first];
        items.extend(self.arguments(")")?);
        Ok(self.list(items, at.start))
    }

    fn list(&mut self, items: Vec<u32>, start: usize) -> u32 {
        let end = self.tokens[self.next.saturating_sub(1)].1.end;
        self.push(Node::Op(Op::List, items), start..end)
    }

    /// Parses comma-separated expressions up to a closing bracket.
    fn arguments(&mut self, close: &str) -> Result<Vec<u32>, ExprError> {
        let mut items = Vec::new();
        loop {
            if self.take(close) {
                return Ok(items);
            }
            items.push(self.expression()?);
            if !self.take(",") {
                return if self.take(close) {
                    Ok(items)
                } else {
                    Err(self.unexpected())
                };
            }
        }
    }

    fn named(&mut self, name: &'t str, at: Range<usize>) -> Result<u32, ExprError> {
        match name {
            "True" | "true" | "False" | "false" => {
                self.advance();
                let value = Val::Bool(matches!(name, "True" | "true"));
                return Ok(self.push(Node::Const(value), at));
            }
            "and" | "or" | "not" | "in" | "is" | "if" | "else" | "lambda" => {
                return Err(self.unexpected());
            }
            _ => self.advance(),
        }
        // Rules of Kernel Tuner files are Python source that calls functions by their modules.
        if matches!(name, "math" | "np" | "numpy") && self.take(".") {
            let at = self.span();
            return match *self.peek() {
                Token::Name(function) => {
                    self.advance();
                    self.call(function, at)
                }
                _ => Err(self.unexpected()),
            };
        }
        if matches!(self.peek(), Token::Sign("(")) {
            return self.call(name, at);
        }
        Ok(self.push(Node::Name(name.into()), at))
    }

    fn call(&mut self, name: &str, at: Range<usize>) -> Result<u32, ExprError> {
        let Some((_, op, fewest, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name)
        else {
            let error = ExprError::new(self.text, at, format!("unknown function `{name}`"));
            // Names of the same function in other languages and libraries.
            let other = ["cdiv", "ceildiv", "divup", "div_up", "div_ceil"];
            if other.contains(&name) {
                return Err(error.help("write `ceil_div(a, b)`"));
            }
            let known = FUNCTIONS.map(|(known, ..)| known);
            return Err(error.help(nearest_or_all(name, &known, "the functions are")));
        };
        if !self.take("(") {
            return Err(self.unexpected());
        }
        let args = self.arguments(")")?;
        let end = self.tokens[self.next.saturating_sub(1)].1.end;
        if args.len() < *fewest || args.len() > *most {
            let wanted = match (fewest, most) {
                (1, 1) => "one argument".to_owned(),
                (1, 2) => "one or two arguments".to_owned(),
                (2, 2) => "two arguments".to_owned(),
                _ => "at least one argument".to_owned(),
            };
            return Err(ExprError::new(
                self.text,
                at.start..end,
                format!("`{name}` takes {wanted}, not {}", args.len()),
            )
            .help(format!("give `{name}` {wanted}")));
        }
        Ok(self.push(Node::Op(*op, args), at.start..end))
    }
}
