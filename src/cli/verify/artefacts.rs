//! Shipped files: one, or those of a folder.

use crate::cli::{CliError, usage};
use std::path::{Path, PathBuf};
use tuner_core::files;
use tuner_report::export::{self, LaunchedSource, Shipped};

/// Limit of the depth of folders.
const MAX_DEPTH: usize = 6;
/// Maximum number of files that are read.
const MAX_FILES: usize = 2000;

/// Shipped file.
#[derive(Debug)]
pub(super) struct Artefact {
    /// Path.
    pub(super) path: PathBuf,
    /// Its entries.
    pub(super) entries: Vec<Shipped>,
    /// Source embedded in the file.
    pub(super) source: Option<LaunchedSource>,
}

/// Reads the file, or every shipped file of the folder.
pub(super) fn find(path: &Path) -> Result<Vec<Artefact>, CliError> {
    if !path.is_dir() {
        return Ok(vec![read(path)?]);
    }
    let mut found = Vec::new();
    let mut seen = 0;
    collect(path, 0, &mut seen, &mut found)?;
    match found.is_empty() {
        true => Err(usage(format!(
            "{} has no file of `tuner export` or `tuner record`",
            path.display()
        ))),
        false => Ok(found),
    }
}

/// Reads the shipped files of a folder in the order of their names.
fn collect(
    folder: &Path,
    depth: usize,
    seen: &mut usize,
    found: &mut Vec<Artefact>,
) -> Result<(), CliError> {
    let unreadable =
        |error: std::io::Error| usage(format!("{}: cannot be read: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let entries: Result<Vec<_>, _> = entries.collect();
    let mut entries = entries.map_err(unreadable)?;
    // The order of directory entries differs between machines; that of the output must not.
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let kind = entry.file_type().map_err(unreadable)?;
        let path = entry.path();
        if kind.is_dir() && !hidden && depth < MAX_DEPTH {
            collect(&path, depth + 1, seen, found)?;
        } else if kind.is_file() && is_candidate(&path) {
            *seen += 1;
            if *seen > MAX_FILES {
                return Err(usage(format!(
                    "more than {MAX_FILES} headers and JSON files; name a smaller folder"
                )));
            }
            // Other headers and JSON files are not shipped files.
            let Ok(text) = files::read_text(&path, files::MAX_TEXT_BYTES) else {
                continue;
            };
            if export::is_shipped(&text) {
                found.push(parse(&path, &text)?);
            }
        }
    }
    Ok(())
}

/// Reports whether a name may be that of a shipped file.
fn is_candidate(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("h" | "hpp" | "cuh" | "json"))
}

fn read(path: &Path) -> Result<Artefact, CliError> {
    let text = files::read_text(path, files::MAX_TEXT_BYTES)
        .map_err(|error| usage(format!("{}: cannot be read: {error}", path.display())))?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Artefact, CliError> {
    let shown = path.display().to_string();
    let entries = export::read_shipped(text, &shown)?;
    let source = export::launched_source(text).map_err(|why| usage(format!("{shown}: {why}")))?;
    Ok(Artefact {
        path: path.to_owned(),
        entries,
        source,
    })
}
