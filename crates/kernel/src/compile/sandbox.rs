//! Sandbox that limits the compiler to the folders of headers.
//!
//! A template may be untrusted. It may spell a file name in many forms: macros, pasted tokens, `#embed`,
//! options that name files. A file that NVRTC cannot open appears neither in the diagnostics nor in the
//! code, and nothing can be written. Linux can confine a thread to folders since 5.13 (Landlock); on older
//! kernels only the names in directives are checked.

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, path_beneath_rules,
};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Stack of the compiling thread, bytes: templates nest deeper than the default 2 MiB.
const STACK_BYTES: usize = 32 << 20;
/// Maximum entries read from a toolkit's folder of headers; CUDA 13 has about 4,000.
const MAX_HEADERS: usize = 50_000;
/// Spellings of the option that names a folder of headers.
const FOLDER_OPTIONS: [&str; 2] = ["-I", "--include-path"];
/// Prefixes of the options that make NVRTC write a file: traces, tables of times and precompiled headers.
const WRITING_OPTIONS: [&str; 4] = ["fdevice-time-trace", "time", "create-pch", "pch"];

/// Folders that a confined thread can access.
#[derive(Debug, Clone, Default)]
pub(super) struct Folders {
    /// Folders with readable files.
    pub(super) read: Vec<PathBuf>,
    /// Folder in which it can also create files.
    pub(super) written: Option<PathBuf>,
}

/// Runs `work` in a thread that can only use files of these folders.
///
/// # Errors
/// The thread cannot be started, or cannot be confined although the system supports it.
pub(super) fn run_confined<T: Send>(
    folders: &Folders,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("compile".to_owned())
            .stack_size(STACK_BYTES);
        // Landlock confines a thread until it ends, so the work runs in a separate thread.
        let started = thread.spawn_scoped(scope, || {
            confine_thread(folders).map_err(io::Error::other)?;
            Ok(work())
        })?;
        match started.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn confine_thread(folders: &Folders) -> Result<(), RulesetError> {
    let readable = path_beneath_rules(&folders.read, AccessFs::from_read(ABI::V1));
    let written = path_beneath_rules(&folders.written, AccessFs::from_all(ABI::V3));
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        // All accesses are handled: an access without a rule, such as writing, is denied.
        .handle_access(AccessFs::from_all(ABI::V3))?
        .create()?
        .add_rules(readable)?
        .add_rules(written)?
        .restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced {
        tracing::debug!("this kernel has no Landlock: the compiler can open any file");
    }
    Ok(())
}

/// Returns the folders of headers in the options.
pub(super) fn header_folders(options: &[String]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = FOLDER_OPTIONS
            .iter()
            .find_map(|name| option.strip_prefix(name));
        let folder = match value {
            Some("") => options.next().map(String::as_str),
            Some(value) => Some(value.strip_prefix('=').unwrap_or(value)),
            None => None,
        };
        folders.extend(folder.map(|folder| Path::new(folder).to_owned()));
    }
    folders
}

/// Returns the targets of links in a folder of CUDA's own headers. Some distributions assemble a toolkit
/// from links, which a confined thread could not follow. Not applied to a project's folders.
pub(super) fn linked_folders(folder: &Path) -> BTreeSet<PathBuf> {
    let mut linked = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    let mut entries_left = MAX_HEADERS;
    while let Some(folder) = folders.pop() {
        let mut subfolders = Vec::new();
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries_left = match entries_left.checked_sub(1) {
                Some(left) => left,
                None => return linked,
            };
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => {
                    let real = entry.path().canonicalize().ok();
                    let target = real.and_then(|real| match real.is_dir() {
                        true => Some(real),
                        false => real.parent().map(Path::to_owned),
                    });
                    linked.extend(target);
                }
                Ok(kind) if kind.is_dir() => subfolders.push(entry.path()),
                _ => {}
            }
        }
        // A toolkit consists of links or does not: without one at the top there are none below.
        if !linked.is_empty() {
            folders.append(&mut subfolders);
        }
    }
    linked
}

/// Returns the option that makes NVRTC write a file, if given: confined, NVRTC aborts on a trace, and
/// without Landlock such an option would not be denied.
pub(super) fn writes_file(options: &[String]) -> Option<&str> {
    let writes = |option: &&str| {
        let name = option.trim_start_matches('-');
        WRITING_OPTIONS.iter().any(|begin| name.starts_with(begin))
    };
    options.iter().map(String::as_str).find(writes)
}

#[cfg(test)]
mod tests;
