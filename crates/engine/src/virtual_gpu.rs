//! The virtual GPU as the engine sees it: compile here, judge in a worker process.

use super::candidate::{KernelTask, Work};
use super::evaluator::{BoxError, Clock, Evaluator, Judged, Order, Preparation};
use super::vouch;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tuner_core::record::{Compilation, Verdict};
use tuner_core::units::ContentHash;
use tuner_device::DeviceFacts;
use tuner_device::worker::host::Worker;
use tuner_device::worker::protocol::Job;
use tuner_judge::gate;
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::Judgement;
use tuner_judge::timing::Measured;
use tuner_kernel::compile::Compiler;
use tuner_space::Config;

/// Runs candidates on the virtual GPU.
pub struct VirtualEvaluator {
    facts: DeviceFacts,
    compiler: Arc<Compiler>,
    tasks: Vec<KernelTask>,
    worker: Mutex<Worker>,
    /// Judgements by what decides them: machine code, launches and shapes.
    known: Mutex<HashMap<ContentHash, Judgement>>,
}

impl VirtualEvaluator {
    /// An evaluator for these tasks, in the order of the engine's plan.
    #[must_use]
    pub fn new(
        facts: DeviceFacts,
        compiler: Arc<Compiler>,
        tasks: Vec<KernelTask>,
        worker: Worker,
    ) -> Self {
        Self {
            facts,
            compiler,
            tasks,
            worker: Mutex::new(worker),
            known: Mutex::new(HashMap::new()),
        }
    }
}

impl VirtualEvaluator {
    /// Finds out, before a run begins, whether the results of each task can be compared, by the
    /// first of its starting points; makes a smaller check problem where they cannot. Gives a line
    /// for the user for each such task.
    ///
    /// # Errors
    /// The compiler or the worker does not work, or the space's reference is wrong.
    pub fn look_ahead(&self, starts: &[Option<Config>]) -> Result<Vec<String>, BoxError> {
        let mut notes = Vec::new();
        for (task, start) in self.tasks.iter().zip(starts) {
            let Some(config) = start.as_ref().filter(|_| task.checks.is_empty()) else {
                continue;
            };
            if let Preparation::Ready { work, .. } = task.prepare(&self.compiler, config)? {
                let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
                let timed = &task.timed;
                vouch::judge::<BoxError>(&mut worker, work.job, timed, &self.compiler, config)
                    .map_err(|error| task.blame(error))?;
            }
            let (kernel, problem) = (task.timed.kernel(), task.timed.problem());
            notes.extend(task.timed.scaled_check().note(kernel, problem));
        }
        Ok(notes)
    }
}

impl Evaluator for VirtualEvaluator {
    type Work = Work;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn order(&self) -> Order {
        Order::Fixed
    }

    fn clock(&self) -> Clock {
        Clock::Wall
    }

    fn may_hang(&self) -> bool {
        false
    }

    fn prepare(&self, task: usize, config: &Config) -> Result<Preparation<Work>, BoxError> {
        self.tasks[task].prepare(&self.compiler, config)
    }

    fn evaluate(&self, task: usize, config: &Config, work: Work) -> Result<Judged, BoxError> {
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&work.same)
            .cloned();
        let reused = known.is_some();
        let judgement = match known {
            Some(judgement) => judgement,
            None => {
                let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
                let (task, compiler) = (&self.tasks[task], &*self.compiler);
                let timed = &task.timed;
                let job = Job {
                    level: Level::Check,
                    ..work.job
                };
                let judgement = vouch::judge::<BoxError>(&mut worker, job, timed, compiler, config)
                    .map_err(|error| task.blame(error))?;
                // A timeout or a dead or lost worker may be the host's fault: never remembered for
                // others.
                if !matches!(
                    judgement.verdict,
                    Verdict::Timeout | Verdict::Crashed | Verdict::NotJudged
                ) {
                    let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                    known.insert(work.same, judgement.clone());
                }
                judgement
            }
        };
        Ok(judged(work.candidate, work.compilation, judgement, reused))
    }
}

fn judged(
    candidate: ContentHash,
    compilation: Compilation,
    judgement: Judgement,
    reused: bool,
) -> Judged {
    let measured = gate::by_worker(&judgement).ok().and_then(|verified| {
        let measurement = judgement.measurement.as_ref()?;
        let measured = Measured::predicted(&verified, measurement.p50, &measurement.protocol);
        Some(if reused { measured.reused() } else { measured })
    });
    let explanation = judgement.explanation.as_ref();
    Judged {
        counters: explanation.and_then(|counts| serde_json::to_value(counts).ok()),
        candidate,
        verdict: judgement.verdict,
        detail: judgement.detail,
        hazards: judgement.hazards,
        charged_us: measured.as_ref().map_or(0, |m| m.p50().get().ceil() as u64),
        compilation: Some(compilation),
        max_error: judgement.max_error,
        measured,
    }
}
