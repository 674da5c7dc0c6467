//! Serde deserializer from nodes to Rust types that keeps the position of every error.

use super::loose_list::bracketed;
use super::node::{Kind, Node};
use crate::Diagnostic;
use crate::expr::{nearest_or_all, suggest};
use serde::de::value::SeqDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer as _, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt;
use std::ops::Range;

/// A value with its source bytes.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(rename = "$tuner::Spanned")]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) at: Range<usize>,
}

/// Type name by which `Spanned` requests its position from the deserializer.
const SPANNED: &str = "$tuner::Spanned";

/// Deserializes a node.
pub(super) fn from_node<'de, T: serde::Deserialize<'de>>(
    node: &'de Node,
    source: &'de str,
) -> Result<T, Diagnostic> {
    T::deserialize(Reader { node, source }).map_err(|error| placed(error, node))
}

/// Adds the node's position to an error without one.
fn placed(mut error: Diagnostic, node: &Node) -> Diagnostic {
    error.at.get_or_insert_with(|| node.span());
    error
}

// Errors are created without a position; the reader of the node adds it.
impl de::Error for Diagnostic {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::of_file(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let (expected, help) = describe_expected(&expected.to_string(), &unexpected);
        Self {
            help,
            ..Self::of_file(format!(
                "expected {expected}, found {}",
                describe_unexpected(unexpected)
            ))
        }
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Self::of_file(format!("expected {expected}, found {length} elements"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let error = Self::of_file(format!("`{variant}` is none of {}", expected.join(", ")));
        error.help(match suggest(variant, expected.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write one of these".to_owned(),
        })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::of_file(format!("unknown key `{field}`")).help(match field {
            "<<" => "YAML 1.2 has no merge keys: write the entries out".to_owned(),
            _ => nearest_or_all(field, expected, "the keys here are"),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::of_file(format!("the key `{field}` is missing")).help(format!("add `{field}: …`"))
    }
}

/// Translates serde's expected type into the terms of the file format, with a suggestion.
fn describe_expected(expected: &str, unexpected: &Unexpected<'_>) -> (String, Option<String>) {
    let (plain, help) = match expected {
        // Of a scalar the reader, which has the source, shows the elements.
        "a sequence" => ("a list", "write `[…]`"),
        "a string" => ("text", "put it in quotes"),
        "a boolean" => ("true or false", "write `true` or `false`, without quotes"),
        "u64" => (
            "a whole number",
            "write it without quotes and without a sign",
        ),
        "f64" => return ("a number".to_owned(), Some(number_help(unexpected))),
        "a map" | "a mapping from names" => ("a mapping from names", "write `{ NAME: … }`"),
        _ => return (expected.to_owned(), None),
    };
    (plain.to_owned(), Some(help.to_owned()))
}

/// Returns the fix for a value that must be a number.
fn number_help(unexpected: &Unexpected<'_>) -> String {
    let Unexpected::Str(text) = unexpected else {
        return "write a number such as 0.5".to_owned();
    };
    let percent = text.trim().strip_suffix('%');
    // In decimal, so that 0.7 % is 0.007; a tolerance has no sign.
    let share =
        percent.map(|number| format!("{}e-2", number.trim().trim_start_matches(['-', '+'])));
    let share = share.and_then(|share| share.parse::<f64>().ok());
    match share {
        Some(share) => format!("write a share of 1: {share}"),
        None if text.trim().parse::<f64>().is_ok() => "write it without quotes".to_owned(),
        None => "write a number such as 0.5".to_owned(),
    }
}

fn describe_unexpected(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Bool(value) => format!("the boolean {value}"),
        Unexpected::Signed(value) => format!("the integer {value}"),
        Unexpected::Unsigned(value) => format!("the integer {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Str(value) => format!("the text \"{value}\""),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}

#[derive(Clone, Copy)]
struct Reader<'de> {
    node: &'de Node,
    source: &'de str,
}

impl<'de> Reader<'de> {
    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match &self.node.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Int(value) => visitor.visit_i64(*value),
            Kind::Large(value) => visitor.visit_u64(*value),
            Kind::Float(value) => visitor.visit_f64(*value),
            Kind::Text(value) => visitor.visit_borrowed_str(value),
            Kind::List(items) => visitor.visit_seq(Items {
                items: items.iter(),
                source: self.source,
            }),
            Kind::Map(entries) => visitor.visit_map(Entries {
                entries: entries.iter(),
                value: None,
                source: self.source,
            }),
        }
    }

    /// Returns a scalar as a name.
    fn name(self, node: &'de Node) -> &'de str {
        match &node.kind {
            Kind::Text(value) => value,
            _ => self.source.get(node.span()).unwrap_or_default(),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Diagnostic;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.any(visitor).map_err(|error| placed(error, self.node))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        match self.node.kind {
            Kind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
        .map_err(|error| placed(error, self.node))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        let read = self.deserialize_any(visitor);
        match &self.node.kind {
            Kind::Null | Kind::List(_) | Kind::Map(_) => read,
            scalar => read.map_err(|error| {
                let text = match scalar {
                    Kind::Text(text) => Some(&**text),
                    _ => None,
                };
                let list = bracketed(text, self.node.span(), self.source);
                error.help(format!("write `{list}`"))
            }),
        }
    }

    /// Reads an enumeration: always a single word in this format.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        let result = match &self.node.kind {
            Kind::Text(value) => visitor.visit_enum((&**value).into_deserializer()),
            Kind::Map(entries) => match &entries[..] {
                [(key, value)] => {
                    let read = visitor.visit_enum(self.name(key).into_deserializer());
                    let read = read.map_err(|error| placed(error, key))?;
                    match value.kind {
                        Kind::Null => Ok(read),
                        _ => Err(Diagnostic::new(
                            "this takes no value: write its name alone",
                            value.span(),
                        )),
                    }
                }
                _ => Err(Diagnostic::of_file(format!(
                    "expected one key here, found {}",
                    entries.len()
                ))),
            },
            _ => self.any(visitor),
        };
        result.map_err(|error| placed(error, self.node))
    }

    /// Reads a struct from a mapping only: derived types would also accept a list of fields.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        match &self.node.kind {
            // The derived reader of `Spanned` takes its two fields, value and place, as a sequence.
            _ if name == SPANNED => visitor.visit_seq(SpannedAccess {
                reader: self,
                is_read: false,
            }),
            Kind::Map(_) => self.deserialize_any(visitor),
            other => {
                let message = format!("expected a mapping of keys, found {}", other.name());
                let error = Diagnostic::new(message, self.node.span());
                Err(error.help(format!("the keys here are {}", fields.join(", "))))
            }
        }
    }

