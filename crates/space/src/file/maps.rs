//! Tensor maps: arguments that describe a buffer and the boxes of it that bulk copies move.

use super::check::Checker;
use super::de::Spanned;
use super::schema::{ArgumentText, Formula};
use super::texts::TypeText;
use crate::tensor_map::{element_names, element_of, named_element};
use crate::{Argument, Expr, MapText, Piece, PieceValue, Record};
use gpu_tensor_map::{ADDRESS_OFFSET, MAX_RANK, TENSOR_MAP_BYTES, TensorElement};
use std::ops::Range;
use tuner_core::element::Element;
use tuner_core::plan::Role;

/// The type's name.
pub(super) const TYPE: &str = "tensor_map";

/// Reports whether an argument is a tensor map.
pub(super) fn is_map(text: &ArgumentText) -> bool {
    matches!(&text.ty.value, TypeText::Name(name) if name == TYPE)
}

impl Checker<'_> {
    /// Reports keys of a tensor map on another argument.
    pub(super) fn no_map_keys(&mut self, text: &ArgumentText) {
        let lists = [
            ("box", &text.boxes),
            ("strides", &text.strides),
            ("steps", &text.steps),
            ("lower", &text.lower),
            ("upper", &text.upper),
        ];
        let lists = lists.map(|(key, list)| (key, list.as_ref().map(|list| list.at.clone())));
        let single = [
            ("swizzle", &text.swizzle),
            ("swizzle_atom", &text.swizzle_atom),
            ("interleave", &text.interleave),
            ("l2_promotion", &text.l2_promotion),
            ("nan_fill", &text.nan_fill),
        ];
        let single = single.map(|(key, given)| (key, given.as_ref().map(|given| given.at.clone())));
        let words = [("of", &text.of), ("element", &text.element)];
        let words = words.map(|(key, given)| (key, given.as_ref().map(|given| given.at.clone())));
        for (key, at) in lists.into_iter().chain(single).chain(words) {
            if let Some(at) = at {
                let message = format!(
                    "`{key}` belongs to a tensor map, which `{}` is not",
                    text.name.value
                );
                self.error(
                    message,
                    at,
                    "write `type: tensor_map` and `role: scalar`, or remove it",
                );
            }
        }
    }

    /// Checks a tensor map.
    pub(super) fn map(&mut self, text: ArgumentText, known: &[Argument]) -> Option<Argument> {
        let (name, at) = (text.name.value, text.ty.at);
        if text.role.value != Role::Scalar {
            let help = "write `role: scalar`, and `of` the buffer that it describes";
            self.error(
                format!("the tensor map `{name}` is passed by value"),
                text.role.at,
                help,
            );
        }
        let unused = [text.fill.map(|it| it.at), text.value.map(|it| it.at)];
        for at in unused.into_iter().flatten() {
            self.error(
                format!("the tensor map `{name}` has a value or a fill"),
                at,
                "remove it: its keys are its value",
            );
        }
        let Some(of) = text.of else {
            self.error(
                format!("the tensor map `{name}` describes no buffer"),
                at,
                "add `of: BUFFER`",
            );
            return None;
        };
        let index = self.pointed(&name, &of.value, &of.at, known)?;
        let tensor = known.get(index)?;
        let element = self.map_element(&name, text.element, tensor, &of.at)?;
        let shape = match text.shape {
            Some(shape) => self.map_list(shape)?,
            None => tensor.shape.clone(),
        };
        let Some(boxes) = text.boxes else {
            self.error(
                format!("the tensor map `{name}` has no box"),
                at,
                "add `box: [ROWS, COLUMNS]`, the extents of a copy",
            );
            return None;
        };
        let (box_at, im2col) = (
            boxes.at.clone(),
            text.lower.is_some() || text.upper.is_some(),
        );
        let map = MapText {
            element,
            shape,
            boxes: self.map_list(boxes)?,
            strides: self.map_optional(text.strides)?,
            steps: self.map_optional(text.steps)?,
            lower: self.map_optional(text.lower)?,
            upper: self.map_optional(text.upper)?,
            swizzle: self.map_number(text.swizzle, "0")?,
            swizzle_atom: self.map_number(text.swizzle_atom, "16")?,
            interleave: self.map_number(text.interleave, "0")?,
            l2_promotion: self.map_number(text.l2_promotion, "0")?,
            nan_fill: self.map_number(text.nan_fill, "0")?,
        };
        if let Some((message, help)) = wrong_lengths(&name, &map, im2col) {
            self.error(message, box_at, help);
            return None;
        }
        Some(argument(name, map, index))
    }

    /// Returns the type of the tensor's elements: the buffer's, or a named one of equal size.
    fn map_element(
        &mut self,
        name: &str,
        given: Option<Spanned<String>>,
        tensor: &Argument,
        at: &Range<usize>,
    ) -> Option<TensorElement> {
        let plain = tensor.record.is_none() && tensor.lanes == 1;
        let own = plain.then(|| element_of(tensor.ty));
        if !plain {
            let message = format!(
                "`{name}` is a tensor map of `{}`, whose elements are not plain numbers",
                tensor.name
            );
            self.error(
                message,
                at.clone(),
                "declare the buffer with the type of its numbers",
            );
        }
        let Some(given) = given else { return own };
        let parsed = named_element(&given.value);
        let parsed = parsed.or_else(|| given.value.parse().ok().map(element_of));
        let fits = parsed.filter(|element| own.is_none_or(|own| own.bytes() == element.bytes()));
        if fits.is_none() {
            let names: Vec<&str> = element_names().collect();
            let message = format!(
                "`{}` is not a type of {} bytes",
                given.value,
                own.map_or(0, TensorElement::bytes)
            );
            self.error(
                message,
                given.at,
                format!("write a number's type, or {}", names.join(", ")),
            );
        }
        fits
    }

    fn map_list(&mut self, list: Spanned<Vec<Formula>>) -> Option<Vec<Expr>> {
        list.value
            .into_iter()
            .map(|each| self.formula(each))
            .collect()
    }

    fn map_optional(&mut self, list: Option<Spanned<Vec<Formula>>>) -> Option<Vec<Expr>> {
        list.map_or(Some(Vec::new()), |list| self.map_list(list))
    }

    /// Returns the expression of a key; 0 where it is left out.
    fn map_number(&mut self, given: Option<Formula>, missing: &str) -> Option<Expr> {
        given.map_or_else(|| Expr::parse(missing).ok(), |given| self.formula(given))
    }
}

