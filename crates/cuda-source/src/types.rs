//! Names of types in CUDA C++.

use tuner_core::element::{Element, vector_type};

/// Elements of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Numbers.
    Number(Element),
    /// `char`, which holds signed or unsigned bytes.
    Char,
    /// Raw bits of a number: `__half_raw`.
    Bits(Element),
    /// `void`.
    Void,
    /// A type that the language does not define.
    Other,
}

impl Base {
    /// Returns the number type that it is, or whose bits it stores.
    #[must_use]
    pub fn element(self) -> Option<Element> {
        match self {
            Base::Number(element) | Base::Bits(element) => Some(element),
            Base::Char => Some(Element::I8),
            Base::Void | Base::Other => None,
        }
    }
}

/// A type by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CppType {
    /// The elements.
    pub base: Base,
    /// Elements of one value: 4 of `float4`.
    pub lanes: u32,
}

/// Types with irregular names.
const NAMED: [(&str, Base, u32); 6] = [
    ("void", Base::Void, 1),
    ("char", Base::Char, 1),
    ("__half_raw", Base::Bits(Element::F16), 1),
    ("__half2_raw", Base::Bits(Element::F16), 2),
    ("__nv_bfloat16_raw", Base::Bits(Element::Bf16), 1),
    ("__nv_bfloat162_raw", Base::Bits(Element::Bf16), 2),
];

/// Suffixes of the names of vectors with an explicit alignment.
const ALIGNED: [&str; 2] = ["_16a", "_32a"];

/// Prefix of the names of packed 8-bit floats, before their number.
const PACKED: &str = "__nv_fp8x";

impl CppType {
    /// Returns the type of a name without qualifiers, as spelled by the compiler or a source.
    #[must_use]
    pub fn by_name(name: &str) -> CppType {
        let name = name.strip_prefix("std::").unwrap_or(name);
        let found = NAMED.into_iter().find(|(known, ..)| *known == name);
        let found = found.map(|(_, base, lanes)| (base, lanes));
        let number = || Element::from_cpp(name).map(|element| (Base::Number(element), 1));
        let (base, lanes) = found
            .or_else(number)
            .or_else(|| vector(name))
            .unwrap_or((Base::Other, 1));
        CppType { base, lanes }
    }
}

/// Elements and lanes of a vector.
fn vector(name: &str) -> Option<(Base, u32)> {
    if let Some(rest) = name.strip_prefix(PACKED) {
        let lanes = rest.chars().next()?.to_digit(10)?;
        let single = format!("__nv_fp8{}", rest.get(1..)?);
        return Some((Base::Number(Element::from_cpp(&single)?), lanes));
    }
    let plain = ALIGNED.iter().find_map(|end| name.strip_suffix(end));
    let (element, lanes) = vector_type(plain.unwrap_or(name))?;
    Some((Base::Number(element), lanes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_have_their_elements_and_lanes() {
        for (name, base, lanes) in [
            ("float", Base::Number(Element::F32), 1),
            ("std::uint32_t", Base::Number(Element::U32), 1),
            ("unsigned long", Base::Number(Element::U64), 1),
            ("char", Base::Char, 1),
            ("uchar4", Base::Number(Element::U8), 4),
            ("longlong4_32a", Base::Number(Element::I64), 4),
            ("__half2", Base::Number(Element::F16), 2),
            ("__half2_raw", Base::Bits(Element::F16), 2),
            ("__nv_fp8x4_e5m2", Base::Number(Element::F8e5m2), 4),
            ("void", Base::Void, 1),
            ("Matrix", Base::Other, 1),
        ] {
            assert_eq!(CppType::by_name(name), CppType { base, lanes }, "{name}");
        }
    }
}
