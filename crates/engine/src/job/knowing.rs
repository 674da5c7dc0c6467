//! What a run's searches know beforehand.

use super::{JobError, Prepared, Request, usage};
use crate::knowledge::{self, Noted};
use tuner_search as evolve;
use tuner_store::Store;

impl Request {
    /// Refuses knowledge that the search would not use.
    pub(super) fn knowing(&self) -> Result<(), JobError> {
        let strategy = self.strategy()?;
        if !self.knowledge.is_empty() && strategy != evolve::STRATEGIES[0] {
            return Err(usage(format!(
                "--strategy {strategy} takes no knowledge; leave --knowledge out, or use {}",
                evolve::STRATEGIES[0]
            )));
        }
        Ok(())
    }
}

impl Prepared {
    /// Has the search take in, as they come, results of runs beside this one in the same store.
    pub fn learn_from_others(&mut self) {
        if self.plan.start.strategy == evolve::STRATEGIES[0] {
            self.plan.live.clone_from(&self.knowledge);
        }
    }

    /// Gathers what the search may know beforehand: what the store has of other devices, problems
    /// and versions of the kernels, and the files of the request. A run that goes on knows what it
    /// knew.
    ///
    /// # Errors
    /// A file that is no knowledge, one that changed since the interrupted run began, and a store
    /// that cannot be read.
    pub async fn gather(&mut self, store: &Store) -> Result<(), JobError> {
        let before = self.plan.resume.as_ref();
        let before = before.map(|stored| Noted::of(&stored.settings));
        let Some(files) = &self.knowledge else {
            return match before {
                Some(Some(_)) => Err(usage(
                    "the interrupted run knew results from elsewhere; leave --no-knowledge out, or \
                     begin a new run without --resume",
                )),
                _ => Ok(()),
            };
        };
        if matches!(before, Some(None)) || self.plan.start.strategy != evolve::STRATEGIES[0] {
            return Ok(());
        }
        let before = before.flatten();
        let start = &self.plan.start;
        let (gathered, mut noted) = knowledge::gather(start, store, files, before.as_ref()).await?;
        for (task, experiences) in self.plan.tasks.iter_mut().zip(gathered) {
            task.knowledge = evolve::Knowledge::new(&task.space, &experiences);
            let names: Vec<String> = task.knowledge.names().map(str::to_owned).collect();
            if !names.is_empty() {
                self.notes.push(format!(
                    "{} {}: the search knows {} (--no-knowledge: nothing)",
                    task.key.kernel,
                    task.key.problem,
                    names.join("; ")
                ));
            }
            noted.sources.push(names);
        }
        let knows = noted.sources.iter().any(|names| !names.is_empty());
        self.noted = knows.then_some(noted);
        Ok(())
    }
}
