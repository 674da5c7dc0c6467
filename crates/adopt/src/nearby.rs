//! Files next to the adopted one, and text that defines no readable kernel.

use crate::unit::{Kind, Unit};
use std::path::{Path, PathBuf};
use tuner_core::files;
use tuner_kernel::catalog::shown;

/// Maximum number of files of a folder that are searched for launches.
const MAX_NEARBY: usize = 200;
/// Maximum number of files listed if the given one has no kernel.
const FILES_SHOWN: usize = 6;

/// Returns the reason why a `__global__` in the text is not a kernel of the unit, with its fix.
pub(crate) fn unreadable(unit: &Unit) -> Option<String> {
    let own = unit.files.first()?;
    let code = own.code(&(0..own.len()));
    let at = code.find("__global__")?;
    let line = own.line(at);
    let place = format!("{}:{line}", own.shown);
    let in_macro = unit
        .items
        .iter()
        .find(|item| item.kind == Kind::Macro && item.file == 0 && item.at.contains(&at));
    Some(match in_macro.and_then(|item| item.names.first()) {
        Some(name) => format!(
            "the macro `{name}` at {place} defines kernels; write out the use of it that you adopt"
        ),
        None => format!(
            "the `__global__` at {place} begins no function that can be read: braces of different branches of \
             #if may not match; keep the branches that your build compiles"
        ),
    })
}

/// Formats the first of some files for a message.
pub(crate) fn first<'f>(files: impl Iterator<Item = &'f PathBuf>) -> String {
    let first: Vec<String> = files.take(FILES_SHOWN).map(|path| shown(path)).collect();
    first.join(", ")
}

/// Finds CUDA files in the same folder and the one above that launch this name.
pub(crate) fn nearby(file: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = beside(file, |text| text.contains("<<<") && text.contains(name));
    found.retain(|path| path.extension().is_some_and(|extension| extension != "h"));
    found
}

/// Finds CUDA files and headers by content, in a file's folder (or the folder itself) and its parent.
pub(crate) fn beside(file: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folders = real.ancestors().skip(usize::from(!real.is_dir())).take(2);
    let mut found = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        paths.retain(|path| {
            let extension = path.extension().and_then(std::ffi::OsStr::to_str);
            *path != real && matches!(extension, Some("cu" | "cuh" | "cuda" | "h"))
        });
        for path in paths.into_iter().take(MAX_NEARBY) {
            let text = files::read(&path, files::MAX_TEXT_BYTES).unwrap_or_default();
            if wanted(&String::from_utf8_lossy(&text)) {
                found.push(path);
            }
        }
    }
    found
}
