//! Syntax trees of CUDA files and queries on them.

mod heads;

use super::AdoptError;
use super::macros::Launching;
use cuda_source::tree::parse;
pub(crate) use heads::opens_scope;
use heads::{HeadGroup, head_groups};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tuner_core::files;

pub(crate) use cuda_source::tree::{
    GNU_KEYWORDS, Node, Tree, bare, body, first, function, inner, is_function, is_word, listed,
    named, visit, words,
};

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
    /// Uses of macros that are separate items.
    left_out: Vec<Range<usize>>,
    /// Groups of conditional compilation that begin declarations.
    heads: Vec<HeadGroup>,
}

impl Source {
    /// Reads a file; lines that consist of one of these macros become its value.
    pub(crate) fn read(path: &Path, scopes: &BTreeMap<String, String>) -> Result<Self, AdoptError> {
        let unreadable = |why: String| AdoptError::Unreadable {
            path: path.display().to_string(),
            why,
        };
        let bytes = files::read(path, files::MAX_TEXT_BYTES)
            .map_err(|error| unreadable(error.to_string()))?;
        // Latin-1 names of authors must not make a file unreadable.
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        // The grammar cannot parse attributes after the braces of a type. It can parse a macro there.
        let text = cuda_source::with_leading_attributes(&text, &BTreeSet::new()).into_owned();
        let text = with_scopes(&text, scopes);
        let shown = tuner_kernel::catalog::shown(path);
        Self::parse(path, shown, text).ok_or_else(|| unreadable("it cannot be parsed".to_owned()))
    }

    pub(crate) fn parse(path: &Path, shown: String, text: String) -> Option<Self> {
        let code = cuda_source::blanked(&text, true);
        let heads = head_groups(&code);
        let hidden: Vec<Range<usize>> = heads.iter().flat_map(HeadGroup::hidden).collect();
        let tree = parse(&text, &hidden)?;
        let mut source = Self {
            path: path.to_owned(),
            shown,
            code,
            text,
            tree,
            left_out: Vec::new(),
            heads,
        };
        // `BIND(f32, 4)` without a semicolon would swallow the next declaration.
        let uses = Launching::collect(std::slice::from_ref(&source)).uses(&source);
        if !uses.is_empty() {
            source.tree = parse(&source.text, &[uses, hidden].concat())?;
        }
        Some(source)
    }

    /// Returns the start of a declaration with the groups of conditional compilation that begin it.
    pub(crate) fn head_start(&self, at: usize) -> usize {
        let mut start = at;
        for HeadGroup { at, .. } in self.heads.iter().rev() {
            let between = self.code.get(at.end..start);
            let is_before = between.is_some_and(|between| between.trim().is_empty());
            if at.contains(&start) || is_before {
                start = at.start;
            }
        }
        start
    }

    /// Omits ranges from the syntax tree, in addition to those already omitted.
    pub(crate) fn leave_out(&mut self, places: impl Iterator<Item = Range<usize>>) {
        let mut all = Launching::collect(std::slice::from_ref(self)).uses(self);
        self.left_out = places.collect();
        all.extend(self.left_out.iter().cloned());
        all.extend(self.heads.iter().flat_map(HeadGroup::hidden));
        if let Some(tree) = parse(&self.text, &all) {
            self.tree = tree;
        }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn text(&self, at: &Range<usize>) -> &str {
        self.text.get(at.clone()).unwrap_or_default()
    }

    /// Returns the text without the ranges that the syntax tree omits, at the same positions.
    pub(crate) fn own_text(&self, at: &Range<usize>) -> String {
        let mut text = self.text(at).to_owned();
        for place in &self.left_out {
            let inside = at.start <= place.start && place.end <= at.end;
            let within = place.start.saturating_sub(at.start)..place.end.saturating_sub(at.start);
            if let Some(old) = text.get(within.clone()).filter(|_| inside) {
                let blank: String = old
                    .bytes()
                    .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
                    .collect();
                text.replace_range(within, &blank);
            }
        }
        text
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

/// Replaces the lines of a text that consist of one of these macros by its value: the grammar does not see
/// the namespaces that they open.
fn with_scopes(text: &str, scopes: &BTreeMap<String, String>) -> String {
    if scopes.is_empty() {
        return text.to_owned();
    }
    let code = cuda_source::blanked(text, true);
    let lines = text.split_inclusive('\n').zip(code.split_inclusive('\n'));
    let replaced = lines.map(|(line, code)| match scopes.get(code.trim()) {
        Some(value) => format!("{value}\n"),
        None => line.to_owned(),
    });
    replaced.collect()
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
                names.extend(words_outside_arguments(source.node_text(at)));
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

/// Returns the identifiers of a qualified name without those of its template arguments.
fn words_outside_arguments(name: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let pieces = name.split_inclusive(['<', '>']).filter(|piece| {
        let is_outside = depth == 0;
        match piece.ends_with('<') {
            true => depth += 1,
            false => depth = depth.saturating_sub(1),
        }
        is_outside
    });
    pieces.flat_map(words).collect()
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
        // Code that cannot be parsed may declare any name before a bracket.
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
