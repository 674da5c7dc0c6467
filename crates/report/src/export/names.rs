//! Names in C that collide neither with each other nor with the macros the header defines.

use super::ExportError;
use std::collections::BTreeSet;

/// Reserved in C or C++, and short enough to be a parameter's name in lower case.
const KEYWORDS: [&str; 58] = [
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "not",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "union",
    "unsigned",
    "void",
];

/// A device's or kernel's name as a macro or a file name, in Kernel Tuner's way: every run of other
/// characters than letters and digits is one `_`.
#[must_use]
pub fn target(device: &str) -> String {
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

/// The kernel's name as a prefix of identifiers.
pub(super) fn identifier(kernel: &str) -> String {
    // Two underscores in a row belong to the compiler.
    let name = target(kernel);
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("k{name}")
    } else {
        name.to_owned()
    }
}

/// Refuses what the preprocessor does not take as a macro's name.
pub(super) fn check_macro(name: &str) -> Result<(), ExportError> {
    let mut characters = name.chars();
    let first = characters.next();
    let good = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
        && name != "defined";
    if good {
        Ok(())
    } else {
        Err(ExportError::NotAName(name.to_owned()))
    }
}

/// Struct members for macros: lower case, with `_` behind where that is taken. A member named like
/// a macro would be replaced by its value.
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
            while used.contains(&member) || KEYWORDS.contains(&member.as_str()) {
                member.push('_');
            }
            used.insert(member.clone());
            member
        })
        .collect()
}

/// Text as a C string literal.
pub(super) fn string(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                literal.push('\\');
                literal.push(char::from(byte));
            }
            // `??` may begin a trigraph.
            b'?' => literal.push_str("\\?"),
            0x20..=0x7e => literal.push(char::from(byte)),
            _ => literal.push_str(&format!("\\{byte:03o}")),
        }
    }
    literal.push('"');
    literal
}

/// Text inside a comment: cannot end it, nor open another.
pub(super) fn comment(text: &str) -> String {
    text.replace("*/", "* /")
        .replace("/*", "/ *")
        .replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests;
