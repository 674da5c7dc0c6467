//! What a run's searches know beforehand.

use super::{Device, JobError, Prepared, device_error, usage};
use crate::foresight::Look;
use crate::knowledge::{self, Noted};
use crate::threads::run_blocking;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use tuner_search as evolve;
use tuner_store::Store;

/// Share of a budget that predictions before the run may take.
const FORESIGHT: u32 = 10;

impl Prepared {
    /// With a prior, has it predict configurations all over each space, which the search knows then
    /// beside what [`Prepared::gather`] finds. Takes at most a tenth of the budget, and ends early
    /// when `shutdown` turns true.
    ///
    /// # Errors
    /// The compiler does not work.
    pub async fn foresee(&mut self, shutdown: watch::Receiver<bool>) -> Result<(), JobError> {
        if self.knowledge.is_none() || self.plan.start.strategy != evolve::STRATEGIES[0] {
            return Ok(());
        }
        let budget = self.plan.limits.budget;
        let deadline = budget.map(|budget| Instant::now() + budget / FORESIGHT);
        let spaces = self.plan.tasks.iter().map(|task| {
            let start = task.start.iter().map(|point| point.config.clone());
            (task.space.clone(), start.collect())
        });
        let look = Look {
            spaces: spaces.collect(),
            seed: self.plan.start.seed.0,
            threads: self.plan.jobs,
            stopped: Box::new(move || {
                *shutdown.borrow() || deadline.is_some_and(|end| Instant::now() >= end)
            }),
        };
        let found = match &self.device {
            Device::Virtual(evaluator) => {
                let evaluator = Arc::clone(evaluator);
                run_blocking("foresight", move || evaluator.foresee(&look)).await
            }
            Device::Cuda(evaluator) => {
                let evaluator = Arc::clone(evaluator);
                run_blocking("foresight", move || evaluator.foresee(&look)).await
            }
            // Who compiles a candidate of a fleet asks the model then.
            Device::Replay(_) | Device::Fleet(..) => return Ok(()),
        };
        let found = found.map_err(|error| JobError::Failed(error.into()))?;
        self.foreseen = found.map_err(device_error)?;
        Ok(())
    }

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
        let mut foreseen = std::mem::take(&mut self.foreseen).into_iter();
        for (task, gathered) in self.plan.tasks.iter_mut().zip(gathered) {
            let predicted = foreseen.next().flatten();
            let experiences: Vec<_> = predicted.into_iter().chain(gathered).collect();
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
