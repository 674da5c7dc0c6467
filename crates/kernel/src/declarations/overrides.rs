//! Template definitions that override macros of the tuner: `#define N 1024` would silently
//! replace the problem's size.
//!
//! Conditions are evaluated if they test whether a name is defined. A definition under other conditions is
//! a suspect, and the compiler is queried for the macro's value at the end of the file.
#![expect(
    clippy::indexing_slicing,
    reason = "files and tokens are numbered by the list of sources that they were found in"
)]

use super::collisions::{self, Kind, kind};
use super::source::{Directive, File, is_name};
use crate::compile::Template;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tuner_core::value::Value;
use tuner_space::{DEVICE_NAMES, Diagnostic, Diagnostics, KernelSpec};

/// Maximum nesting of includes that is followed.
const MAX_INCLUDE_DEPTH: usize = 64;

/// A definition that overrides the tuner's, or may.
#[derive(Debug)]
pub(super) struct Override {
    /// The macro.
    pub(super) name: String,
    /// Index of the file.
    pub(super) file: usize,
    /// The name in the directive.
    pub(super) at: Range<usize>,
    /// It applies to every configuration; else it is conditional.
    pub(super) certain: bool,
    /// The `#undef` before it.
    undefined: bool,
    /// Names in the enclosing conditions.
    pub(super) conditions: BTreeSet<String>,
}

/// Refuses a template or reference kernel that overrides a macro of the search space, or that
/// declares something by the name of one.
///
/// # Errors
/// The definitions, each with its position and its fix.
pub fn overrides(spec: &KernelSpec, template: &Template) -> Result<(), Diagnostics> {
    let files = File::from_template(template);
    let (found, collisions) = walked(spec, &files);
    let Some(first) = found.iter().find(|each| each.certain) else {
        let Some((index, _)) = collisions.first() else {
            return Ok(());
        };
        let file = &files[*index];
        let here = collisions.iter().filter(|(other, _)| other == index);
        let items = here.map(|(_, at)| collisions::diagnostic(spec, file, at));
        return Err(Diagnostics::new(&*file.name, &file.text, items.collect()));
    };
    let file = &files[first.file];
    let items = found
        .iter()
        .filter(|each| each.certain && each.file == first.file)
        .map(|each| each.diagnostic(spec))
        .collect();
    Err(Diagnostics::new(&*file.name, &file.text, items))
}

impl Override {
    /// Returns the diagnostic with the fix.
    pub(super) fn diagnostic(&self, spec: &KernelSpec) -> Diagnostic {
        let name = &self.name;
        let what = kind(spec, name);
        if what == Kind::Device {
            return Diagnostic::new(
                format!("`#define {name}` gives {} another value", what.text()),
                self.at.clone(),
            )
            .help(format!(
                "remove it, write `derived: {{ MY_NAME: {name} }}` in the search space, and use \
                 MY_NAME here"
            ));
        }
        let again = if self.undefined {
            " after an `#undef`"
        } else {
            ""
        };
        Diagnostic::new(
            format!(
                "`#define {name}`{again} overrides {} `{name}` of the search space: its values \
                 would make no difference",
                what.text()
            ),
            self.at.clone(),
        )
        .help(if self.undefined {
            format!("remove the `#undef {name}` and this line, or give the macro another name")
        } else {
            format!(
                "write `#ifndef {name}` above it and `#endif` below it: then it is only the \
                 default of the template alone"
            )
        })
    }
}

/// Returns the macros that the tuner defines for some problem.
pub(super) fn macros(spec: &KernelSpec) -> BTreeSet<String> {
    let parameters = spec.parameters.iter().map(|each| each.name.clone());
    let derived = spec.derived.iter().map(|(name, _)| name.clone());
    let problems = spec.problems.iter().chain(&spec.check_problems);
    let sizes = problems.flat_map(|problem| problem.sizes.iter().map(|(name, _)| name.clone()));
    let sizes = sizes.filter(|name| spec.sizes.is_macro(name));
    parameters.chain(derived).chain(sizes).collect()
}

/// Finds certain and possible definitions that override a tuner macro, and names of the source that are
/// macros: file index and position.
pub(super) fn walked(
    spec: &KernelSpec,
    files: &[File],
) -> (Vec<Override>, Vec<(usize, Range<usize>)>) {
    let own = macros(spec);
    let device = DEVICE_NAMES.iter().map(|(name, _)| (*name).to_owned());
    let all: BTreeSet<String> = own.into_iter().chain(device).collect();
    let mut walk = Walk {
        files,
        defined: all.iter().map(|name| (name.clone(), Some(true))).collect(),
        own: all,
        open: Vec::new(),
        once: BTreeSet::new(),
        found: Vec::new(),
        numbers: numbers(spec),
        collisions: Vec::new(),
    };
    walk.file(0, 0);
    (walk.found, walk.collisions)
}

