//! Conditions as C expressions.

use super::{Level, Number, Truth, Writer, Written};
use tuner_space::{Op, Term, TermId, Val};

impl Writer<'_> {
    pub(super) fn truth(&mut self, id: TermId) -> Written<Truth> {
        let terms = self.terms;
        let (op, args) = match terms.term(id) {
            Term::Const(value) => {
                let truth = value.truth().ok_or("it has no value")?;
                return Ok(Truth::new(u8::from(truth).to_string(), Level::Primary));
            }
            Term::Op(op, args) if !self.named.contains_key(&id) => (*op, args),
            _ => return self.nonzero(id),
        };
        match (op, &**args) {
            (Op::And, _) => self.junction(args, Level::And, " && "),
            (Op::Or, _) => self.junction(args, Level::Or, " || "),
            (Op::Not, [operand]) => {
                let text = self.truth(*operand)?.operand(Level::Primary);
                Ok(Truth::new(format!("!{text}"), Level::Unary))
            }
            (Op::Bool, [operand]) => self.truth(*operand),
            (Op::If, [condition, yes, no]) => {
                let condition = self.truth(*condition)?.operand(Level::Compare);
                let yes = self.truth(*yes)?.operand(Level::Compare);
                let no = self.truth(*no)?.operand(Level::Compare);
                Ok(Truth::new(
                    format!("({condition} ? {yes} : {no})"),
                    Level::Primary,
                ))
            }
            (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne, [left, right]) => {
                let (left, right) = (self.number(*left)?, self.number(*right)?);
                self.compared(op, left, right)
            }
            (Op::In | Op::NotIn, [item, list]) => self.member(*item, *list, op == Op::In),
            _ => self.nonzero(id),
        }
    }

    pub(super) fn nonzero(&mut self, id: TermId) -> Written<Truth> {
        let number = self.number(id)?;
        Ok(Truth::new(
            format!("{} != 0", number.operand(Level::Sum)),
            Level::Compare,
        ))
    }

    pub(super) fn junction(&mut self, args: &[TermId], level: Level, sign: &str) -> Written<Truth> {
        let parts = args
            .iter()
            // Compilers warn of `&&` within `||` without parentheses.
            .map(|arg| Ok(self.truth(*arg)?.operand(Level::Compare)))
            .collect::<Written<Vec<String>>>()?;
        Ok(Truth::new(parts.join(sign), level))
    }

    pub(super) fn compared(&self, op: Op, left: Number, right: Number) -> Written<Truth> {
        let sign = match op {
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
            Op::Eq => "==",
            _ => "!=",
        };
        let (left, right) = if left.real != right.real {
            (self.as_real(left)?, self.as_real(right)?)
        } else {
            (left, right)
        };
        if left.text == right.text {
            // Compilers warn of a comparison with itself.
            let holds = matches!(op, Op::Le | Op::Ge | Op::Eq);
            return Ok(Truth::new(u8::from(holds).to_string(), Level::Primary));
        }
        let text = format!(
            "{} {sign} {}",
            left.operand(Level::Sum),
            right.operand(Level::Sum)
        );
        Ok(Truth::new(text, Level::Compare))
    }

    pub(super) fn member(&mut self, item: TermId, list: TermId, inside: bool) -> Written<Truth> {
        let terms = self.terms;
        let item = self.number(item)?;
        let others: Vec<Number> = match terms.term(list) {
            Term::Op(Op::List, items) => {
                let numbers = items.iter().filter(|id| !self.is_text(**id)).copied();
                let numbers: Vec<TermId> = numbers.collect();
                let numbers = numbers.into_iter().map(|id| self.number(id));
                numbers.collect::<Written<_>>()?
            }
            // Text and lists never equal a number.
            Term::Const(Val::List(items)) => items
                .iter()
                .filter(|item| matches!(item, Val::Bool(_) | Val::Int(_) | Val::Float(_)))
                .map(|item| self.constant(item))
                .collect::<Written<_>>()?,
            _ => return Err("it measures lists or text".to_owned()),
        };
        let (op, level, sign) = match inside {
            true => (Op::Eq, Level::Or, " || "),
            false => (Op::Ne, Level::And, " && "),
        };
        let parts = others
            .into_iter()
            .map(|other| Ok(self.compared(op, item.clone(), other)?.text))
            .collect::<Written<Vec<String>>>()?;
        if parts.is_empty() {
            return Ok(Truth::new(u8::from(!inside).to_string(), Level::Primary));
        }
        let level = if parts.len() == 1 {
            Level::Compare
        } else {
            level
        };
        Ok(Truth::new(parts.join(sign), level))
    }

    pub(super) fn is_text(&self, id: TermId) -> bool {
        matches!(
            self.terms.term(id),
            Term::Const(Val::Text(_) | Val::List(_))
        )
    }
}
