//! From nodes to Rust types through serde, with the place of every error.

use super::node::{Kind, Node};
use crate::Diagnostic;
use crate::expr::suggest;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer as _, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// A value with the bytes it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) at: Range<usize>,
}

/// The name under which `Spanned` asks the deserializer for its place.
const SPANNED: &str = "$tuner::Spanned";

/// Reads a node as a type.
pub(super) fn from_node<'de, T: serde::Deserialize<'de>>(
    node: &'de Node,
    source: &'de str,
) -> Result<T, Diagnostic> {
    T::deserialize(Reader { node, source }).map_err(|error| Diagnostic {
        message: error.message,
        help: error.help,
        at: Some(error.at.unwrap_or_else(|| node.span())),
    })
}

#[derive(Debug)]
pub(super) struct Error {
    message: String,
    help: Option<String>,
    at: Option<Range<usize>>,
}

impl Error {
    fn new(message: String) -> Self {
        Self {
            message,
            help: None,
            at: None,
        }
    }

    fn at(mut self, node: &Node) -> Self {
        self.at.get_or_insert_with(|| node.span());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn names(names: &[&str]) -> String {
    names.join(", ")
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let (expected, help) = wanted(&expected.to_string(), &unexpected);
        Self {
            message: format!("expected {expected}, found {}", found(unexpected)),
            help,
            at: None,
        }
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Self::new(format!("expected {expected}, found {length} elements"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let near = suggest(variant, expected.iter().copied());
        Self {
            message: format!("`{variant}` is none of {}", names(expected)),
            help: Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write one of these".to_owned(),
            }),
            at: None,
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let help = match suggest(field, expected.iter().copied()) {
            _ if field == "<<" => "YAML 1.2 has no merge keys: write the entries out".to_owned(),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys here are {}", names(expected)),
        };
        Self {
            message: format!("unknown key `{field}`"),
            help: Some(help),
            at: None,
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            message: format!("the key `{field}` is missing"),
            help: Some(format!("add `{field}: …`")),
            at: None,
        }
    }
}

/// What serde calls the expected type in the words of a file's author, and what to type.
fn wanted(expected: &str, unexpected: &Unexpected<'_>) -> (String, Option<String>) {
    let (plain, help) = match expected {
        "a sequence" => {
            let shown = match unexpected {
                Unexpected::Str(text) => (*text).to_owned(),
                Unexpected::Signed(number) => number.to_string(),
                Unexpected::Float(number) => format!("{number:?}"),
                _ => "…".to_owned(),
            };
            return ("a list".to_owned(), Some(format!("write `[{shown}]`")));
        }
        "a string" => ("text", "put it in quotes"),
        "a boolean" => ("true or false", "write `true` or `false`, without quotes"),
        "u64" => (
            "a whole number",
            "write it without quotes and without a sign",
        ),
        "f64" => ("a number", "write it without quotes"),
        "a map" | "a mapping from names" => ("a mapping from names", "write `{ NAME: … }`"),
        _ => return (expected.to_owned(), None),
    };
    (plain.to_owned(), Some(help.to_owned()))
}

fn found(unexpected: Unexpected<'_>) -> String {
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
    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Int(value) => visitor.visit_i64(*value),
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
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.any(visitor).map_err(|error| error.at(self.node))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.kind {
            Kind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
        .map_err(|error| error.at(self.node))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == SPANNED {
            let span = self.node.span();
            let place = Place {
                fields: [span.start, span.end].into_iter(),
                reader: Some(self),
            };
            return visitor.visit_seq(place);
        }
        visitor
            .visit_newtype_struct(self)
            .map_err(|error| error.at(self.node))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let result = match &self.node.kind {
            Kind::Text(value) => visitor.visit_enum((&**value).into_deserializer()),
            Kind::Map(entries) => match &entries[..] {
                [(key, value)] => visitor.visit_enum(Variant {
                    key,
                    value,
                    source: self.source,
                }),
                _ => Err(Error::new(format!(
                    "expected one key here, found {}",
                    entries.len()
                ))),
            },
            _ => self.any(visitor),
        };
        result.map_err(|error| error.at(self.node))
    }

    /// Derived types would take a list as their fields in order; a file names its keys.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.node.kind {
            Kind::Map(_) => self.deserialize_any(visitor),
            other => Err(Error {
                message: format!("expected a mapping of keys, found {}", other.name()),
                help: Some(format!("the keys here are {}", names(fields))),
                at: Some(self.node.span()),
            }),
        }
    }

    /// A key may look like a number; it is a name all the same.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result: Result<V::Value, Error> = match &self.node.kind {
            Kind::Text(value) => visitor.visit_borrowed_str(value),
            _ => visitor.visit_str(self.source.get(self.node.span()).unwrap_or_default()),
        };
        result.map_err(|error| error.at(self.node))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map ignored_any
    }
}

struct Items<'de> {
    items: std::slice::Iter<'de, Node>,
    source: &'de str,
}

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
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
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
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

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let source = self.source;
        match self.value.take() {
            Some(node) => seed.deserialize(Reader { node, source }),
            None => Err(Error::new(
                "a value was asked for before its key".to_owned(),
            )),
        }
    }
}

struct Variant<'de> {
    key: &'de Node,
    value: &'de Node,
    source: &'de str,
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Reader<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Reader<'de>), Error> {
        let reader = |node| Reader {
            node,
            source: self.source,
        };
        Ok((seed.deserialize(reader(self.key))?, reader(self.value)))
    }
}

impl<'de> de::VariantAccess<'de> for Reader<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.node.kind {
            Kind::Null => Ok(()),
            _ => Err(
                Error::new("this takes no value: write its name alone".to_owned()).at(self.node),
            ),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}

/// Start, end and value, as `Spanned` reads them.
struct Place<'de> {
    fields: std::array::IntoIter<usize, 2>,
    reader: Option<Reader<'de>>,
}

impl<'de> de::SeqAccess<'de> for Place<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        match (self.fields.next(), self.reader) {
            (Some(bound), _) => seed.deserialize(bound.into_deserializer()).map(Some),
            (None, Some(reader)) => {
                self.reader = None;
                seed.deserialize(reader).map(Some)
            }
            (None, None) => Ok(None),
        }
    }
}

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts<T>(PhantomData<T>);

        impl<'de, T: serde::Deserialize<'de>> Visitor<'de> for Parts<T> {
            type Value = Spanned<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its place")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(
                self,
                mut parts: A,
            ) -> Result<Spanned<T>, A::Error> {
                let missing = || de::Error::custom("a value without its place");
                let start = parts.next_element()?.ok_or_else(missing)?;
                let end = parts.next_element()?.ok_or_else(missing)?;
                let value = parts.next_element()?.ok_or_else(missing)?;
                Ok(Spanned {
                    value,
                    at: start..end,
                })
            }
        }

        deserializer.deserialize_newtype_struct(SPANNED, Parts(PhantomData))
    }
}
