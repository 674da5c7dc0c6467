//! Evaluation of tensor maps for one configuration.

use super::bind::{BindError, Rest, extent, taken, unusable, whole};
use super::{Expr, MapText};
use gpu_tensor_map::{PixelBox, TensorElement, TensorMap};
use tuner_core::element::Element;

/// Values of the key `element` of a map that are not types of buffers.
const ELEMENTS: [(&str, TensorElement); 3] = [
    ("tf32", TensorElement::Tf32),
    ("tf32_ftz", TensorElement::Tf32Ftz),
    ("f32_ftz", TensorElement::F32Ftz),
];

/// Returns the element type of a map for a buffer of this type; if maps lack it, a type of equal size.
pub(super) fn element_of(element: Element) -> TensorElement {
    match element {
        Element::Bool | Element::U8 | Element::I8 | Element::F8e4m3 | Element::F8e5m2 => {
            TensorElement::U8
        }
        Element::U16 | Element::I16 => TensorElement::U16,
        Element::U32 => TensorElement::U32,
        Element::I32 => TensorElement::S32,
        Element::U64 => TensorElement::U64,
        Element::I64 => TensorElement::S64,
        Element::F16 => TensorElement::F16,
        Element::Bf16 => TensorElement::Bf16,
        Element::F32 => TensorElement::F32,
        Element::F64 => TensorElement::F64,
    }
}

/// Returns the type with a name that only maps have.
pub(super) fn named_element(name: &str) -> Option<TensorElement> {
    let mut known = ELEMENTS.iter();
    known.find(|(known, _)| *known == name).map(|(_, it)| *it)
}

/// Returns the names of the types that only maps have.
pub(super) fn element_names() -> impl Iterator<Item = &'static str> {
    ELEMENTS.iter().map(|(name, _)| *name)
}

/// Returns a map's bytes in the virtual GPU's encoding, without the tensor's address.
///
/// # Errors
/// An expression without a usable value, or a violated limit of the driver.
pub(super) fn encoded(name: &str, map: &MapText, rest: Rest<'_, '_>) -> Result<Vec<u8>, BindError> {
    let mut list = |of: &[Expr]| -> Result<Vec<u64>, BindError> {
        // The innermost dimension is the first in a map.
        let mut values = of
            .iter()
            .map(|_| extent(rest))
            .collect::<Result<Vec<_>, _>>()?;
        values.reverse();
        Ok(values)
    };
    // Values are read in the order of `MapText::expressions`.
    let (sizes, given) = (list(&map.shape)?, list(&map.strides)?);
    let (boxes, steps) = (list(&map.boxes)?, list(&map.steps)?);
    let (lower, upper) = (corner(&map.lower, rest)?, corner(&map.upper, rest)?);
    let bytes = u64::from(map.element.bytes());
    let packed = sizes.iter().scan(1_u64, |stride, size| {
        *stride = stride.saturating_mul(*size);
        Some(*stride)
    });
    let packed: Vec<u64> = packed.take(sizes.len().saturating_sub(1)).collect();
    let strides = if map.strides.is_empty() {
        packed
    } else {
        given
    };
    let small = |values: Vec<u64>| {
        values
            .into_iter()
            // Boxes have at most 256 elements and steps are at most 8: `check` rejects the saturated value.
            .map(|value| u32::try_from(value).unwrap_or(u32::MAX))
    };
    let found = TensorMap {
        element: map.element,
        // The launch writes the buffer's address; 0 passes the check of its alignment.
        address: 0,
        strides: strides
            .into_iter()
            .map(|stride| stride.saturating_mul(bytes))
            .collect(),
        boxes: small(boxes).collect(),
        steps: match map.steps.is_empty() {
            true => vec![1; sizes.len()],
            false => small(steps).collect(),
        },
        sizes,
        swizzle: swizzle(rest)?,
        interleave: choice(rest, &[0, 16, 32], "0, 16 or 32")?,
        promotion: choice(rest, &[0, 64, 128, 256], "0, 64, 128 or 256")?,
        fills_nan: choice(rest, &[0, 1], "0 or 1")? == 1,
        pixels: (!lower.is_empty()).then_some(PixelBox { lower, upper }),
    };
    found.check().map_err(|limit| BindError::TensorMap {
        name: name.to_owned(),
        limit,
    })?;
    Ok(found.encode().to_vec())
}

/// Returns the driver's number of a swizzle and its atoms.
fn swizzle(rest: Rest<'_, '_>) -> Result<u32, BindError> {
    let mode = choice(rest, &[0, 32, 64, 128], "0, 32, 64 or 128")?;
    Ok(match mode {
        3 => match choice(rest, &[16, 32, 64], "16, 32 or 64")? {
            0 => 3,
            1 => 4,
            _ => 6,
        },
        _ => {
            choice(rest, &[16], "16, unless the swizzle is that of 128 bytes")?;
            mode
        }
    })
}

/// Returns the coordinates of a corner of an im2col map, innermost dimension first.
fn corner(of: &[Expr], rest: Rest<'_, '_>) -> Result<Vec<i32>, BindError> {
    let mut coordinates = Vec::with_capacity(of.len());
    for _ in of {
        let ((what, expr), value) = taken(rest)?;
        let found = whole(value).and_then(|number| i32::try_from(number).ok());
        coordinates.push(found.ok_or_else(|| unusable(what, expr, value, "a whole number"))?);
    }
    coordinates.reverse();
    Ok(coordinates)
}

/// Returns the position of a number among the possible ones, which is the driver's code for it.
fn choice(rest: Rest<'_, '_>, possible: &[i128], wanted: &'static str) -> Result<u32, BindError> {
    let ((what, expr), value) = taken(rest)?;
    let place = whole(value).and_then(|number| possible.iter().position(|it| *it == number));
    let place = place.and_then(|place| u32::try_from(place).ok());
    place.ok_or_else(|| unusable(what, expr, value, wanted))
}

/// Stored identities are computed from this text: a field added by a later version is included only
/// if it is not at its default.
impl std::fmt::Debug for MapText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("MapText");
        text.field("element", &self.element)
            .field("shape", &self.shape)
            .field("strides", &self.strides)
            .field("boxes", &self.boxes)
            .field("steps", &self.steps)
            .field("lower", &self.lower)
            .field("upper", &self.upper)
            .field("swizzle", &self.swizzle);
        if self.swizzle_atom.text() != "16" {
            text.field("swizzle_atom", &self.swizzle_atom);
        }
        text.field("interleave", &self.interleave);
        text.field("l2_promotion", &self.l2_promotion);
        text.field("nan_fill", &self.nan_fill).finish()
    }
}
