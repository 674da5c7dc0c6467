//! Expressions with resolved names: a graph of shared terms with constants folded, and sums and
//! products of whole numbers flattened, so that any subset of operands can be computed first.
#![expect(
    clippy::indexing_slicing,
    reason = "terms are numbered as they are pushed, and the parser has checked the number of operands"
)]

use super::op::Op;
use super::ops::apply;
use super::parser::{Expr, Node};
use super::val::{Fault, Val};
use super::{ExprError, suggest};
use std::collections::HashMap;
use std::sync::Arc;

/// Index of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub(crate) u32);

/// One term; its operands have smaller indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Term {
    /// A value independent of parameters.
    Const(Val),
    /// The value of the parameter with this index.
    Var(u32),
    /// An operation on earlier terms.
    Op(Op, Box<[TermId]>),
}

/// Kind of a term's values over all configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers and booleans.
    Int,
    /// Numbers.
    Number,
    /// Texts.
    Text,
    /// Lists.
    List,
    /// Values of several kinds.
    Any,
}

impl Kind {
    /// Returns the narrowest kind that includes all values.
    pub(crate) fn from_values<'v>(mut values: impl Iterator<Item = &'v Val>) -> Self {
        let one = |value: &Val| match value {
            Val::Bool(_) | Val::Int(_) => Self::Int,
            Val::Float(_) => Self::Number,
            Val::Text(_) => Self::Text,
            Val::List(_) => Self::List,
            Val::Fault(_) | Val::Unset => Self::Any,
        };
        let Some(first) = values.next() else {
            return Self::Any;
        };
        values.map(one).fold(one(first), Self::join)
    }

    fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Int | Self::Number, Self::Int | Self::Number) => Self::Number,
            _ => Self::Any,
        }
    }

    /// Returns a value of the kind; operations on it fault by kind only.
    fn sample(self) -> Option<Val> {
        match self {
            Self::Int => Some(Val::Int(1)),
            Self::Number => Some(Val::Float(1.0)),
            Self::Text => Some(Val::Text("1".into())),
            Self::List | Self::Any => None,
        }
    }
}

/// A set of parameters as 64-bit words from the first non-empty word, so that the few parameters of
/// an expression need little memory in a space of any size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bits {
    /// Index of the first stored word.
    first: usize,
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn insert(&mut self, index: u32) {
        let word = index as usize / 64;
        self.cover(word, word + 1);
        if let Some(word) = self.words.get_mut(word - self.first) {
            *word |= 1 << (index % 64);
        }
    }

    /// Extends the storage to the words from `start` to before `end`.
    fn cover(&mut self, start: usize, end: usize) {
        if self.words.is_empty() {
            self.first = start;
        }
        if start < self.first {
            let before = std::iter::repeat_n(0, self.first - start);
            self.words.splice(..0, before);
            self.first = start;
        }
        let length = self.words.len().max(end - self.first);
        self.words.resize(length, 0);
    }

    fn word(&self, number: usize) -> u64 {
        let at = number.checked_sub(self.first);
        at.and_then(|at| self.words.get(at)).copied().unwrap_or(0)
    }

    /// Iterates over the words with their indices.
    fn numbered(&self) -> impl Iterator<Item = (usize, u64)> {
        (self.first..).zip(self.words.iter().copied())
    }

    pub(crate) fn contains(&self, index: u32) -> bool {
        self.word(index as usize / 64) >> (index % 64) & 1 == 1
    }

    pub(crate) fn union(&mut self, other: &Self) {
        if other.words.is_empty() {
            return;
        }
        self.cover(other.first, other.first + other.words.len());
        let own = self.words.iter_mut().skip(other.first - self.first);
        for (word, more) in own.zip(&other.words) {
            *word |= more;
        }
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.numbered()
            .all(|(number, word)| word & !other.word(number) == 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Iterates over the members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.numbered().flat_map(|(number, word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| number as u32 * 64 + bit)
        })
    }
}

/// Meaning of a name.
#[derive(Debug, Clone)]
pub(crate) enum Symbol {
    Const(Val),
    Var(u32),
    Term(TermId),
}

/// Names and their meanings.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    names: HashMap<Arc<str>, Symbol>,
}

