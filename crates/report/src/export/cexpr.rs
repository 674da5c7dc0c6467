//! Terms as C expressions over `long long` and `double`, without undefined behaviour.
//!
//! Sizes are bounded, so every part has a bound too: an expression is written only if no part of it can
//! exceed 64 bits (or 53, where it is converted to `double`) and no divisor can be zero. The semantics are
//! those of the evaluator of search spaces; everything else is rejected with a reason.
#![expect(
    clippy::indexing_slicing,
    reason = "the parser has checked the number of operands, and variables are numbered by their list"
)]

mod sum;
mod truth;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use tuner_space::{Op, Term, TermId, Terms, Val};

/// Bound of whole numbers, 2^62: larger than the product of two sizes.
const MAX_WHOLE: f64 = 4_611_686_018_427_387_904.0;
/// Largest magnitude up to which `double` represents every whole number.
pub(super) const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
/// Bound of real numbers, which keeps them finite.
const MAX_REAL: f64 = 1e300;
/// Maximum length of an expression, characters.
const MAX_LENGTH: usize = 1500;
/// Minimum length of a shared part that becomes a temporary, characters.
const MIN_TEMPORARY_LENGTH: usize = 16;

/// A variable of the written expressions.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    /// C text.
    pub(super) name: String,
    /// A `double` rather than a `long long`.
    pub(super) real: bool,
    /// Smallest value.
    pub(super) low: f64,
    /// Largest absolute value, at least 1.
    pub(super) bound: f64,
}

/// Place where an expression is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target<'t> {
    /// The body of a function; helper functions have this prefix.
    Function(&'t str),
    /// An integer constant expression over macros, as in `_Static_assert`.
    Constant,
}

/// Precedence of C's operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Compare,
    Sum,
    Product,
    Unary,
    Primary,
}

/// A written condition.
#[derive(Debug, Clone)]
struct Truth {
    text: String,
    level: Level,
}

impl Truth {
    fn new(text: String, level: Level) -> Self {
        Self { text, level }
    }

    /// Returns the text as an operand of an operator that binds at least as strongly as `least`.
    fn operand(&self, least: Level) -> String {
        enclosed(&self.text, self.level < least)
    }
}

/// A written number with its bounds.
#[derive(Debug, Clone)]
struct Number {
    text: String,
    level: Level,
    real: bool,
    /// The product of real numbers: a compiler may fuse it with a sum, which rounds differently.
    fused: bool,
    literal: Option<i64>,
    low: f64,
    /// Bound of the absolute value: this coefficient times the variables raised to these powers.
    coefficient: f64,
    powers: Vec<i32>,
    /// Another bound of the absolute value.
    most: f64,
}

impl Number {
    fn operand(&self, least: Level) -> String {
        enclosed(&self.text, self.level < least)
    }

    fn with(self, text: String, level: Level) -> Self {
        Self {
            text,
            level,
            literal: None,
            ..self
        }
    }
}

fn enclosed(text: &str, needed: bool) -> String {
    if needed {
        format!("({text})")
    } else {
        text.to_owned()
    }
}

fn merged(left: &[i32], right: &[i32], combine: fn(i32, i32) -> i32) -> Vec<i32> {
    let pairs = left.iter().zip(right);
    pairs.map(|(a, b)| combine(*a, *b)).collect()
}

/// Writer of expressions over the same variables.
pub(super) struct Writer<'t> {
    terms: &'t Terms,
    variables: &'t [Variable],
    /// Bound of the product of all whole variables, if it is checked.
    product: Option<f64>,
    target: Target<'t>,
    named: BTreeMap<TermId, Number>,
    /// Helper functions that the texts call, without their prefix.
    pub(super) helpers: BTreeSet<&'static str>,
}

pub(super) type Written<T> = Result<T, String>;

impl<'t> Writer<'t> {
    /// Creates a writer.
    pub(super) fn new(
        terms: &'t Terms,
        variables: &'t [Variable],
        product: Option<f64>,
        target: Target<'t>,
    ) -> Self {
        Self {
            terms,
            variables,
            product,
            target,
            named: BTreeMap::new(),
            helpers: BTreeSet::new(),
        }
    }

    /// Writes a condition.
    pub(super) fn condition(&mut self, id: TermId) -> Written<String> {
        Ok(self.truth(id)?.operand(Level::Compare))
    }

    /// Writes a launch extent; -1 if it is not a whole number.
    pub(super) fn extent(&mut self, id: TermId) -> Written<String> {
        let number = self.number(id)?;
        if number.real {
            return Ok(self.call("whole", &[number]));
        }
        Ok(number.text)
    }