/// Returns the error of the number of dimensions or the lengths of a map's lists, with help.
fn wrong_lengths(name: &str, map: &MapText, im2col: bool) -> Option<(String, &'static str)> {
    let rank = map.shape.len();
    let (least, boxes, spatial, help) = match im2col {
        true => (
            3,
            2,
            rank.saturating_sub(2),
            "an im2col map has `box: [PIXELS, CHANNELS]`, and in `lower` and `upper` one coordinate for each \
             dimension but the first and the last",
        ),
        false => (
            1,
            rank,
            0,
            "give the box and `steps` one extent for each, and `strides` one for each but the innermost",
        ),
    };
    let optional = [
        (map.strides.len(), rank.saturating_sub(1)),
        (map.steps.len(), rank),
    ];
    let fits = map.boxes.len() == boxes
        && map.lower.len() == spatial
        && map.upper.len() == spatial
        && optional
            .iter()
            .all(|(length, wanted)| *length == 0 || length == wanted);
    if fits && (least..=MAX_RANK).contains(&rank) {
        return None;
    }
    let message = format!("the tensor of `{name}` has {rank} dimensions, of {least} to {MAX_RANK}");
    Some((message, help))
}

/// Builds the argument: the encoded map, and the address in it.
fn argument(name: String, map: MapText, of: usize) -> Argument {
    // `Argument::tensor_map` recognises a map by these two pieces in this order.
    let pieces = vec![
        Piece {
            offset: 0,
            ty: Element::U8,
            value: PieceValue::TensorMap(Box::new(map)),
        },
        Piece {
            offset: ADDRESS_OFFSET,
            ty: Element::U64,
            value: PieceValue::Address(of),
        },
    ];
    Argument {
        name,
        ty: Element::U8,
        lanes: 1,
        record: Some(Record {
            size: TENSOR_MAP_BYTES as u64,
            fields: Vec::new(),
        }),
        any_type: false,
        any_value: false,
        role: Role::Scalar,
        shape: Vec::new(),
        fill: None,
        fill_sizes: Vec::new(),
        value: None,
        pieces,
        guessed: false,
        guessed_extent: false,
    }
}
