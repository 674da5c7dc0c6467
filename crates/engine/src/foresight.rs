//! Predicted times as prior knowledge of a search (`--prior vgpu`).
//!
//! Before a run begins, about a hundred configurations are compiled and predicted, without use of
//! the device. [`Survey`] chooses them.

use super::evaluator::BoxError;
use super::judging::KernelTask;
use super::parallel::in_order;
use super::prior::Prior;
use tuner_core::record::Verdict;
use tuner_core::units::Seed;
use tuner_kernel::compile::Compiler;
use tuner_search::{Experience, Observation, Survey};
use tuner_space::{Config, Space};

/// Minimum number of predictions that are informative about a space.
const MIN_PREDICTIONS: usize = 12;

/// Configurations to predict for the tasks of a run, in their order.
pub(crate) struct ForecastRequest {
    /// Spaces, with the configurations that are predicted first.
    pub(crate) spaces: Vec<(Space, Vec<Config>)>,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    /// Reports whether to start no more predictions.
    pub(crate) stopped: Box<dyn Fn() -> bool + Send + Sync>,
}

impl ForecastRequest {
    /// Predicts with the priors of these tasks; `None` for a task without one.
    ///
    /// # Errors
    /// The compiler does not work.
    pub(crate) fn predict<'a>(
        &self,
        tasks: impl Iterator<Item = &'a KernelTask>,
        compiler: &Compiler,
    ) -> Result<Vec<Option<Experience>>, BoxError> {
        let pairs = tasks.zip(&self.spaces);
        let looks = pairs.map(|(task, (space, start))| match &task.prior {
            Some(prior) => self.survey(task, prior, compiler, space, start),
            None => Ok(None),
        });
        looks.collect()
    }

    /// Predicts for a task; `None` if too few configurations can be predicted.
    fn survey(
        &self,
        task: &KernelTask,
        prior: &Prior,
        compiler: &Compiler,
        space: &Space,
        start: &[Config],
    ) -> Result<Option<Experience>, BoxError> {
        let one = |config: &Config, (): &mut ()| -> Result<Observation, BoxError> {
            // Checked for each configuration as well: a round may outlast the remaining time.
            if (self.stopped)() {
                return Ok(Observation::Unknown);
            }
            Ok(match task.timed.build(compiler, config)? {
                Err(_) => Observation::Failed(Verdict::CompileFailed),
                Ok(built) => {
                    let time = prior.predicted(&built.plan);
                    time.map_or(Observation::Unknown, Observation::exactly)
                }
            })
        };
        let mut survey = Survey::new(space, Seed(self.seed), start);
        let mut rows = Vec::new();
        loop {
            let round = survey.round();
            if round.is_empty() || (self.stopped)() {
                break;
            }
            let predicted = in_order(&round, self.threads, || (), one)?;
            survey.tell(predicted.iter().copied());
            for (config, predicted) in round.iter().zip(predicted) {
                let time = match predicted {
                    Observation::Time { time, .. } => Some(time),
                    Observation::Failed(_) => None,
                    // A missing prediction is not a result; a row without a time would count as a failure.
                    Observation::Unknown => continue,
                };
                rows.push((space.values(config), time));
            }
        }
        let timed = rows.iter().filter(|(_, time)| time.is_some()).count();
        Ok((timed >= MIN_PREDICTIONS).then(|| Experience {
            name: format!("{timed} predictions for {}", prior.name()),
            rows,
        }))
    }
}
