//! Attributes after the braces of a type, which NVRTC drops: `struct T { … } __attribute__((packed));`.

use crate::text::{blanked, is_word};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Words that start an attribute with arguments in parentheses.
const ATTRIBUTES: [&str; 4] = [
    "__attribute__",
    "__attribute",
    "__align__",
    "__builtin_align__",
];
/// Words that start the definition of a type.
const TYPES: [&str; 4] = ["struct", "class", "union", "enum"];

/// Returns the names of macros that expand to attributes alone.
#[must_use]
pub fn attribute_macros(text: &str) -> BTreeSet<String> {
    // Most texts have none, and each compile asks.
    if !has_attributes(text) {
        return BTreeSet::new();
    }
    let code = blanked(text, false);
    let defined = code.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("define")?.trim_start();
        let name = rest.get(..word_at(rest, 0))?;
        let rest = rest.get(name.len()..)?;
        let value = match rest.strip_prefix('(') {
            Some(parameters) => parameters.split_once(')')?.1,
            None => rest,
        };
        let value = value.trim();
        let is_whole = end_of_list(value, 0, &BTreeSet::new()) == Some(value.len());
        (is_whole && !value.is_empty()).then(|| name.to_owned())
    });
    defined.collect()
}

fn has_attributes(text: &str) -> bool {
    ATTRIBUTES.iter().any(|word| text.contains(word))
}

/// Moves attributes after the braces of types to their keyword, where host compilers and NVRTC agree on the
/// meaning. Lines keep their numbers. `macros` are names of [`attribute_macros`].
#[must_use]
pub fn with_leading_attributes<'t>(text: &'t str, macros: &BTreeSet<String>) -> Cow<'t, str> {
    if !has_attributes(text) && macros.is_empty() {
        return Cow::Borrowed(text);
    }
    let code = blanked(text, true);
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (at, _) in code.match_indices('}') {
        if let Some((keyword, attribute)) = trailing(&code, at, macros) {
            let old = text.get(attribute.clone()).unwrap_or_default();
            edits.push((keyword..keyword, format!(" {old}")));
            edits.push((attribute, String::new()));
        }
    }
    if edits.is_empty() {
        return Cow::Borrowed(text);
    }
    // An edit moves everything after it, so the last position is changed first.
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut made = text.to_owned();
    for (range, with) in edits {
        made.replace_range(range, &with);
    }
    Cow::Owned(made)
}

/// Returns the end of a type's keyword and the range of the attributes after the brace at a position. Those
/// over several lines stay, as lines must keep their numbers.
fn trailing(code: &str, at: usize, macros: &BTreeSet<String>) -> Option<(usize, Range<usize>)> {
    let after = code.get(at + 1..)?;
    let start = code.len() - after.trim_start().len();
    let end = end_of_list(code, start, macros).filter(|end| *end > start)?;
    let one_line = !code.get(start..end)?.contains(['\n', '\\']);
    Some((keyword_of(code, at, macros)?, start..end)).filter(|_| one_line)
}

/// Returns the length of the identifier at a position.
fn word_at(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| is_word(**byte)).count()
}

/// Returns the end of a list of attributes; `None` if a parenthesis is not closed.
fn end_of_list(code: &str, start: usize, macros: &BTreeSet<String>) -> Option<usize> {
    let mut end = start;
    let mut at = start;
    loop {
        let length = word_at(code, at);
        let word = code.get(at..at + length)?;
        let is_macro = macros.contains(word);
        if !is_macro && !ATTRIBUTES.contains(&word) {
            return Some(end);
        }
        let rest = code.get(at + length..)?;
        let open = rest.len() - rest.trim_start().len();
        end = match rest.get(open..).is_some_and(|rest| rest.starts_with('(')) {
            true => at + length + closing(rest, open)?,
            false if is_macro => at + length,
            false => return None,
        };
        let rest = code.get(end..)?;
        at = end + rest.len() - rest.trim_start().len();
    }
}

