//! Syntax trees of CUDA files and queries on them.

use super::AdoptError;
use super::macros::Launching;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tree_sitter::{Parser, Tree};
use tuner_core::files;

pub(crate) use tree_sitter::Node;

/// A file and its syntax tree.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path.
    pub(crate) path: PathBuf,
    /// Name in messages.
    pub(crate) shown: String,
    text: String,
    /// The text with comments and literals blanked.
    code: String,
    tree: Tree,
}

impl Source {
    pub(crate) fn read(path: &Path) -> Result<Self, AdoptError> {
        let unreadable = |why: String| AdoptError::Unreadable {
            path: path.display().to_string(),
            why,
        };
        let bytes = files::read(path, files::MAX_TEXT_BYTES)
            .map_err(|error| unreadable(error.to_string()))?;
        // Latin-1 names of authors must not make a file unreadable.
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        let shown = tuner_kernel::catalog::shown(path);
        Self::parse(path, shown, text).ok_or_else(|| unreadable("it cannot be parsed".to_owned()))
    }

    pub(crate) fn parse(path: &Path, shown: String, text: String) -> Option<Self> {
        let mut parser = Parser::new();
        parser
            .set_language(&tree_sitter_cuda::LANGUAGE.into())
            .ok()?;
        let tree = parser.parse(parsable(&text), None)?;
        let mut source = Self {
            path: path.to_owned(),
            shown,
            code: blanked(&text, tree.root_node()),
            text,
            tree,
        };
        // `BIND(f32, 4)` without a semicolon would swallow the next declaration.
        let uses = Launching::collect(std::slice::from_ref(&source)).uses(&source);
        if !uses.is_empty() {
            let mut bytes = parsable(&source.text);
            for at in uses {
                blank(bytes.get_mut(at).unwrap_or_default());
            }
            source.tree = parser.parse(&bytes, None)?;
        }
        Some(source)
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn text(&self, at: &Range<usize>) -> &str {
        self.text.get(at.clone()).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the text without comments and literals.
    pub(crate) fn code(&self, at: &Range<usize>) -> &str {
        self.code.get(at.clone()).unwrap_or_default()
    }

    pub(crate) fn node_text(&self, node: Node<'_>) -> &str {
        self.text(&node.byte_range())
    }

    /// Returns the line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// CUDA attributes that the grammar does not accept everywhere.
const ATTRIBUTES: [&str; 3] = ["__cluster_dims__", "__maxnreg__", "__block_size__"];

/// Spellings of keywords in GNU C++ that neither the grammar nor NVRTC knows.
pub(crate) const GNU_KEYWORDS: [(&str, &str); 4] = [
    ("__const__", "const"),
    ("__const", "const"),
    ("__signed__", "signed"),
    ("__signed", "signed"),
];

/// Writes keywords of GNU C++ as the standard does, padded to the same length.
fn replace_gnu_keywords(text: &str, bytes: &mut [u8]) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    for (gnu, standard) in GNU_KEYWORDS {
        for (at, _) in text.match_indices(gnu) {
            let (before, rest) = (text.get(..at), text.get(at + gnu.len()..));
            let whole = !before.is_some_and(|it| it.ends_with(is_part))
                && !rest.is_some_and(|it| it.starts_with(is_part));
            if let (true, Some(place)) = (whole, bytes.get_mut(at..at + gnu.len())) {
                blank(place);
                place
                    .iter_mut()
                    .zip(standard.bytes())
                    .for_each(|(to, from)| *to = from);
            }
        }
    }
}

/// Returns a text of the same length for the parser: without unsupported attributes and without
/// directives inside enumerations.
fn parsable(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    replace_gnu_keywords(text, &mut bytes);
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

/// Blanks comments and string literals; keeps the length.
fn blanked(text: &str, root: Node<'_>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    visit(root, &mut |node| {
        if !matches!(
            node.kind(),
            "comment" | "string_literal" | "char_literal" | "raw_string_literal"
        ) {
            return true;
        }
        blank(bytes.get_mut(node.byte_range()).unwrap_or_default());
        false
    });
    String::from_utf8(bytes).unwrap_or_default()
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
pub(crate) fn visit<'t>(root: Node<'t>, visit: &mut dyn FnMut(Node<'t>) -> bool) {
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        if visit(node) {
            let mut cursor = node.walk();
            let first = waiting.len();
            waiting.extend(node.children(&mut cursor));
            if let Some(added) = waiting.get_mut(first..) {
                added.reverse();
            }
        }
    }
}

/// Returns the named children of a node without comments.
pub(crate) fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| child.kind() != "comment")
        .collect()
}