impl Scope {
    pub(crate) fn insert(&mut self, name: &str, symbol: Symbol) {
        self.names.insert(name.into(), symbol);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Symbol> {
        self.names.get(name)
    }

    /// Creates the error for an unknown name, with the nearest known one.
    pub(crate) fn unknown(&self, text: &str, name: &str, at: std::ops::Range<usize>) -> ExprError {
        let mut known: Vec<&str> = self.names.keys().map(|name| &**name).collect();
        known.sort_unstable();
        let error = ExprError::new(text, at, format!("unknown name `{name}`"));
        match suggest(name, known.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None if known.is_empty() => error.help("no names are defined here"),
            None => {
                let shown: Vec<&str> = known.iter().copied().take(12).collect();
                let more = if known.len() > shown.len() {
                    ", …"
                } else {
                    ""
                };
                error.help(format!("the names are {}{more}", shown.join(", ")))
            }
        }
    }
}

#[derive(Debug)]
struct Entry {
    term: Term,
    vars: Bits,
    kind: Kind,
}

/// All terms of one space.
#[derive(Debug, Default)]
pub struct Terms {
    entries: Vec<Entry>,
    known: HashMap<Term, TermId>,
}

impl Terms {
    /// Returns the term with this index.
    #[must_use]
    pub fn term(&self, id: TermId) -> &Term {
        &self.entries[id.0 as usize].term
    }

    /// Returns the parameters that a term depends on.
    #[must_use]
    pub fn vars(&self, id: TermId) -> &Bits {
        &self.entries[id.0 as usize].vars
    }

    /// Returns the value of a term that depends on no parameter.
    #[must_use]
    pub fn constant(&self, id: TermId) -> Option<&Val> {
        match self.term(id) {
            Term::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the kind of a term's values.
    #[must_use]
    pub fn kind(&self, id: TermId) -> Kind {
        self.entries[id.0 as usize].kind
    }

    fn intern(&mut self, term: Term, vars: Bits, kind: Kind) -> TermId {
        if let Some(id) = self.known.get(&term) {
            return *id;
        }
        let id = TermId(self.entries.len() as u32);
        self.known.insert(term.clone(), id);
        self.entries.push(Entry { term, vars, kind });
        id
    }

    pub(crate) fn value(&mut self, value: Val) -> TermId {
        let kind = Kind::from_values(std::iter::once(&value));
        self.intern(Term::Const(value), Bits::default(), kind)
    }

    /// Creates the term of a parameter whose values are all of `kind`.
    pub(crate) fn var(&mut self, index: u32, kind: Kind) -> TermId {
        let mut vars = Bits::default();
        vars.insert(index);
        self.intern(Term::Var(index), vars, kind)
    }

    /// Creates the term of an operation, simplified if the result is exactly equal.
    pub(crate) fn op(&mut self, op: Op, mut args: Vec<TermId>) -> TermId {
        let whole = args.iter().all(|arg| self.kind(*arg) == Kind::Int);
        match op {
            // As a sum its operands merge with others, and `flatten` can group the chosen ones.
            Op::Sub if whole => {
                let minus = self.value(Val::Int(-1));
                let negated = self.op(Op::Mul, vec![minus, args[1]]);
                return self.op(Op::Add, vec![args[0], negated]);
            }
            Op::Add | Op::Mul if whole => args = self.flatten(op, &args),
            Op::And | Op::Or => {
                args = self.junction(op, &args);
                if let [only] = args[..] {
                    return only;
                }
            }
            Op::If => {
                if let Some(truth) = self.constant(args[0]).and_then(Val::truth) {
                    return args[if truth { 1 } else { 2 }];
                }
            }
            _ => {}
        }
        if args.iter().all(|arg| self.constant(*arg).is_some()) {
            let values: Vec<&Val> = args.iter().filter_map(|arg| self.constant(*arg)).collect();
            let value = apply(op, &values);
            return self.value(value);
        }
        let mut vars = Bits::default();
        for arg in &args {
            vars.union(self.vars(*arg));
        }
        let kind = self.kind_of(op, &args);
        self.intern(Term::Op(op, args.into()), vars, kind)
    }

    /// Flattens the operands of a sum or product of whole numbers: splices nested ones, folds
    /// constants, sorts. Exact arithmetic makes the order irrelevant.
    fn flatten(&mut self, op: Op, args: &[TermId]) -> Vec<TermId> {
        let mut parts = Vec::new();
        let mut constant: Option<Val> = None;
        for arg in args {
            let nested = match self.term(*arg) {
                Term::Op(inner, inner_args) if *inner == op => inner_args.to_vec(),
                _ => vec![*arg],
            };
            for part in nested {
                match (self.constant(part), &constant) {
                    (Some(value), None) => constant = Some(value.clone()),
                    (Some(value), Some(so_far)) => constant = Some(apply(op, &[so_far, value])),
                    (None, _) => parts.push(part),
                }
            }
        }
        let neutral = i128::from(op == Op::Mul);
        if let Some(value) = constant
            && (value.int() != Some(neutral) || parts.is_empty())
        {
            let constant = self.value(value);
            parts.push(constant);
        }
        parts.sort_unstable();
        parts
    }

    /// Drops operands of `and`/`or` that cannot affect the result.
    fn junction(&self, op: Op, args: &[TermId]) -> Vec<TermId> {
        let stop = op == Op::Or;
        let mut parts = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            match self.constant(*arg).map(Val::truth) {
                // The last operand is the result if no other operand determines it, so it stays.
                Some(Some(truth)) if truth != stop && at + 1 < args.len() => {}
                Some(_) => {
                    parts.push(*arg);
                    break;
                }
                None => parts.push(*arg),
            }
        }
        parts
    }

    fn kind_of(&self, op: Op, args: &[TermId]) -> Kind {
        let joined = args
            .iter()
            .map(|arg| self.kind(*arg))
            .reduce(Kind::join)
            .unwrap_or(Kind::Any);
        match op {
            Op::Not | Op::Bool | Op::Len | Op::Int | Op::Floor | Op::Ceil => Kind::Int,
            Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne | Op::In | Op::NotIn => Kind::Int,
            Op::Invert | Op::BitAnd | Op::BitOr | Op::BitXor | Op::Shl | Op::Shr => Kind::Int,
            Op::Div | Op::Sqrt | Op::Log2 | Op::Float => Kind::Number,
            Op::List => Kind::List,
            Op::And | Op::Or | Op::Min | Op::Max if args.len() > 1 => joined,
            Op::If => Kind::join(self.kind(args[1]), self.kind(args[2])),
            Op::Pow => match (joined, self.constant(args[1]).and_then(Val::int)) {
                (Kind::Int, Some(exponent)) if exponent >= 0 => Kind::Int,
                (Kind::Int | Kind::Number, _) => Kind::Number,
                _ => Kind::Any,
            },
            Op::Round if args.len() == 1 => Kind::Int,
            Op::Neg | Op::Pos | Op::Abs | Op::Add | Op::Sub | Op::Mul => joined,
            Op::FloorDiv | Op::Mod | Op::CeilDiv => joined,
            _ => Kind::Any,
        }
    }

    /// Resolves the names of an expression and creates its term.
    ///
    /// # Errors
    /// An unknown name, or operands of the wrong kind for every configuration.
    pub fn lower(&mut self, expr: &Expr, scope: &Scope) -> Result<TermId, ExprError> {
        let mut made: Vec<TermId> = Vec::with_capacity(expr.nodes.len());
        for (node, span) in &expr.nodes {
            let at = span.start as usize..span.end as usize;
            let id = match node {
                Node::Const(value) => self.value(value.clone()),
                Node::Name(name) => match scope.get(name) {
                    Some(Symbol::Const(value)) => self.value(value.clone()),
                    Some(Symbol::Var(index)) => self
                        .known
                        .get(&Term::Var(*index))
                        .copied()
                        .unwrap_or_else(|| self.var(*index, Kind::Any)),
                    Some(Symbol::Term(id)) => *id,
                    None => return Err(scope.unknown(&expr.text, name, at)),
                },
                Node::Op(op, args) => {
                    let args: Vec<TermId> = args.iter().map(|arg| made[*arg as usize]).collect();
                    self.check_kinds(*op, &args).map_err(|(message, help)| {
                        ExprError::new(&expr.text, at, message).help(help)
                    })?;
                    self.op(*op, args)
                }
            };
            made.push(id);
        }
        #[expect(
            clippy::expect_used,
            reason = "the parser refuses an expression without nodes"
        )]
        let root = made.last().expect("a parsed expression has a root");
        Ok(*root)
    }

