//! Operations of the expression language, with Python's semantics.

use super::number;
use super::op::Op;
use super::val::{Fault, Val, compare_int_float};
use std::cmp::Ordering;
use std::sync::Arc;

/// Functions with their names, minimum and maximum number of arguments.
pub(crate) const FUNCTIONS: [(&str, Op, usize, usize); 14] = [
    ("abs", Op::Abs, 1, 1),
    ("bool", Op::Bool, 1, 1),
    ("ceil", Op::Ceil, 1, 1),
    ("ceil_div", Op::CeilDiv, 2, 2),
    ("float", Op::Float, 1, 1),
    ("floor", Op::Floor, 1, 1),
    ("int", Op::Int, 1, 1),
    ("len", Op::Len, 1, 1),
    ("log2", Op::Log2, 1, 1),
    ("max", Op::Max, 1, usize::MAX),
    ("min", Op::Min, 1, usize::MAX),
    ("pow", Op::Pow, 2, 2),
    ("round", Op::Round, 1, 2),
    ("sqrt", Op::Sqrt, 1, 1),
];

impl Op {
    fn type_fault(self) -> Val {
        Val::Fault(Fault::Type(self.name()))
    }
}

/// Applies an operation to its operands.
#[expect(
    clippy::indexing_slicing,
    reason = "the parser has checked the number of operands of each operation"
)]
pub(crate) fn apply(op: Op, args: &[&Val]) -> Val {
    if args.iter().any(|arg| matches!(arg, Val::Unset)) {
        return Val::Unset;
    }
    match op {
        // `and`, `or` and `if` may not evaluate the operand that is a fault.
        Op::And => return junction(args, false),
        Op::Or => return junction(args, true),
        Op::If => {
            return match args[0].truth() {
                Some(true) => args[1].clone(),
                Some(false) => args[2].clone(),
                None => args[0].clone(),
            };
        }
        _ => {}
    }
    if let Some(fault) = args.iter().find(|arg| matches!(arg, Val::Fault(_))) {
        return (*fault).clone();
    }
    match (op, args) {
        (Op::List, _) => Val::List(
            args.iter()
                .map(|arg| (*arg).clone())
                .collect::<Arc<[Val]>>(),
        ),
        (Op::Min | Op::Max, [Val::List(items)]) => extremum(op, &items.iter().collect::<Vec<_>>()),
        (Op::Min | Op::Max, [_]) => op.type_fault(),
        (Op::Min | Op::Max, _) => extremum(op, args),
        (_, [a]) => unary(op, a),
        (_, [a, b]) => binary(op, a, b),
        // Sums and products of whole numbers arrive flattened, with any number of operands.
        (_, [first, rest @ ..]) => rest
            .iter()
            .fold((*first).clone(), |sum, next| binary(op, &sum, next)),
        (_, []) => op.type_fault(),
    }
}

/// Evaluates `and` (`stop` false) or `or` (`stop` true): returns the first operand that determines the
/// result, otherwise the last.
fn junction(args: &[&Val], stop: bool) -> Val {
    #[expect(
        clippy::expect_used,
        reason = "the parser makes a junction of two operands or more"
    )]
    let (last, rest) = args.split_last().expect("a junction has operands");
    for arg in rest {
        match arg.truth() {
            Some(truth) if truth != stop => {}
            _ => return (*arg).clone(),
        }
    }
    (*last).clone()
}

