//! Parameter values.

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// One value a parameter may take.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite number with a fraction.
    Float(f64),
    /// Text.
    Text(Arc<str>),
}

impl Value {
    /// Returns the value as a number, as Python converts it (`True` is 1); `None` for text.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(_) => None,
        }
    }

    /// Returns the value as an integer; `None` for text and fractions.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Int(value) => Some(*value),
            Self::Float(_) | Self::Text(_) => None,
        }
    }

    /// Returns the key of identity and order: kind, number (of a float the bits, in the order of
    /// [`f64::total_cmp`]), text.
    fn key(&self) -> (u8, i64, &str) {
        match self {
            Self::Bool(value) => (0, i64::from(*value), ""),
            Self::Int(value) => (1, *value, ""),
            Self::Float(value) => {
                let bits = value.to_bits().cast_signed();
                (2, bits ^ ((bits >> 63) & i64::MAX), "")
            }
            Self::Text(value) => (3, 0, value),
        }
    }
}

// Identity, not arithmetic: `1`, `1.0` and `true` are different values of a parameter, because they
// render differently. Expressions compare numerically.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl std::hash::Hash for Value {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for Value {
    /// Formats the value as a C++ macro body and for display: `true`, `64`, `0.5`, `text`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            // `{:?}` keeps the `.0` of a whole float, so that it stays a float in C++.
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl Visitor<'_> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, a float, a boolean or a string")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map(Value::Int).map_err(|_| {
            E::custom(format!(
                "{value} is larger than the largest integer, 2^63 - 1"
            ))
        })
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        if value.is_finite() {
            Ok(Value::Float(value))
        } else {
            Err(E::custom("a parameter value must be finite"))
        }
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.into()))
    }
}
