//! Types of arguments: numbers, CUDA's vectors, and structs by their fields.

use super::check::Checker;
use super::de::Spanned;
use super::fills::FillText;
use super::schema::{ArgumentText, Formula, FormulaText, Ordered};
use super::texts::{FieldText, TypeText, ValueText};
use crate::expr::{nearest_or_all, suggest};
use crate::{Argument, Expr, Piece, PieceValue, Record, RecordField};
use std::ops::Range;
use tuner_core::element::{Element, PAIRS, VECTORS, vector_type};
use tuner_core::fill::Fill;
use tuner_core::plan::Role;

/// A resolved type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    pub(super) element: Element,
    pub(super) lanes: u32,
    pub(super) record: Option<Record>,
}

/// Consecutive numbers of a scalar.
struct NumberLayout {
    element: Element,
    count: u64,
    /// Offset of the first number, bytes.
    offset: u64,
}

/// Maximum number of numbers in a field.
const MAX_FIELD: u64 = 1 << 16;

/// Returns a number or vector type by its name, with its lanes.
pub(super) fn plain(name: &str) -> Option<(Element, u32)> {
    if let Ok(element) = name.parse() {
        return Some((element, 1));
    }
    vector_type(name)
}

/// Returns the names of all types, for messages and editors.
pub(super) fn names() -> Vec<String> {
    let mut names: Vec<String> = Element::ALL.iter().map(ToString::to_string).collect();
    for (name, _) in VECTORS {
        names.extend((1..=4).map(|lanes| format!("{name}{lanes}")));
    }
    names.extend(PAIRS.iter().map(|(name, _)| (*name).to_owned()));
    names.push(super::maps::TYPE.to_owned());
    names
}

/// Returns CUDA's alignment of a vector with this number of lanes.
fn alignment(element: Element, lanes: u32) -> u64 {
    let size = element.size() as u64;
    match lanes {
        2 | 4 => (size * u64::from(lanes)).min(16),
        // CUDA aligns three lanes like one: `float3` has 12 bytes and alignment 4.
        _ => size,
    }
}