#[expect(
    clippy::indexing_slicing,
    reason = "the parser has checked the number of operands of each operation"
)]
fn extremum(op: Op, items: &[&Val]) -> Val {
    let wanted = if op == Op::Min {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    let mut best = match items.first() {
        Some(first) => *first,
        None => return Val::Fault(Fault::Domain(op.name())),
    };
    for item in &items[1..] {
        match order(op, item, best) {
            Ok(Some(ordering)) if ordering == wanted => best = item,
            Ok(_) => {}
            Err(fault) => return Val::Fault(fault),
        }
    }
    best.clone()
}

/// Compares two values: `Ok(None)` for NaN, a fault if Python raises a `TypeError`.
fn order(op: Op, a: &Val, b: &Val) -> Result<Option<Ordering>, Fault> {
    let order = match (a, b) {
        (Val::Text(a), Val::Text(b)) => Some(Some(a.cmp(b))),
        (Val::List(a), Val::List(b)) => {
            let mut pairs = a.iter().zip(b.iter());
            return match pairs.find(|(a, b)| !equal(a, b)) {
                Some((a, b)) => order(op, a, b),
                None => Ok(Some(a.len().cmp(&b.len()))),
            };
        }
        (Val::Float(a), Val::Float(b)) => Some(a.partial_cmp(b)),
        (Val::Float(a), _) => {
            let order = b.int().map(|b| compare_int_float(b, *a));
            order.map(|order| order.map(Ordering::reverse))
        }
        (_, Val::Float(b)) => a.int().map(|a| compare_int_float(a, *b)),
        _ => a.int().zip(b.int()).map(|(a, b)| Some(a.cmp(&b))),
    };
    order.ok_or(Fault::Type(op.name()))
}

/// Evaluates `==`: numbers by value, text with text. Different kinds are unequal, not a fault.
fn equal(a: &Val, b: &Val) -> bool {
    match (a, b) {
        (Val::List(a), Val::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        _ => matches!(order(Op::Eq, a, b), Ok(Some(Ordering::Equal))),
    }
}

fn contains(list: &Val, item: &Val) -> Option<bool> {
    match (list, item) {
        (Val::List(items), _) => Some(items.iter().any(|each| equal(each, item))),
        (Val::Text(text), Val::Text(part)) => Some(text.contains(&**part)),
        _ => None,
    }
}

fn unary(op: Op, a: &Val) -> Val {
    match op {
        Op::Not => a
            .truth()
            .map_or_else(|| a.clone(), |truth| Val::Bool(!truth)),
        Op::Bool => a.truth().map_or_else(|| a.clone(), Val::Bool),
        // A folded `x * 1`: Python converts a boolean to a number.
        Op::Add | Op::Mul => a.int().map_or_else(|| a.clone(), Val::Int),
        Op::Len => match a {
            Val::Text(text) => Val::Int(text.chars().count() as i128),
            Val::List(items) => Val::Int(items.len() as i128),
            _ => op.type_fault(),
        },
        Op::Int | Op::Float if matches!(a, Val::Text(_)) => parse_text(op, a),
        _ => match a {
            Val::Float(value) => number::unary_float(op, *value),
            _ => match a.int() {
                Some(value) => number::unary_int(op, value),
                None => op.type_fault(),
            },
        },
    }
}

/// Evaluates `int("64")` and `float("0.5")`.
fn parse_text(op: Op, a: &Val) -> Val {
    let Val::Text(text) = a else {
        return op.type_fault();
    };
    let text = text.trim();
    let parsed = if op == Op::Int {
        text.parse().ok().map(Val::Int)
    } else {
        text.parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
            .map(Val::Float)
    };
    parsed.unwrap_or(Val::Fault(Fault::Domain(op.name())))
}

fn binary(op: Op, a: &Val, b: &Val) -> Val {
    match op {
        Op::Eq => return Val::Bool(equal(a, b)),
        Op::Ne => return Val::Bool(!equal(a, b)),
        Op::Lt | Op::Le | Op::Gt | Op::Ge => {
            return match order(op, a, b) {
                Ok(ordering) => Val::Bool(ordering.is_some_and(|ordering| match op {
                    Op::Lt => ordering.is_lt(),
                    Op::Le => ordering.is_le(),
                    Op::Gt => ordering.is_gt(),
                    _ => ordering.is_ge(),
                })),
                Err(fault) => Val::Fault(fault),
            };
        }
        Op::In | Op::NotIn => {
            return match contains(b, a) {
                Some(found) => Val::Bool(found == (op == Op::In)),
                None => op.type_fault(),
            };
        }
        _ => {}
    }
    if let (Val::Int(a), Val::Int(b)) = (a, b) {
        return number::binary_int(op, *a, *b);
    }
    if let (Op::BitAnd | Op::BitOr | Op::BitXor, Val::Bool(a), Val::Bool(b)) = (op, a, b) {
        return Val::Bool(match op {
            Op::BitAnd => a & b,
            Op::BitOr => a | b,
            _ => a ^ b,
        });
    }
    match (a.int(), b.int()) {
        (Some(a), Some(b)) => number::binary_int(op, a, b),
        _ => match (a.float(), b.float()) {
            (Some(x), Some(y)) => number::binary_float(op, x, y),
            _ => text_binary(op, a, b),
        },
    }
}

/// Maximum size of a text that an operation creates, bytes.
const MAX_TEXT_BYTES: usize = 1 << 16;

/// Concatenates two texts or lists, or repeats a text.
fn text_binary(op: Op, a: &Val, b: &Val) -> Val {
    match (op, a, b) {
        (Op::Add, Val::Text(a), Val::Text(b)) => match a.len() + b.len() {
            ..=MAX_TEXT_BYTES => Val::Text(format!("{a}{b}").into()),
            _ => Val::Fault(Fault::Overflow),
        },
        (Op::Add, Val::List(a), Val::List(b)) => match a.len() + b.len() {
            ..=MAX_TEXT_BYTES => Val::List(a.iter().chain(b.iter()).cloned().collect()),
            _ => Val::Fault(Fault::Overflow),
        },
        (Op::Mul, Val::Text(text), times) | (Op::Mul, times, Val::Text(text)) => {
            match times.int() {
                Some(times) => {
                    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
                    match text.len().checked_mul(times) {
                        Some(length) if length <= MAX_TEXT_BYTES => {
                            Val::Text(text.repeat(times).into())
                        }
                        _ => Val::Fault(Fault::Overflow),
                    }
                }
                None => op.type_fault(),
            }
        }
        _ => op.type_fault(),
    }
}

#[cfg(test)]
mod tests;
