//! Type of a kernel's parameter, and its compatibility with declared element types.

use tuner_core::element::Element;

/// A kernel's parameter from the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its type, without macros and typedefs: `__half const*`.
    pub ty: String,
    /// Size of the value or of the pointee, bytes; 0 without one.
    pub bytes: u64,
    /// The value or the pointee is an enumeration.
    pub is_enum: bool,
}

/// The outer form of a parameter's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// By value.
    Value,
    /// A pointer to elements.
    Pointer {
        /// The elements are constant and must not be changed.
        constant: bool,
    },
    /// A pointer to a pointer, a function, and so on.
    Other,
}

/// Compatibility of a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is the kernel's type, or storage of exactly its bits.
    Same,
    /// It is comparable only up to this reservation.
    Loose(&'static str),
    /// It is another type.
    Wrong,
}

/// Base types of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Void,
    Bool,
    Char,
    SignedChar,
    UnsignedChar,
    Short,
    UnsignedShort,
    Int,
    UnsignedInt,
    Long,
    UnsignedLong,
    Float,
    Double,
    Half,
    HalfBits,
    Bfloat,
    BfloatBits,
    E4m3,
    E5m2,
    Other,
}

/// Names of types with the element and its count; `_` is replaced by 1 to 4.
const NAMES: [(&str, Base, u64); 52] = [
    ("void", Base::Void, 1),
    ("bool", Base::Bool, 1),
    ("char", Base::Char, 1),
    ("signed char", Base::SignedChar, 1),
    ("unsigned char", Base::UnsignedChar, 1),
    ("short", Base::Short, 1),
    ("unsigned short", Base::UnsignedShort, 1),
    ("int", Base::Int, 1),
    ("unsigned int", Base::UnsignedInt, 1),
    ("unsigned", Base::UnsignedInt, 1),
    ("long", Base::Long, 1),
    ("unsigned long", Base::UnsignedLong, 1),
    ("long long", Base::Long, 1),
    ("unsigned long long", Base::UnsignedLong, 1),
    ("float", Base::Float, 1),
    ("double", Base::Double, 1),
    ("char_", Base::SignedChar, 0),
    ("uchar_", Base::UnsignedChar, 0),
    ("short_", Base::Short, 0),
    ("ushort_", Base::UnsignedShort, 0),
    ("int_", Base::Int, 0),
    ("uint_", Base::UnsignedInt, 0),
    ("long_", Base::Long, 0),
    ("long4_16a", Base::Long, 4),
    ("long4_32a", Base::Long, 4),
    ("ulong_", Base::UnsignedLong, 0),
    ("ulong4_16a", Base::UnsignedLong, 4),
    ("ulong4_32a", Base::UnsignedLong, 4),
    ("longlong_", Base::Long, 0),
    ("longlong4_16a", Base::Long, 4),
    ("longlong4_32a", Base::Long, 4),
    ("ulonglong_", Base::UnsignedLong, 0),
    ("ulonglong4_16a", Base::UnsignedLong, 4),
    ("ulonglong4_32a", Base::UnsignedLong, 4),
    ("float_", Base::Float, 0),
    ("double_", Base::Double, 0),
    ("double4_16a", Base::Double, 4),
    ("double4_32a", Base::Double, 4),
    ("__half", Base::Half, 1),
    ("__half2", Base::Half, 2),
    ("__half_raw", Base::HalfBits, 1),
    ("__half2_raw", Base::HalfBits, 2),
    ("__nv_bfloat16", Base::Bfloat, 1),
    ("__nv_bfloat162", Base::Bfloat, 2),
    ("__nv_bfloat16_raw", Base::BfloatBits, 1),
    ("__nv_bfloat162_raw", Base::BfloatBits, 2),
    ("__nv_fp8_e4m3", Base::E4m3, 1),
    ("__nv_fp8x2_e4m3", Base::E4m3, 2),
    ("__nv_fp8x4_e4m3", Base::E4m3, 4),
    ("__nv_fp8_e5m2", Base::E5m2, 1),
    ("__nv_fp8x2_e5m2", Base::E5m2, 2),
    ("__nv_fp8x4_e5m2", Base::E5m2, 4),
];

