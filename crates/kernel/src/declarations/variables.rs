//! Checks of template variables named by the search space, and of textures, which are
//! unsupported.

use super::places;
use super::source::{File, is_name};
use crate::compile::Template;
use std::collections::BTreeSet;
use tuner_space::{Diagnostic, Diagnostics, KernelSpec, nearest_or_all};

/// Rejects variables that the template lacks, and kernels that read textures.
///
/// # Errors
/// Each with its position and its fix.
pub fn variables(spec: &KernelSpec, template: &Template) -> Result<(), Diagnostics> {
    let files = File::from_template(template);
    textures(spec, &files)?;
    let known: BTreeSet<&str> = files.iter().flat_map(declared).collect();
    let mentioned = |name: &str| {
        let mut words = files
            .iter()
            .flat_map(|file| file.tokens.iter().map(|token| file.word(token)));
        words.any(|word| word == name)
    };
    let mut items = Vec::new();
    for (variable, at) in spec.variables.iter().zip(&spec.places().variables) {
        let name = variable.name.rsplit("::").next().unwrap_or_default();
        // Variables declared by a macro are not visible here.
        if known.contains(name) || mentioned(name) {
            continue;
        }
        let item = Diagnostic::new(
            format!(
                "`{}` is not a `__constant__` or `__device__` variable of {}",
                variable.name, template.name
            ),
            at.clone(),
        );
        let known: Vec<&str> = known.iter().copied().collect();
        items.push(item.help(match known.is_empty() {
            true => "the template has none".to_owned(),
            false => nearest_or_all(name, &known, "it has"),
        }));
    }
    match items.is_empty() {
        true => Ok(()),
        false => Err(spec.faults(items)),
    }
}

/// Returns the names after `__constant__` and `__device__` that are not functions.
#[expect(
    clippy::indexing_slicing,
    reason = "words are numbered by the list that they were found in, and one stands before the end"
)]
fn declared(file: &File) -> Vec<&str> {
    let mut names = Vec::new();
    let words: Vec<&str> = file.tokens.iter().map(|token| file.word(token)).collect();
    for (index, word) in words.iter().enumerate() {
        if !matches!(*word, "__constant__" | "__device__") {
            continue;
        }
        let end = words[index..]
            .iter()
            .position(|word| matches!(*word, "(" | "[" | "=" | ";" | "{"));
        let Some(end) = end.map(|end| index + end) else {
            continue;
        };
        if words[end] != "(" && is_name(words[end - 1]) {
            names.push(words[end - 1]);
        }
    }
    names
}

/// Rejects kernels with textures or surfaces among their parameters.
#[expect(
    clippy::indexing_slicing,
    reason = "words are numbered by the list that they were found in, and one stands before the end"
)]
fn textures(spec: &KernelSpec, files: &[File]) -> Result<(), Diagnostics> {
    for launch in &spec.launches {
        for kernel in places::declarations(files, &launch.entry) {
            let file = &files[kernel.file];
            let found = kernel.parameters.iter().find_map(|at| {
                let text = &file.text[at.clone()];
                let kinds = ["cudaTextureObject_t", "cudaSurfaceObject_t"];
                let kind = kinds.iter().find(|kind| text.contains(**kind))?;
                Some((at, text, *kind))
            });
            let Some((at, text, kind)) = found else {
                continue;
            };
            let name = text
                .rsplit(|c: char| !(c == '_' || c.is_alphanumeric()))
                .next();
            let item = Diagnostic::new(
                format!(
                    "`{}` of the kernel `{}` is a `{kind}`: textures and surfaces are not supported",
                    name.unwrap_or_default(),
                    launch.entry
                ),
                at.clone(),
            );
            let item = item.help("pass the data as a buffer, and read it by a pointer (`__ldg`)");
            return Err(Diagnostics::new(&*file.name, &file.text, vec![item]));
        }
    }
    Ok(())
}
