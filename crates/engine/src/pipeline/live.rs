//! A search that learns from runs beside it while they go on.

use super::Driver;
use crate::error::EngineError;
use crate::evaluator::Evaluator;
use crate::knowledge;
use std::path::PathBuf;
use tuner_search::Knowledge;
use tuner_store::RunStart;

/// Results before the search first takes in what runs beside it found.
const FIRST_LOOK: u64 = 8;

/// What a search takes in from runs beside it.
pub(super) struct Live {
    start: RunStart,
    files: Vec<PathBuf>,
    /// The number of results at which it looks again.
    next: u64,
}

impl Live {
    /// For a run that began so, with these files of knowledge.
    pub(super) fn new(start: RunStart, files: Vec<PathBuf>) -> Self {
        Self {
            start,
            files,
            next: FIRST_LOOK,
        }
    }
}

impl<E: Evaluator> Driver<'_, E> {
    /// Takes in what runs beside this one found, ever more rarely: the whole history is read each time.
    pub(super) async fn learn(&mut self) -> Result<(), EngineError> {
        let told = self.schedule.told();
        let Some(live) = self.live.as_mut().filter(|live| told >= live.next) else {
            return Ok(());
        };
        live.next = told + (told / 2).max(FIRST_LOOK);
        // A file that was changed since the run began is no reason to end it.
        let Ok((all, _)) = knowledge::gather(&live.start, self.store, &live.files, None).await
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