const UNTYPED: &str = "`void*` says nothing of its elements, so no type is compared";
const BYTES: &str = "the kernel takes raw bytes, so no type is compared";
const BITS: &str = "it is taken as raw bits, so no type is compared";
const BOOL: &str = "the kernel takes `bool`: any byte but 0 and 1 is undefined there";
const STRUCT: &str = "the kernel takes a type of its own, of which only the size is compared";

impl Parameter {
    /// Returns the outer form.
    pub(super) fn form(&self) -> Form {
        self.parts().0
    }

    /// Returns the form, and the type of the elements or the value.
    fn parts(&self) -> (Form, String) {
        let other = (Form::Other, String::new());
        let ty = self.ty.trim();
        // A pointer to an array is `float (*) [4]`; to a function, `int (*)(int)`.
        if let Some((element, rest)) = ty.split_once('(') {
            let rest: String = rest.split_whitespace().collect();
            if !rest.starts_with("*)[") && !rest.starts_with("&)[") {
                return other;
            }
            let (constant, element) = unqualified(element);
            return (Form::Pointer { constant }, element);
        }
        let pointed = ty.strip_suffix('*').or_else(|| ty.strip_suffix('&'));
        let Some(element) = pointed else {
            return (Form::Value, unqualified(ty).1);
        };
        let (constant, element) = unqualified(element);
        if element.ends_with(['*', '&']) {
            return other;
        }
        (Form::Pointer { constant }, element)
    }

    /// Reports whether it is a struct of this size, by value or by pointer.
    pub(super) fn takes_record(&self, bytes: u64) -> Fit {
        let (form, element) = self.parts();
        let (base, _) = base(&element);
        match base {
            Base::Void if form != Form::Value => Fit::Loose(UNTYPED),
            Base::Char | Base::SignedChar | Base::UnsignedChar if form != Form::Value => {
                Fit::Loose(BYTES)
            }
            Base::Other if self.bytes == bytes && !self.is_enum && form != Form::Other => Fit::Same,
            _ => Fit::Wrong,
        }
    }

    /// Reports whether a vector of this type and number of lanes can be passed for it by value.
    pub(super) fn takes_vector(&self, declared: Element, lanes: u32) -> Fit {
        let (form, value) = self.parts();
        let (base, count) = base(&value);
        let bytes = declared.size() as u64 * u64::from(lanes);
        if form != Form::Value || self.bytes != bytes || self.is_enum {
            return Fit::Wrong;
        }
        match base {
            Base::Other => Fit::Loose(STRUCT),
            _ if count == u64::from(lanes) => fits(declared, base),
            _ => Fit::Wrong,
        }
    }

    /// Reports whether a buffer of these elements can be passed for it.
    pub(super) fn takes_buffer(&self, declared: Element) -> Fit {
        let (form, element) = self.parts();
        if !matches!(form, Form::Pointer { .. }) {
            return Fit::Wrong;
        }
        let size = declared.size() as u64;
        if self.is_enum {
            return match self.bytes == size {
                true if !declared.is_float() => Fit::Same,
                _ if self.bytes == 1 => Fit::Loose(BYTES),
                _ => Fit::Wrong,
            };
        }
        let (base, count) = base(&element);
        match fits(declared, base) {
            Fit::Wrong => {}
            fit => return fit,
        }
        match base {
            Base::Void => Fit::Loose(UNTYPED),
            Base::Char | Base::SignedChar | Base::UnsignedChar if size > 1 => Fit::Loose(BYTES),
            // Narrow elements are often moved 8 or 16 bytes at a time.
            Base::UnsignedInt | Base::UnsignedLong if count > 1 && size < 4 => Fit::Loose(BITS),
            Base::Other if self.bytes.is_multiple_of(size) => Fit::Loose(STRUCT),
            _ => Fit::Wrong,
        }
    }

