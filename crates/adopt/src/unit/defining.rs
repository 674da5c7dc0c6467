//! Uses of macros at file scope that define functions, types or variables, such as
//! `DEFINE_OPERATION(add, +)`.
//!
//! The grammar parses such a line as the start of the next declaration, and the line does not contain the
//! declared names. The macro is expanded to find the names; the line itself enters the template unchanged.

use super::kind::{Kind, kind_of};
use crate::macros::{self, Macro, leading_to, listed};
use crate::tree::{self, Node, Source, is_word, words};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// A use of a defining macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    /// Byte range.
    pub(super) at: Range<usize>,
    /// Names that the expansion declares; empty if all of it is host code or an instance.
    pub(super) names: Vec<String>,
    /// It is a `_Pragma`, or a macro that expands to some.
    pub(super) is_pragma: bool,
}

/// Function-like macros of a unit whose expansion is a list of declarations.
#[derive(Debug, Default)]
pub(super) struct Defining {
    macros: BTreeMap<String, Macro>,
    /// Macros that expand to `__device__`.
    annotations: BTreeSet<String>,
    /// `_Pragma` and macros that expand to it alone.
    pragmas: BTreeSet<String>,
    /// Lines that open or close scopes, by the macro that they consist of.
    pub(super) scopes: BTreeMap<String, String>,
}

impl Defining {
    /// Collects the macros of these files.
    pub(super) fn collect(files: &[Source]) -> Self {
        let macros = leading_to(files, |body, through| {
            let whole = body.matches('{').count() == body.matches('}').count();
            let declares = through || body.contains(['{', ';']);
            // Kernels and launches inside macros are read elsewhere.
            let kernel = body.contains("__global__") && !instantiates(body);
            whole && declares && !kernel && !body.contains("<<<")
        });
        let values: Vec<(String, String)> = files.iter().flat_map(values).collect();
        let with = |wanted: fn(&str) -> bool| {
            let found = values.iter().filter(move |(_, value)| wanted(value));
            found.map(|(name, _)| name.clone())
        };
        let own = std::iter::once("_Pragma".to_owned());
        Self {
            macros,
            annotations: with(|value| value.contains("__device__")).collect(),
            pragmas: with(|value| value.starts_with("_Pragma"))
                .chain(own)
                .collect(),
            scopes: scopes(&values),
        }
    }

    /// Returns the uses in a file.
    pub(super) fn uses(&self, source: &Source) -> Vec<Use> {
        let places = self.places(source.code(&(0..source.len())));
        let used = places.into_iter().map(|at| {
            let code = source.code(&at);
            let is_pragma = words(code)
                .first()
                .is_some_and(|name| self.pragmas.contains(*name));
            let names = match is_pragma {
                true => Vec::new(),
                false => {
                    let expanded = macros::expanded(&self.macros, code);
                    self.declarations(&source.path, expanded)
                }
            };
            Use {
                at,
                names,
                is_pragma,
            }
        });
        used.collect()
    }

    /// Returns the names that a text declares at file scope; empty if all of it is host code or an
    /// instance.
    fn declarations(&self, path: &Path, text: String) -> Vec<String> {
        if instantiates(&text) {
            return Vec::new();
        }
        let annotated = words(&text)
            .into_iter()
            .any(|word| self.annotations.contains(word));
        let Some(source) = Source::parse(path, String::new(), text) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        inside(&source, source.tree().root_node(), &mut found);
        let host = |(kind, _): &(Kind, _)| matches!(kind, Kind::Host | Kind::HostVariable);
        if !annotated && found.iter().all(host) {
            return Vec::new();
        }
        found.into_iter().flat_map(|(_, names)| names).collect()
    }
}

/// Reports whether a text starts with an explicit instance of a template: `template void f<int>(int);`.
fn instantiates(text: &str) -> bool {
    let rest = text.trim_start().strip_prefix("template");
    rest.is_some_and(|rest| {
        rest.starts_with(char::is_whitespace) && !rest.trim_start().starts_with('<')
    })
}

