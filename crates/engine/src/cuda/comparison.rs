//! Right configurations timed beside each other on one GPU: the fixed reference, a duel, and the final
//! comparison that decides what is published.

use super::{CudaEvaluator, GpuSlot};
use crate::evaluator::{BoxError, Evaluator as _, Judged};
use crate::fleet::{SiblingTimes, TimeRange, reference_of};
use crate::judging::{PutOff, SEEDS};
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::panics::lock;
use tuner_core::plan::Plan;
use tuner_core::units::ContentHash;
use tuner_device::worker::host::WorkerError;
use tuner_device::worker::protocol::TimingComparison;
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::timing::paired::DuelResult;
use tuner_space::Config;

impl CudaEvaluator {
    /// What a task's fixed reference takes now, microseconds, and what it is: the unit that drift is
    /// taken out by. `None` before there is one.
    ///
    /// # Errors
    /// Why it cannot be timed.
    pub(crate) fn reference_time(&self, task: usize) -> Result<Option<(f64, ContentHash)>, String> {
        self.with_bench(|bench| {
            let plan = self.reference(task, bench).map_err(|why| why.to_string())?;
            let Some(plan) = plan else {
                return Ok(None);
            };
            // It passed the gate when it became the reference; its time is all that is asked.
            let time = timed_beside(bench, plan.clone(), plan).map_err(|why| why.to_string())?;
            let time = time.ok_or_else(|| "it gave no time".to_owned())?;
            let found = time.measured.as_ref().map(Measured::record);
            let found = found.and_then(reference_of);
            let found = found.map(|(reference, us)| Some((us, reference)));
            found.ok_or_else(|| time.judgement.to_string())
        })
    }

    /// What a task's reference takes and, beside it, a configuration that is known to be right, as a
    /// GPU says it to its siblings. `None` where the task has no reference of its own.
    ///
    /// # Errors
    /// The compiler or the device failed.
    pub(crate) fn compare(
        &self,
        task: usize,
        incumbent: Option<&Config>,
    ) -> Result<Option<SiblingTimes>, BoxError> {
        // One that does not build here is compared on the reference alone.
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
            let range = TimeRange::of(time);
            let incumbent = incumbent.filter(|_| compared);
            Ok(Some(SiblingTimes {
                task,
                reference,
                reference_us,
                incumbent: incumbent.map(|config| (config.choices().to_vec(), range)),
            }))
        })
    }

    /// Compares two right configurations of a task, interleaved on one GPU: the challenger over the
    /// incumbent. `None` where it came to no result.
    ///
    /// # Errors
    /// One of them does not compile or is wrong, or the device failed.
    pub(crate) fn duel(
        &self,
        task: usize,
        [challenger, incumbent]: [&Config; 2],
        seed: u64,
    ) -> Result<Option<DuelResult>, BoxError> {
        let contest = TimingComparison {
            reference: None,
            plans: self.plans(task, [challenger, incumbent])?,
            seed,
            level: Level::Screening,
        };
        self.with_bench(|bench| bench.worker.duel(contest).map_err(BoxError::from))
    }

    /// Times the best configurations of a task once more, together, in a fresh process and on new
    /// data. One time or reason each.
    ///
    /// # Errors
    /// The device or the compiler failed.
    pub(crate) fn finale(
        &self,
        task: usize,
        configs: &[Config],
        seed: u64,
    ) -> Result<Vec<TimedJudgement>, BoxError> {
        // What is published has passed everything.
        let mut judged = Vec::with_capacity(configs.len());
        for config in configs {
            judged.push(self.found_right(task, config)?);
        }
        let right = judged.iter().zip(configs);
        let right = right.filter(|(found, _)| found.judgement.is_ok());
        let plans = self.plans(task, right.map(|(_, config)| config))?;
        if plans.is_empty() {
            return Ok(judged);
        }
        let times = self.with_bench(|bench| -> Result<_, BoxError> {
            let reference = self.reference(task, bench)?;
            let contest = TimingComparison {
                reference,
                plans,
                seed,
                level: Level::Final,
            };
            Ok(bench.worker.finale(contest)?)
        })?;
        let mut times = times.into_iter();
        for found in judged.iter_mut().filter(|found| found.judgement.is_ok()) {
            if let Some(time) = times.next() {
                *found = time;
            }
        }
        Ok(judged)
    }

    /// What is known of a configuration on the problems that are put off, which are looked at where
    /// nobody has.
    fn found_right(&self, task: usize, config: &Config) -> Result<TimedJudgement, BoxError> {
        let right = Judgement::ok(None);
        if self.tasks[task].task.puts_off == PutOff::Nothing {
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

/// One plan timed beside the reference on a GPU.
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
