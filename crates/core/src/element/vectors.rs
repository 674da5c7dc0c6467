//! CUDA's vector types.

use super::Element;

/// CUDA's vector types without their number of lanes.
pub const VECTORS: [(&str, Element); 12] = [
    ("char", Element::I8),
    ("uchar", Element::U8),
    ("short", Element::I16),
    ("ushort", Element::U16),
    ("int", Element::I32),
    ("uint", Element::U32),
    ("longlong", Element::I64),
    ("ulonglong", Element::U64),
    ("long", Element::I64),
    ("ulong", Element::U64),
    ("float", Element::F32),
    ("double", Element::F64),
];

/// Vectors of two with separate names.
pub const PAIRS: [(&str, Element); 5] = [
    ("half2", Element::F16),
    ("__half2", Element::F16),
    ("bf162", Element::Bf16),
    ("bfloat162", Element::Bf16),
    ("__nv_bfloat162", Element::Bf16),
];

/// Returns a CUDA vector type by its name, such as `float4` or `half2`, with its lanes.
#[must_use]
pub fn vector_type(name: &str) -> Option<(Element, u32)> {
    if let Some((_, element)) = PAIRS.into_iter().find(|(pair, _)| *pair == name) {
        return Some((element, 2));
    }
    let last = name.chars().next_back()?;
    let lanes = last.to_digit(10).filter(|lanes| (1..=4).contains(lanes))?;
    let front = name.strip_suffix(last)?;
    let (_, element) = VECTORS.into_iter().find(|(vector, _)| *vector == front)?;
    Some((element, lanes))
}