    /// Writes a whole number.
    pub(super) fn whole_number(&mut self, id: TermId) -> Written<String> {
        Ok(self.whole(id)?.text)
    }

    /// Declares temporaries for the common parts of these terms.
    pub(super) fn share(&mut self, roots: &[TermId], prefix: &str) -> Vec<String> {
        let mut uses: BTreeMap<TermId, usize> = BTreeMap::new();
        let order = operands_first(self.terms, roots);
        for id in &order {
            if let Term::Op(_, args) = self.terms.term(*id) {
                for arg in args {
                    *uses.entry(*arg).or_default() += 1;
                }
            }
        }
        let mut statements = Vec::new();
        for id in order {
            let shared = uses.get(&id).is_some_and(|count| *count > 1);
            let Term::Op(op, _) = self.terms.term(id) else {
                continue;
            };
            if !shared || is_truth(*op) || matches!(op, Op::List | Op::And | Op::Or) {
                continue;
            }
            if let Ok(number) = self.number(id)
                && number.text.len() >= MIN_TEMPORARY_LENGTH
            {
                let name = format!("{prefix}{}", self.named.len());
                let kind = if number.real { "double" } else { "long long" };
                statements.push(format!("const {kind} {name} = {};", number.text));
                self.named.insert(id, number.with(name, Level::Primary));
            }
        }
        statements
    }

    fn magnitude(&self, number: &Number) -> f64 {
        let (mut whole, mut real, mut most) = (1.0, 1.0, 0);
        for (power, variable) in number.powers.iter().zip(self.variables) {
            let value = variable.bound.max(1.0).powi(*power);
            if variable.real {
                real *= value;
            } else {
                whole *= value;
                most = most.max(*power);
            }
        }
        // Sizes are at least 1, so their product raised to the largest power is a bound too.
        let whole = match self.product {
            Some(product) => f64::min(whole, product.powi(most)),
            None => whole,
        };
        number.most.min(number.coefficient * whole * real)
    }

    /// Rejects a number that may exceed its type.
    fn checked(&self, number: Number) -> Written<Number> {
        let most = if number.real { MAX_REAL } else { MAX_WHOLE };
        if self.magnitude(&number) > most {
            return Err("a number in it may be beyond 64 bits".to_owned());
        }
        if number.text.len() > MAX_LENGTH {
            return Err("it is too long".to_owned());
        }
        if number.real && self.target == Target::Constant {
            return Err("it is not made of whole numbers".to_owned());
        }
        Ok(number)
    }

    fn literal(&self, value: i64) -> Number {
        let text = if i32::try_from(value).is_ok() {
            value.to_string()
        } else {
            format!("{value}LL")
        };
        Number {
            text,
            level: if value < 0 {
                Level::Unary
            } else {
                Level::Primary
            },
            real: false,
            fused: false,
            literal: Some(value),
            low: value as f64,
            coefficient: value.unsigned_abs() as f64,
            powers: vec![0; self.variables.len()],
            most: value.unsigned_abs() as f64,
        }
    }

    fn number(&mut self, id: TermId) -> Written<Number> {
        if let Some(named) = self.named.get(&id) {
            return Ok(named.clone());
        }
        let terms = self.terms;
        let number = match terms.term(id) {
            Term::Const(value) => self.constant(value)?,
            Term::Var(at) => self.variable(*at as usize),
            Term::Op(op, args) => self.operation(id, *op, args)?,
        };
        self.checked(number)
    }

    fn constant(&self, value: &Val) -> Written<Number> {
        match value {
            Val::Float(value) if value.is_finite() => Ok(Number {
                real: true,
                level: if *value < 0.0 {
                    Level::Unary
                } else {
                    Level::Primary
                },
                text: format!("{value:?}"),
                literal: None,
                low: *value,
                coefficient: value.abs(),
                most: value.abs(),
                ..self.literal(0)
            }),
            Val::Bool(_) | Val::Int(_) => {
                let whole = value.int().and_then(|whole| i64::try_from(whole).ok());
                let whole = whole.ok_or("a number in it is beyond 64 bits")?;
                Ok(self.literal(whole))
            }
            Val::Fault(fault) => Err(format!("it has no value: {fault}")),
            _ => Err("it works on lists, text or infinity".to_owned()),
        }
    }

    fn variable(&self, at: usize) -> Number {
        let variable = &self.variables[at];
        let mut number = self.literal(0);
        number.powers[at] = 1;
        Number {
            text: variable.name.clone(),
            level: Level::Primary,
            real: variable.real,
            literal: None,
            low: variable.low,
            coefficient: 1.0,
            most: variable.bound.max(1.0),
            ..number
        }
    }

