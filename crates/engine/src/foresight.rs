//! Predicted times as a source of what a search knows beforehand (`--prior vgpu`).
//!
//! Before a run begins, some hundred configurations are compiled and predicted, none of which costs
//! the device anything. Which ones, [`Survey`] says.

use super::evaluator::BoxError;
use super::judging::KernelTask;
use super::parallel::in_order;
use tuner_core::record::Verdict;
use tuner_core::units::{Micros, Seed};
use tuner_kernel::compile::Compiler;
use tuner_search::{Experience, Observation, Survey};
use tuner_space::{Config, Space};

/// Fewer predictions than this say nothing of a space.
const FEW: usize = 12;

/// What is foreseen for the tasks of a run, in their order.
pub(crate) struct Look {
    /// Spaces, with the configurations that are predicted first.
    pub(crate) spaces: Vec<(Space, Vec<Config>)>,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    /// Whether no more are to be begun.
    pub(crate) stopped: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Look {
    /// What the priors of these tasks say, `None` for a task without one.
    ///
    /// # Errors
    /// The compiler does not work.
    pub(crate) fn at<'a>(
        &self,
        tasks: impl Iterator<Item = &'a KernelTask>,
        compiler: &Compiler,
    ) -> Result<Vec<Option<Experience>>, BoxError> {
        let pairs = tasks.zip(&self.spaces);
        let looks = pairs.map(|(task, (space, start))| {
            let foresight = Foresight {
                task,
                compiler,
                space,
                start,
                look: self,
            };
            foresight.look()
        });
        looks.collect()
    }
}

/// What a task is foreseen with.
struct Foresight<'a> {
    task: &'a KernelTask,
    compiler: &'a Compiler,
    space: &'a Space,
    start: &'a [Config],
    look: &'a Look,
}

/// What can be said of a configuration beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Foreseen {
    /// Its time.
    Time(Micros),
    /// It does not compile.
    Failure,
    /// Nothing that can be relied on.
    Nothing,
}

impl Foreseen {
    fn time(self) -> Option<Micros> {
        match self {
            Self::Time(time) => Some(time),
            Self::Failure | Self::Nothing => None,
        }
    }

    fn told(&self) -> Observation {
        match self {
            Self::Time(time) => Observation::exactly(*time),
            Self::Failure => Observation::Failed(Verdict::CompileFailed),
            Self::Nothing => Observation::Unknown,
        }
    }
}

impl Foresight<'_> {
    /// Predicts; `None` where the task has no prior, or too little can be predicted.
    ///
    /// # Errors
    /// The compiler does not work.
    fn look(&self) -> Result<Option<Experience>, BoxError> {
        let Some(prior) = &self.task.prior else {
            return Ok(None);
        };
        let mut survey = Survey::new(self.space, Seed(self.look.seed), self.start);
        let mut rows = Vec::new();
        loop {
            let round = survey.round();
            if round.is_empty() || (self.look.stopped)() {
                break;
            }
            let predicted = self.predict(&round)?;
            survey.tell(predicted.iter().map(Foreseen::told));
            rows.extend(round.into_iter().zip(predicted));
        }
        rows.retain(|(_, foreseen)| *foreseen != Foreseen::Nothing);
        let timed = |(_, foreseen): &&(Config, Foreseen)| foreseen.time().is_some();
        let timed = rows.iter().filter(timed).count();
        let values =
            |(config, foreseen): (Config, Foreseen)| (self.space.values(&config), foreseen.time());
        Ok((timed >= FEW).then(|| Experience {
            name: format!("{timed} predictions for {}", prior.name()),
            rows: rows.into_iter().map(values).collect(),
        }))
    }

    /// What can be said of each.
    fn predict(&self, configs: &[Config]) -> Result<Vec<Foreseen>, BoxError> {
        let one = |config: &Config, (): &mut ()| -> Result<Foreseen, BoxError> {
            if (self.look.stopped)() {
                return Ok(Foreseen::Nothing);
            }
            Ok(match self.task.timed.build(self.compiler, config)? {
                Err(_) => Foreseen::Failure,
                Ok(built) => {
                    let prior = self.task.prior.as_ref();
                    let time = prior.and_then(|prior| prior.predicted(&built.plan));
                    time.map_or(Foreseen::Nothing, Foreseen::Time)
                }
            })
        };
        in_order(configs, self.look.threads, || (), one)
    }
}
