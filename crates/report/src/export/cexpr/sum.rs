//! Sums and products as C expressions.

use super::{Level, MAX_WHOLE, Number, Target, Writer, Written, merged};
use tuner_space::{Op, Term, TermId, Val};

impl Writer<'_> {
    pub(super) fn negated(&self, number: Number) -> Number {
        if let Some(value) = number.literal {
            return self.literal(-value);
        }
        let low = -self.magnitude(&number);
        let text = format!("-{}", number.operand(Level::Primary));
        Number {
            low,
            ..number.with(text, Level::Unary)
        }
    }

    pub(super) fn added(&self, left: Number, right: &Number, sign: &str) -> Written<Number> {
        let (left, right) = if left.real != right.real {
            (self.as_real(left)?, self.as_real(right.clone())?)
        } else {
            (left, right.clone())
        };
        // A fused multiplication and addition rounds once, the search space's evaluator twice.
        if left.real && (left.fused || right.fused) {
            return Err("it adds products of fractions".to_owned());
        }
        let right_low = match (sign, right.literal) {
            ("+", _) => right.low,
            (_, Some(value)) => -(value as f64),
            _ => -self.magnitude(&right),
        };
        let powers = merged(&left.powers, &right.powers, i32::max);
        let text = self.widened(&left, &right, sign, Level::Sum);
        Ok(Number {
            low: left.low + right_low,
            most: self.magnitude(&left) + self.magnitude(&right),
            coefficient: left.coefficient + right.coefficient,
            powers,
            ..left.with(text, Level::Sum)
        })
    }

    /// Joins operands; in a constant expression over `int` macros it is widened if necessary.
    pub(super) fn widened(
        &self,
        left: &Number,
        right: &Number,
        sign: &str,
        level: Level,
    ) -> String {
        let next = match level {
            Level::Sum => Level::Product,
            _ => Level::Unary,
        };
        let (a, b) = (self.magnitude(left), self.magnitude(right));
        let most = if sign == "*" { a * b } else { a + b };
        let wide = self.target == Target::Constant && most > f64::from(i32::MAX);
        let first = left.operand(level);
        // One operand of 64 bits makes the compiler compute the whole operation in 64 bits.
        let first = if wide && !first.starts_with("1LL * ") {
            format!("1LL * {}", left.operand(Level::Unary))
        } else {
            first
        };
        format!("{first} {sign} {}", right.operand(next))
    }

    /// Writes a sum: constants last, negative products subtracted.
    pub(super) fn sum(&mut self, args: &[TermId]) -> Written<Number> {
        let terms = self.terms;
        let mut added = Vec::new();
        let mut subtracted = Vec::new();
        let mut constant: i64 = 0;
        for arg in args {
            match terms.term(*arg) {
                Term::Const(Val::Int(value)) if args.iter().all(|a| !self.is_real(*a)) => {
                    let value = i64::try_from(*value).ok();
                    let sum = value.and_then(|value| constant.checked_add(value));
                    constant = sum.ok_or("a number in it is beyond 64 bits")?;
                }
                Term::Op(Op::Mul, factors) if self.sign(factors) < 0 => subtracted.push(*arg),
                _ => added.push(*arg),
            }
        }
        let mut sum: Option<Number> = None;
        for arg in added {
            let number = self.number(arg)?;
            sum = Some(match sum {
                Some(sum) => self.added(sum, &number, "+")?,
                None => number,
            });
        }
        let mut sum = match sum {
            Some(sum) => sum,
            None => {
                let first = self.literal(constant);
                constant = 0;
                first
            }
        };
        for arg in subtracted {
            let number = self.number(arg)?;
            let number = match number.text.strip_prefix('-') {
                Some(text) if number.level == Level::Unary || number.level == Level::Product => {
                    let text = text.to_owned();
                    let level = number.level;
                    number.with(text, level)
                }
                _ => {
                    sum = self.added(sum, &number, "+")?;
                    continue;
                }
            };
            sum = self.added(sum, &number, "-")?;
        }
        if constant.unsigned_abs() as f64 > MAX_WHOLE {
            return Err("a number in it may be beyond 64 bits".to_owned());
        }
        match constant {
            0 => Ok(sum),
            value if value < 0 => self.added(sum, &self.literal(-value), "-"),
            value => self.added(sum, &self.literal(value), "+"),
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "variables are numbered by their list"
    )]
    pub(super) fn is_real(&self, id: TermId) -> bool {
        match self.terms.term(id) {
            Term::Const(value) => matches!(value, Val::Float(_)),
            Term::Var(at) => self.variables[*at as usize].real,
            Term::Op(..) => self.terms.kind(id) != tuner_space::Kind::Int,
        }
    }

    /// Returns the sign of a product's constant factor.
    pub(super) fn sign(&self, factors: &[TermId]) -> i64 {
        let constants = factors
            .iter()
            .filter_map(|id| self.terms.constant(*id)?.int());
        constants.map(|value| value.signum() as i64).product()
    }

    /// Writes a product, the constant first.
    pub(super) fn product_of(&mut self, args: &[TermId]) -> Written<Number> {
        let mut numbers = args
            .iter()
            .map(|arg| self.number(*arg))
            .collect::<Written<Vec<Number>>>()?;
        if numbers.iter().all(|number| !number.real) {
            // Exact, so the order is free.
            numbers.sort_by_key(|number| number.literal.is_none());
        }
        let mut numbers = numbers.into_iter();
        let first = numbers.next().ok_or("it is empty")?;
        numbers.try_fold(first, |left, right| {
            if left.literal == Some(-1) && !right.real {
                return Ok(self.negated(right));
            }
            self.multiplied(left, right)
        })
    }

    pub(super) fn multiplied(&self, left: Number, right: Number) -> Written<Number> {
        let (left, right) = if left.real != right.real {
            (self.as_real(left)?, self.as_real(right)?)
        } else {
            (left, right)
        };
        let text = self.widened(&left, &right, "*", Level::Product);
        let powers = merged(&left.powers, &right.powers, |a, b| a + b);
        let mut number = Number {
            coefficient: left.coefficient * right.coefficient,
            most: self.magnitude(&left) * self.magnitude(&right),
            powers,
            fused: left.real,
            ..left.clone().with(text, Level::Product)
        };
        number.low = if left.low >= 0.0 && right.low >= 0.0 {
            left.low * right.low
        } else {
            -self.magnitude(&number)
        };
        self.checked(number)
    }
}
