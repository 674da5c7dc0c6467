//! Marker next to the database of a daemon's panic. The next daemon then suspects a run that was being set
//! up, but not one that was running when the machine or a user ended the daemon.

use std::path::{Path, PathBuf};
use tuner_store::RunId;

/// Returns the path of the marker.
fn note(db: &Path) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push("-crash");
    name.into()
}

/// Records every panic before the process may abort.
pub(super) fn watch(db: &Path) {
    tuner_core::panics::report_to(note(db));
}

/// Stores the report of a panic that ended only this run; `None` if there is none.
pub(super) fn keep(db: &Path, run: &RunId) -> Option<PathBuf> {
    let mut name = note(db).into_os_string();
    name.push(format!("-{run}.txt"));
    let kept = PathBuf::from(name);
    std::fs::rename(note(db), &kept).ok().map(|()| kept)
}

/// Reports whether a daemon of this database has panicked and no later one has handled it.
pub(super) fn happened(db: &Path) -> bool {
    note(db).exists()
}

/// Removes the marker: the panic was caught, or the next daemon has handled it.
pub(super) fn forget(db: &Path) {
    // Usually the file does not exist.
    let _ = std::fs::remove_file(note(db));
}

#[cfg(test)]
mod tests;
