//! Conversion of bytes to values in the notation of a search space.

use tuner_core::element::{Element, vector_type};

/// Bytes of an address.
const ADDRESS_BYTES: u64 = 8;

/// Numbers or addresses at an offset of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Name of the field; empty for the value itself.
    pub(super) name: String,
    /// Type of a number; `None` for an address.
    element: Option<Element>,
    count: u64,
    listed: bool,
    pub(super) offset: u64,
}

/// Layout of a type in a search space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) parts: Vec<Part>,
    pub(super) bytes: u64,
    is_struct: bool,
}

/// Parses a type: a number, a vector, or `{ x: f32, y: "i32[4]", z: pointer }`.
pub(super) fn layout(ty: &str) -> Option<Layout> {
    let inner = ty
        .trim()
        .strip_prefix('{')
        .and_then(|it| it.strip_suffix('}'));
    let Some(inner) = inner else {
        let part = field("", ty)?;
        let bytes = size(&part.0);
        return Some(Layout {
            parts: vec![part.0],
            bytes,
            is_struct: false,
        });
    };
    let (mut parts, mut end, mut widest) = (Vec::new(), 0_u64, 1_u64);
    for text in inner.split(',') {
        let (name, ty) = text.split_once(':')?;
        let found = field(name.trim(), ty.trim().trim_matches('"'))?;
        let bytes = size(&found.0);
        let (mut part, align) = found;
        part.offset = end.next_multiple_of(align);
        (end, widest) = (part.offset + bytes, widest.max(align));
        parts.push(part);
    }
    Some(Layout {
        parts,
        bytes: end.next_multiple_of(widest),
        is_struct: true,
    })
}

/// Parses a field without its offset, and its alignment.
fn field(name: &str, ty: &str) -> Option<(Part, u64)> {
    let (ty, extent) = match ty.split_once('[') {
        Some((ty, rest)) => (ty, Some(rest.trim_end_matches(']').parse::<u64>().ok()?)),
        None => (ty, None),
    };
    let ty = ty.trim();
    let (element, lanes) = match ty {
        "pointer" => (None, 1),
        _ => {
            let number = Element::ALL.iter().find(|it| it.name() == ty);
            match number {
                Some(number) => (Some(*number), 1),
                None => vector_type(ty).map(|(it, lanes)| (Some(it), u64::from(lanes)))?,
            }
        }
    };
    let bytes = element.map_or(ADDRESS_BYTES, |it| it.size() as u64);
    // CUDA aligns vectors of three like one lane, others to their size, at most 16 bytes.
    let align = if lanes == 3 { bytes } else { bytes * lanes };
    let part = Part {
        name: name.to_owned(),
        element,
        count: lanes * extent.unwrap_or(1),
        listed: lanes > 1 || extent.is_some(),
        offset: 0,
    };
    Some((part, align.min(16)))
}

fn size(part: &Part) -> u64 {
    part.count * part.element.map_or(ADDRESS_BYTES, |it| it.size() as u64)
}

impl Part {
    /// Reports whether it is an address.
    pub(super) fn is_pointer(&self) -> bool {
        self.element.is_none()
    }
}

impl Layout {
    /// Returns the text of a value; `pointed` returns the buffer of an address at an offset. `None` if a
    /// number is not finite, or an address is unknown.
    pub(super) fn text(
        &self,
        bytes: &[u8],
        pointed: impl Fn(u64) -> Option<String>,
    ) -> Option<String> {
        let mut texts = Vec::new();
        for part in &self.parts {
            let Some(element) = part.element else {
                texts.push(format!("{}: {}", part.name, pointed(part.offset)?));
                continue;
            };
            let start = usize::try_from(part.offset).ok()?;
            let size = element.size();
            let all = bytes.get(start..start + size * usize::try_from(part.count).ok()?)?;
            let numbers: Option<Vec<String>> = all
                .chunks_exact(size)
                .map(|it| number(element, it))
                .collect();
            let numbers = numbers?;
            let text = match part.listed {
                true => format!("[{}]", numbers.join(", ")),
                false => numbers.join(", "),
            };
            texts.push(match self.is_struct {
                true => format!("{}: {text}", part.name),
                false => text,
            });
        }
        Some(match self.is_struct {
            true => format!("{{ {} }}", texts.join(", ")),
            false => texts.join(", "),
        })
    }
}

/// Formats a number with all its digits and without an exponent.
fn number(element: Element, bytes: &[u8]) -> Option<String> {
    if let Some(whole) = element.whole(bytes) {
        return Some(whole.to_string());
    }
    let value = element.decode(bytes);
    match element {
        _ if !value.is_finite() => None,
        // As `f32` the text has the fewest digits that read back; as `f64` 0.1 would be
        // 0.10000000149011612.
        Element::F32 => Some((value as f32).to_string()),
        _ => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_laid_out_as_the_compiler_does() {
        let found = layout("{ a: i8, b: float2, c: \"i32[2]\", d: pointer }").expect("a layout");
        let places: Vec<u64> = found.parts.iter().map(|part| part.offset).collect();
        assert_eq!((places, found.bytes), (vec![0, 8, 16, 24], 32));
        let mut bytes = vec![0_u8; 32];
        bytes[0] = 255;
        bytes[8..12].copy_from_slice(&0.1_f32.to_le_bytes());
        bytes[16..20].copy_from_slice(&7_i32.to_le_bytes());
        let text = found.text(&bytes, |_| Some("x".to_owned())).expect("text");
        assert_eq!(text, "{ a: -1, b: [0.1, 0], c: [7, 0], d: x }");
    }

    #[test]
    fn numbers_have_no_exponent() {
        let text = |ty: &str, bytes: &[u8]| layout(ty)?.text(bytes, |_| None);
        assert_eq!(
            text("f32", &1e-7_f32.to_le_bytes()).as_deref(),
            Some("0.0000001")
        );
        assert_eq!(
            text("u64", &[255; 8]).as_deref(),
            Some("18446744073709551615")
        );
        assert_eq!(text("f64", &f64::NAN.to_le_bytes()), None);
    }
}