    fn operation(&mut self, id: TermId, op: Op, args: &[TermId]) -> Written<Number> {
        match (op, args) {
            (Op::Add, _) => self.sum(args),
            (Op::Sub, [left, right]) => {
                let (left, right) = (self.number(*left)?, self.number(*right)?);
                self.added(left, &right, "-")
            }
            (Op::Mul, _) => self.product_of(args),
            (Op::Pos, [operand]) => self.number(*operand),
            (Op::Neg, [operand]) => {
                let number = self.number(*operand)?;
                Ok(self.negated(number))
            }
            (Op::Invert, [operand]) => {
                let number = self.whole(*operand)?;
                let negated = self.negated(number);
                self.added(negated, &self.literal(1), "-")
            }
            (Op::FloorDiv | Op::Mod | Op::CeilDiv, [left, right]) => {
                self.division(op, *left, *right)
            }
            (Op::Div, [left, right]) => self.fraction(*left, *right),
            (Op::Pow, [base, exponent]) => self.power(*base, *exponent),
            (Op::Shl | Op::Shr, [left, right]) => self.shift(op, *left, *right),
            (Op::BitAnd | Op::BitOr | Op::BitXor, [left, right]) => self.bits(op, *left, *right),
            (Op::Min | Op::Max, _) => self.extreme(op, args),
            (Op::Abs, [operand]) => {
                let number = self.whole(*operand)?;
                if number.low >= 0.0 {
                    return Ok(number);
                }
                let negated = self.negated(number.clone());
                Ok(self.chosen(op, &negated, &number))
            }
            (Op::If, [condition, yes, no]) => self.choice(*condition, *yes, *no),
            (Op::Int | Op::Floor | Op::Ceil, [operand]) => self.rounded(op, *operand),
            (Op::Float, [operand]) => {
                let number = self.number(*operand)?;
                self.as_real(number)
            }
            (Op::Sqrt | Op::Log2, _) => Err("it takes roots or logarithms".to_owned()),
            (Op::Round, _) => Err("it rounds to the nearest number".to_owned()),
            (Op::List | Op::Len, _) => Err("it measures lists or text".to_owned()),
            _ if self.is_condition(id) => {
                let truth = self.truth(id)?;
                let text = format!("(long long){}", truth.operand(Level::Primary));
                Ok(Number {
                    low: 0.0,
                    ..self.literal(1).with(text, Level::Unary)
                })
            }
            _ => Err("it uses the operand that `and` or `or` returns".to_owned()),
        }
    }

    /// Reports whether a term is a truth value, rather than one of several values.
    fn is_condition(&self, id: TermId) -> bool {
        match self.terms.term(id) {
            Term::Const(value) => matches!(value, Val::Bool(_)),
            Term::Op(Op::And | Op::Or, args) => args.iter().all(|arg| self.is_condition(*arg)),
            Term::Op(op, _) => is_truth(*op),
            Term::Var(_) => false,
        }
    }

    fn whole(&mut self, id: TermId) -> Written<Number> {
        let number = self.number(id)?;
        if number.real {
            return Err("it divides or rounds numbers that are not whole".to_owned());
        }
        Ok(number)
    }

    /// Converts to a `double`, exactly.
    fn as_real(&self, number: Number) -> Written<Number> {
        if number.real {
            return Ok(number);
        }
        if self.magnitude(&number) > MAX_EXACT {
            return Err("a number in it may be beyond 53 bits, as a fraction".to_owned());
        }
        let text = match number.literal {
            Some(value) => format!("{:?}", value as f64),
            None => format!("(double){}", number.operand(Level::Unary)),
        };
        let level = if number.literal.is_some() {
            number.level
        } else {
            Level::Unary
        };
        Ok(Number {
            real: true,
            ..number.with(text, level)
        })
    }
}

fn is_truth(op: Op) -> bool {
    matches!(
        op,
        Op::Not
            | Op::Bool
            | Op::In
            | Op::NotIn
            | Op::Lt
            | Op::Le
            | Op::Gt
            | Op::Ge
            | Op::Eq
            | Op::Ne
    )
}

/// Returns terms with all their dependencies, operands first.
pub(super) fn operands_first(terms: &Terms, roots: &[TermId]) -> Vec<TermId> {
    let (mut found, mut open) = (BTreeSet::new(), roots.to_vec());
    while let Some(id) = open.pop() {
        if found.insert(id)
            && let Term::Op(_, args) = terms.term(id)
        {
            open.extend(args);
        }
    }
    // Operands are created before the terms that use them.
    found.into_iter().collect()
}

#[cfg(test)]
mod tests;
