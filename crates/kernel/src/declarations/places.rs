//! Positions of a kernel's parameters, and the macros that its parameter list can depend on.
#![expect(
    clippy::indexing_slicing,
    reason = "tokens and files are numbered by the lists that they were found in"
)]

use super::source::{File, is_name};
use std::collections::BTreeSet;
use std::ops::Range;

/// A kernel's declaration in the text.
#[derive(Debug, Clone)]
pub(super) struct Declaration {
    /// Index of the file.
    pub(super) file: usize,
    /// Position of its name.
    pub(super) name: Range<usize>,
    /// Range between its parentheses.
    list: Range<usize>,
    /// The enclosing namespaces, outermost first.
    pub(super) namespaces: Vec<String>,
    /// Positions of the parameters.
    pub(super) parameters: Vec<Range<usize>>,
}

/// Finds every position in the files where `entry` is followed by a parameter list and not called.
pub(super) fn declarations(files: &[File], entry: &str) -> Vec<Declaration> {
    let mut found = Vec::new();
    for (index, file) in files.iter().enumerate() {
        for (at, token) in file.tokens.iter().enumerate() {
            // A declaration has a type before its name; a call has punctuation or `return`.
            let before = file.word_at(at.checked_sub(1));
            let declares = is_name(before) || matches!(before, "*" | "&" | ">" | ")");
            if file.word(token) != entry
                || file.word_at(Some(at + 1)) != "("
                || !declares
                || matches!(before, "return" | "case")
            {
                continue;
            }
            let Some(list) = bracketed(file, at + 1) else {
                continue;
            };
            found.push(Declaration {
                file: index,
                name: token.clone(),
                parameters: parameters(file, &list),
                list,
                namespaces: namespaces(file, at),
            });
        }
    }
    found
}

/// Returns the declaration at a file and line of the compiler.
pub(super) fn chosen<'d>(
    all: &'d [Declaration],
    files: &[File],
    place: Option<&(String, usize)>,
) -> Option<&'d Declaration> {
    let Some((name, line)) = place else {
        return all.last();
    };
    all.iter()
        .filter(|each| files[each.file].name == *name)
        .min_by_key(|each| files[each.file].line(each.name.start).abs_diff(*line))
}

/// Returns the bytes between the bracket at token `open` and its end.
fn bracketed(file: &File, open: usize) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    for token in &file.tokens[open..] {
        match file.word(token) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 {
                    return Some(file.tokens[open].end..token.start);
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits a parameter list.
fn parameters(file: &File, list: &Range<usize>) -> Vec<Range<usize>> {
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    let mut piece: Option<Range<usize>> = None;
    let inside = |token: &&Range<usize>| token.start >= list.start && token.end <= list.end;
    for token in file.tokens.iter().filter(inside) {
        match file.word(token) {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                found.extend(piece.take());
                continue;
            }
            _ => {}
        }
        piece = Some(piece.map_or(token.clone(), |piece| piece.start..token.end));
    }
    found.extend(piece);
    found
}

/// Returns the namespaces that are open before a token.
fn namespaces(file: &File, before: usize) -> Vec<String> {
    // Each open brace, with the namespace names that it opens.
    let mut open: Vec<Vec<String>> = Vec::new();
    let mut pending: Option<Vec<String>> = None;
    for token in &file.tokens[..before] {
        match (file.word(token), &mut pending) {
            ("namespace", _) => pending = Some(Vec::new()),
            ("{", _) => open.push(pending.take().unwrap_or_default()),
            ("}", _) => {
                open.pop();
            }
            (";" | "=", _) => pending = None,
            (word, Some(names)) if is_name(word) && word != "inline" => {
                names.push(word.to_owned());
            }
            _ => {}
        }
    }
    open.concat()
}

/// Returns the names on which a declaration's parameter list can depend: those in it, those in the
/// definitions of these, and those in the conditions around all of them.
pub(super) fn influences(files: &[File], declared: &[Declaration]) -> BTreeSet<String> {
    let mut wanted: Vec<String> = Vec::new();
    for each in declared {
        let file = &files[each.file];
        let types = each.parameters.iter().map(|at| type_of(file, at));
        wanted.extend(types.flat_map(|at| names_in(file, &at)));
        wanted.extend(conditions(file, each.name.start));
        // Including conditions inside of the list.
        wanted.extend(conditions_within(file, &each.list));
    }
    closure(files, wanted)
}

/// Returns a parameter without its own name, which other code may use differently.
fn type_of(file: &File, parameter: &Range<usize>) -> Range<usize> {
    let inside =
        |token: &&Range<usize>| token.start >= parameter.start && token.end <= parameter.end;
    let tokens: Vec<&Range<usize>> = file.tokens.iter().filter(inside).collect();
    let qualifies = |word: &str| matches!(word, "const" | "volatile" | "__restrict__");
    let Some((last, before)) = tokens.split_last() else {
        return parameter.clone();
    };
    let mut types = before.iter().map(|token| file.word(token));
    if is_name(file.word(last)) && types.any(|word| is_name(word) && !qualifies(word)) {
        parameter.start..last.start
    } else {
        parameter.clone()
    }
}

/// Returns the names with those in their definitions, transitively.
pub(super) fn closure(files: &[File], mut wanted: Vec<String>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if all.contains(&name) {
            continue;
        }
        for file in files {
            for at in definitions(file, &name) {
                wanted.extend(names_in(file, &at));
                wanted.extend(conditions(file, at.start));
                wanted.extend(conditions_within(file, &at));
            }
        }
        all.insert(name);
    }
    all
}

