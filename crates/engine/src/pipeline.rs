//! Main loop of a run.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks are numbered by the run that made them"
)]

mod commits;
mod concurrent_runs;
mod ends;
mod notes;
mod postponed;
mod setup;

use super::DEVICE_QUEUE;
use super::error::EngineError;
use super::evaluator::{Clock, Evaluator, Preparation};
use super::event::{Event, StopReason, TaskFacts, TrialEvent};
use super::knowledge;
use super::lanes::{Job, Lanes, Message, Step};
use super::ledger::{Ledger, Report};
use super::limits::Limits;
use super::schedule::{Finished, Schedule, Settled, State, Task};
use commits::front;
use concurrent_runs::ConcurrentRuns;
use ends::OVERTIME;
use setup::{schedule, window};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tuner_core::objective::Objectives;
use tuner_store::{Ack, KnownTrials, RunEnd, RunId, RunStart, Store, StoreError, StoredRun};

/// Plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The new run's name, if already chosen.
    pub id: Option<RunId>,
    /// Tasks, in the order of [`RunStart::tasks`].
    pub tasks: Vec<Task>,
    /// The run as the store describes it.
    pub start: RunStart,
    /// The interrupted run to resume.
    pub resume: Option<StoredRun>,
    /// Limits of the run.
    pub limits: Limits,
    /// Threads that prepare candidates.
    pub jobs: usize,
    /// Files of knowledge of a run that learns from concurrent runs of the same kernels; `None`:
    /// its knowledge is fixed at the start.
    pub live: Option<Vec<PathBuf>>,
    /// Objectives in addition to the time, if any.
    pub objectives: Option<Objectives>,
    /// Trials of earlier runs that answer proposals, by task; empty: none.
    pub known: Vec<KnownTrials>,
}

impl Plan {
    /// Returns an equal share of the budget for each of several tasks, seconds.
    fn share(&self) -> Option<f64> {
        let tasks = Some(self.tasks.len()).filter(|tasks| *tasks > 1)?;
        Some(self.limits.budget?.as_secs_f64() / tasks as f64)
    }
}

/// Executes the plan on the device until a limit is reached or `shutdown` turns true. `sink` gets
/// every event as it happens, a trial after its commit.
///
/// # Errors
/// [`EngineError`]: the tuner itself failed. A candidate never causes one.
pub async fn run<E: Evaluator>(
    evaluator: &Arc<E>,
    plan: Plan,
    store: &Store,
    shutdown: watch::Receiver<bool>,
    sink: &mut (dyn FnMut(&Event) + Send),
) -> Result<Report, EngineError> {
    let began = Instant::now();
    let schedule = schedule(&**evaluator, &plan)?;
    let mut lanes = Lanes::new(evaluator);
    // Before the run is stored, so that a run without threads leaves no trace.
    lanes.grow(evaluator.jobs(plan.jobs), evaluator.devices())?;
    let run = match &plan.resume {
        None => store.begin_run_as(plan.id, plan.start.clone()).await?,
        Some(stored) => {
            store.reopen_run(&stored.id, plan.start.clone()).await?;
            stored.id.clone()
        }
    };
    let wall = plan
        .limits
        .budget
        .filter(|_| evaluator.clock() == Clock::Wall);
    let mut driver = Driver {
        ledger: Ledger::new(&plan.tasks),
        tasks: plan.tasks,
        evaluator: Arc::clone(evaluator),
        jobs: plan.jobs,
        limits: plan.limits,
        schedule,
        lanes,
        store,
        run,
        uncommitted: VecDeque::new(),
        settled: Vec::new(),
        charged_us: 0,
        search_time: Duration::ZERO,
        deadline: wall.map(|budget| Instant::now() + budget),
        shutdown,
        sink,
        live: None,
        known: plan.known,
        converged: false,
        loss: store.loss(),
    };
    driver.begin(&plan.start, plan.resume);
    driver.live = plan
        .live
        .map(|files| ConcurrentRuns::new(plan.start, files));
    let ended = driver.drive().await;
    let drained = driver.drain().await;
    let reason = match ended.and_then(|reason| drained.map(|()| reason)) {
        Ok(reason) => reason,
        Err(error) => {
            // The first error is the one to report; a failing database fails here again.
            let _ = store.finish_run(&driver.run, RunEnd::Failed).await;
            return Err(error);
        }
    };
    let worth = driver.schedule.source_correlations();
    knowledge::appraise(&driver.tasks, &worth, &driver.run, store, driver.sink).await?;
    driver.note_left().await?;
    driver.note_costs().await?;
    let end = match reason {
        StopReason::Interrupted => RunEnd::Interrupted,
        _ => RunEnd::Finished,
    };
    store.finish_run(&driver.run, end).await?;
    Ok(driver.report(reason, began.elapsed()))
}