    /// Rejects an operation whose operands have the wrong kind for every configuration.
    fn check_kinds(&self, op: Op, args: &[TermId]) -> Result<(), (String, String)> {
        if matches!(
            op,
            Op::And | Op::Or | Op::Not | Op::If | Op::List | Op::Bool
        ) {
            return Ok(());
        }
        let samples: Option<Vec<Val>> = args.iter().map(|arg| self.kind(*arg).sample()).collect();
        let Some(samples) = samples else {
            return Ok(());
        };
        if op == Op::Round || (matches!(op, Op::Int | Op::Float) && samples.len() == 1) {
            return Ok(());
        }
        let operands: Vec<&Val> = samples.iter().collect();
        let Val::Fault(Fault::Type(name)) = apply(op, &operands) else {
            return Ok(());
        };
        let kinds: Vec<&str> = args
            .iter()
            .map(|arg| match self.kind(*arg) {
                Kind::Text => "text",
                Kind::Int => "a whole number",
                _ => "a number",
            })
            .collect();
        let help = if kinds.contains(&"text") {
            "compare text with `==`, `!=` or `in`"
        } else {
            "convert with `int(…)` first"
        };
        Err((
            format!("{name} does not take {}", kinds.join(" and ")),
            help.to_owned(),
        ))
    }
}