    /// Reports whether a scalar of this type can be passed for it.
    pub(super) fn takes_scalar(&self, declared: Element) -> Fit {
        let (form, value) = self.parts();
        if form != Form::Value || self.bytes != declared.size() as u64 {
            return Fit::Wrong;
        }
        if self.is_enum {
            return if declared.is_float() {
                Fit::Wrong
            } else {
                Fit::Same
            };
        }
        match base(&value).0 {
            Base::Other => Fit::Loose(STRUCT),
            base => fits(declared, base),
        }
    }

    /// Returns the declared type that fits it, if there is one.
    pub(super) fn declaration(&self) -> Option<Element> {
        let (_, element) = self.parts();
        if self.is_enum {
            return match self.bytes {
                1 => Some(Element::U8),
                2 => Some(Element::I16),
                4 => Some(Element::I32),
                8 => Some(Element::I64),
                _ => None,
            };
        }
        Some(match base(&element).0 {
            Base::Bool => Element::Bool,
            Base::UnsignedChar => Element::U8,
            Base::Short => Element::I16,
            Base::UnsignedShort => Element::U16,
            Base::Char | Base::SignedChar => Element::I8,
            Base::Int => Element::I32,
            Base::UnsignedInt => Element::U32,
            Base::Long | Base::UnsignedLong => Element::I64,
            Base::Float => Element::F32,
            Base::Double => Element::F64,
            Base::Half | Base::HalfBits => Element::F16,
            Base::Bfloat | Base::BfloatBits => Element::Bf16,
            Base::E4m3 => Element::F8e4m3,
            Base::E5m2 => Element::F8e5m2,
            Base::Void | Base::Other => return None,
        })
    }
}

/// Removes `const` and `volatile`; the first result reports whether `const` was present.
fn unqualified(ty: &str) -> (bool, String) {
    let words: Vec<&str> = ty.split_whitespace().collect();
    let constant = words.contains(&"const");
    let kept: Vec<&str> = words
        .into_iter()
        .filter(|word| !matches!(*word, "const" | "volatile" | "__restrict__" | "restrict"))
        .collect();
    (constant, kept.join(" "))
}

fn base(name: &str) -> (Base, u64) {
    for (known, base, count) in NAMES {
        if count > 0 {
            if known == name {
                return (base, count);
            }
            continue;
        }
        for length in 1..=4_u64 {
            if known.replacen('_', &length.to_string(), 1) == name {
                return (base, length);
            }
        }
    }
    (Base::Other, 1)
}

fn fits(declared: Element, base: Base) -> Fit {
    let same = match declared {
        Element::F16 => &[Base::Half, Base::HalfBits, Base::UnsignedShort][..],
        Element::Bf16 => &[Base::Bfloat, Base::BfloatBits, Base::UnsignedShort],
        Element::F32 => &[Base::Float],
        Element::F64 => &[Base::Double],
        Element::I8 => &[Base::SignedChar, Base::Char],
        Element::U8 => &[Base::UnsignedChar, Base::Char],
        Element::I32 => &[Base::Int],
        Element::U32 => &[Base::UnsignedInt],
        Element::Bool => &[Base::Bool],
        Element::I16 => &[Base::Short],
        Element::U16 => &[Base::UnsignedShort],
        Element::U64 => &[Base::UnsignedLong],
        // Sizes and counts are `size_t`, and were declared so before there was `u64`.
        Element::I64 => &[Base::Long, Base::UnsignedLong],
        // CUDA's own storage type of these is `unsigned char`.
        Element::F8e4m3 => &[Base::E4m3, Base::UnsignedChar],
        Element::F8e5m2 => &[Base::E5m2, Base::UnsignedChar],
    };
    if same.contains(&base) {
        return Fit::Same;
    }
    match (declared, base) {
        (Element::U8, Base::Bool) => Fit::Loose(BOOL),
        (Element::F16 | Element::Bf16, Base::Short)
        | (Element::F8e4m3 | Element::F8e5m2, Base::Char | Base::SignedChar) => Fit::Loose(BITS),
        _ => Fit::Wrong,
    }
}

#[cfg(test)]
mod tests;
