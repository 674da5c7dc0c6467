//! Comparison of correct configurations on one GPU: the fixed reference, the paired comparison, and
//! the final comparison that decides the published results.

use super::{CudaEvaluator, GpuSlot};
use crate::evaluator::{BoxError, Evaluator as _, Judged};
use crate::fleet::{SiblingTimes, TimeRange, reference_of};
use crate::judging::DeferredChecks;
use crate::other_problems::SEEDS;
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::panics::lock;
use tuner_core::plan::Plan;
use tuner_core::record::Verdict;
use tuner_core::units::ContentHash;
use tuner_device::worker::host::WorkerError;
use tuner_device::worker::protocol::TimingComparison;
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::timing::paired::PairedResult;
use tuner_space::Config;

impl CudaEvaluator {
    /// Returns the current time of a task's fixed reference, microseconds, and its identity: the
    /// unit that removes drift. `None` before a reference exists.
    ///
    /// # Errors
    /// The reason why it cannot be timed.
    pub(crate) fn reference_time(&self, task: usize) -> Result<Option<(f64, ContentHash)>, String> {
        self.with_bench(|bench| {
            let plan = self.reference(task, bench).map_err(|why| why.to_string())?;
            let Some(plan) = plan else {
                return Ok(None);
            };
            // It passed the gate when it became the reference, so only its time is requested.
            let time = timed_beside(bench, plan.clone(), plan).map_err(|why| why.to_string())?;
            let time = time.ok_or_else(|| "it gave no time".to_owned())?;
            let found = time.measured.as_ref().map(Measured::record);
            let found = found.and_then(reference_of);
            let found = found.map(|(reference, us)| Some((us, reference)));
            found.ok_or_else(|| time.judgement.to_string())
        })
    }

    /// Times a task's reference together with a configuration that is known to be correct, for
    /// comparison with sibling GPUs. `None` if the task has no reference.
    ///
    /// # Errors
    /// The compiler or the device failed.
    pub(crate) fn compare(
        &self,
        task: usize,
        incumbent: Option<&Config>,
    ) -> Result<Option<SiblingTimes>, BoxError> {
        // If it does not build here, only the reference is compared.
        let plans = self.plans(task, incumbent);
        let plans = plans.unwrap_or_default();
        self.with_bench(|bench| {
            let Some(reference) = self.reference(task, bench)? else {
                return Ok(None);
            };
            let beside = plans.into_iter().next();
            let compared = beside.is_some();
            let plan = beside.unwrap_or_else(|| reference.clone());
            let timed = timed_beside(bench, reference, plan)?;
            let measured = timed.and_then(|time| time.measured);
            let Some(time) = measured.as_ref().map(Measured::record) else {
                return Ok(None);
            };
            let Some((reference, reference_us)) = reference_of(time) else {
                return Ok(None);
            };
            let range = TimeRange::from_measurement(time);
            let incumbent = incumbent.filter(|_| compared);
            Ok(Some(SiblingTimes {
                task,
                reference,
                reference_us,
                incumbent: incumbent.map(|config| (config.choices().to_vec(), range)),
            }))
        })
    }

    /// Compares two correct configurations of a task, interleaved on one GPU: the challenger over the
    /// incumbent. `None` without a result.
    ///
    /// # Errors
    /// One of them does not compile or is wrong, or the device failed.
    pub(crate) fn duel(
        &self,
        task: usize,
        [challenger, incumbent]: [&Config; 2],
        seed: u64,
    ) -> Result<Option<PairedResult>, BoxError> {
        let contest = TimingComparison {
            reference: None,
            plans: self.plans(task, [challenger, incumbent])?,
            seed,
            level: Level::Screening,
        };
        self.with_bench(|bench| bench.worker.duel(contest).map_err(BoxError::from))
    }

    /// Times the best configurations of a task again in one comparison, in a fresh process and on new data.
    /// Returns a time or a reason for each.
    ///
    /// # Errors
    /// The device or the compiler failed.
    pub(crate) fn finale(
        &self,
        task: usize,
        configs: &[Config],
        seed: u64,
    ) -> Result<Vec<TimedJudgement>, BoxError> {
        // Published results must have passed every check.
        let mut judged = Vec::with_capacity(configs.len());
        for config in configs {
            judged.push(self.found_right(task, config)?);
        }
        let right = judged.iter().zip(configs);
        let right = right.filter(|(found, _)| found.judgement.is_ok());
        let plans = self.plans(task, right.map(|(_, config)| config))?;
        let mut times: Vec<Option<TimedJudgement>> = vec![None; plans.len()];
        // A candidate that ends the process ends the comparison: the others are compared without it.
        while times.contains(&None) {
            let open: Vec<usize> = (0..)
                .zip(&times)
                .filter(|(_, time)| time.is_none())
                .map(|(at, _)| at)
                .collect();
            let rest = open.iter().map(|at| plans[*at].clone()).collect();
            let found = self.compared(task, rest, seed)?;
            let lost = |time: &TimedJudgement| time.judgement.verdict == Verdict::NotJudged;
            if found.iter().all(lost) {
                // No candidate got a time or a fault, so another round would be the same.
                return Err("the device worker was lost".into());
            }
            for (at, time) in open.into_iter().zip(found) {
                times[at] = (!lost(&time)).then_some(time);
            }
        }
        let mut times = times.into_iter().flatten();
        for found in judged.iter_mut().filter(|found| found.judgement.is_ok()) {
            if let Some(time) = times.next() {
                *found = time;
            }
        }
        Ok(judged)
    }

    /// Times plans of a task in one comparison, after the gate.
    fn compared(
        &self,
        task: usize,
        plans: Vec<Plan>,
        seed: u64,
    ) -> Result<Vec<TimedJudgement>, BoxError> {
        self.with_bench(|bench| -> Result<_, BoxError> {
            let contest = TimingComparison {
                reference: self.reference(task, bench)?,
                plans,
                seed,
                level: Level::Final,
            };
            Ok(bench.worker.finale(contest)?)
        })
    }

    /// Returns the results of a configuration on the deferred problems, running them if they have
    /// not been run.
    fn found_right(&self, task: usize, config: &Config) -> Result<TimedJudgement, BoxError> {
        let right = Judgement::ok(None);
        if self.tasks[task].task.puts_off == DeferredChecks::Nothing {
            return Ok(right.into());
        }
        let nvrtc = self.compiler.nvrtc().version();
        let candidate = self.tasks[task].task.identity(config, &nvrtc);
        if lock(&self.proven).get(&(task, candidate.clone())) == Some(&true) {
            return Ok(right.into());
        }
        let unproven = Judged::without_device(candidate, right);
        Ok(self.prove(task, config, unproven)?.found)
    }
}

/// Times one plan together with the reference on a GPU.
fn timed_beside(
    bench: &mut GpuSlot,
    reference: Plan,
    plan: Plan,
) -> Result<Option<TimedJudgement>, WorkerError> {
    let times = bench.worker.finale(TimingComparison {
        reference: Some(reference),
        plans: vec![plan],
        seed: SEEDS[0],
        level: Level::Screening,
    })?;
    Ok(times.into_iter().next())
}
