//! Expansion of macros that contain launches.
//!
//! Bindings for PyTorch and dispatch over template arguments launch kernels inside `#define`, where a
//! syntax tree has no call. The expansion, with the enclosing functions, is a separate text that is only
//! searched for launches and never enters a template.

use super::tree::{Node, Source, is_word, visit};
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum depth of macro expansions.
const MAX_DEPTH: usize = 6;
/// Maximum bytes of expansions of one file.
const MAX_TEXT: usize = 1 << 20;

/// A function-like macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Macro {
    parameters: Vec<String>,
    body: String,
}

/// Macros whose expansion contains a launch, also through other macros.
#[derive(Debug, Default)]
pub(crate) struct Launching(BTreeMap<String, Macro>);

impl Launching {
    /// Collects the macros of these files.
    pub(crate) fn collect(files: &[Source]) -> Self {
        Self(leading_to(files, |body, through| {
            through || body.contains("<<<")
        }))
    }

    /// Returns the positions outside definitions where a file uses such macros.
    pub(crate) fn uses(&self, source: &Source) -> Vec<Range<usize>> {
        let code = source.code(&(0..source.len()));
        let root = source.tree().root_node();
        let own = |at: &Range<usize>| {
            let node = root.descendant_for_byte_range(at.start, at.start);
            !matches!(node.and_then(outermost), Some(Place::Definition))
        };
        let all = self.0.keys().flat_map(|name| calls(code, name));
        let mut uses: Vec<Range<usize>> = all.map(|call| call.at).filter(own).collect();
        uses.sort_unstable_by_key(|at| at.start);
        uses
    }

    /// Expands the functions of a file that use such macros, and those that such macros define; empty if
    /// there are none.
    pub(crate) fn written_out(&self, source: &Source) -> String {
        let root = source.tree().root_node();
        let mut found = String::new();
        let mut done: Vec<Range<usize>> = Vec::new();
        for at in self.uses(source) {
            if found.len() > MAX_TEXT || done.iter().any(|range| range.contains(&at.start)) {
                continue;
            }
            let around = root.descendant_for_byte_range(at.start, at.start);
            let range = match around.and_then(outermost) {
                Some(Place::Function(range)) => range,
                Some(Place::Definition) | None => at,
            };
            found.push_str(&expanded(&self.0, source.text(&range)));
            found.push('\n');
            done.push(range);
        }
        found
    }
}

/// Expands these macros in a text, including nested ones.
pub(crate) fn expanded(macros: &BTreeMap<String, Macro>, text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..MAX_DEPTH {
        let before = text.len();
        let mut changed = false;
        for (name, each) in macros {
            // Starts at the last one: a replacement moves everything after it.
            for call in outermost_calls(calls(&text, name)).into_iter().rev() {
                if text.len() > MAX_TEXT {
                    return text;
                }
                text.replace_range(call.at, &each.applied(&call.arguments));
                changed = true;
            }
        }
        if !changed && text.len() == before {
            break;
        }
    }
    text
}