/// Returns the object-like macros of a file with their values, without comments.
fn values(source: &Source) -> Vec<(String, String)> {
    let mut found = Vec::new();
    tree::visit(source.tree().root_node(), &mut |node| {
        if node.kind() == "preproc_def"
            && let Some(name) = node.child_by_field_name("name")
        {
            let value = node.child_by_field_name("value");
            let value = value.map_or("", |value| source.node_text(value));
            let value = cuda_source::blanked(value, false).trim().to_owned();
            found.push((source.node_text(name).to_owned(), value));
        }
        true
    });
    found
}

/// Returns the macros that open or close scopes, such as `#define BEGIN namespace a {`, with their value. One
/// with several values is omitted.
fn scopes(values: &[(String, String)]) -> BTreeMap<String, String> {
    // A line must stay one line.
    let is_scope = |value: &str| {
        value.matches('{').count() != value.matches('}').count() && !value.contains('\n')
    };
    let others = |name: &str, value: &str| {
        let mut all = values.iter();
        all.any(|(known, other)| known == name && other != value)
    };
    let found = values
        .iter()
        .filter(|(name, value)| is_scope(value) && !others(name, value));
    found.cloned().collect()
}

fn inside(source: &Source, node: Node<'_>, found: &mut Vec<(Kind, Vec<String>)>) {
    let mut cursor = node.walk();
    let all: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
    for child in all {
        match child.kind() {
            "namespace_definition" | "linkage_specification" => {
                if let Some(body) = child.child_by_field_name("body") {
                    inside(source, body, found);
                }
            }
            "comment" => {}
            _ => {
                let kind = kind_of(source.node_text(child), child);
                found.push((kind, tree::declared(source, child)));
            }
        }
    }
}

impl Defining {
    /// Finds the uses of macros that start a declaration outside of all functions and types. `code` has no
    /// comments and literals.
    fn places(&self, code: &str) -> Vec<Range<usize>> {
        let is_known = |name: &str| self.macros.contains_key(name) || self.pragmas.contains(name);
        if !words(code).into_iter().any(is_known) {
            return Vec::new();
        }
        let mut found = Vec::new();
        // Whether each open bracket is that of a namespace or `extern "C"`.
        let mut open: Vec<bool> = Vec::new();
        let (mut at, mut begin) = (0, 0);
        let part = |from: usize, to: usize| code.get(from..to).unwrap_or_default();
        while let Some(c) = part(at, code.len()).chars().next() {
            let starts_line = part(0, at).trim_end_matches([' ', '\t']).ends_with('\n') || at == 0;
            let next = at + c.len_utf8();
            match c {
                '#' if starts_line => {
                    at = end_of_directive(code, at);
                    begin = if part(begin, at).trim_start().starts_with('#') {
                        at
                    } else {
                        begin
                    };
                    continue;
                }
                '{' => {
                    open.push(tree::opens_scope(part(begin, at)));
                    begin = next;
                }
                '}' => {
                    open.pop();
                    begin = next;
                }
                ';' => begin = next,
                _ if c.is_alphabetic() || c == '_' => {
                    let rest = part(at, code.len());
                    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                    let end = at + length;
                    let first =
                        part(begin, at).trim().is_empty() && open.iter().all(|scope| *scope);
                    let after = part(end, code.len());
                    let gap = after.len() - after.trim_start().len();
                    let has_list = after.trim_start().starts_with('(');
                    let listed = match first && has_list && is_known(part(at, end)) {
                        true => listed(part(end + gap, code.len())),
                        false => None,
                    };
                    let is_pragma = first && self.pragmas.contains(part(at, end));
                    let used = match listed {
                        Some((list, _)) => Some(end + gap + list),
                        None => Some(end).filter(|_| is_pragma),
                    };
                    if let Some(end) = used {
                        found.push(at..end);
                        begin = end;
                    }
                    at = used.unwrap_or(end);
                    continue;
                }
                _ => {}
            }
            at = next;
        }
        found
    }
}

/// Returns the end of a preprocessor directive with its continued lines.
fn end_of_directive(code: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = code.get(at..).unwrap_or_default();
        let Some(line) = rest.find('\n') else {
            return code.len();
        };
        at += line + 1;
        if !rest
            .get(..line)
            .unwrap_or_default()
            .trim_end()
            .ends_with('\\')
        {
            return at;
        }
    }
}
