//! Syntax trees of CUDA sources, and queries on their nodes.

use std::ops::Range;
use tree_sitter::Parser;

pub use tree_sitter::{Node, Tree};

/// Parses a source; `without` are ranges that the grammar cannot parse and the tree omits. `None` if the
/// grammar and the parser's library have different versions.
#[must_use]
pub fn parse(text: &str, without: &[Range<usize>]) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_cuda::LANGUAGE.into())
        .ok()?;
    let mut bytes = parsable(text);
    for at in without {
        blank(bytes.get_mut(at.clone()).unwrap_or_default());
    }
    parser.parse(&bytes, None)
}

/// CUDA attributes that the grammar does not accept everywhere.
const ATTRIBUTES: [&str; 3] = ["__cluster_dims__", "__maxnreg__", "__block_size__"];

/// Spellings of keywords in GNU C++ that neither the grammar nor NVRTC supports.
pub const GNU_KEYWORDS: [(&str, &str); 4] = [
    ("__const__", "const"),
    ("__const", "const"),
    ("__signed__", "signed"),
    ("__signed", "signed"),
];

/// Rewrites keywords of GNU C++ to standard ones, padded to the same length.
fn replace_gnu_keywords(text: &str, bytes: &mut [u8]) {
    for (gnu, standard) in GNU_KEYWORDS {
        for (at, _) in text.match_indices(gnu) {
            let (before, rest) = (text.get(..at), text.get(at + gnu.len()..));
            let whole = !before.is_some_and(|it| it.ends_with(is_word))
                && !rest.is_some_and(|it| it.starts_with(is_word));
            if whole {
                respell(bytes, at..at + gnu.len(), standard);
            }
        }
    }
}

/// Reports whether a character may be part of an identifier.
#[must_use]
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Replaces the spelling at a range. The length stays, because positions in the tree are positions in the
/// source.
fn respell(bytes: &mut [u8], at: Range<usize>, spelling: &str) {
    let place = bytes.get_mut(at).unwrap_or_default();
    blank(place);
    for (to, from) in place.iter_mut().zip(spelling.bytes()) {
        *to = from;
    }
}

/// CUDA's spellings of `alignas`.
const ALIGNMENTS: [&str; 2] = ["__align__", "__builtin_align__"];

/// Words after which the grammar does not accept alignments.
const ALIGNED: [&str; 5] = ["struct", "class", "union", "__device__", "__constant__"];

/// Rewrites alignments of structures and variables to the standard form, padded to the same length.
fn replace_alignments(text: &str, bytes: &mut [u8]) {
    for alignment in ALIGNMENTS {
        for (at, _) in text.match_indices(alignment) {
            let before = text.get(..at).unwrap_or_default();
            let keyword = before.trim_end();
            let is_aligned = ALIGNED.iter().any(|word| {
                let rest = keyword.strip_suffix(word);
                rest.is_some_and(|rest| !rest.ends_with(is_word))
            });
            if is_aligned {
                respell(bytes, at..at + alignment.len(), "alignas");
            }
        }
    }
}

/// Rewrites braces around an extent of a launch to parentheses: `<<<grid, {32, 8}>>>`.
fn replace_launch_braces(text: &str, bytes: &mut [u8]) {
    for (at, opening) in text.match_indices("<<<") {
        let rest = text.get(at + opening.len()..).unwrap_or_default();
        let Some((config, _)) = rest.split_once(">>>") else {
            continue;
        };
        for (open, _) in config.match_indices('{') {
            let before = config.get(..open).unwrap_or_default().trim_end();
            if (before.is_empty() || before.ends_with(','))
                && let Some(end) = closing(config, open, '{', '}')
                && let Some(whole) = bytes.get_mut(at + opening.len() + open..)
                && let Some([first, .., last]) = whole.get_mut(..end - open)
            {
                (*first, *last) = (b'(', b')');
            }
        }
    }
}

/// Ends macros without a value where the compiler does: to the grammar such a macro continues on the next line
/// after blanks, or after a backslash before a blank line.
fn end_empty_macros(text: &str, bytes: &mut [u8]) {
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let start = at;
        at += line.len();
        let whole = line.trim_end();
        let continued = whole.strip_suffix('\\');
        if continued.is_some() && !lines.peek().is_some_and(|next| next.trim().is_empty()) {
            continue;
        }
        let kept = continued.unwrap_or(whole).trim_end();
        let end = line.trim_end_matches(['\n', '\r']).len();
        let Some(trailing) = bytes.get_mut(start + kept.len()..start + end) else {
            continue;
        };
        blank(trailing);
        match trailing {
            _ if !defines_nothing(kept) => {}
            // A comment ends at the end of its line, and so does a carriage return.
            [first, second, ..] => (*first, *second) = (b'/', b'/'),
            [only] => *only = b'\r',
            [] => {}
        }
    }
}

/// Reports whether a line is a `#define` without a value.
fn defines_nothing(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix('#').map(str::trim_start);
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix("define")) else {
        return false;
    };
    let name = rest.trim_start().trim_start_matches(is_word);
    name.is_empty() || name.starts_with('(') && name.find(')') == Some(name.len() - 1)
}

