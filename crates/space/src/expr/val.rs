//! Values inside an expression: Python's numbers, text and lists, and faults as values.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tuner_core::value::Value;

/// Reason why an expression has no value for some configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// `/`, `//`, `%`, `ceil_div` or a negative power of zero.
    DivisionByZero,
    /// A whole number beyond 127 bits, or a float beyond its range.
    Overflow,
    /// An argument outside a function's domain, such as `sqrt(-1)`.
    Domain(&'static str),
    /// An operand of a kind that the operation does not accept.
    Type(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DivisionByZero => f.write_str("division by zero"),
            Self::Overflow => f.write_str("a number too large"),
            Self::Domain(what) => write!(f, "{what} of a number outside its domain"),
            Self::Type(what) => write!(f, "{what} does not take operands of these types"),
        }
    }
}

/// A value during evaluation. Faults are values: evaluation stays straight-line code, and `and`, `or` and
/// `if` determine afterwards whether Python would have reached the fault.
#[derive(Debug, Clone)]
pub enum Val {
    /// `True` or `False`.
    Bool(bool),
    /// A whole number, exact to 127 bits.
    Int(i128),
    /// A number with a fraction.
    Float(f64),
    /// Text.
    Text(Arc<str>),
    /// A list.
    List(Arc<[Val]>),
    /// No value, for example after a division by zero.
    Fault(Fault),
    /// Placeholder for a slot of a diagram's state on which no open constraint depends.
    Unset,
}

impl Val {
    /// Returns Python's truth value; `None` for a fault.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Int(value) => Some(*value != 0),
            Self::Float(value) => Some(*value != 0.0),
            Self::Text(value) => Some(!value.is_empty()),
            Self::List(items) => Some(!items.is_empty()),
            Self::Fault(_) | Self::Unset => None,
        }
    }

    /// Returns the whole number, where `True` is 1.
    pub fn int(&self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(i128::from(*value)),
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the number, whole or not.
    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Converts to a parameter or macro value.
    pub(crate) fn to_value(&self) -> Option<Value> {
        match self {
            Self::Bool(value) => Some(Value::Bool(*value)),
            Self::Int(value) => i64::try_from(*value).ok().map(Value::Int),
            Self::Float(value) => value.is_finite().then_some(Value::Float(*value)),
            Self::Text(value) => Some(Value::Text(value.clone())),
            Self::List(_) | Self::Fault(_) | Self::Unset => None,
        }
    }
}

impl From<&Value> for Val {
    fn from(value: &Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(i128::from(*value)),
            Value::Float(value) => Self::Float(*value),
            Value::Text(value) => Self::Text(value.clone()),
        }
    }
}

// Identity for hash-consing and for merging equal states; the language's `==` is in `ops`.
impl PartialEq for Val {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Fault(a), Self::Fault(b)) => a == b,
            (Self::Unset, Self::Unset) => true,
            _ => false,
        }
    }
}

impl Eq for Val {}

impl Hash for Val {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            // The common case hashes one word; equal values still hash equally.
            Self::Int(value) => state.write_u64(*value as u64),
            Self::Bool(value) => state.write_u64(u64::from(*value)),
            Self::Float(value) => state.write_u64(value.to_bits()),
            Self::Text(value) => value.hash(state),
            Self::List(items) => items.hash(state),
            Self::Fault(fault) => fault.hash(state),
            Self::Unset => state.write_u8(6),
        }
    }
}

/// Compares a whole number with a float exactly, as Python does; `None` for NaN.
pub(crate) fn compare_int_float(int: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // 2^127 is exact in a float, and every i128 is in [-2^127, 2^127).
    const LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if float >= LIMIT {
        return Some(Ordering::Less);
    }
    if float < -LIMIT {
        return Some(Ordering::Greater);
    }
    let whole = float.floor();
    let by_whole = int.cmp(&(whole as i128));
    Some(by_whole.then(if float > whole {
        Ordering::Less
    } else {
        Ordering::Equal
    }))
}