/// Returns the macros that are numbers in every configuration: a declaration with such a name never
/// compiles.
fn numbers(spec: &KernelSpec) -> BTreeSet<String> {
    let mut all = macros(spec);
    for (name, _) in &spec.derived {
        all.remove(name);
    }
    for parameter in &spec.parameters {
        if parameter
            .values
            .iter()
            .any(|value| matches!(value, Value::Text(_)))
        {
            all.remove(&parameter.name);
        }
    }
    all
}

/// An open `#if`.
struct OpenCondition {
    /// The present branch is compiled; `None` if unknown.
    active: Option<bool>,
    /// An earlier branch was compiled.
    taken: Option<bool>,
    /// Names in its conditions.
    names: BTreeSet<String>,
}

struct Walk<'f> {
    files: &'f [File],
    own: BTreeSet<String>,
    /// Definition state by name; `None` or absent if unknown.
    defined: BTreeMap<String, Option<bool>>,
    open: Vec<OpenCondition>,
    /// Files with `#pragma once` read so far.
    once: BTreeSet<usize>,
    found: Vec<Override>,
    /// Macros that are numbers.
    numbers: BTreeSet<String>,
    /// Declarations whose name is such a macro, in code that is certainly compiled.
    collisions: Vec<(usize, Range<usize>)>,
}

impl Walk<'_> {
    fn active(&self) -> Option<bool> {
        let each = self.open.iter().map(|open| open.active);
        each.fold(Some(true), and)
    }

    fn file(&mut self, index: usize, depth: usize) {
        let files = self.files;
        let Some(file) = files.get(index) else { return };
        if depth > MAX_INCLUDE_DEPTH || self.once.contains(&index) {
            return;
        }
        let outside = self.open.len();
        let mut from = 0;
        for (number, directive) in file.directives.iter().enumerate() {
            self.code(index, from..directive.at.start);
            from = directive.at.end;
            let words: Vec<&str> = directive.tokens.iter().map(|at| file.word(at)).collect();
            match &*directive.word {
                "if" => self.enter(self.condition(&words), &words),
                "ifdef" => self.enter(self.is_defined(words.first()), &words),
                "ifndef" => {
                    let next = file.directives.get(number + 1);
                    let condition = self.guard(file, &words, next);
                    self.enter(condition, &words);
                }
                "elif" | "elifdef" | "elifndef" | "else" if self.open.len() > outside => {
                    self.branch(&directive.word, &words);
                }
                "endif" if self.open.len() > outside => {
                    self.open.pop();
                }
                "include" => self.include(index, directive, depth),
                "pragma" if words.first() == Some(&"once") => {
                    self.once.insert(index);
                }
                "define" => self.define(index, directive, true),
                "undef" => self.define(index, directive, false),
                _ => {}
            }
        }
        self.code(index, from..file.code.len());
        // An unclosed `#if` must not affect the including file.
        self.open.truncate(outside);
    }

    /// Searches the code between two directives for declarations that a macro replaces.
    fn code(&mut self, index: usize, within: Range<usize>) {
        if self.active() != Some(true) {
            return;
        }
        let file = &self.files[index];
        let start = file
            .tokens
            .partition_point(|token| token.start < within.start);
        let end = file
            .tokens
            .partition_point(|token| token.start < within.end);
        for token in start..end {
            let at = &file.tokens[token];
            let name = file.word(at);
            let replaced = self.defined.get(name) == Some(&Some(true));
            if replaced && self.numbers.contains(name) && collisions::declares(file, token) {
                self.collisions.push((index, at.clone()));
            }
        }
    }

    fn enter(&mut self, condition: Option<bool>, words: &[&str]) {
        self.open.push(OpenCondition {
            active: condition,
            taken: condition,
            names: names(words),
        });
    }

    fn branch(&mut self, word: &str, words: &[&str]) {
        let condition = match word {
            "else" => Some(true),
            "elifdef" => self.is_defined(words.first()),
            "elifndef" => not(self.is_defined(words.first())),
            _ => self.condition(words),
        };
        if let Some(open) = self.open.last_mut() {
            open.active = and(not(open.taken), condition);
            open.taken = or(open.taken, condition);
            open.names.extend(names(words));
        }
    }

    fn is_defined(&self, name: Option<&&str>) -> Option<bool> {
        self.defined.get(*name?).copied().flatten()
    }

    /// Evaluates `#ifndef NAME`. If `#define NAME` follows, it is the guard of a file or a default: the
    /// first time, its branch is compiled.
    fn guard(&self, file: &File, words: &[&str], next: Option<&Directive>) -> Option<bool> {
        let name = words.first()?;
        let defines = next.is_some_and(|next| {
            next.word == "define" && next.tokens.first().is_some_and(|at| file.word(at) == *name)
        });
        match self.defined.get(*name) {
            None if defines => Some(true),
            known => not(known.copied().flatten()),
        }
    }

    fn condition(&self, words: &[&str]) -> Option<bool> {
        let mut reader = Condition {
            words,
            at: 0,
            walk: self,
        };
        let value = reader.any()?;
        // An unparsed remainder may change the meaning.
        value.filter(|_| reader.at == words.len())
    }

    fn include(&mut self, including: usize, directive: &Directive, depth: usize) {
        if self.active() == Some(false) {
            return;
        }
        let text = &self.files[including].text[directive.at.clone()];
        let Some((spelled, _)) = crate::compile::included_names(text).into_iter().next() else {
            return;
        };
        let found = |file: &File| file.spelled.as_ref() == Some(&spelled);
        if let Some(index) = self.files.iter().position(found) {
            self.file(index, depth + 1);
        }
    }

    fn define(&mut self, index: usize, directive: &Directive, defines: bool) {
        let active = self.active();
        let Some(at) = directive.tokens.first() else {
            return;
        };
        if active == Some(false) {
            return;
        }
        let name = self.files[index].word(at).to_owned();
        let before = self.defined.get(&name).copied().flatten();
        if defines && self.own.contains(&name) {
            let conditions = self.open.iter().flat_map(|open| open.names.iter().cloned());
            self.found.push(Override {
                file: index,
                at: at.clone(),
                certain: active == Some(true),
                undefined: before == Some(false),
                conditions: conditions.collect(),
                name: name.clone(),
            });
        }
        let after = match active {
            Some(true) => Some(defines),
            // Under an unknown condition the state stays known only if the directive would not
            // change it.
            _ if before == Some(defines) => before,
            _ => None,
        };
        self.defined.insert(name, after);
    }
}