struct Driver<'a, E: Evaluator> {
    tasks: Vec<Task>,
    evaluator: Arc<E>,
    /// Concurrent preparations, as requested.
    jobs: usize,
    limits: Limits,
    schedule: Schedule<E::Work>,
    lanes: Lanes<E>,
    ledger: Ledger,
    store: &'a Store,
    run: RunId,
    /// Reported results that wait for their commit, in order.
    uncommitted: VecDeque<(TrialEvent, Option<Ack>)>,
    /// Postponed proofs that were made, to be stored.
    settled: Vec<Settled>,
    charged_us: u64,
    /// Time spent in the search strategy.
    search_time: Duration,
    deadline: Option<Instant>,
    shutdown: watch::Receiver<bool>,
    sink: &'a mut (dyn FnMut(&Event) + Send),
    live: Option<ConcurrentRuns>,
    /// Trials of earlier runs, by task.
    known: Vec<KnownTrials>,
    /// Further trials gain less than the threshold.
    converged: bool,
    /// Loss of the database's files.
    loss: watch::Receiver<Option<StoreError>>,
}

impl<E: Evaluator> Driver<'_, E> {
    /// Announces the run, and loads the stored results of an interrupted one.
    fn begin(&mut self, start: &RunStart, resume: Option<StoredRun>) {
        let mut resumed = 0;
        let mut known = Vec::new();
        for (task, stored) in resume.into_iter().flat_map(|run| run.tasks).enumerate() {
            resumed += stored.trials.len() as u64;
            let trials = self.schedule.resume(task, stored);
            known.extend(trials.into_iter().map(|trial| (task, trial)));
        }
        (self.sink)(&Event::RunStarted {
            run_id: self.run.to_string(),
            device: start.device.name.clone(),
            device_kind: start.device.kind,
            strategy: start.strategy.clone(),
            seed: start.seed,
            tasks: self.tasks.iter().map(facts).collect(),
            evals: self.limits.evals,
            budget_s: self.limits.budget.map(|budget| budget.as_secs_f64()),
            resumed,
        });
        for (task, trial) in known {
            let event = self.event(task, &trial, true);
            self.announce(event);
        }
    }

    /// Runs until no work is left, and returns the reason.
    async fn drive(&mut self) -> Result<StopReason, EngineError> {
        let mut stop = None;
        loop {
            if stop.is_none() {
                stop = self.due_stop();
                if let Some(reason) = stop {
                    let goes_on = reason == StopReason::Interrupted;
                    self.schedule.stop(self.evaluator.outlives(), goes_on);
                    self.lanes.cancel();
                }
            }
            if stop == Some(StopReason::Budget) && self.is_overdue() {
                self.note_dropped();
                self.schedule.abandon();
                return Ok(StopReason::Budget);
            }
            self.adapt()?;
            self.store_proofs().await?;
            if self.schedule.reached_limit() {
                self.schedule.abandon();
                self.lanes.cancel();
                if self.proves_more(stop) {
                    self.wait(stop.is_some()).await?;
                    continue;
                }
                return Ok(stop.unwrap_or(StopReason::Evals));
            }
            self.fill()?;
            self.feed_device().await?;
            while let Some(proof) = self.schedule.next_to_prove() {
                self.lanes.proofs.send(proof);
            }
            if let Some((flight, mut finished)) = self.schedule.next_judged() {
                if let Finished::New(judged) = &mut finished {
                    self.evaluator.told(judged);
                }
                if self.over_budget(&finished) {
                    self.schedule.abandon();
                    self.lanes.cancel();
                    return Ok(StopReason::Budget);
                }
                let task = flight.task;
                let began = Instant::now();
                let told = self.schedule.tell(flight, finished);
                if let Some(share) = self.limits.converged {
                    self.converged = self.schedule.converge(share);
                }
                self.search_time += began.elapsed();
                self.submit(task, told).await?;
                self.announce_committed()?;
                self.note_postponed();
                self.learn().await?;
            } else if self.schedule.is_idle() && !self.proves_more(stop) {
                return Ok(stop.unwrap_or(StopReason::Exhausted));
            } else {
                self.wait(stop.is_some()).await?;
            }
        }
    }

    /// Adapts to devices that joined or left.
    fn adapt(&mut self) -> Result<(), EngineError> {
        if !self.evaluator.instant() {
            let (jobs, devices) = (self.evaluator.jobs(self.jobs), self.evaluator.devices());
            self.lanes.grow(jobs, devices)?;
            self.schedule.resize(window(&*self.evaluator, self.jobs));
        }
        Ok(())
    }

    /// Starts candidates until the window is full.
    fn fill(&mut self) -> Result<(), EngineError> {
        loop {
            let began = Instant::now();
            let Some(flight) = self.schedule.ask() else {
                break;
            };
            self.search_time += began.elapsed();
            if matches!(flight.state, State::Judged(_)) {
                continue;
            }
            let known = self
                .known
                .get(flight.task)
                // An identity costs a hash of the rendered source, so it is computed only if results are
                // known.
                .filter(|known| !known.is_empty());
            let known = known.and_then(|known| {
                known.get(&self.evaluator.identity(flight.task, &flight.config)?)
            });
            if let Some(known) = known {
                flight.state = State::Judged(Finished::Known(Box::new(known.clone())));
                continue;
            }
            let job = flight.job();
            self.prepare(job)?;
        }
        while let Some(job) = self.schedule.next_to_rejudge() {
            self.prepare(job)?;
        }
        Ok(())
    }

    /// Starts the preparation of a candidate.
    fn prepare(&mut self, job: Job) -> Result<(), EngineError> {
        if !self.evaluator.instant() {
            self.lanes.jobs.send(job);
            return Ok(());
        }
        let judged = self.lanes.at_once(job.task, &job.config)?;
        if let Some(flight) = self.schedule.flight(job.ticket) {
            flight.state = State::Judged(Finished::New(Box::new(judged)));
        }
        Ok(())
    }

    /// Keeps the devices busy: one candidate on each and, if launches are safe and the order is
    /// free, one waiting. With a fixed order each is chosen with all earlier results known.
    async fn feed_device(&mut self) -> Result<(), EngineError> {
        let devices = self.evaluator.devices();
        let most = if self.evaluator.may_hang() {
            devices
        } else {
            devices - 1 + DEVICE_QUEUE
        };
        while self.schedule.on_device() < most {
            let Some(flight) = self.schedule.next_for_device() else {
                break;
            };
            let State::Prepared(candidate, work) =
                std::mem::replace(&mut flight.state, State::OnDevice)
            else {
                break;
            };
            let job = flight.job();
            let limit = self.schedule.time_limit(job.ticket);
            let job = Job { limit, ..job };
            if self.evaluator.may_hang() {
                let task = &self.tasks[job.task];
                let trial = self.schedule.announcement(job.ticket, candidate);
                if let Some(trial) = trial {
                    // Committed before the launch, which may crash the machine.
                    self.store
                        .announce(&self.run, &task.key, trial)
                        .await?
                        .await?;
                }
            }
            self.lanes.device.send((job, work));
        }
        Ok(())
    }

    /// Waits for the first of: a report of a lane, a commit, the deadline, Ctrl-C.
    async fn wait(&mut self, stopping: bool) -> Result<(), EngineError> {
        let deadline = match stopping {
            true => self.deadline.map(|deadline| deadline + OVERTIME),
            false => self.deadline,
        };
        let deadline = deadline.filter(|_| !stopping || !self.evaluator.may_hang());
        let far = Instant::now() + Duration::from_secs(3600);
        tokio::select! {
            message = self.lanes.next() => match message {
                Some(message) => self.receive(message),
                None => Err(EngineError::Panicked("every worker thread is gone".to_owned())),
            },
            answer = front(&mut self.uncommitted), if !self.uncommitted.is_empty() => {
                answer?;
                self.announce_front();
                Ok(())
            }
            () = tokio::time::sleep_until(deadline.unwrap_or(far)) => Ok(()),
            () = turned(&mut self.shutdown), if !stopping => Ok(()),
            // A candidate may be on its device for minutes before the next write.
            error = lost(&mut self.loss) => Err(error.into()),
        }
    }

    fn receive(&mut self, message: Message<E::Work>) -> Result<(), EngineError> {
        let Message {
            ticket,
            spent,
            step,
        } = message;
        if let Some(flight) = self.schedule.flight(ticket) {
            // Only a few candidates are run whole, so that cost does not predict the next trial's.
            if !matches!(flight.state, State::ProvingWhole(_)) {
                flight.spent = Some(flight.spent.unwrap_or(0.0) + spent.as_secs_f64());
            }
        }
        let judged = match step {
            Step::Prepared(preparation) => match preparation? {
                Preparation::Ready {
                    candidate,
                    facts,
                    work,
                } => {
                    let state = State::Prepared(candidate, work);
                    self.schedule.prepared(ticket, state, facts);
                    return Ok(());
                }
                Preparation::Judged(judged) => judged,
            },
            Step::Evaluated(judged) => judged?,
            Step::OutOfTime => {
                self.schedule.park_stopped(ticket);
                self.note_postponed();
                return Ok(());
            }
        };
        if let Some(settled) = self.schedule.settle_proof(ticket, &judged) {
            self.settled.push(settled);
            return Ok(());
        }
        if let Some(flight) = self.schedule.flight(ticket) {
            flight.state = State::Judged(Finished::New(judged));
        }
        Ok(())
    }

    fn report(self, reason: StopReason, elapsed: Duration) -> Report {
        let report = Report {
            run_id: self.run.to_string(),
            reason,
            elapsed,
            clock: Duration::from_micros(self.charged_us),
            tasks: self.ledger.tasks,
        };
        (self.sink)(&Event::RunFinished {
            run_id: report.run_id.clone(),
            reason,
            evals: report.evals(),
            verdicts: report.verdicts(),
            search_us: u64::try_from(self.search_time.as_micros()).unwrap_or(u64::MAX),
        });
        report
    }
}

/// Waits for the loss of the database's files.
async fn lost(loss: &mut watch::Receiver<Option<StoreError>>) -> StoreError {
    let found = match loss.wait_for(Option::is_some).await {
        Ok(error) => error.clone(),
        // The store is closed, or read-only.
        Err(_) => None,
    };
    match found {
        Some(error) => error,
        None => std::future::pending().await,
    }
}

/// Waits until the shutdown is requested.
pub async fn turned(shutdown: &mut watch::Receiver<bool>) {
    if shutdown.wait_for(|&end| end).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn facts(task: &Task) -> TaskFacts {
    TaskFacts {
        kernel: task.key.kernel.clone(),
        problem: task.key.problem.clone(),
        valid: task.space.count().to_string(),
    }
}
