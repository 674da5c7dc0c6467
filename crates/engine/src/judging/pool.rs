//! Judging outside of a run, several candidates concurrently.

use super::{Demand, KernelTask};
use crate::evaluator::{BoxError, Judged, Preparation};
use crate::job::{JobError, device_error, helpers};
use crate::parallel::in_order_each;
use std::sync::{Arc, Mutex};
use tuner_core::judgement::Judgement;
use tuner_core::panics::lock;
use tuner_core::plan::Plan;
use tuner_device::DeviceSelector;
use tuner_device::worker::host::{Settings, Worker};
use tuner_kernel::compile::Compiler;
use tuner_space::Config;

/// Judges configurations outside of a run, several concurrently.
pub struct JudgePool<'a> {
    /// Compiler of the configurations.
    pub compiler: &'a Compiler,
    /// Device that runs them, a virtual GPU or a real one, and its compile target; `None` stops
    /// after the compile.
    pub device: Option<(DeviceSelector, &'a str)>,
    /// Concurrent configurations.
    pub threads: usize,
    /// Verification demand.
    pub demand: Demand,
}

impl JudgePool<'_> {
    /// Judges all in order, and passes the plan of each that compiles to `look`.
    ///
    /// # Errors
    /// The tools do not work, or a space's reference is wrong.
    pub fn judge_all<T: Send>(
        &self,
        items: &[(&KernelTask, &Config)],
        look: impl Fn(&Plan) -> T + Sync,
    ) -> Result<Vec<(Judged, Option<T>)>, JobError> {
        let mut all = Vec::with_capacity(items.len());
        self.judge_each(items, look, |_, judged| all.push(judged))?;
        Ok(all)
    }

    /// Judges all, and reports each with its index as soon as it and all before it are done.
    ///
    /// # Errors
    /// As for [`JudgePool::judge_all`].
    pub fn judge_each<T: Send>(
        &self,
        items: &[(&KernelTask, &Config)],
        look: impl Fn(&Plan) -> T + Sync,
        tell: impl FnMut(usize, (Judged, Option<T>)),
    ) -> Result<(), JobError> {
        let settings = self.settings()?;
        let real = matches!(self.device, Some((DeviceSelector::Cuda(_), _)));
        let worker = || {
            let settings = settings.clone();
            settings.map(|settings| Arc::new(Mutex::new(Worker::new(settings))))
        };
        // Each thread has a separate worker process: a crash loses one candidate. A real GPU has one worker
        // for all compile threads.
        let shared = worker().filter(|_| real);
        let start = || shared.clone().or_else(worker);
        let one = |(task, config): &(&KernelTask, &Config),
                   worker: &mut Option<Arc<Mutex<Worker>>>| {
            self.judge_one(task, config, worker.as_deref(), &look)
        };
        in_order_each(items, self.threads, start, one, tell).map_err(device_error)
    }

    fn settings(&self) -> Result<Option<Settings>, JobError> {
        let settings = match &self.device {
            None => return Ok(None),
            Some((DeviceSelector::Cuda(ordinal), arch)) => {
                Settings::for_gpu(*ordinal, helpers(self.compiler, arch)?)
            }
            Some((selector, _)) => Settings::for_device(&selector.to_string()),
        };
        Ok(Some(settings.map_err(anyhow::Error::from)?))
    }

    fn judge_one<T>(
        &self,
        task: &KernelTask,
        config: &Config,
        worker: Option<&Mutex<Worker>>,
        look: &impl Fn(&Plan) -> T,
    ) -> Result<(Judged, Option<T>), BoxError> {
        let work = match task.prepare(self.compiler, config)? {
            Preparation::Judged(judged) => return Ok((*judged, None)),
            Preparation::Ready { work, .. } => work,
        };
        let seen = work.timed().map(look);
        let Some(worker) = worker else {
            return Ok((work.judged(Judgement::ok(None).into()), seen));
        };
        let job = work.job(&self.demand);
        let mut worker = lock(worker);
        let found = match self.device {
            Some((DeviceSelector::Cuda(_), _)) => {
                let _doing = task.begin("judging", config);
                let found = worker.judge(job);
                found.map_err(|error| task.blame(error.into()))?
            }
            _ => task.on_virtual(self.compiler, &mut worker, config, job)?,
        };
        Ok((work.judged(found), seen))
    }
}