/// Returns the first named child.
pub(crate) fn first(node: Node<'_>) -> Option<Node<'_>> {
    named(node).into_iter().next()
}

/// Returns the identifiers of a text.
pub(crate) fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .collect()
}

/// Returns the declaration inside a template.
pub(crate) fn inner(node: Node<'_>) -> Node<'_> {
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
pub(crate) fn bare(node: Node<'_>) -> Option<Node<'_>> {
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
pub(crate) fn body(node: Node<'_>) -> Option<Node<'_>> {
    inner(node).child_by_field_name("body")
}

/// Returns the function declarator of a node, if it has one.
pub(crate) fn function(node: Node<'_>) -> Option<Node<'_>> {
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

pub(crate) fn is_function(node: Node<'_>) -> bool {
    let found = inner(node);
    matches!(
        found.kind(),
        "function_definition" | "declaration" | "template_instantiation"
    ) && function(node).is_some()
}

/// Returns the name in a declarator without qualifiers.
pub(crate) fn declared_name<'s>(source: &'s Source, declarator: Node<'_>) -> Vec<&'s str> {
    let mut names = Vec::new();
    let mut at = declarator;
    loop {
        match at.kind() {
            "identifier" | "type_identifier" | "field_identifier" => {
                names.push(source.node_text(at));
                return names;
            }
            "qualified_identifier" => {
                names.extend(words(source.node_text(at)));
                return names;
            }
            "template_function" | "template_type" => match at.child_by_field_name("name") {
                Some(name) => at = name,
                None => return names,
            },
            "operator_name" | "destructor_name" => return vec!["operator"],
            _ => {
                let next = at
                    .child_by_field_name("declarator")
                    .or_else(|| at.named_child(0));
                match next {
                    Some(next) => at = next,
                    None => return names,
                }
            }
        }
    }
}

/// Returns the names that a file-scope item declares.
pub(crate) fn declared(source: &Source, node: Node<'_>) -> Vec<String> {
    let node = inner(node);
    let mut names: Vec<&str> = Vec::new();
    let mut cursor = node.walk();
    for declarator in node.children_by_field_name("declarator", &mut cursor) {
        names.extend(declared_name(source, declarator));
    }
    let types = [Some(node), node.child_by_field_name("type")];
    for ty in types.into_iter().flatten() {
        if ty.kind().ends_with("_specifier") || ty.kind() == "concept_definition" {
            if let Some(name) = ty.child_by_field_name("name") {
                names.extend(words(source.node_text(name)).first());
            }
            if ty.kind() == "enum_specifier" {
                visit(ty, &mut |inner| {
                    if inner.kind() == "enumerator"
                        && let Some(name) = inner.child_by_field_name("name")
                    {
                        names.push(source.node_text(name));
                    }
                    true
                });
            }
        }
    }
    match node.kind() {
        "alias_declaration" | "namespace_alias_definition" => {
            names.extend(
                node.child_by_field_name("name")
                    .map(|name| source.node_text(name)),
            );
        }
        "using_declaration" => names.extend(words(source.node_text(node)).last()),
        // Code that fails to parse may declare any name before a bracket.
        "ERROR" | "expression_statement" => {
            let text = source.code(&node.byte_range());
            names.extend(text.split('(').filter_map(|piece| words(piece).pop()));
            names.extend(text.split('{').filter_map(|piece| words(piece).pop()));
        }
        _ => {}
    }
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
