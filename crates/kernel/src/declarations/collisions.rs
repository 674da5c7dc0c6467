//! Names of a source that collide with macros of the search space: `int N` if N is a problem's
//! size.
//!
//! The compiler would see `int 1024`, and report an expected identifier.

use super::source::{File, is_name};
use std::ops::Range;
use tuner_space::{DEVICE_NAMES, Diagnostic, KernelSpec};

/// Words that are followed by a declared name, and never by a number.
pub(super) const TYPES: [&str; 19] = [
    "int", "unsigned", "long", "short", "char", "float", "double", "bool", "auto", "size_t",
    "int32_t", "uint32_t", "int64_t", "uint64_t", "half", "__half", "typename", "class", "struct",
];

/// Reports whether the token, a name, is declared or is a member here, so that a number would be
/// invalid.
pub(super) fn declares(file: &File, index: usize) -> bool {
    let before = |count: usize| file.word_at(index.checked_sub(count));
    let (last, next) = (before(1), file.word_at(Some(index + 1)));
    let ends = matches!(next, "=" | ";" | "," | ")" | "[" | "{" | ">" | ":");
    if TYPES.contains(&last) {
        return ends;
    }
    match last {
        // `const float* N,`; otherwise a name and `*` form a product.
        "*" | "&" => ends && (TYPES.contains(&before(2)) || before(2) == "void"),
        "__restrict__" | "using" | "namespace" => ends,
        // `config.N`, `config->N`; not `1.N`, which is not a number.
        "." => is_name(before(2)) || matches!(before(2), ")" | "]"),
        // Not `while (n-->N)`.
        ">" => before(2) == "-" && before(3) != "-",
        _ => false,
    }
}

/// Returns the diagnostic.
pub(super) fn diagnostic(spec: &KernelSpec, file: &File, at: &Range<usize>) -> Diagnostic {
    let name = file.word(at);
    let what = kind(spec, name);
    let item = Diagnostic::new(
        format!(
            "`{name}` is a macro, {} of the search space, and names nothing here",
            what.text()
        ),
        at.clone(),
    );
    item.help(if what == Kind::Size {
        format!(
            "where the kernel takes its sizes as arguments, write `sizes: argument` in the search \
             space (or `sizes: [{name}]`, where others are macros), and `{{ name: {name}, type: i32, \
             role: scalar }}` among its arguments; else use {name} without declaring it, or give this \
             another name"
        )
    } else {
        format!(
            "use {name} without declaring it (`#ifndef {name}`, `#define {name} …`, `#endif` at the \
             top make the template compile alone), or give this another name"
        )
    })
}

/// Kind of a tuner macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Parameter,
    Derived,
    Size,
    Device,
}

impl Kind {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Parameter => "the parameter",
            Self::Derived => "the derived value",
            Self::Size => "the problem size",
            Self::Device => "a property of the device, which expressions use,",
        }
    }
}

/// Returns the kind of a tuner macro.
pub(super) fn kind(spec: &KernelSpec, name: &str) -> Kind {
    if spec.parameters.iter().any(|known| known.name == name) {
        Kind::Parameter
    } else if spec.derived.iter().any(|(known, _)| known == name) {
        Kind::Derived
    } else if DEVICE_NAMES.iter().any(|(known, _)| *known == name) {
        Kind::Device
    } else {
        Kind::Size
    }
}