/// Returns a text of the same length for the parser: without unsupported attributes and without
/// directives inside enumerations.
fn parsable(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    replace_gnu_keywords(text, &mut bytes);
    replace_alignments(text, &mut bytes);
    replace_launch_braces(text, &mut bytes);
    end_empty_macros(text, &mut bytes);
    for attribute in ATTRIBUTES {
        for (at, _) in text.match_indices(attribute) {
            let rest = text.get(at + attribute.len()..).unwrap_or_default();
            let open = rest.len() - rest.trim_start().len();
            if rest.get(open..).is_some_and(|rest| rest.starts_with('('))
                && let Some(end) = closing(rest, open, '(', ')')
            {
                let whole = at..at + attribute.len() + end;
                blank(bytes.get_mut(whole).unwrap_or_default());
            }
        }
    }
    for (at, _) in text.match_indices("enum") {
        let rest = text.get(at..).unwrap_or_default();
        let Some(open) = rest.find(['{', ';', '(', ')']) else {
            continue;
        };
        if rest.get(open..).is_some_and(|rest| rest.starts_with('{'))
            && let Some(end) = closing(rest, open, '{', '}')
        {
            let mut start = at + open;
            for line in rest
                .get(open..end)
                .unwrap_or_default()
                .split_inclusive('\n')
            {
                if line.trim_start().starts_with('#') {
                    let whole = start..start + line.len();
                    blank(bytes.get_mut(whole).unwrap_or_default());
                }
                start += line.len();
            }
        }
    }
    bytes
}

/// Returns the byte after the bracket that closes the one at `open`.
fn closing(text: &str, open: usize, opens: char, closes: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.get(open..)?.char_indices() {
        if c == opens {
            depth += 1;
        } else if c == closes {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(open + at + c.len_utf8());
            }
        }
    }
    None
}

/// Blanks everything except line ends.
fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Visits a tree, below the nodes for which `visit` returns true. Iterative: trees may be deep.
pub fn visit<'t>(root: Node<'t>, visit: &mut dyn FnMut(Node<'t>) -> bool) {
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        if visit(node) {
            let mut cursor = node.walk();
            let first = waiting.len();
            waiting.extend(node.children(&mut cursor));
            if let Some(added) = waiting.get_mut(first..) {
                // The stack returns the last node first, and callers rely on the order of the
                // source.
                added.reverse();
            }
        }
    }
}

/// Returns the named children of a node without comments.
#[must_use]
pub fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| child.kind() != "comment")
        .collect()
}

/// Returns the elements of a list; those of a comma expression are its operands.
#[must_use]
pub fn listed(node: Node<'_>) -> Vec<Node<'_>> {
    let mut operands = Vec::new();
    for each in named(node) {
        match each.kind() {
            "comma_expression" => operands.extend(listed(each)),
            _ => operands.push(each),
        }
    }
    operands
}

/// Returns the first named child.
#[must_use]
pub fn first(node: Node<'_>) -> Option<Node<'_>> {
    named(node).into_iter().next()
}

/// Returns the identifiers of a text.
#[must_use]
pub fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !is_word(c))
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .collect()
}

/// Returns the declaration inside a template.
#[must_use]
pub fn inner(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    while node.kind() == "template_declaration" {
        match named(node).pop() {
            Some(child) => node = child,
            None => break,
        }
    }
    node
}

/// Strips parentheses and casts from an expression.
#[must_use]
pub fn bare(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node;
    loop {
        node = match node.kind() {
            "parenthesized_expression" => first(node)?,
            "cast_expression" => node.child_by_field_name("value")?,
            _ => return Some(node),
        };
    }
}

/// Returns the body of a function or type.
#[must_use]
pub fn body(node: Node<'_>) -> Option<Node<'_>> {
    inner(node).child_by_field_name("body")
}

/// Returns the function declarator of a node, if it has one.
#[must_use]
pub fn function(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = inner(node).child_by_field_name("declarator")?;
    loop {
        if at.kind() == "function_declarator" {
            return Some(at);
        }
        at = at
            .child_by_field_name("declarator")
            .or_else(|| at.named_child(0))?;
    }
}

/// Reports whether a node declares or defines a function.
#[must_use]
pub fn is_function(node: Node<'_>) -> bool {
    let found = inner(node);
    matches!(
        found.kind(),
        "function_definition" | "declaration" | "template_instantiation"
    ) && function(node).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str, without: &[Range<usize>]) -> Vec<String> {
        let tree = parse(text, without).expect("a tree");
        let nodes = named(tree.root_node()).into_iter();
        nodes.map(|node| node.kind().to_owned()).collect()
    }

    #[test]
    fn attributes_and_directives_that_the_grammar_lacks_are_left_out() {
        let text = "__global__ void __maxnreg__(64) k(int* x) { *x = 1; }\n";
        assert_eq!(kinds(text, &[]), ["function_definition"]);
        let text = "enum E {\n#define ONE 1\n  A = ONE\n};\n";
        assert_eq!(kinds(text, &[]), ["enum_specifier"]);
    }

    #[test]
    fn macros_without_a_value_end_on_their_line() {
        for name in ["N", "SET(x)", "SET(x, y)", "SET()"] {
            for end in [" ", "  ", "\t", "\\\n", " \\\n", " \\\n\n", " \\  \n \t"] {
                let text = format!("#define {name}{end}\n__global__ void k() {{}}\nint a;\n");
                let all = kinds(&text, &[]);
                assert!(all[0].starts_with("preproc_"), "{text}: {all:?}");
                assert_eq!(all[1..], ["function_definition", "declaration"], "{text}");
            }
        }
    }

    #[test]
    fn places_can_be_left_out() {
        let text = "BIND(f32, 4)\nvoid f() {}\nBIND(i32, 4)\n";
        let uses = text
            .match_indices("BIND(f32, 4)")
            .chain(text.match_indices("BIND(i32, 4)"));
        let uses: Vec<_> = uses.map(|(at, used)| at..at + used.len()).collect();
        assert_eq!(kinds(text, &uses), ["function_definition"]);
    }
}
