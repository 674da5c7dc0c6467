//! Predicted times as a source of what a search knows beforehand (`--prior vgpu`).
//!
//! Before a run begins, some hundred configurations are compiled and predicted, none of which costs
//! the device anything: the starting points first, then uniform draws, so that whatever is done when
//! the time is up is spread over the space, then neighbours of the fastest by prediction, where the
//! search will look first.

use super::evaluator::BoxError;
use super::judging::KernelTask;
use super::parallel::in_order;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use tuner_core::record::ConfigValues;
use tuner_core::units::Micros;
use tuner_kernel::compile::Compiler;
use tuner_search::Experience;
use tuner_space::{Config, Neighbourhood, Space};

/// Configurations spread over the space.
const SPREAD: usize = 160;
/// Neighbours of the fastest of these, and of how many.
const NEAR: usize = 80;
const FASTEST: usize = 8;
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

/// A configuration and its predicted time; `None`: it does not compile.
type Row = (Config, Option<Micros>);

impl Foresight<'_> {
    /// Predicts; `None` where the task has no prior, or too little can be predicted.
    ///
    /// # Errors
    /// The compiler does not work.
    fn look(&self) -> Result<Option<Experience>, BoxError> {
        let Some(prior) = &self.task.prior else {
            return Ok(None);
        };
        let mut rng = ChaCha8Rng::seed_from_u64(self.look.seed);
        let mut seen: HashSet<Config> = HashSet::new();
        // A space that is hardly larger than the draws would never give so many.
        let draws = (0..2 * SPREAD).filter_map(|_| self.space.draw(&mut rng));
        let mut wanted: Vec<Config> = self.start.iter().cloned().chain(draws).collect();
        wanted.retain(|config| self.space.contains(config) && seen.insert(config.clone()));
        wanted.truncate(SPREAD);
        let mut rows = self.predict(&wanted)?;
        let mut fastest: Vec<&Row> = rows.iter().filter(|(_, time)| time.is_some()).collect();
        fastest.sort_by_key(|(_, time)| *time);
        let mut near = Vec::new();
        for (config, _) in fastest.into_iter().take(FASTEST) {
            let all = self.space.neighbours(config, Neighbourhood::Hamming);
            near.push(all.into_iter());
        }
        // In turns, so that each of the fastest has its share.
        let mut next = Vec::new();
        while next.len() < NEAR {
            let before = next.len();
            for each in &mut near {
                next.extend(each.find(|one| seen.insert(one.clone())));
            }
            if next.len() == before {
                break;
            }
        }
        next.truncate(NEAR);
        rows.extend(self.predict(&next)?);
        let timed = rows.iter().filter(|(_, time)| time.is_some()).count();
        let values = |(config, time): Row| -> (ConfigValues, Option<Micros>) {
            (self.space.values(&config), time)
        };
        Ok((timed >= FEW).then(|| Experience {
            name: format!("{timed} predictions for {}", prior.name()),
            rows: rows.into_iter().map(values).collect(),
        }))
    }

    /// Those of which something can be said: the time, or that they do not compile.
    fn predict(&self, configs: &[Config]) -> Result<Vec<Row>, BoxError> {
        let one = |config: &Config, (): &mut ()| -> Result<Option<Row>, BoxError> {
            if (self.look.stopped)() {
                return Ok(None);
            }
            Ok(match self.task.timed.build(self.compiler, config)? {
                Err(_) => Some((config.clone(), None)),
                Ok(built) => {
                    let prior = self.task.prior.as_ref();
                    let time = prior.and_then(|prior| prior.predicted(&built.plan));
                    time.map(|time| (config.clone(), Some(time)))
                }
            })
        };
        let rows = in_order(configs, self.look.threads, || (), one)?;
        Ok(rows.into_iter().flatten().collect())
    }
}
