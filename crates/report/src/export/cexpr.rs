//! Constraints as C integer constant expressions.
//!
//! `static_assert` in C11 takes whole numbers only, so a true division becomes a fraction that
//! comparisons multiply out, and expressions without an exact integer form (roots, logarithms,
//! text, numbers beyond 64 bits) are left to the caller, which then asserts the checked values
//! themselves.

use super::form::{Form, Int, binary, compare, constant, literal, member, power, times};
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::record::{ConfigValues, Definition};
use tuner_core::value::Value;
use tuner_space::{Expr, Node, Op};

/// Maximum length of a translated expression, characters: limits the expansion of nested derived
/// values.
const MAX_EXPRESSION_LENGTH: usize = 4000;

/// A rule in C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// The condition, over macro parameters of the same names; `None` if C cannot express it
    /// exactly.
    pub(super) text: Option<String>,
    /// Parameters, sizes and device names it depends on, through derived values too.
    pub(super) names: BTreeSet<String>,
}

/// Helper macros that the translated rules use, named without their prefix.
pub(super) type Helpers = BTreeSet<&'static str>;

/// Definitions of the helpers, in dependency order; `@` is the prefix.
pub(super) const HELPERS: [(&str, &str); 6] = [
    (
        "FLOORDIV",
        "(a, b) ((a) / (b) - (((a) % (b) != 0) && (((a) % (b) < 0) != ((b) < 0))))",
    ),
    (
        "MOD",
        "(a, b) ((a) % (b) + ((((a) % (b) != 0) && (((a) % (b) < 0) != ((b) < 0))) ? (b) : 0))",
    ),
    ("CEILDIV", "(a, b) (-(@FLOORDIV(-(a), b)))"),
    ("MIN", "(a, b) ((a) < (b) ? (a) : (b))"),
    ("MAX", "(a, b) ((a) > (b) ? (a) : (b))"),
    ("ABS", "(a) ((a) < 0 ? -(a) : (a))"),
];

/// Translates every constraint; also returns the helpers used.
pub(super) fn translate(
    definition: &Definition,
    constants: &ConfigValues,
    prefix: &str,
) -> (Vec<Rule>, Helpers) {
    let mut translator = Translator {
        definition,
        prefix,
        known: BTreeMap::new(),
        helpers: Helpers::new(),
    };
    for parameter in &definition.parameters {
        let form = number_name(&parameter.name, &parameter.values);
        translator.insert(&parameter.name, form);
    }
    for (name, value) in constants {
        let form = number_name(name, std::slice::from_ref(value));
        translator.insert(name, form);
    }
    let rules = definition
        .constraints
        .iter()
        .map(|constraint| {
            let (form, names) = translator.expression(&constraint.rule, 0);
            Rule {
                text: form.map(|form| form.truth()),
                names,
            }
        })
        .collect();
    (rules, translator.helpers)
}

/// Returns the form of a name with integer values; `None` for fractions and text.
fn number_name(name: &str, values: &[Value]) -> Option<Form> {
    let numbers: Option<Vec<i64>> = values.iter().map(Value::as_i64).collect();
    let numbers = numbers?;
    let bounds = numbers.iter().map(|value| value.unsigned_abs() as f64);
    let nonnegative = numbers.iter().all(|value| *value >= 0);
    let text = format!("(long long)({name})");
    Some(Form::Int(Int::new(
        text,
        nonnegative,
        bounds.fold(0.0, f64::max),
    )))
}

struct Translator<'d> {
    definition: &'d Definition,
    prefix: &'d str,
    /// Names seen so far: their form and their dependencies.
    known: BTreeMap<String, (Option<Form>, BTreeSet<String>)>,
    helpers: Helpers,
}

