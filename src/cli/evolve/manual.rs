//! `manual`: requests as files in a folder, answered by a person.

use super::mutator::{Mutator, MutatorError, Reply, wait_until};
use crate::atomic;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tuner_evolve::protocol::{MAX_ANSWER_BYTES, MutationRequest};

/// Folder with the files of one request at a time.
pub(super) struct ManualMutator {
    folder: PathBuf,
}

impl ManualMutator {
    /// Creates the folder.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub(super) fn new(folder: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: cannot be created: {error}", folder.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, MutatorError> {
        let path = self.folder.join(name);
        let written = atomic::write(&path, text.as_bytes());
        written.map_err(|error| {
            MutatorError::no_answer(format!("{}: cannot be written: {error}", path.display()))
        })?;
        Ok(path)
    }
}

impl Mutator for ManualMutator {
    fn propose(
        &mut self,
        request: &MutationRequest,
        within: Duration,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Reply, MutatorError> {
        let text = serde_json::to_string_pretty(request).unwrap_or_default();
        let (round, kernel) = (request.round, &request.task.kernel);
        let source = self.write(&format!("{kernel}-{round}.cu"), &request.parent.source)?;
        let asked = self.write(&format!("request-{round}.json"), &text)?;
        let answer = self.folder.join(format!("answer-{round}.json"));
        // A correction uses the same file name: the answer to be corrected still exists.
        let known = std::fs::metadata(&answer)
            .and_then(|facts| facts.modified())
            .ok();
        if let Some(correction) = &request.correction {
            say!("{}: {correction}", answer.display());
        }
        say!(
            "waiting for {}: the answer to {}, or edit {} and save it as {kernel}-{round}.done.cu",
            answer.display(),
            asked.display(),
            source.display()
        );
        let done = self.folder.join(format!("{kernel}-{round}.done.cu"));
        let ready = || {
            let modified = std::fs::metadata(&answer)
                .and_then(|facts| facts.modified())
                .ok();
            if modified.is_some() && modified != known {
                return Some(tuner_core::files::read(&answer, MAX_ANSWER_BYTES as u64));
            }
            let source = tuner_core::files::read(&done, MAX_ANSWER_BYTES as u64).ok()?;
            // Otherwise a correction would find the same file and accept it as its answer immediately.
            let _ = std::fs::rename(&done, done.with_extension("taken.cu"));
            let answer = serde_json::json!({
                "id": request.id,
                "source": String::from_utf8_lossy(&source),
                "note": "edited by hand",
            });
            Some(Ok(answer.to_string().into_bytes()))
        };
        match wait_until(within, stopped, ready)? {
            Some(Ok(bytes)) => Ok(Reply { bytes, usage: None }),
            Some(Err(error)) => Err(MutatorError::no_answer(format!(
                "{}: {error}",
                answer.display()
            ))),
            None => Err(MutatorError::no_answer(format!(
                "{}: no answer within {} s",
                answer.display(),
                within.as_secs()
            ))),
        }
    }
}
