//! Zero initializers, which NVRTC omits from its PTX: a `__constant__` or `__device__` variable
//! that the source sets to zero appears uninitialized there.

use super::render::Source;
use cuda_source::{blanked, is_word};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Adds an initializer to each `.const` and `.global` variable of zeros, except those that the
/// source declares without one. Variables not visibly declared in the source (macros, the toolkit's
/// headers) count as initialized.
pub(super) fn with_zero_initializers<'a>(ptx: &'a str, source: &Source) -> Cow<'a, str> {
    if !ptx.lines().any(is_bare_variable) {
        return Cow::Borrowed(ptx);
    }
    let texts = source.headers.iter().map(|header| header.text.as_str());
    let texts = texts.chain([source.text.as_str()]);
    let unset: BTreeSet<String> = texts.flat_map(declared_without_value).collect();
    let mut out = String::with_capacity(ptx.len() + 64);
    for line in ptx.split_inclusive('\n') {
        let declaration = line.trim_end();
        match declaration.strip_suffix(';') {
            Some(bare) if is_bare_variable(declaration) && !is_one_of(bare, &unset) => {
                let value = if bare.ends_with(']') { "{0}" } else { "0" };
                out.push_str(&format!("{bare} = {value};\n"));
            }
            _ => out.push_str(line),
        }
    }
    Cow::Owned(out)
}

/// Reports whether a line of PTX declares a module variable without an initializer.
fn is_bare_variable(line: &str) -> bool {
    let line = line.trim();
    let mut words = line.split_whitespace();
    let linkage = |word: &&str| matches!(*word, ".visible" | ".weak" | ".common");
    let space = words.by_ref().find(|word| !linkage(word));
    matches!(space, Some(".const" | ".global"))
        && line.ends_with(';')
        && !line.contains('=')
        && !line.contains("extern")
}

/// Reports whether the variable declared by a line of PTX has one of these names, mangled or not.
fn is_one_of(declaration: &str, names: &BTreeSet<String>) -> bool {
    let symbol = declaration.rsplit(char::is_whitespace).next();
    let symbol = symbol.and_then(|word| word.split('[').next());
    let symbol = symbol.unwrap_or_default();
    // The Itanium C++ ABI mangles a name as its length followed by its text.
    let same = |name: &String| symbol == name || symbol.contains(&format!("{}{name}", name.len()));
    names.iter().any(same)
}

/// Returns words of the declarations of `__constant__` and `__device__` variables without an
/// initializer.
fn declared_without_value(text: &str) -> Vec<String> {
    let text = blanked(text, true);
    let mut words = Vec::new();
    let marks = ["__constant__", "__device__"];
    let marks = marks.iter().flat_map(|mark| text.match_indices(mark));
    for (at, mark) in marks {
        let rest = &text[at + mark.len()..];
        let statement = rest.split(';').next().unwrap_or_default();
        if !statement.contains(['=', '{', '(']) {
            let parts = statement.split(|c: char| !c.is_ascii() || !is_word(c as u8));
            words.extend(parts.filter(|w| !w.is_empty()).map(str::to_owned));
        }
    }
    words
}

#[cfg(test)]
mod tests;