impl Translator<'_> {
    fn insert(&mut self, name: &str, form: Option<Form>) {
        let names = BTreeSet::from([name.to_owned()]);
        self.known.insert(name.to_owned(), (form, names));
    }

    /// Translates an expression and returns its form and all its dependencies. Derived values nest
    /// at most as deep as their number; a cycle returns `None`.
    fn expression(&mut self, text: &str, depth: usize) -> (Option<Form>, BTreeSet<String>) {
        let mut names = BTreeSet::new();
        let Ok(expr) = Expr::parse(text) else {
            return (None, names);
        };
        let mut forms: Vec<Option<Form>> = Vec::with_capacity(expr.nodes().len());
        for (node, _) in expr.nodes() {
            let form = match node {
                Node::Const(value) => constant(value),
                Node::Name(name) => {
                    let (form, uses) = self.name(name, depth);
                    names.extend(uses);
                    form
                }
                Node::Op(op, operands) => operands
                    .iter()
                    .map(|operand| forms.get(*operand as usize).cloned().flatten())
                    .collect::<Option<Vec<Form>>>()
                    .and_then(|operands| self.operation(*op, &operands)),
            };
            forms.push(
                form.filter(|form| form.truth().len() <= MAX_EXPRESSION_LENGTH && form.fits()),
            );
        }
        (forms.pop().flatten(), names)
    }

    fn name(&mut self, name: &str, depth: usize) -> (Option<Form>, BTreeSet<String>) {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let definition = self.definition;
        let derived = definition.derived.iter().find(|(known, _)| known == name);
        let found = match derived {
            Some((_, text)) if depth < definition.derived.len() => self.expression(text, depth + 1),
            _ => (None, BTreeSet::new()),
        };
        self.known.insert(name.to_owned(), found.clone());
        found
    }

    fn operation(&mut self, op: Op, operands: &[Form]) -> Option<Form> {
        match (op, operands) {
            (Op::And | Op::Or, _) => {
                // Python returns an operand; as a condition that equals its truth value, as a
                // number it does not.
                let all_truths = operands.iter().all(|o| matches!(o, Form::Truth(_)));
                let sign = if op == Op::And { " && " } else { " || " };
                let parts: Vec<String> = operands.iter().map(Form::truth).collect();
                let text = format!("({})", parts.join(sign));
                all_truths.then_some(Form::Truth(text))
            }
            (Op::Not, [operand]) => Some(Form::Truth(format!("(!{})", operand.truth()))),
            (Op::Bool, [operand]) => Some(Form::Truth(operand.truth())),
            (Op::If, [condition, yes, no]) => {
                let (yes, no) = (yes.int()?, no.int()?);
                let text = format!("({} ? {} : {})", condition.truth(), yes.text, no.text);
                let nonnegative = yes.nonnegative && no.nonnegative;
                Some(Form::Int(Int::new(
                    text,
                    nonnegative,
                    yes.bound.max(no.bound),
                )))
            }
            (Op::List, _) => Some(Form::List(operands.to_vec())),
            (Op::In | Op::NotIn, [item, Form::List(items)]) => member(item, items, op == Op::In),
            (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne, [left, right]) => {
                compare(op, left, right)
            }
            (Op::Min | Op::Max, _) => self.extreme(op, operands),
            (_, [operand]) => self.unary(op, operand),
            (_, [left, right]) => self.arithmetic(op, left, right),
            _ => None,
        }
    }

    fn helper(&mut self, name: &'static str, operands: &[&Int], nonnegative: bool) -> Int {
        self.helpers.insert(name);
        if name == "CEILDIV" {
            self.helpers.insert("FLOORDIV");
        }
        let bounds = operands.iter().map(|int| int.bound + 1.0);
        let bound = bounds.fold(0.0, f64::max);
        let operands: Vec<&str> = operands.iter().map(|int| int.text.as_str()).collect();
        let text = format!("{}{name}({})", self.prefix, operands.join(", "));
        Int::new(text, nonnegative, bound)
    }

    fn extreme(&mut self, op: Op, operands: &[Form]) -> Option<Form> {
        let operands = match operands {
            [Form::List(items)] => items.as_slice(),
            other => other,
        };
        let ints: Vec<Int> = operands.iter().map(Form::int).collect::<Option<_>>()?;
        let name = if op == Op::Min { "MIN" } else { "MAX" };
        ints.into_iter()
            .reduce(|left, right| {
                let nonnegative = left.nonnegative && right.nonnegative;
                self.helper(name, &[&left, &right], nonnegative)
            })
            .map(Form::Int)
    }

    fn unary(&mut self, op: Op, operand: &Form) -> Option<Form> {
        if let (Form::Ratio(numerator, denominator), Op::Int | Op::Floor | Op::Ceil) = (operand, op)
        {
            let nonnegative = numerator.nonnegative && denominator.nonnegative;
            return Some(Form::Int(match op {
                // C truncates, as `int` does.
                Op::Int => binary(numerator, "/", denominator, nonnegative),
                Op::Floor => self.floor_div(numerator, denominator),
                _ => self.helper("CEILDIV", &[numerator, denominator], nonnegative),
            }));
        }
        if op == Op::Float {
            let (numerator, denominator) = operand.ratio()?;
            return Some(Form::Ratio(numerator, denominator));
        }
        if let (Form::Ratio(numerator, denominator), Op::Neg) = (operand, op) {
            return Some(Form::Ratio(
                times(&literal(-1), numerator),
                denominator.clone(),
            ));
        }
        let int = operand.int()?;
        match op {
            Op::Neg => Some(Form::Int(match int.literal {
                Some(value) => literal(value.checked_neg()?),
                None => times(&literal(-1), &int),
            })),
            Op::Pos | Op::Int | Op::Floor | Op::Ceil => Some(Form::Int(int)),
            Op::Abs if int.nonnegative => Some(Form::Int(int)),
            Op::Abs => Some(Form::Int(self.helper("ABS", &[&int], true))),
            Op::Invert => {
                let text = format!("(~{})", int.text);
                Some(Form::Int(Int::new(text, false, int.bound + 1.0)))
            }
            _ => None,
        }
    }

    fn floor_div(&mut self, left: &Int, right: &Int) -> Int {
        if left.nonnegative && right.nonnegative {
            binary(left, "/", right, true)
        } else {
            self.helper("FLOORDIV", &[left, right], false)
        }
    }

    fn arithmetic(&mut self, op: Op, left: &Form, right: &Form) -> Option<Form> {
        let fraction =
            op == Op::Div || matches!(left, Form::Ratio(..)) || matches!(right, Form::Ratio(..));
        if fraction {
            return self.fraction(op, left, right);
        }
        let (left, right) = (left.int()?, right.int()?);
        let both = left.nonnegative && right.nonnegative;
        Some(Form::Int(match op {
            Op::Add => binary(&left, "+", &right, both),
            Op::Sub => binary(&left, "-", &right, false),
            Op::Mul => times(&left, &right),
            Op::FloorDiv => self.floor_div(&left, &right),
            Op::Mod if both => binary(&left, "%", &right, true),
            Op::Mod => self.helper("MOD", &[&left, &right], right.nonnegative),
            Op::CeilDiv => self.helper("CEILDIV", &[&left, &right], both),
            Op::Pow => power(&left, &right)?,
            Op::BitAnd => binary(&left, "&", &right, both),
            Op::BitOr => binary(&left, "|", &right, both),
            Op::BitXor => binary(&left, "^", &right, both),
            Op::Shl if both => binary(&left, "<<", &right, true),
            Op::Shr if both => binary(&left, ">>", &right, true),
            _ => return None,
        }))
    }

    fn fraction(&mut self, op: Op, left: &Form, right: &Form) -> Option<Form> {
        let ((a, b), (c, d)) = (left.ratio()?, right.ratio()?);
        let (ad, bc, bd) = (times(&a, &d), times(&b, &c), times(&b, &d));
        let both = ad.nonnegative && bc.nonnegative;
        Some(match op {
            Op::Add => Form::Ratio(binary(&ad, "+", &bc, both), bd),
            Op::Sub => Form::Ratio(binary(&ad, "-", &bc, false), bd),
            Op::Mul => Form::Ratio(times(&a, &c), bd),
            Op::Div => Form::Ratio(ad, bc),
            // An integer, although Python returns a float.
            Op::FloorDiv => Form::Ratio(self.floor_div(&ad, &bc), literal(1)),
            // a/b − ⌊(a/b) / (c/d)⌋ · c/d
            Op::Mod => {
                let whole = self.floor_div(&ad, &bc);
                Form::Ratio(binary(&ad, "-", &times(&whole, &bc), false), bd)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
