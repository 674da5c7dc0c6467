//! Deserialization of values that may be a word or a longer form.

use serde::de::{self, MapAccess, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A type with more than one written form. A missing form is an error that names
/// [`EXPECTED`](Self::EXPECTED).
pub(super) trait Forms: Sized {
    /// Description of valid forms for messages.
    const EXPECTED: &'static str;

    /// Reads a text.
    fn word<E: de::Error>(word: &str) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Str(word), &Self::EXPECTED))
    }

    /// Reads a number or a boolean in the notation of expressions.
    fn number<E: de::Error>(_: String, found: Unexpected<'_>) -> Result<Self, E> {
        Err(E::invalid_type(found, &Self::EXPECTED))
    }

    /// Reads a sequence.
    fn list<'de, A: SeqAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(de::Error::invalid_type(Unexpected::Seq, &Self::EXPECTED))
    }

    /// Reads a mapping.
    fn map<'de, A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(de::Error::invalid_type(Unexpected::Map, &Self::EXPECTED))
    }
}

/// Visitor that reads a `T` in any of its forms.
pub(super) struct AnyForm<T>(pub(super) PhantomData<T>);

impl<'de, T: Forms> Visitor<'de> for AnyForm<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        T::number(value.to_string(), Unexpected::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        T::number(value.to_string(), Unexpected::Signed(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        T::number(value.to_string(), Unexpected::Unsigned(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        T::number(format!("{value:?}"), Unexpected::Float(value))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        T::word(word)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::map(map)
    }
}

/// Implements `Deserialize` for a type with [`Forms`].
macro_rules! forms {
    ($name:ty) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let any = crate::file::forms::AnyForm(std::marker::PhantomData);
                deserializer.deserialize_any(any)
            }
        }
    };
}
pub(super) use forms;
