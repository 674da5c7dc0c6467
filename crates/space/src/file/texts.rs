//! What may be written in more than one way: types, values, the reference.

use super::de::Spanned;
use super::fills::FillText;
use super::schema::{Formula, FormulaText, Ordered, ReferenceText};
use super::vocabulary::ElementType;
use crate::{Sizes, suggest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A type: its name, or the fields of a struct.
#[derive(Debug, Clone)]
pub(super) enum TypeText {
    /// `f32`, `float4`, …
    Name(String),
    /// `{ x: f32, n: i32 }`.
    Fields(Ordered<FieldText>),
}

impl<'de> Deserialize<'de> for TypeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = TypeText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a type such as f32 or float4, or the fields of a struct")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<TypeText, E> {
                Ok(TypeText::Name(name.to_owned()))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TypeText, A::Error> {
                let map = de::value::MapAccessDeserializer::new(map);
                Ordered::deserialize(map).map(TypeText::Fields)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for TypeText {
    fn schema_name() -> Cow<'static, str> {
        "Type".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fields = generator.subschema_for::<Ordered<FieldText>>();
        let names = generator.subschema_for::<ElementType>();
        json_schema!({
            "anyOf": [names, fields],
            "description": "A number, a vector of CUDA, or a struct by its fields in their order.",
        })
    }
}

/// A field of a struct: its type, and what it is filled with.
#[derive(Debug, Clone)]
pub(super) struct FieldText {
    pub(super) ty: Spanned<String>,
    pub(super) fill: Option<Spanned<FillText>>,
}

impl<'de> Deserialize<'de> for FieldText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The long form.
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Long {
            #[serde(rename = "type")]
            ty: Spanned<String>,
            fill: Option<Spanned<FillText>>,
        }

        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = (Option<String>, Option<FieldText>);

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a type such as f32, float4 or f32[8]")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok((Some(name.to_owned()), None))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let Long { ty, fill } =
                    Long::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok((None, Some(FieldText { ty, fill })))
            }
        }

        struct Word(<Either as Visitor<'static>>::Value);

        impl<'de> Deserialize<'de> for Word {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Either).map(Word)
            }
        }

        let read = Spanned::<Word>::deserialize(deserializer)?;
        Ok(match read.value.0 {
            (_, Some(field)) => field,
            (name, None) => Self {
                ty: Spanned {
                    value: name.unwrap_or_default(),
                    at: read.at,
                },
                fill: None,
            },
        })
    }
}

impl JsonSchema for FieldText {
    fn schema_name() -> Cow<'static, str> {
        "FieldType".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fill = generator.subschema_for::<FillText>();
        json_schema!({
            "description": "A type such as f32, float4, f32[8] or pointer.",
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "type": { "type": "string" }, "fill": fill },
                    "required": ["type"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// A value: one expression, several, or one for each field of a struct.
#[derive(Debug, Clone)]
pub(super) enum ValueText {
    /// One.
    One(FormulaText),
    /// A list.
    Many(Vec<Formula>),
    /// By field.
    Fields(Ordered<Spanned<ValueText>>),
}

impl<'de> Deserialize<'de> for ValueText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = ValueText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an expression (text or a number)")
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<ValueText, E> {
                Ok(ValueText::One(FormulaText(value.to_string())))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<ValueText, E> {
                Ok(ValueText::One(FormulaText(value.to_string())))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<ValueText, E> {
                Ok(ValueText::One(FormulaText(format!("{value:?}"))))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<ValueText, E> {
                Ok(ValueText::One(FormulaText(value.to_owned())))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<ValueText, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(ValueText::Many(values))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<ValueText, A::Error> {
                let map = de::value::MapAccessDeserializer::new(map);
                Ordered::deserialize(map).map(ValueText::Fields)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for ValueText {
    fn schema_name() -> Cow<'static, str> {
        "ScalarValue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<FormulaText>();
        json_schema!({
            "description": "An expression; of a vector a list, of a struct one for each field.",
            "anyOf": [
                one,
                { "type": "array", "items": one },
                { "type": "object" },
            ],
        })
    }
}

/// How the kernel is told the sizes: a word, or the names of those that are arguments.
#[derive(Debug)]
pub(super) enum SizesText {
    /// All in the same way.
    All(Sizes),
    /// These are arguments, the others macros.
    Arguments(Vec<Spanned<String>>),
}

impl<'de> Deserialize<'de> for SizesText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = SizesText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("macro, argument, or a list of the sizes that are arguments")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<SizesText, E> {
                match word {
                    "macro" => Ok(SizesText::All(Sizes::Macro)),
                    "argument" => Ok(SizesText::All(Sizes::Argument)),
                    other => match suggest(other, ["macro", "argument"].into_iter()) {
                        Some(near) => Err(E::custom(format_args!(
                            "`{other}` is no way to tell sizes; did you mean `{near}`?"
                        ))),
                        None => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                    },
                }
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<SizesText, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(SizesText::Arguments(names))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for SizesText {
    fn schema_name() -> Cow<'static, str> {
        "Sizes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How a kernel is told the sizes of its problem.",
            "oneOf": [
                { "type": "string", "const": "macro", "description": "As macros." },
                { "type": "string", "const": "argument", "description": "As scalar arguments: no \
                    macro has their names, and one compilation serves all problems." },
                { "type": "array", "items": { "type": "string" }, "description": "Those of the list \
                    as scalar arguments, the others as macros: one compilation serves all problems \
                    in which the others are equal." },
            ],
        })
    }
}

/// A reference, or the word `none`.
#[derive(Debug)]
pub(super) enum ReferenceWord {
    /// Nothing is compared.
    None,
    /// A reference.
    Some(Box<ReferenceText>),
}

impl<'de> Deserialize<'de> for ReferenceWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = ReferenceWord;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping with `oracle` or `source`, or the word none")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<ReferenceWord, E> {
                match word {
                    "none" => Ok(ReferenceWord::None),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<ReferenceWord, A::Error> {
                let map = de::value::MapAccessDeserializer::new(map);
                let text = ReferenceText::deserialize(map)?;
                Ok(ReferenceWord::Some(Box::new(text)))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for ReferenceWord {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Reference".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let reference = generator.subschema_for::<ReferenceText>();
        json_schema!({
            "oneOf": [
                { "type": "string", "const": "none", "description": "Results are not compared: hazards only." },
                reference,
            ],
        })
    }
}