/// Returns the byte after the parenthesis that closes the one at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at + 1),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the end of the keyword of the type whose body ends at a brace; `None` for another body.
fn keyword_of(code: &str, closing: usize, macros: &BTreeSet<String>) -> Option<usize> {
    let mut depth = 0_usize;
    let before = code.get(..closing)?;
    let open = before.rmatch_indices(['{', '}']).find_map(|(at, brace)| {
        match brace {
            "}" => depth += 1,
            _ if depth == 0 => return Some(at),
            _ => depth -= 1,
        }
        None
    })?;
    let start = before
        .get(..open)?
        .rfind([';', '{', '}'])
        .map_or(0, |at| at + 1);
    let head = code.get(start..open)?;
    let takes_list =
        |word: &str| word == "alignas" || ATTRIBUTES.contains(&word) || macros.contains(word);
    // `template <class X> struct T : Base<struct Y>`: the keyword is outside of brackets, before the bases.
    let (mut at, mut depth, mut keyword, mut last) = (0, 0_usize, None, "");
    while at < head.len() {
        let length = word_at(head, at);
        let word = head.get(at..at + length)?;
        match head.as_bytes().get(at) {
            // `struct T f() { … }` and `struct T t = { … }` define no type.
            Some(b'(') if depth == 0 && keyword.is_some() && !takes_list(last) => return None,
            Some(b'=') if depth == 0 => return None,
            Some(b'<' | b'(') => depth += 1,
            Some(b'>' | b')') => depth = depth.saturating_sub(1),
            Some(b':') if depth == 0 && keyword.is_some() => break,
            _ if depth == 0 && TYPES.contains(&word) => keyword = Some(start + at + length),
            _ => {}
        }
        last = if word.is_empty() { last } else { word };
        at += length.max(1);
    }
    keyword
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(text: &str) -> String {
        with_leading_attributes(text, &attribute_macros(text)).into_owned()
    }

    #[test]
    fn attributes_after_a_type_move_to_its_keyword() {
        for (text, expected) in [
            (
                "struct T { char c; } __attribute__((packed));",
                "struct __attribute__((packed)) T { char c; } ;",
            ),
            (
                "typedef struct { float a; } __align__(16) T;",
                "typedef struct __align__(16) { float a; }  T;",
            ),
            (
                "struct T {\n  float a;\n} /* all */ __attribute__((packed)) __align__(2); // ;",
                "struct __attribute__((packed)) __align__(2) T {\n  float a;\n} /* all */ ; // ;",
            ),
            (
                "enum class E : char { A } __attribute__((packed));",
                "enum class __attribute__((packed)) E : char { A } ;",
            ),
            (
                "template <class X> struct Q : B<struct Y> { X f; } __attribute__((packed));",
                "template <class X> struct __attribute__((packed)) Q : B<struct Y> { X f; } ;",
            ),
            (
                "struct O { struct { int a; } __align__(8) in; int b; } __align__(32) o;",
                "struct __align__(32) O { struct __align__(8) { int a; }  in; int b; }  o;",
            ),
        ] {
            assert_eq!(moved(text), expected);
        }
    }

    #[test]
    fn macros_of_attributes_move_with_their_arguments() {
        let macros = "#define PACKED __attribute__((packed))\n#define ALIGN(n) __align__(n)\n";
        let text = format!("{macros}struct T {{ int a; }} PACKED ALIGN(2);\n");
        assert_eq!(
            moved(&text),
            format!("{macros}struct PACKED ALIGN(2) T {{ int a; }} ;\n")
        );
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "struct T { int a; };\n__attribute__((unused)) int z;",
            "struct T { int a; } PACKED;",
            "void f() {} __attribute__((noinline)) void g();",
            "struct T f() { return {}; } __attribute__((noinline)) void g();",
            "namespace n { } __attribute__((unused)) int z;",
            "struct __align__(16) T { float a; };",
            "// struct T { } __align__(16);\n\"struct T { } __align__(16)\";",
            "struct T { int a; } __attribute__((packed",
        ] {
            assert_eq!(moved(text), text);
        }
    }
}