fn names_in(file: &File, at: &Range<usize>) -> Vec<String> {
    let inside = |token: &&Range<usize>| token.start >= at.start && token.end <= at.end;
    let directives = file
        .directives
        .iter()
        .filter(|each| each.at.start == at.start);
    let tokens = directives
        .flat_map(|each| &each.tokens)
        .chain(file.tokens.iter().filter(inside));
    tokens
        .map(|token| file.word(token))
        .filter(|word| is_name(word))
        .map(str::to_owned)
        .collect()
}

/// Returns the bytes that define a name: a macro, a type, a template or a constant.
fn definitions(file: &File, name: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = file
        .directives
        .iter()
        .filter(|each| each.word == "define")
        .filter(|each| each.tokens.first().is_some_and(|at| file.word(at) == name))
        .map(|each| each.at.clone())
        .collect();
    let tokens = &file.tokens;
    for at in (0..tokens.len()).filter(|at| file.word(&tokens[*at]) == name) {
        let word = |index: Option<usize>| file.word_at(index);
        let (before, after) = (word(at.checked_sub(1)), word(Some(at + 1)));
        let is_type = matches!(before, "struct" | "class" | "union" | "enum" | "using")
            || matches!(word(at.checked_sub(2)), "enum" | "struct");
        let whole = || statement(file, at);
        if is_type {
            found.push(whole());
        } else if matches!(after, "=" | ";" | "{")
            && (is_name(before) || matches!(before, ">" | "*" | "&"))
        {
            let whole = whole();
            let defines =
                |word: &String| matches!(&**word, "typedef" | "using" | "constexpr" | "const");
            if names_in(file, &whole).iter().any(defines) {
                found.push(whole);
            }
        }
    }
    found
}

/// Returns the statement around a token: back to the last `;`, `{` or `}`, and to its `;` or the
/// end of its braces.
fn statement(file: &File, at: usize) -> Range<usize> {
    let tokens = &file.tokens;
    let ends = |token: &Range<usize>| matches!(file.word(token), ";" | "{" | "}");
    let first = tokens[..at].iter().rposition(ends).map_or(0, |end| end + 1);
    let start = tokens[first].start;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match file.word(token) {
            ";" => return start..token.end,
            "{" => {
                let end = bracketed(file, index).map_or(file.code.len(), |inside| inside.end);
                return start..end;
            }
            "}" => return start..token.start,
            _ => {}
        }
    }
    start..file.code.len()
}

/// Returns the names in the conditions that are open at a byte.
fn conditions(file: &File, at: usize) -> Vec<String> {
    let mut open: Vec<Vec<String>> = Vec::new();
    for directive in file.directives.iter().take_while(|each| each.at.start < at) {
        let words = directive.tokens.iter().map(|token| file.word(token));
        let names: Vec<String> = words
            .filter(|word| is_name(word) && *word != "defined")
            .map(str::to_owned)
            .collect();
        match &*directive.word {
            "if" | "ifdef" | "ifndef" => open.push(names),
            "elif" | "elifdef" | "elifndef" => {
                if let Some(last) = open.last_mut() {
                    last.extend(names);
                }
            }
            "endif" => {
                open.pop();
            }
            _ => {}
        }
    }
    open.concat()
}

/// Returns the names in the conditions that begin inside of a range.
fn conditions_within(file: &File, at: &Range<usize>) -> Vec<String> {
    let inside = |start: usize| start > at.start && start < at.end;
    let conditional = file
        .directives
        .iter()
        .filter(|each| inside(each.at.start))
        .filter(|each| matches!(&*each.word, "if" | "ifdef" | "ifndef" | "elif"));
    let tokens = conditional.flat_map(|each| &each.tokens);
    let words = tokens.map(|token| file.word(token));
    let names = words.filter(|word| is_name(word) && *word != "defined");
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