fn names(words: &[&str]) -> BTreeSet<String> {
    let names = words.iter().filter(|word| is_name(word));
    names.map(|word| (*word).to_owned()).collect()
}

fn not(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}

fn and(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    not(and(not(one), not(other)))
}

/// Evaluates `defined(X)`, `!`, `&&`, `||`, parentheses and integers; anything else is unknown.
struct Condition<'w> {
    words: &'w [&'w str],
    at: usize,
    walk: &'w Walk<'w>,
}

impl<'w> Condition<'w> {
    fn peek(&self, ahead: usize) -> &'w str {
        self.words.get(self.at + ahead).copied().unwrap_or_default()
    }

    fn any(&mut self) -> Option<Option<bool>> {
        let mut value = self.parse_and()?;
        while self.peek(0) == "|" && self.peek(1) == "|" {
            self.at += 2;
            value = or(value, self.parse_and()?);
        }
        Some(value)
    }

    fn parse_and(&mut self) -> Option<Option<bool>> {
        let mut value = self.parse_operand()?;
        while self.peek(0) == "&" && self.peek(1) == "&" {
            self.at += 2;
            value = and(value, self.parse_operand()?);
        }
        Some(value)
    }

    /// Evaluates one operand; the outer `None` is an unknown form.
    fn parse_operand(&mut self) -> Option<Option<bool>> {
        let word = self.peek(0);
        self.at += 1;
        match word {
            "!" => self.parse_operand().map(not),
            "(" => {
                let value = self.any()?;
                self.at += 1;
                (self.words.get(self.at - 1) == Some(&")")).then_some(value)
            }
            "defined" => {
                let (name, length) = match self.peek(0) {
                    "(" => (self.peek(1), 3),
                    _ => (self.peek(0), 1),
                };
                self.at += length;
                Some(self.walk.is_defined(Some(&name)))
            }
            _ => {
                let number: i64 = word.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok()?;
                Some(Some(number != 0))
            }
        }
    }
}