    /// Reads a key as a name even if it looks like a number.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        let result = visitor.visit_borrowed_str(self.name(self.node));
        result.map_err(|error: Diagnostic| placed(error, self.node))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct tuple tuple_struct map ignored_any
    }
}

struct Items<'de> {
    items: std::slice::Iter<'de, Node>,
    source: &'de str,
}

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = Diagnostic;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Diagnostic> {
        let source = self.source;
        self.items
            .next()
            .map(|node| seed.deserialize(Reader { node, source }))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'de> {
    entries: std::slice::Iter<'de, (Node, Node)>,
    value: Option<&'de Node>,
    source: &'de str,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = Diagnostic;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Diagnostic> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let source = self.source;
        let read = seed.deserialize(Reader { node: key, source }).map(Some);
        read.map_err(|mut error| {
            let colon = source[key.span().end..].trim_start().starts_with(':');
            if matches!(value.kind, Kind::Null) && !colon {
                let help = "a comma ends unquoted text inside { }: put the whole text in quotes";
                error.help = Some(help.to_owned());
            }
            error
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Diagnostic> {
        let source = self.source;
        match self.value.take() {
            Some(node) => seed.deserialize(Reader { node, source }),
            None => Err(Diagnostic::of_file("a value was asked for before its key")),
        }
    }
}

/// Access to a node's value and position for `Spanned`.
struct SpannedAccess<'de> {
    reader: Reader<'de>,
    is_read: bool,
}

impl<'de> de::SeqAccess<'de> for SpannedAccess<'de> {
    type Error = Diagnostic;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Diagnostic> {
        if !std::mem::replace(&mut self.is_read, true) {
            return seed.deserialize(self.reader).map(Some);
        }
        let span = self.reader.node.span();
        let bounds = SeqDeserializer::new([span.start, span.end].into_iter());
        seed.deserialize(bounds).map(Some)
    }
}
