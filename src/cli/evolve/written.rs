//! Search spaces of changes, written to a folder other than the kernel's.

use crate::cli::{CliError, usage};
use serde_json::{Map, Value};
use std::path::Path;
use tuner_evolve::space_change;
use tuner_kernel::catalog::Kernel;
use tuner_space::Reference;

/// Returns a search space that is valid in another folder: its source is the file next to it, and other
/// files have absolute paths.
pub(super) fn space(kernel: &Kernel, space: &str, source: &str) -> Result<String, CliError> {
    let mut document = space_change::document(space).map_err(|error| usage(error.to_string()))?;
    document.insert("source".to_owned(), source.into());
    let mut folders = Vec::new();
    for folder in &kernel.spec.include {
        folders.push(std::path::absolute(folder)?);
    }
    let template = std::path::absolute(&kernel.spec.source)?;
    // `#include "…"` is resolved relative to the including file, which now is in another folder.
    if !kernel.template.headers.is_empty() {
        folders.extend(template.parent().map(Path::to_owned));
    }
    if let Reference::Kernel { source, .. } = &kernel.spec.reference {
        let source = std::path::absolute(source)?;
        // A search space may name files below its own folder, and in folders of headers.
        folders.extend(source.parent().map(Path::to_owned));
        let reference = document.get_mut("reference").and_then(Value::as_object_mut);
        if let Some(reference) = reference {
            let name = source.to_string_lossy().into_owned();
            reference.insert("source".to_owned(), name.into());
        }
    }
    folders.dedup();
    let folder = std::path::absolute(&kernel.spec.path)?;
    make_absolute(&mut document, folder.parent().unwrap_or(Path::new("/")));
    if !folders.is_empty() {
        let compile = document.entry("compile");
        let compile = compile.or_insert_with(|| Value::Object(Map::new()));
        if let Some(compile) = compile.as_object_mut() {
            let names = folders.iter().map(|folder| folder.to_string_lossy());
            compile.insert("include".to_owned(), names.collect::<Value>());
        }
    }
    Ok(serde_json::to_string_pretty(&document)?)
}

/// Makes the paths of data files, of reference values and of a baseline's program absolute.
fn make_absolute(document: &mut Map<String, Value>, folder: &Path) {
    for value in document.values_mut() {
        make_fills_absolute(value, folder);
    }
    if let Some(Value::Object(values)) = inside(document, "reference", "values") {
        values.values_mut().for_each(|name| anchor(name, folder));
    }
    if let Some(Value::Array(command)) = inside(document, "baseline", "command") {
        // Parts that do not name files are options.
        let is_file = |part: &&mut Value| {
            part.as_str()
                .is_some_and(|name| folder.join(name).is_file())
        };
        let files = command.iter_mut().filter(is_file);
        files.for_each(|part| anchor(part, folder));
    }
}

/// Returns the value `key.name` of a document.
fn inside<'a>(
    document: &'a mut Map<String, Value>,
    key: &str,
    name: &str,
) -> Option<&'a mut Value> {
    document.get_mut(key)?.get_mut(name)
}

/// Makes the paths in `fill: { file: … }` absolute, at any depth.
fn make_fills_absolute(value: &mut Value, folder: &Path) {
    match value {
        Value::Array(parts) => {
            parts
                .iter_mut()
                .for_each(|part| make_fills_absolute(part, folder));
        }
        Value::Object(map) => {
            for (key, part) in map {
                match part.get_mut("file").filter(|_| key == "fill") {
                    Some(file) => anchor(file, folder),
                    None => make_fills_absolute(part, folder),
                }
            }
        }
        _ => {}
    }
}

/// Makes a path absolute; other values are unchanged.
fn anchor(name: &mut Value, folder: &Path) {
    if let Some(relative) = name.as_str() {
        *name = folder.join(relative).to_string_lossy().into_owned().into();
    }
}
