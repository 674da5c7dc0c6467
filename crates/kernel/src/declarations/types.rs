//! Type of a kernel's parameter, and its compatibility with declared element types.

use cuda_source::{Base, CppType};
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
    /// It is the kernel's type, or storage for exactly its bits.
    Same,
    /// It is comparable only with this reservation.
    Loose(&'static str),
    /// It is another type.
    Wrong,
}

const UNTYPED: &str = "`void*` has no element type, so no type is compared";
const BYTES: &str = "the kernel takes raw bytes, so no type is compared";
const BITS: &str = "it is taken as raw bits, so no type is compared";
const BOOL: &str = "the kernel takes `bool`: any byte but 0 and 1 is undefined there";
const STRUCT: &str = "the kernel takes a user-defined type: only the size is compared";

impl Parameter {
    /// Returns the outer form.
    pub(super) fn form(&self) -> Form {
        self.parts().0
    }

    /// Returns the form, and the type of the elements or the value.
    fn parts(&self) -> (Form, String) {
        let other = (Form::Other, String::new());
        let ty = self.ty.trim();
        // A pointer to an array is `float (*) [4]`; to a function, `int (*)(int)`. In a template's
        // arguments, `vec<float, (unsigned long)2>`, a parenthesis is part of a cast.
        if let Some((element, rest)) =
            outside_angles(ty, '(').and_then(|at| ty.split_at_checked(at))
        {
            let rest = rest.trim_start_matches('(');
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
            _ if form != Form::Value && is_byte(base) => Fit::Loose(BYTES),
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
            _ if is_byte(base) && size > 1 => Fit::Loose(BYTES),
            // Narrow elements are often moved 8 or 16 bytes at a time.
            Base::Number(Element::U32 | Element::U64) if count > 1 && size < 4 => Fit::Loose(BITS),
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

    /// Returns the matching declared type, if there is one.
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
        match base(&element).0.element() {
            // Sizes are declared as `i64`.
            Some(Element::U64) => Some(Element::I64),
            found => found,
        }
    }
}

/// Reports whether the elements are bytes.
fn is_byte(base: Base) -> bool {
    matches!(base, Base::Char | Base::Number(Element::I8 | Element::U8))
}

/// Removes `const` and `volatile`; the first result reports whether `const` was present.
fn unqualified(ty: &str) -> (bool, String) {
    let (mut constant, mut depth) = (false, 0_usize);
    let mut kept: Vec<&str> = Vec::new();
    for word in ty.split_whitespace() {
        match word {
            // Qualifiers in a template's arguments are parts of its name.
            _ if depth > 0 => kept.push(word),
            "const" => constant = true,
            "volatile" | "__restrict__" | "restrict" => {}
            _ => kept.push(word),
        }
        let opened = depth + word.matches('<').count();
        depth = opened.saturating_sub(word.matches('>').count());
    }
    (constant, kept.join(" "))
}

/// Returns the first position of a character that is not in angle brackets.
fn outside_angles(text: &str, wanted: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if c == wanted && depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

fn base(name: &str) -> (Base, u64) {
    let CppType { base, lanes } = CppType::by_name(name);
    (base, lanes.into())
}

fn fits(declared: Element, base: Base) -> Fit {
    let number = |element| base == Base::Number(element);
    let storage = declared.storage();
    let same = match declared {
        Element::I8 | Element::U8 => base == Base::Char,
        // Sizes and counts are `size_t`; before `u64` existed they were declared as `i64`.
        Element::I64 => number(Element::U64),
        _ => storage.is_some_and(|bits| base == Base::Bits(declared) || number(bits)),
    };
    if same || number(declared) {
        return Fit::Same;
    }
    match (storage, base) {
        (None, Base::Number(Element::Bool)) if declared == Element::U8 => Fit::Loose(BOOL),
        (Some(Element::U16), Base::Number(Element::I16))
        | (Some(Element::U8), Base::Char | Base::Number(Element::I8)) => Fit::Loose(BITS),
        _ => Fit::Wrong,
    }
}

#[cfg(test)]
mod tests;