/// Returns the function-like macros of files that a test selects: by their body, and by whether it uses a
/// macro that was selected before.
pub(crate) fn leading_to(
    files: &[Source],
    chosen: impl Fn(&str, bool) -> bool,
) -> BTreeMap<String, Macro> {
    let mut all: BTreeMap<String, Macro> = BTreeMap::new();
    for (name, each) in files.iter().flat_map(definitions) {
        all.entry(name).or_insert(each);
    }
    let mut found: BTreeMap<String, Macro> = BTreeMap::new();
    loop {
        let through = |body: &str| found.keys().any(|name| !calls(body, name).is_empty());
        let (more, rest): (BTreeMap<_, _>, _) = all
            .into_iter()
            .partition(|(_, each)| chosen(&each.body, through(&each.body)));
        all = rest;
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Returns the function-like macros of a file by name.
fn definitions(source: &Source) -> Vec<(String, Macro)> {
    let mut all = Vec::new();
    visit(source.tree().root_node(), &mut |node| {
        if node.kind() == "preproc_function_def" {
            all.extend(definition(source, node));
        }
        true
    });
    all
}

impl Macro {
    /// Substitutes arguments into the macro's body.
    fn applied(&self, arguments: &[String]) -> String {
        let mut made = String::new();
        let variadic = self.parameters.iter().position(|name| name == "...");
        for word in pieces(&self.body) {
            let at = self.parameters.iter().position(|name| name == word);
            match (at, variadic) {
                (Some(at), _) => made.push_str(arguments.get(at).map_or("", String::as_str)),
                (None, Some(first)) if word == "__VA_ARGS__" => {
                    made.push_str(&arguments.get(first..).unwrap_or_default().join(", "));
                }
                _ => made.push_str(word),
            }
        }
        pasted(&made)
    }
}

/// Position of a name.
enum Place {
    Function(Range<usize>),
    Definition,
}

fn outermost(node: Node<'_>) -> Option<Place> {
    let (mut at, mut found) = (Some(node), None);
    while let Some(node) = at {
        match node.kind() {
            "preproc_function_def" | "preproc_def" => return Some(Place::Definition),
            "function_definition" => found = Some(Place::Function(node.byte_range())),
            _ => {}
        }
        at = node.parent();
    }
    found
}

fn definition(source: &Source, node: Node<'_>) -> Option<(String, Macro)> {
    let name = source
        .node_text(node.child_by_field_name("name")?)
        .to_owned();
    let parameters = source.node_text(node.child_by_field_name("parameters")?);
    let parameters = parameters.replace("\\\n", " ");
    let parameters = parameters.trim_matches(['(', ')']).split(',');
    let parameters = parameters.map(|name| name.trim().to_owned()).collect();
    let body = source.code(&node.child_by_field_name("value")?.byte_range());
    let body = body.replace("\\\n", "\n");
    Some((name, Macro { parameters, body }))
}

/// One use of a macro.
pub(crate) struct Call {
    at: Range<usize>,
    arguments: Vec<String>,
}

/// Finds every `NAME(…)` in a text.
pub(crate) fn calls(text: &str, name: &str) -> Vec<Call> {
    let in_word = |c: Option<char>| c.is_some_and(is_word);
    let mut found: Vec<Call> = Vec::new();
    for (start, _) in text.match_indices(name) {
        let (before, rest) = text.split_at(start);
        let rest = rest.get(name.len()..).unwrap_or_default();
        let own = !in_word(before.chars().next_back()) && !in_word(rest.chars().next());
        let gap = rest.len() - rest.trim_start().len();
        if !own || !rest.trim_start().starts_with('(') {
            continue;
        }
        if let Some((length, arguments)) = listed(rest.get(gap..).unwrap_or_default()) {
            let end = start + name.len() + gap + length;
            found.push(Call {
                at: start..end,
                arguments,
            });
        }
    }
    found
}

/// Keeps the calls that are not nested in the arguments of another one, whose end an expansion would move.
/// The others are found again in the expanded text.
fn outermost_calls(mut calls: Vec<Call>) -> Vec<Call> {
    let mut end = 0;
    calls.retain(|call| {
        let is_apart = call.at.start >= end;
        if is_apart {
            end = call.at.end;
        }
        is_apart
    });
    calls
}

/// Returns the length of an argument list in brackets and its arguments.
pub(crate) fn listed(text: &str) -> Option<(usize, Vec<String>)> {
    let (mut depth, mut parts, mut from) = (0_usize, Vec::new(), 1);
    let part = |range: Range<usize>| text.get(range).unwrap_or_default().trim().to_owned();
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    parts.push(part(from..at));
                    return Some((at + 1, parts));
                }
            }
            ',' if depth == 1 => {
                parts.push(part(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// Splits a text into names and the text between them.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = in_word(first);
        let end = rest.find(|c| in_word(c) != word).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        found.push(piece);
        rest = after;
    }
    found
}

/// Applies `a ## b` and `#a`.
fn pasted(text: &str) -> String {
    let mut made = String::new();
    for (at, piece) in text.split("##").enumerate() {
        if at == 0 {
            made.push_str(piece);
        } else {
            made.truncate(made.trim_end().len());
            made.push_str(piece.trim_start());
        }
    }
    made.replace('#', " ")
}

#[cfg(test)]
mod tests;
