//! Divisions, powers, bits and choices as C expressions.

use super::{Level, MAX_EXACT, Number, Target, Writer, Written, merged};
use tuner_space::{Op, Term, TermId, Val};

impl Writer<'_> {
    /// Writes a division of whole numbers with a positive divisor.
    pub(super) fn division(&mut self, op: Op, left: TermId, right: TermId) -> Written<Number> {
        let (a, b) = (self.whole(left)?, self.whole(right)?);
        if b.low < 1.0 {
            return Err("a divisor in it may be zero or negative".to_owned());
        }
        let quotient = format!(
            "{} / {}",
            a.operand(Level::Product),
            b.operand(Level::Unary)
        );
        let rest = format!(
            "{} % {}",
            a.operand(Level::Product),
            b.operand(Level::Unary)
        );
        let nonnegative = a.low >= 0.0;
        match (op, nonnegative) {
            (Op::FloorDiv, true) => Ok(Number {
                low: 0.0,
                coefficient: a.coefficient / b.low,
                most: a.most / b.low,
                ..a.with(quotient, Level::Product)
            }),
            (Op::FloorDiv, false) => {
                // Division rounds towards zero in C, and down in a search space.
                let number = a.with(format!("{quotient} - ({rest} < 0)"), Level::Sum);
                Ok(Number {
                    low: -self.magnitude(&number) - 1.0,
                    coefficient: number.coefficient + 1.0,
                    most: number.most + 1.0,
                    ..number
                })
            }
            (Op::CeilDiv, true) => self.ceiled(a, &b),
            (Op::CeilDiv, false) => {
                let number = a.with(format!("{quotient} + ({rest} > 0)"), Level::Sum);
                Ok(Number {
                    low: -self.magnitude(&number),
                    coefficient: number.coefficient + 1.0,
                    most: number.most + 1.0,
                    ..number
                })
            }
            _ => {
                let divisor = b.operand(Level::Unary);
                let text = match nonnegative {
                    true => rest,
                    // The remainder has the sign of the dividend in C, and of the divisor in a search
                    // space.
                    false => format!("({rest} + {divisor}) % {divisor}"),
                };
                // A remainder exceeds neither operand, so the tighter bound holds.
                let smaller = nonnegative && self.magnitude(&a) < self.magnitude(&b);
                let bounds = if smaller { a } else { b };
                Ok(Number {
                    low: 0.0,
                    ..bounds.with(text, Level::Product)
                })
            }
        }
    }

    /// Writes a quotient, rounded up, of a non-negative number.
    fn ceiled(&self, a: Number, b: &Number) -> Written<Number> {
        let low = if a.low >= 1.0 { 1.0 } else { 0.0 };
        let sum = match b.literal {
            Some(1) => return Ok(a),
            Some(value) => self.added(a, &self.literal(value - 1), "+")?,
            None => {
                let sum = self.added(a, b, "+")?;
                self.added(sum, &self.literal(1), "-")?
            }
        };
        let sum = self.checked(sum)?;
        let text = format!(
            "{} / {}",
            sum.operand(Level::Product),
            b.operand(Level::Unary)
        );
        Ok(Number {
            low,
            coefficient: sum.coefficient / b.low,
            most: sum.most / b.low,
            ..sum.with(text, Level::Product)
        })
    }

    pub(super) fn fraction(&mut self, left: TermId, right: TermId) -> Written<Number> {
        let (a, b) = (self.number(left)?, self.number(right)?);
        let positive = if b.real { b.low > 1e-9 } else { b.low >= 1.0 };
        if !positive {
            return Err("a divisor in it may be zero or negative".to_owned());
        }
        let scale = b.low.min(1.0);
        let (a, b) = (self.as_real(a)?, self.as_real(b)?);
        let text = format!(
            "{} / {}",
            a.operand(Level::Product),
            b.operand(Level::Unary)
        );
        let low = if a.low >= 0.0 {
            0.0
        } else {
            -self.magnitude(&a) / scale
        };
        Ok(Number {
            low,
            coefficient: a.coefficient / scale,
            most: a.most / scale,
            fused: false,
            ..a.with(text, Level::Product)
        })
    }

    pub(super) fn power(&mut self, base: TermId, exponent: TermId) -> Written<Number> {
        let exponent = self.terms.constant(exponent).and_then(Val::int);
        let Some(exponent @ 1..=4) = exponent else {
            return Err(
                "only whole numbers can be raised to a power, to the fourth at most".to_owned(),
            );
        };
        let base = self.number(base)?;
        if base.real {
            return Err("only whole numbers can be raised to a power".to_owned());
        }
        (1..exponent).try_fold(base.clone(), |product, _| {
            self.multiplied(product, base.clone())
        })
    }

    pub(super) fn shift(&mut self, op: Op, left: TermId, right: TermId) -> Written<Number> {
        let amount = self.terms.constant(right).and_then(Val::int);
        let Some(amount @ 0..=40) = amount else {
            return Err("it shifts by a number that is not constant".to_owned());
        };
        let number = self.whole(left)?;
        if number.low < 0.0 {
            return Err("it shifts a number that may be negative".to_owned());
        }
        let factor = self.literal(1 << amount);
        if op == Op::Shl {
            return self.multiplied(factor, number);
        }
        let text = format!("{} / {}", number.operand(Level::Product), factor.text);
        Ok(Number {
            low: 0.0,
            coefficient: number.coefficient / factor.low,
            most: number.most / factor.low,
            ..number.with(text, Level::Product)
        })
    }

    pub(super) fn bits(&mut self, op: Op, left: TermId, right: TermId) -> Written<Number> {
        let (a, b) = (self.whole(left)?, self.whole(right)?);
        if a.low < 0.0 || b.low < 0.0 {
            return Err("it combines the bits of a number that may be negative".to_owned());
        }
        let (sign, name) = match op {
            Op::BitAnd => ("&", "bitand"),
            Op::BitOr => ("|", "bitor"),
            _ => ("^", "bitxor"),
        };
        let text = match self.target {
            Target::Function(_) => self.call(name, &[a.clone(), b.clone()]),
            Target::Constant => {
                let [a, b] = [&a, &b].map(|number| number.operand(Level::Unary));
                format!("({a} {sign} {b})")
            }
        };
        let powers = merged(&a.powers, &b.powers, i32::max);
        Ok(Number {
            low: 0.0,
            // Combined bits stay below the next power of two, at most twice the larger operand.
            coefficient: 2.0 * a.coefficient.max(b.coefficient),
            most: 2.0 * a.most.max(b.most),
            powers,
            ..a.with(text, Level::Primary)
        })
    }

    pub(super) fn extreme(&mut self, op: Op, args: &[TermId]) -> Written<Number> {
        let terms = self.terms;
        let constants;
        let numbers: Vec<Number> = match args {
            [list] => match terms.term(*list) {
                Term::Op(Op::List, items) => {
                    let items = items.iter();
                    items.map(|id| self.whole(*id)).collect::<Written<_>>()?
                }
                Term::Const(Val::List(items)) => {
                    constants = items.clone();
                    let items = constants.iter();
                    items
                        .map(|item| self.constant(item))
                        .collect::<Written<_>>()?
                }
                _ => return Err("it measures lists or text".to_owned()),
            },
            _ => args
                .iter()
                .map(|id| self.whole(*id))
                .collect::<Written<_>>()?,
        };
        if numbers.iter().any(|number| number.real) {
            return Err("it compares fractions".to_owned());
        }
        let mut numbers = numbers.into_iter();
        let first = numbers.next().ok_or("it is empty")?;
        Ok(numbers.fold(first, |left, right| self.chosen(op, &left, &right)))
    }

    /// Writes the minimum (for `min`) or the maximum (for any other operation) of two numbers.
    pub(super) fn chosen(&mut self, op: Op, left: &Number, right: &Number) -> Number {
        let (sign, name) = match op {
            Op::Min => ("<", "min"),
            _ => (">", "max"),
        };
        let text = match self.target {
            Target::Function(_) => self.call(name, &[left.clone(), right.clone()]),
            Target::Constant => {
                let [a, b] = [left, right].map(|number| number.operand(Level::Unary));
                format!("({a} {sign} {b} ? {a} : {b})")
            }
        };
        let positive = left.low >= 0.0 && right.low >= 0.0;
        let smaller = if self.magnitude(left) < self.magnitude(right) {
            left
        } else {
            right
        };
        if op == Op::Min && positive {
            return Number {
                low: left.low.min(right.low),
                ..smaller.clone().with(text, Level::Primary)
            };
        }
        let low = match op {
            Op::Min => left.low.min(right.low),
            Op::Abs => 0.0,
            _ => left.low.max(right.low),
        };
        Number {
            low,
            coefficient: left.coefficient.max(right.coefficient),
            most: left.most.max(right.most),
            powers: merged(&left.powers, &right.powers, i32::max),
            ..left.clone().with(text, Level::Primary)
        }
    }

    pub(super) fn call(&mut self, helper: &'static str, operands: &[Number]) -> String {
        self.helpers.insert(helper);
        let Target::Function(prefix) = self.target else {
            return String::new();
        };
        let operands: Vec<&str> = operands.iter().map(|number| &*number.text).collect();
        format!("{prefix}_{helper}({})", operands.join(", "))
    }

    pub(super) fn choice(&mut self, condition: TermId, yes: TermId, no: TermId) -> Written<Number> {
        let condition = self.truth(condition)?.operand(Level::Compare);
        let (yes, no) = (self.number(yes)?, self.number(no)?);
        let (yes, no) = if yes.real != no.real {
            (self.as_real(yes)?, self.as_real(no)?)
        } else {
            (yes, no)
        };
        // Two `int` literals would have type `int`, whose products could overflow.
        let wide = match no.literal {
            Some(_) if yes.literal.is_some() && !no.text.ends_with("LL") => "LL",
            _ => "",
        };
        let text = format!("({condition} ? {} : {}{wide})", yes.text, no.text);
        Ok(Number {
            low: yes.low.min(no.low),
            coefficient: yes.coefficient.max(no.coefficient),
            most: yes.most.max(no.most),
            powers: merged(&yes.powers, &no.powers, i32::max),
            fused: yes.fused || no.fused,
            ..yes.with(text, Level::Primary)
        })
    }

    /// Converts to a whole number.
    pub(super) fn rounded(&mut self, op: Op, operand: TermId) -> Written<Number> {
        let number = self.number(operand)?;
        if !number.real {
            return Ok(number);
        }
        if self.magnitude(&number) > MAX_EXACT || (number.low < 0.0 && op != Op::Int) {
            return Err("it rounds a number that may be negative or beyond 53 bits".to_owned());
        }
        let cut = format!("(long long){}", number.operand(Level::Primary));
        let low = number.low.floor();
        let (text, level) = match op {
            Op::Ceil => (
                format!("{cut} + ((double){cut} < {})", number.operand(Level::Sum)),
                Level::Sum,
            ),
            _ => (cut, Level::Unary),
        };
        Ok(Number {
            low,
            real: false,
            fused: false,
            coefficient: number.coefficient + 1.0,
            most: number.most + 1.0,
            ..number.with(text, level)
        })
    }
}
