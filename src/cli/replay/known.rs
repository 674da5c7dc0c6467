//! Prior knowledge of the searches in a study.

use crate::cli::results::block_on;
use crate::cli::{CliError, usage};
use std::path::PathBuf;
use tuner_device::replay::Recording;
use tuner_engine::knowledge;
use tuner_search::{Experience, Knowledge};

/// Returns the knowledge for every recording: the given files, or the other recordings of its kernel. A
/// file is never its own knowledge.
pub(super) fn by_file(
    given: &[PathBuf],
    leave_one_out: bool,
    recordings: &[Recording],
) -> Result<Vec<Knowledge>, CliError> {
    let of = |at: usize, recording: &Recording| {
        let experiences = if leave_one_out {
            siblings(at, recordings)
        } else {
            files(given, recording)?
        };
        let knowledge = Knowledge::new(&recording.space, &experiences);
        if knowledge.is_empty() && (leave_one_out || !given.is_empty()) {
            let what = if leave_one_out {
                "no other file is of its kernel"
            } else {
                "no file of --knowledge shares a parameter with it and holds times"
            };
            say!(
                "note: {}: {what}; it starts from nothing",
                recording.path.display()
            );
        }
        Ok(knowledge)
    };
    recordings
        .iter()
        .enumerate()
        .map(|(at, recording)| of(at, recording))
        .collect()
}

fn siblings(at: usize, recordings: &[Recording]) -> Vec<Experience> {
    let own = &recordings[at];
    recordings
        .iter()
        // A copy of the file under another name would reveal all of its results.
        .filter(|other| other.kernel == own.kernel && other.content != own.content)
        .map(knowledge::recorded)
        .collect()
}

fn files(given: &[PathBuf], own: &Recording) -> Result<Vec<Experience>, CliError> {
    let mut all = Vec::new();
    for path in given {
        let reading = async { knowledge::read(path, &own.kernel).await.map_err(usage) };
        let read = block_on(reading)?;
        if read.content != own.content {
            all.extend(read.experiences);
        }
    }
    Ok(all)
}
