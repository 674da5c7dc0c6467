//! C names that collide neither with each other nor with the macros of the header.

use super::ExportError;
use std::collections::BTreeSet;
use tuner_core::units::ContentHash;

/// Keywords of C23 (ISO/IEC 9899:2024, 6.4.1).
const C23: &str = "alignas alignof auto bool break case char const constexpr continue default do \
    double else enum extern false float for goto if inline int long nullptr register restrict return \
    short signed sizeof static static_assert struct switch thread_local true typedef typeof \
    typeof_unqual union unsigned void volatile while _Alignas _Alignof _Atomic _BitInt _Bool _Complex \
    _Decimal128 _Decimal32 _Decimal64 _Generic _Imaginary _Noreturn _Pragma _Static_assert \
    _Thread_local";

/// Keywords and alternative tokens of C++20 (ISO/IEC 14882:2020, 5.5 and 5.11) that C23 lacks.
const CPP20: &str = "and and_eq asm bitand bitor catch char16_t char32_t char8_t class co_await \
    co_return co_yield compl concept const_cast consteval constinit decltype delete dynamic_cast \
    explicit export friend mutable namespace new noexcept not not_eq operator or or_eq private \
    protected public reinterpret_cast requires static_cast template this throw try typeid typename \
    using virtual wchar_t xor xor_eq";

/// Keywords of Python 3 (Language Reference, 2.3.1) that are not keywords of C or C++, for
/// bindings.
const PYTHON: &str = "False None True as assert async await def del elif except finally from global \
    import in is lambda nonlocal pass raise with yield";

/// Lower-case names that a launcher's functions of sizes and arguments use.
pub(super) const LAUNCHER: &str = "all_kernels all_macros all_maps all_options all_scratch bytes choose \
    chosen code context current device encode entry failed fine how image_count images int16_t int32_t int64_t \
    int8_t joined kernels known last_chosen launch launch_clusters loaded maps message name note pointer \
    size_t source status std stream text to_string uint16_t uint32_t uint64_t uint8_t values";

/// Lower-case macros of compilers and of the C library.
const MACROS: &str = "complex defined errno i386 imaginary linux noreturn stderr stdin stdout unix";

/// Returns true for a word of one of these lists.
fn is_among(name: &str, lists: &[&str]) -> bool {
    let mut words = lists.iter().flat_map(|list| list.split_whitespace());
    words.any(|word| word == name)
}

/// Reports whether Python reserves a word.
pub(super) fn is_python_word(name: &str) -> bool {
    // The Python keywords that C or C++ also has are in their lists.
    is_among(name, &[C23, CPP20, PYTHON])
}

/// Maximum bytes of a file name derived from a name; file systems allow 255 with the extension.
const FILE_NAME_BYTES: usize = 120;

/// Converts a device's or kernel's name to a file name. A long one is cut and ends with its hash.
#[must_use]
pub fn target_name(name: &str) -> String {
    let whole = target(name);
    if whole.len() <= FILE_NAME_BYTES {
        return whole;
    }
    let hash = ContentHash::from_parts([name.as_bytes()]);
    let (head, hash) = (whole.get(..FILE_NAME_BYTES - 17), hash.as_str().get(..16));
    format!("{}_{}", head.unwrap_or_default(), hash.unwrap_or_default())
}

/// Converts a device's or kernel's name to a macro or a file name like Kernel Tuner: every run of
/// characters other than letters and digits becomes one `_`.
pub(super) fn target(device: &str) -> String {
    let mut name = String::new();
    for c in device.trim().chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    name
}

/// Converts the kernel's name to a prefix of identifiers.
pub(super) fn identifier(kernel: &str) -> String {
    // Two consecutive underscores are reserved for the compiler.
    let name = target(kernel);
    match name.trim_matches('_') {
        "" => "kernel".to_owned(),
        name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("k{name}"),
        name => name.to_owned(),
    }
}

/// Converts text to a suffix of an identifier: every invalid character becomes a `_`.
pub(super) fn suffix(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// A valid macro name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MacroName(String);

impl std::ops::Deref for MacroName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for MacroName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reports whether a name has the characters of a C identifier.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Rejects invalid macro names and reserved words.
pub(super) fn check_macro(name: &str) -> Result<MacroName, ExportError> {
    let good =
        is_identifier(name) && !name.starts_with("__") && !is_among(name, &[C23, CPP20, "defined"]);
    if good {
        Ok(MacroName(name.to_owned()))
    } else {
        Err(ExportError::NotAName(name.to_owned()))
    }
}

/// Returns struct members for macros: lower case, with a trailing `_` if taken. A member with the name of a
/// macro would be replaced by its value.
pub(super) fn members(macros: &[&str], taken: &[&str]) -> Vec<String> {
    let mut used: BTreeSet<String> = macros.iter().map(|name| (*name).to_owned()).collect();
    used.extend(taken.iter().map(|name| (*name).to_owned()));
    macros
        .iter()
        .map(|name| {
            let mut member = name.to_ascii_lowercase();
            if member.starts_with('_') {
                member.insert(0, 'p');
            }
            while used.contains(&member) || is_among(&member, &[C23, CPP20, PYTHON, MACROS]) {
                member.push('_');
            }
            used.insert(member.clone());
            member
        })
        .collect()
}

#[cfg(test)]
mod tests;
