//! Final errors and warnings of a search space's declarations, with their positions.

use super::source::File;
use super::{DeclarationError, Side, base_name, collisions, entries, overrides};
use std::ops::Range;
use std::path::PathBuf;
use tuner_core::plan::Role;
use tuner_space::{Diagnostic, Diagnostics};

impl Side<'_> {
    /// Returns errors, or warnings as lines.
    pub(super) fn finish(mut self) -> Result<Vec<String>, DeclarationError> {
        self.unwritten();
        let spec = self.spec;
        if !self.findings.errors.is_empty() {
            let wrong = spec.faults(std::mem::take(&mut self.findings.errors));
            return Err(DeclarationError::Wrong(Box::new(wrong)));
        }
        let mut lines: Vec<String> = Vec::new();
        for warning in std::mem::take(&mut self.findings.warnings) {
            let one = spec.faults(vec![warning]);
            let (line, column) = one.position().unwrap_or((1, 1));
            let text = one.items().first().map_or("", |item| &item.message);
            let said = format!("warning: {}:{line}:{column}: {text}", one.file());
            if !lines.contains(&said) {
                lines.push(said);
            }
        }
        Ok(lines)
    }

    /// Reports a buffer that must be written although every kernel takes it as constant. A kernel without a
    /// known signature may be the writer.
    fn unwritten(&mut self) {
        let all_known =
            entries(self.spec, self.what).all(|entry| self.known.contains(base_name(&entry)));
        if !all_known {
            return;
        }
        for (index, argument) in self.spec.arguments.iter().enumerate() {
            let mut takes = self.findings.buffers.iter().filter(|each| each.0 == index);
            let Some((.., described)) = takes.next() else {
                continue;
            };
            if self
                .findings
                .buffers
                .iter()
                .any(|each| each.0 == index && each.1)
            {
                continue;
            }
            let place = &self.spec.places().arguments[index].role;
            let name = &argument.name;
            let text =
                |what: &str| format!("`{name}` is {what}, but {described}: nothing can write it");
            match argument.role {
                Role::Output | Role::Inout => {
                    let what = match argument.role {
                        Role::Inout => "an inout",
                        _ => "an output",
                    };
                    let ty = argument.ty.cpp_name();
                    let help = format!("write `{ty}* {name}` in the kernel, or `role: input` here");
                    let error = Diagnostic::new(text(what), place.clone());
                    self.findings.errors.push(error.help(help));
                }
                Role::Scratch if self.what == "kernel" => {
                    let warning = Diagnostic::new(text("scratch"), place.clone());
                    self.findings.warnings.push(warning);
                }
                Role::Input | Role::Scratch | Role::Scalar => {}
            }
        }
    }

    /// Reports a variable or type of the source with the name of a macro, if the compiler's first
    /// error is on its line: the macro's value replaces the name there.
    pub(super) fn named_by_macro(
        &self,
        log: &str,
        header_folders: &[PathBuf],
    ) -> Option<Diagnostics> {
        let macros = overrides::macros(self.spec);
        for line in log.lines() {
            let Some((before, _)) = line.split_once("): error") else {
                continue;
            };
            let (name, number) = before.rsplit_once('(')?;
            let number: usize = number.parse().ok()?;
            let read;
            let file = match self.files.iter().find(|file| file.name == name) {
                Some(file) => file,
                // A header of the installation: `template <unsigned int N>`.
                None => {
                    read = File::from_disk(name, header_folders)?;
                    &read
                }
            };
            let on_line = |at: &Range<usize>| file.line(at.start) == number;
            let declares = |index: usize| {
                let next = file.word_at(Some(index + 1));
                let follows = matches!(next, "=" | ";" | "," | ")" | "[" | "{" | ">");
                follows && follows_declarator(|back| file.word_at(index.checked_sub(back)))
            };
            let found = (0..file.tokens.len()).find(|index| {
                let at = &file.tokens[*index];
                on_line(at) && macros.contains(file.word(at)) && declares(*index)
            })?;
            let at = file.tokens[found].clone();
            let item = collisions::diagnostic(self.spec, file, &at);
            return Some(Diagnostics::new(&*file.name, &file.text, vec![item]));
        }
        None
    }
}

/// Reports whether a name is declared after these words, which are counted backwards from 1. After `*` and
/// `&` it is declared if a type precedes them: otherwise they are operators.
fn follows_declarator<'w>(word: impl Fn(usize) -> &'w str) -> bool {
    let signs = (1..).take_while(|back| matches!(word(*back), "*" | "&"));
    is_declarator(word(1 + signs.count()))
}

/// Reports whether a declared name may follow a word.
fn is_declarator(word: &str) -> bool {
    let others = ["const", "constexpr", "enum", "using"];
    collisions::TYPES.contains(&word) || others.contains(&word)
}

#[cfg(test)]
mod tests;
