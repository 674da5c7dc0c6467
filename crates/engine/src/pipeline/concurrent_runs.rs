//! A search that learns from concurrent runs.

use super::Driver;
use crate::error::EngineError;
use crate::evaluator::Evaluator;
use crate::knowledge;
use std::path::PathBuf;
use tuner_search::Knowledge;
use tuner_store::RunStart;

/// Results before the search first learns from concurrent runs.
const FIRST_LEARNING_RESULTS: u64 = 8;

/// Source of results of concurrent runs.
pub(super) struct ConcurrentRuns {
    start: RunStart,
    files: Vec<PathBuf>,
    /// The number of results at which it reads again.
    next: u64,
}

impl ConcurrentRuns {
    /// Creates the source for a run with this start and these files of knowledge.
    pub(super) fn new(start: RunStart, files: Vec<PathBuf>) -> Self {
        Self {
            start,
            files,
            next: FIRST_LEARNING_RESULTS,
        }
    }
}

impl<E: Evaluator> Driver<'_, E> {
    /// Reads results of concurrent runs, at growing intervals: the whole history is read each time.
    pub(super) async fn learn(&mut self) -> Result<(), EngineError> {
        let told = self.schedule.told();
        let Some(live) = self.live.as_mut().filter(|live| told >= live.next) else {
            return Ok(());
        };
        live.next = told + (told / 2).max(FIRST_LEARNING_RESULTS);
        // A file that was changed since the run began must not end it.
        let Ok((all, _)) = knowledge::load(&live.start, self.store, &live.files, None, &[]).await
        else {
            return Ok(());
        };
        for (at, experiences) in all.iter().enumerate() {
            let task = &mut self.tasks[at];
            let known = Knowledge::new(&task.space, experiences);
            if !known.is_empty() {
                task.knowledge = known;
                self.schedule.know(at, &task.knowledge);
            }
        }
        Ok(())
    }
}
