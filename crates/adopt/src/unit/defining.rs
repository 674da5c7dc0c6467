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
}

/// Function-like macros of a unit whose expansion is a list of declarations.
#[derive(Debug, Default)]
pub(super) struct Defining {
    macros: BTreeMap<String, Macro>,
    /// Macros that expand to `__device__`.
    annotations: BTreeSet<String>,
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
        Self {
            macros,
            annotations: files.iter().flat_map(annotations).collect(),
        }
    }

    /// Returns the uses in a file.
    pub(super) fn uses(&self, source: &Source) -> Vec<Use> {
        if self.macros.is_empty() {
            return Vec::new();
        }
        let places = places(source.code(&(0..source.len())), &self.macros);
        let used = places.into_iter().map(|at| {
            let expanded = macros::expanded(&self.macros, source.code(&at));
            let names = self.declarations(&source.path, expanded);
            Use { at, names }
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

/// Returns the names of object-like macros with `__device__` in their value.
fn annotations(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    tree::visit(source.tree().root_node(), &mut |node| {
        if node.kind() == "preproc_def" && source.node_text(node).contains("__device__") {
            let name = node.child_by_field_name("name");
            found.extend(name.map(|name| source.node_text(name).to_owned()));
        }
        true
    });
    found
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

/// Finds the uses of macros that start a declaration outside of all functions and types. `code` has no
/// comments and literals.
fn places(code: &str, known: &BTreeMap<String, Macro>) -> Vec<Range<usize>> {
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
                let head = words(part(begin, at));
                open.push(head.contains(&"namespace") || head == ["extern"]);
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
                let first = part(begin, at).trim().is_empty() && open.iter().all(|scope| *scope);
                let after = part(end, code.len());
                let gap = after.len() - after.trim_start().len();
                let listed = match first && known.contains_key(part(at, end)) {
                    true => listed(part(end + gap, code.len())),
                    false => None,
                };
                at = match listed {
                    Some((list, _)) => {
                        let end = end + gap + list;
                        found.push(at..end);
                        begin = end;
                        end
                    }
                    None => end,
                };
                continue;
            }
            _ => {}
        }
        at = next;
    }
    found
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
