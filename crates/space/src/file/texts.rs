//! Values with more than one written form: types, values, the reference.

use super::de::Spanned;
use super::fills::FillText;
use super::forms::{Forms, forms};
use super::schema::{Formula, FormulaText, Ordered, ReferenceText};
use super::vocabulary::{ElementType, schema};
use crate::{Sizes, suggest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, MapAccess, SeqAccess, Unexpected};
use std::borrow::Cow;
use std::collections::HashSet;

/// A type: its name, or the fields of a struct.
#[derive(Debug, Clone)]
pub(super) enum TypeText {
    /// `f32`, `float4`, …
    Name(String),
    /// `{ x: f32, n: i32 }`.
    Fields(Ordered<Spanned<FieldText>>),
}

impl Forms for TypeText {
    const EXPECTED: &'static str = "a type such as f32 or float4, or the fields of a struct";

    fn word<E: de::Error>(name: &str) -> Result<Self, E> {
        Ok(Self::Name(name.to_owned()))
    }

    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Ordered::deserialize(MapAccessDeserializer::new(map)).map(Self::Fields)
    }
}

forms!(TypeText);

schema!(TypeText, "Type", generator => {
    let fields = generator.subschema_for::<Ordered<Spanned<FieldText>>>();
    let names = generator.subschema_for::<ElementType>();
    json_schema!({
        "anyOf": [names, fields],
        "description": "A number, a vector of CUDA, or a struct by its fields in their order.",
    })
});

/// A field of a struct: its type, optionally with a fill.
#[derive(Debug, Clone)]
pub(super) enum FieldText {
    /// Only its type, at the position of the field.
    Short(String),
    /// Type and fill.
    Long(Box<FilledText>),
}

/// The long form.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilledText {
    #[serde(rename = "type")]
    pub(super) ty: Spanned<String>,
    pub(super) fill: Option<Spanned<FillText>>,
}

impl Forms for FieldText {
    const EXPECTED: &'static str = "a type such as f32, float4 or f32[8]";

    fn word<E: de::Error>(name: &str) -> Result<Self, E> {
        Ok(Self::Short(name.to_owned()))
    }

    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Self::Long)
    }
}

forms!(FieldText);

schema!(FieldText, "FieldType", generator => {
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
});

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

impl Forms for ValueText {
    const EXPECTED: &'static str = "an expression (text or a number)";

    fn word<E: de::Error>(value: &str) -> Result<Self, E> {
        Ok(Self::One(FormulaText(value.to_owned())))
    }

    fn number<E: de::Error>(value: String, _: Unexpected<'_>) -> Result<Self, E> {
        Ok(Self::One(FormulaText(value)))
    }

    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Self::Many)
    }

    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Ordered::deserialize(MapAccessDeserializer::new(map)).map(Self::Fields)
    }
}

forms!(ValueText);

schema!(ValueText, "ScalarValue", generator => {
    let one = generator.subschema_for::<FormulaText>();
    json_schema!({
        "description": "An expression: a list for a vector, one for each field of a struct.",
        "anyOf": [
            one,
            { "type": "array", "items": one },
            { "type": "object" },
        ],
    })
});

/// Passing of sizes to the kernel: a word, or the names of those that are arguments.
#[derive(Debug)]
pub(super) enum SizesText {
    /// All sizes in the same way.
    All(Sizes),
    /// These are arguments, the others macros.
    Arguments(Vec<Spanned<String>>),
}

impl Forms for SizesText {
    const EXPECTED: &'static str = "macro, argument, or a list of the sizes that are arguments";

    fn word<E: de::Error>(word: &str) -> Result<Self, E> {
        match word {
            "macro" => Ok(Self::All(Sizes::Macro)),
            "argument" => Ok(Self::All(Sizes::Argument)),
            other => match suggest(other, ["macro", "argument"].into_iter()) {
                Some(near) => Err(E::custom(format_args!(
                    "`{other}` is not a valid value of `sizes`; did you mean `{near}`?"
                ))),
                None => Err(E::invalid_value(Unexpected::Str(other), &Self::EXPECTED)),
            },
        }
    }

    fn list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Self::Arguments)
    }
}

forms!(SizesText);

schema!(SizesText, "Sizes", _generator => {
    json_schema!({
        "description": "Passing of a problem's sizes to a kernel.",
        "oneOf": [
            { "type": "string", "const": "macro", "description": "All sizes as macros." },
            { "type": "string", "const": "argument", "description": "All sizes as \
                scalar arguments: none is a macro, and one compilation serves all problems." },
            { "type": "array", "items": { "type": "string" }, "description": "The listed sizes \
                as scalar arguments, the others as macros: one compilation serves all problems \
                with equal macros." },
        ],
    })
});

/// A reference, or the word `none`.
#[derive(Debug)]
pub(super) enum ReferenceWord {
    /// No comparison.
    None,
    /// A reference.
    Some(Box<ReferenceText>),
}

impl Forms for ReferenceWord {
    const EXPECTED: &'static str =
        "a mapping with `oracle`, `source` or `values`, or the word none";

    fn word<E: de::Error>(word: &str) -> Result<Self, E> {
        match word {
            "none" => Ok(Self::None),
            other => Err(E::invalid_value(Unexpected::Str(other), &Self::EXPECTED)),
        }
    }

    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let text = ReferenceText::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Self::Some(Box::new(text)))
    }
}

forms!(ReferenceWord);

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

/// Returns the fix of a scalar argument without a value, which may stand for a size.
pub(super) fn value_help(
    name: &str,
    sizes: &HashSet<String>,
    macro_sizes: &HashSet<String>,
) -> String {
    if macro_sizes.contains(name) {
        return format!(
            "`{name}` is a size and a macro: add `sizes: argument` to pass sizes as arguments, or \
             `value: {name}`"
        );
    }
    let mut known: Vec<&str> = sizes.union(macro_sizes).map(String::as_str).collect();
    known.sort_unstable();
    let same = known.iter().find(|size| size.eq_ignore_ascii_case(name));
    let near = same
        .copied()
        .or_else(|| suggest(name, known.iter().copied()));
    match (near, &known[..]) {
        (Some(size), _) | (None, &[size]) => {
            format!("add `value: …`; to pass the size `{size}`, `value: {size}`")
        }
        (None, []) => "add `value: …`".to_owned(),
        (None, sizes) => format!(
            "add `value: …`; to pass a size, its name: the sizes are {}",
            sizes.join(", ")
        ),
    }
}
