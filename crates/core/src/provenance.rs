//! Provenance of a result: the commit of the tree that holds a template, and the host.

use crate::record::Provenance;
use crate::units::ContentHash;
use crate::{files, repository};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the host's name; `unknown` without one.
#[must_use]
pub fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map(|name| name.trim().to_owned())
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "unknown".to_owned())
    })
}

/// Returns the provenance of results computed from these files (the template, its includes, the space
/// file).
///
/// The commit is that of the tree that contains the first file; `dirty` means that any of the files differs
/// from it or is not tracked. Also returns a note for the user if there is no commit.
#[must_use]
pub fn of_files(
    files: &[&Path],
    driver: Option<String>,
    nvrtc_version: Option<String>,
) -> (Provenance, Option<String>) {
    let mut provenance = Provenance {
        driver,
        nvrtc_version,
        ..of_recording()
    };
    let note = git_state(files, &mut provenance).err();
    (provenance, note)
}

/// Returns the provenance of a recorded file: others produced it, so no local commit applies.
#[must_use]
pub fn of_recording() -> Provenance {
    Provenance {
        commit: None,
        dirty: false,
        diff_hash: None,
        host: host().to_owned(),
        tuner_version: env!("CARGO_PKG_VERSION").to_owned(),
        driver: None,
        nvrtc_version: None,
    }
}

/// Returns the identity of a recorded file: its absolute path and the hash of its bytes on disk.
///
/// # Errors
/// The file cannot be read.
pub fn recording(path: &Path) -> std::io::Result<(std::path::PathBuf, ContentHash)> {
    let bytes = files::read(path, files::MAX_RECORDING_BYTES)?;
    Ok((
        path.canonicalize()?,
        ContentHash::from_parts([bytes.as_slice()]),
    ))
}

/// Resolves a commit name to its full hash, and returns those of the known commits that it contains. `None`
/// if the directory is not in a git tree or the tree has no commit of that name.
#[must_use]
pub fn commits_of(directory: &Path, name: &str, known: &[String]) -> Option<(String, Vec<String>)> {
    repository::find_commit(directory, name, known).ok()
}

/// Sets commit, dirty flag and difference, or returns a note with the reason of their absence.
fn git_state(files: &[&Path], provenance: &mut Provenance) -> Result<(), String> {
    let first = files.first().ok_or("no template, so no commit to name")?;
    let first = first
        .canonicalize()
        .map_err(|error| format!("{}: {error}", first.display()))?;
    let folder = first.parent().unwrap_or(Path::new("/"));
    let files: Vec<PathBuf> = files
        .iter()
        .filter_map(|file| file.canonicalize().ok())
        .collect();
    let state = repository::compare(folder, files).map_err(|why| {
        format!(
            "note: {} is in no git tree with a commit that can be read, so results are stored \
             without one ({why})",
            folder.display()
        )
    })?;
    provenance.commit = Some(state.commit);
    provenance.dirty = state.difference.is_some();
    provenance.diff_hash = state.difference;
    Ok(())
}