impl Checker<'_> {
    /// Reports whether the kernel may take the buffer as elements of another type.
    pub(super) fn any_type(&mut self, text: &ArgumentText) -> bool {
        let Some(given) = &text.any_type else {
            return false;
        };
        if text.role.value == Role::Scalar {
            let message = format!("the scalar `{}` has `any_type`", text.name.value);
            let help = "remove it: a scalar is passed as its type";
            self.error(message, given.at.clone(), help);
        }
        given.value
    }

    /// Resolves a type's text; reports an invalid one.
    pub(super) fn resolve_type(&mut self, text: &Spanned<TypeText>) -> Option<Resolved> {
        match &text.value {
            TypeText::Name(name) => {
                let (element, lanes) = self.named_type(name, &text.at)?;
                Some(Resolved {
                    element,
                    lanes,
                    record: None,
                })
            }
            TypeText::Fields(fields) => Some(Resolved {
                element: Element::U8,
                lanes: 1,
                record: Some(self.record(fields, &text.at)?),
            }),
        }
    }

    fn named_type(&mut self, name: &str, at: &Range<usize>) -> Option<(Element, u32)> {
        let found = plain(name);
        if found.is_none() {
            let known = names();
            let lower = name.to_lowercase();
            let texture = ["texture", "surface", "tex", "surf"];
            let help = if texture.iter().any(|word| lower.contains(word)) {
                "textures and surfaces are not supported: pass the data as a buffer, and read it by \
                 a pointer in the kernel"
                    .to_owned()
            } else if let Some(number) = cpp_number(name) {
                format!("write `{number}`")
            } else if let Some(near) = suggest(name, known.iter().map(String::as_str)) {
                format!("did you mean `{near}`?")
            } else {
                "a struct is written by its fields: `type: { x: f32, n: i32 }`".to_owned()
            };
            let words: Vec<&str> = Element::ALL.iter().map(|it| it.name()).collect();
            self.error(
                format!(
                    "`{name}` is none of {}, nor a vector such as float4",
                    words.join(", ")
                ),
                at.clone(),
                help,
            );
        }
        found
    }

    /// Places fields at their C++ offsets.
    fn record(
        &mut self,
        fields: &Ordered<Spanned<FieldText>>,
        at: &Range<usize>,
    ) -> Option<Record> {
        let mut record = Record {
            size: 0,
            fields: Vec::new(),
        };
        let (mut largest, mut sound) = (1, true);
        for (name, text) in &fields.0 {
            let (word, at, fill) = match &text.value {
                FieldText::Short(word) => (word, &text.at, None),
                FieldText::Long(text) => (&text.ty.value, &text.ty.at, text.fill.as_ref()),
            };
            let Some((ty, lanes, repeats)) = self.field_type(word.trim(), at) else {
                sound = false;
                continue;
            };
            let pointer = ty.is_none();
            let element = ty.unwrap_or(Element::U64);
            let align = alignment(element, lanes);
            let offset = record.size.next_multiple_of(align);
            let count = u64::from(lanes) * repeats;
            record.size = offset + count * element.size() as u64;
            largest = largest.max(align);
            // A field whose name begins with `_` is padding.
            if name.value.starts_with('_') {
                continue;
            }
            let fill = match fill {
                Some(fill) => self.field_fill(&name.value, fill, element)?,
                None => Fill::default_for(element),
            };
            record.fields.push(RecordField {
                name: name.value.clone(),
                ty: element,
                count,
                offset,
                pointer,
                fill,
            });
        }
        // As in C++ a struct ends at a multiple of its alignment, so that arrays of it stay
        // aligned.
        record.size = record.size.next_multiple_of(largest);
        if record.fields.is_empty() && sound {
            let help = "write them in the order of the struct: `type: { x: f32, n: i32 }`";
            self.error("the struct has no fields", at.clone(), help);
            return None;
        }
        sound.then_some(record)
    }

    /// Parses the element (`None` for a pointer), lanes and repeats of a field: `f32`, `float4`, `f32[8]`.
    fn field_type(&mut self, word: &str, at: &Range<usize>) -> Option<(Option<Element>, u32, u64)> {
        let (name, repeats) = match word.strip_suffix(']').and_then(|it| it.split_once('[')) {
            None => (word, 1),
            Some((name, count)) => match count.trim().parse() {
                Ok(count) if (1..=MAX_FIELD).contains(&count) => (name.trim(), count),
                _ => {
                    let message = format!("`{count}` is not a number of elements");
                    self.error(message, at.clone(), "write a whole number: `f32[8]`");
                    return None;
                }
            },
        };
        if name == "pointer" {
            return Some((None, 1, repeats));
        }
        let (element, lanes) = self.named_type(name, at)?;
        Some((Some(element), lanes, repeats))
    }

    fn field_fill(
        &mut self,
        name: &str,
        text: &Spanned<FillText>,
        element: Element,
    ) -> Option<Fill> {
        let (fill, sizes) = self.fill(name, text, element)?;
        if !sizes.is_empty() || matches!(fill, Fill::File(_) | Fill::Kernel(_)) {
            self.error(
                format!("the field `{name}` cannot be filled so"),
                text.at.clone(),
                "fill fields by a rule of numbers such as arange; a file, a kernel and a graph fill \
                 whole buffers",
            );
            return None;
        }
        Some(fill)
    }

    /// Builds the pieces of a scalar that consists of several numbers.
    pub(super) fn pieces(
        &mut self,
        name: &str,
        ty: &Resolved,
        value: Spanned<ValueText>,
        arguments: &[Argument],
    ) -> Vec<Piece> {
        let Some(record) = &ty.record else {
            let numbers = NumberLayout {
                element: ty.element,
                count: u64::from(ty.lanes),
                offset: 0,
            };
            return self.vector(name, numbers, value);
        };
        let at = value.at.clone();
        let ValueText::Fields(given) = value.value else {
            let names: Vec<String> = record
                .fields
                .iter()
                .map(|it| format!("{}: …", it.name))
                .collect();
            let message = format!("`{name}` is a struct, whose value is one for each field");
            self.error(
                message,
                at,
                format!("write `value: {{ {} }}`", names.join(", ")),
            );
            return Vec::new();
        };
        let mut pieces = Vec::new();
        for (field, _) in &given.0 {
            if !record.fields.iter().any(|known| known.name == field.value) {
                let names: Vec<&str> = record.fields.iter().map(|it| &*it.name).collect();
                self.error(
                    format!("the struct `{name}` has no field `{}`", field.value),
                    field.at.clone(),
                    nearest_or_all(&field.value, &names, "its fields are"),
                );
            }
        }
        for field in &record.fields {
            let found = given.0.iter().find(|(known, _)| known.value == field.name);
            let Some((_, value)) = found else {
                let message = format!("the field `{}` of `{name}` has no value", field.name);
                self.error(message, at.clone(), format!("add `{}: …`", field.name));
                continue;
            };
            let name = format!("{name}.{}", field.name);
            if field.pointer {
                pieces.extend(self.address(&name, field.offset, value, arguments));
            } else {
                let numbers = NumberLayout {
                    element: field.ty,
                    count: field.count,
                    offset: field.offset,
                };
                pieces.extend(self.vector(&name, numbers, value.clone()));
            }
        }
        pieces
    }

    /// Builds consecutive numbers; a single expression applies to all of them.
    fn vector(
        &mut self,
        name: &str,
        numbers: NumberLayout,
        value: Spanned<ValueText>,
    ) -> Vec<Piece> {
        let NumberLayout {
            element,
            count,
            offset,
        } = numbers;
        let at = value.at.clone();
        let given: Vec<Formula> = match value.value {
            ValueText::One(text) => vec![Spanned {
                value: text,
                at: at.clone(),
            }],
            ValueText::Many(list) => list,
            ValueText::Fields(_) => {
                let message = format!("`{name}` is not a struct");
                self.error(message, at, "write one expression, or a list of them");
                return Vec::new();
            }
        };
        if given.len() as u64 != count && given.len() != 1 {
            self.error(
                format!("`{name}` takes {count} numbers, and gets {}", given.len()),
                at,
                "write one for each, or one for all",
            );
            return Vec::new();
        }
        let parsed: Vec<Expr> = given
            .into_iter()
            .filter_map(|each| self.formula(each))
            .collect();
        let numbers = parsed
            .iter()
            .cycle()
            .take(usize::try_from(count).unwrap_or(0));
        let size = element.size() as u64;
        (0..)
            .zip(numbers)
            .map(|(index, expr)| Piece {
                offset: offset + index * size,
                ty: element,
                value: PieceValue::Number(expr.clone()),
            })
            .collect()
    }

    /// Builds the address of an argument.
    fn address(
        &mut self,
        name: &str,
        offset: u64,
        value: &Spanned<ValueText>,
        arguments: &[Argument],
    ) -> Option<Piece> {
        let ValueText::One(FormulaText(to)) = &value.value else {
            let message = format!("`{name}` is a pointer, and points to one argument");
            self.error(message, value.at.clone(), "write the name of a buffer");
            return None;
        };
        let index = self.pointed(name, to, &value.at, arguments)?;
        Some(Piece {
            offset,
            ty: Element::U64,
            value: PieceValue::Address(index),
        })
    }

    /// Returns the buffer that a pointer refers to.
    pub(super) fn pointed(
        &mut self,
        name: &str,
        to: &str,
        at: &Range<usize>,
        arguments: &[Argument],
    ) -> Option<usize> {
        let found = arguments.iter().position(|argument| argument.name == to);
        if let Some(index) = found.filter(|index| {
            let argument = arguments.get(*index);
            argument.is_some_and(|argument| argument.role != Role::Scalar)
        }) {
            return Some(index);
        }
        let buffers = arguments.iter().filter(|it| it.role != Role::Scalar);
        let names: Vec<&str> = buffers.map(|it| &*it.name).collect();
        self.error(
            format!("`{name}` points to `{to}`, which is not a buffer declared before it"),
            at.clone(),
            match names.is_empty() {
                true => "declare the buffer above it".to_owned(),
                false => nearest_or_all(to, &names, "the buffers above it are"),
            },
        );
        None
    }
}

/// Returns the element type for a C++ type name, or for a name of other languages and headers.
fn cpp_number(name: &str) -> Option<Element> {
    let informal = match name {
        "float32" => Element::F32,
        "float64" => Element::F64,
        "float16" | "fp16" => Element::F16,
        "bfloat16" => Element::Bf16,
        "int8" => Element::I8,
        "uint8" | "byte" => Element::U8,
        "int16" => Element::I16,
        "uint16" => Element::U16,
        "int32" => Element::I32,
        "uint32" => Element::U32,
        "int64" | "ptrdiff_t" => Element::I64,
        "ulong" | "uint64" => Element::U64,
        _ => return Element::from_cpp(name),
    };
    Some(informal)
}

#[cfg(test)]
mod tests;
