//! A note beside the database that a daemon panicked, for the next one: a run that was being set up then
//! is suspect, while one that was under way when the machine or somebody ended the daemon is not.

use std::path::{Path, PathBuf};
use tuner_store::RunId;

/// Where the note lies.
fn note(db: &Path) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push("-crash");
    name.into()
}

/// Notes every panic before the process may end by it: one that cannot unwind aborts.
pub(super) fn watch(db: &Path) {
    tuner_core::panics::report_to(note(db));
}

/// Keeps the report of a panic that ended this run alone; `None` where there is none.
pub(super) fn keep(db: &Path, run: &RunId) -> Option<PathBuf> {
    let mut name = note(db).into_os_string();
    name.push(format!("-{run}.txt"));
    let kept = PathBuf::from(name);
    std::fs::rename(note(db), &kept).ok().map(|()| kept)
}

/// Whether a daemon of this database panicked and nobody went on from it.
pub(super) fn happened(db: &Path) -> bool {
    note(db).exists()
}

/// Forgets a panic: it was caught, or the next daemon has taken it into account.
pub(super) fn forget(db: &Path) {
    // Mostly there is none.
    let _ = std::fs::remove_file(note(db));
}

#[cfg(test)]
mod tests;
