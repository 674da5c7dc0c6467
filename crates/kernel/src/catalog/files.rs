//! Reading of templates: the file, its includes, and their names in diagnostics.

use super::CatalogError;
use crate::compile::{Header, Template, definitions, included_macros, included_names};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use tuner_core::files;

/// Reads a template and, transitively, its included files that are found: next to the including file for
/// `#include "…"`, in `include_dirs` for both forms. Others are resolved by the compiler (`<cuda_fp16.h>`).
/// For `#include NAME` every file named by a value of the macro is read.
///
/// # Errors
/// A file that cannot be read, one outside [`include_roots`], or two files that are included by the same
/// name.
pub(crate) fn load_template(
    path: &Path,
    include_dirs: &[PathBuf],
    macros: &Macros,
) -> Result<Template, CatalogError> {
    let text = read_text(path, "template")?;
    let headers = headers_of(&text, path, include_dirs, macros)?;
    let folders = include_dirs.iter().map(|folder| absolute(folder)).collect();
    Ok(Template::new(&shown(path), &text, headers, folders))
}

/// Replacement texts of a macro, by its name: those of a parameter are its values.
pub(crate) type Macros = BTreeMap<String, Vec<String>>;

/// Returns the files that a text at `path` includes, as found by `load_template`.
///
/// # Errors
/// As `load_template`.
pub fn included(
    text: &str,
    path: &Path,
    include_dirs: &[PathBuf],
) -> Result<Vec<Header>, CatalogError> {
    headers_of(text, path, include_dirs, &Macros::new())
}

fn headers_of(
    text: &str,
    path: &Path,
    include_dirs: &[PathBuf],
    macros: &Macros,
) -> Result<Vec<Header>, CatalogError> {
    let mut loader = Loader {
        include_dirs,
        macros,
        roots: include_roots(path, include_dirs),
        headers: Vec::new(),
    };
    loader.add_includes(text, path)?;
    let headers = loader.headers.into_iter();
    Ok(headers.map(|(header, _)| header).collect())
}

/// Returns the folders, with links resolved, from which a template may include files: its own, those of the
/// search space, and the project's folder `templates`, next to `search_spaces`. A template may be
/// untrusted, and messages quote files that do not compile.
fn include_roots(template: &Path, include_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let template = std::path::absolute(template).unwrap_or_else(|_| template.to_owned());
    let shared = template.ancestors().find(|folder| {
        folder.ends_with(TEMPLATES) && folder.with_file_name(super::SPACES).is_dir()
    });
    let folders = template.parent().into_iter().chain(shared);
    let folders = folders.chain(include_dirs.iter().map(PathBuf::as_path));
    // A folder that does not exist yet is compared by path.
    let real = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| absolute(folder));
    folders.map(real).collect()
}

/// Reads a text file.
///
/// # Errors
/// A file that is absent, not text, or too large.
pub(super) fn read_text(path: &Path, what: &'static str) -> Result<String, CatalogError> {
    let unreadable = |why: String| CatalogError::Unreadable {
        what,
        path: shown(path),
        why,
    };
    let bytes = files::read(path, files::MAX_TEXT_BYTES).map_err(|error| {
        unreadable(match error.kind() {
            std::io::ErrorKind::IsADirectory => "it is a folder; name a file".to_owned(),
            _ => error.to_string(),
        })
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        unreadable(format!(
            "it is not UTF-8 text (byte {place}); save it as UTF-8"
        ))
    })?;
    // A byte order mark is not part of the text.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

/// Name of the folder of a project's templates.
const TEMPLATES: &str = "templates";

struct Loader<'a> {
    include_dirs: &'a [PathBuf],
    macros: &'a Macros,
    /// Allowed folders, see [`include_roots`].
    roots: Vec<PathBuf>,
    /// Files read so far, with their real paths.
    headers: Vec<(Header, PathBuf)>,
}

impl Loader<'_> {
    fn add_includes(&mut self, text: &str, including: &Path) -> Result<(), CatalogError> {
        let mut names = included_names(text);
        for name in included_macros(text) {
            let values = self.macros.get(&name).into_iter().flatten().cloned();
            for value in values.chain(definitions(text, &name)) {
                names.extend(included_names(&format!("#include {value}")));
            }
        }
        for (spelled, quoted) in names {
            let Some(found) = self.resolve(&spelled, quoted, including) else {
                continue;
            };
            let real = found.canonicalize().unwrap_or_else(|_| found.clone());
            if !self.roots.iter().any(|root| real.starts_with(root)) {
                return Err(CatalogError::OutsideInclude {
                    including: shown(including),
                    spelled,
                    found: shown(&real),
                });
            }
            if let Some((_, other)) = self
                .headers
                .iter()
                .find(|(header, _)| header.spelled == spelled)
            {
                if *other == real {
                    continue;
                }
                return Err(CatalogError::AmbiguousInclude {
                    spelled,
                    first: shown(other),
                    second: shown(&real),
                });
            }
            let text = read_text(&found, "included file")?;
            let header = Header {
                spelled,
                path: shown(&found),
                text: text.clone(),
            };
            // Before its own includes are read, so that a cycle of includes ends.
            self.headers.push((header, real));
            self.add_includes(&text, &found)?;
        }
        Ok(())
    }

    fn resolve(&self, spelled: &str, quoted: bool, including: &Path) -> Option<PathBuf> {
        // The form with angle brackets does not search the folder of the including file.
        let beside = including.parent().filter(|_| quoted);
        let beside = beside.map(|folder| below(folder, spelled));
        let elsewhere = self.include_dirs.iter().map(|folder| folder.join(spelled));
        beside
            .into_iter()
            .chain(elsewhere)
            .find(|path| path.is_file())
    }
}

/// Resolves an include from its folder. The system does not follow `..` out of a folder that does not
/// exist, so the path is normalized lexically.
fn below(folder: &Path, spelled: &str) -> PathBuf {
    let path = folder.join(spelled);
    if folder.as_os_str().is_empty() || folder.is_dir() {
        path
    } else {
        absolute(&path)
    }
}

/// Formats a path for messages: without `.` and `..`, relative to the working directory if it is
/// below it.
#[must_use]
pub fn shown(path: &Path) -> String {
    let full = absolute(path);
    let relative = std::env::current_dir()
        .ok()
        .and_then(|folder| full.strip_prefix(normal(&folder)).ok().map(Path::to_owned));
    relative.unwrap_or(full).display().to_string()
}

/// Returns the path from the root, without `.` and `..`; links are not resolved.
#[must_use]
pub fn absolute(path: &Path) -> PathBuf {
    normal(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
