//! Host side: starts the worker, sends requests, enforces deadlines, restarts it.

mod patience;
mod settings;

use patience::Patience;
pub use settings::{Settings, WorkerError};

use super::protocol::{
    Job, MeasureRequest, Opened, RelativeTime, Request, Response, TimingComparison,
};
use crate::gpu::examine::Examination;
use crate::gpu::meter::Spent;
use crate::step::Step;
use std::time::{Duration, Instant};
use tuner_core::judgement::Judgement;
use tuner_core::record::Verdict;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::timing::calibration::Calibration;
use tuner_judge::timing::paired::PairedResult;
use tuner_process::{
    ATTEMPTS, Failure, Limits, Parts, Process, Program, from_json, pause, start_error,
};

/// A device in a worker process.
pub struct Worker {
    settings: Settings,
    running: Option<Process>,
    opened: Option<Opened>,
    restarts: u64,
    /// Consecutive candidates for which the device failed twice.
    failures: u32,
    /// Consecutive candidates that lost all their workers.
    losses: u32,
    /// Moment at which the caller gives up.
    until: Option<Instant>,
}

/// Consecutive candidates with a failing device that can still be opened, before the device counts as lost.
const MAX_FAILURES: u32 = 3;
/// Consecutive candidates that lose all their workers, before the run is aborted.
const MAX_LOSSES: u32 = 8;
/// Maximum delay of a failed assertion's text after its error code.
const MAX_OUTPUT_LAG: Duration = Duration::from_millis(50);

/// Outcome of a request.
enum RequestOutcome {
    Response(Response),
    /// No answer in time; holds the step.
    Hung(String),
    /// The process died because of the candidate; holds the known details.
    Died(String),
    /// The process was lost for an external reason.
    WorkerLost(String),
    /// The device failed.
    DeviceLost(String),
    /// The caller's deadline passed.
    OutOfTime,
}

impl Worker {
    /// Creates a worker, which is started for the first job.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            running: None,
            opened: None,
            restarts: 0,
            failures: 0,
            losses: 0,
            until: None,
        }
    }

    /// Sets a deadline for all following requests, `None`: none. It says nothing about a candidate: a
    /// worker that is late is killed, and the request fails with [`WorkerError::OutOfTime`].
    pub fn set_deadline(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// Returns the time until the deadline of the caller.
    fn time_left(&self) -> Option<Duration> {
        let now = Instant::now();
        self.until.map(|until| until.saturating_duration_since(now))
    }

    /// Returns the number of restarts after the first start.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns the device as the worker last opened it; real GPUs only.
    #[must_use]
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// Opens a real GPU, if it is not open yet.
    ///
    /// # Errors
    /// The device cannot be opened.
    pub fn open(&mut self) -> Result<&Opened, WorkerError> {
        if self.running.is_none() {
            self.running = Some(self.ready()?);
        }
        let absent = || WorkerError::Failed("a virtual GPU is not opened".to_owned());
        self.opened.as_ref().ok_or_else(absent)
    }

    /// Judges one candidate. A worker that hangs or dies is an outcome of the candidate.
    ///
    /// # Errors
    /// The worker cannot be started, the job itself is unusable, or the device is lost.
    pub fn judge(&mut self, job: Job) -> Result<TimedJudgement, WorkerError> {
        let request = Request::Judge(Box::new(self.packed(job)));
        match self.candidate(&request)? {
            Ok(Response::Judged(judgement)) => Ok(*judgement),
            Ok(other) => Err(strange(&other)),
            Err(judgement) => Ok(judgement.into()),
        }
    }

    /// Judges and times one candidate on a real GPU.
    ///
    /// # Errors
    /// As for [`Worker::judge`].
    pub fn measure(
        &mut self,
        mut measuring: MeasureRequest,
    ) -> Result<(TimedJudgement, Option<RelativeTime>, Spent), WorkerError> {
        let carry = self.settings.carry;
        measuring.job = self.packed(measuring.job);
        measuring.reference = measuring.reference.map(|plan| plan.packed(carry));
        if let Some(rival) = &mut measuring.incumbent {
            rival.plan = rival.plan.clone().packed(carry);
        }
        let request = Request::Measure(Box::new(measuring));
        match self.candidate(&request)? {
            Ok(Response::Measured(judgement, standing, spent)) => Ok((*judgement, standing, spent)),
            Ok(other) => Err(strange(&other)),
            Err(judgement) => Ok((judgement.into(), None, Spent::default())),
        }
    }

    /// Measures the peak rates of the device.
    ///
    /// # Errors
    /// It cannot be measured, or the device is lost.
    pub fn calibrate(&mut self) -> Result<Calibration, WorkerError> {
        match self.device(&Request::Calibrate)? {
            Response::Calibrated(calibration) => Ok(*calibration),
            other => Err(strange(&other)),
        }
    }

    /// Loads the device for `load` and monitors it.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn examine(&mut self, load: Duration) -> Result<Examination, WorkerError> {
        let load = u64::try_from(load.as_millis()).unwrap_or(u64::MAX);
        match self.device(&Request::Examine(load))? {
            Response::Examined(found) => Ok(*found),
            other => Err(strange(&other)),
        }
    }

    /// Compares two candidates, the challenger first; the gate checks each of them before.
    ///
    /// # Errors
    /// One of them fails the gate, or the device failed.
    pub fn duel(&mut self, contest: TimingComparison) -> Result<Option<PairedResult>, WorkerError> {
        let request = Request::Duel(Box::new(self.packed_contest(contest)));
        match self.device(&request)? {
            Response::Dueled(result) => Ok(result.map(|result| *result)),
            other => Err(strange(&other)),
        }
    }

    /// Times the best candidates again, interleaved, in a fresh process. Returns one time or reason each.
    ///
    /// # Errors
    /// The device failed.
    pub fn finale(
        &mut self,
        contest: TimingComparison,
    ) -> Result<Vec<TimedJudgement>, WorkerError> {
        self.running = None;
        let request = Request::Finale(Box::new(self.packed_contest(contest)));
        match self.device(&request)? {
            Response::Final(times) => Ok(times),
            other => Err(strange(&other)),
        }
    }

    fn packed(&self, mut job: Job) -> Job {
        let carry = self.settings.carry;
        job.checks = job.checks.into_iter().map(|p| p.packed(carry)).collect();
        job.timed = job.timed.map(|plan| plan.packed(carry));
        job
    }

    fn packed_contest(&self, mut contest: TimingComparison) -> TimingComparison {
        let carry = self.settings.carry;
        contest.plans = contest.plans.into_iter().map(|p| p.packed(carry)).collect();
        contest.reference = contest.reference.map(|plan| plan.packed(carry));
        contest
    }

    /// Sends a request whose failure is the candidate's: hangs and deaths become its judgement. A device
    /// failure gets a second attempt in a fresh process, a lost process a third.
    fn candidate(&mut self, request: &Request) -> Result<Result<Response, Judgement>, WorkerError> {
        let (mut losses, mut failed) = (0, None);
        while losses < ATTEMPTS {
            pause(losses);
            match self.send_request(request)? {
                RequestOutcome::Response(Response::Unusable(why)) => {
                    return Err(WorkerError::Unusable(why));
                }
                RequestOutcome::Response(response) => {
                    (self.failures, self.losses) = (0, 0);
                    return Ok(Ok(response));
                }
                RequestOutcome::Hung(why) => return Ok(Err(Judgement::new(Verdict::Timeout, why))),
                RequestOutcome::Died(detail) => {
                    return Ok(Err(Judgement::new(Verdict::Crashed, detail)));
                }
                RequestOutcome::WorkerLost(why) => {
                    losses += 1;
                    if losses == ATTEMPTS {
                        return self.given_up(&why);
                    }
                }
                RequestOutcome::OutOfTime => return Err(WorkerError::OutOfTime),
                RequestOutcome::DeviceLost(why) if failed.is_none() => failed = Some(why),
                RequestOutcome::DeviceLost(why) => return self.failed_twice(why),
            }
        }
        self.given_up("")
    }

    /// Handles a candidate that lost every worker.
    fn given_up(&mut self, why: &str) -> Result<Result<Response, Judgement>, WorkerError> {
        let why = format!("the device worker was lost {ATTEMPTS} times: {why}");
        self.losses += 1;
        if self.losses >= MAX_LOSSES {
            return Err(WorkerError::WorkersLost(why));
        }
        Ok(Err(Judgement::new(Verdict::NotJudged, why)))
    }

    /// Handles a device that failed with one candidate in two processes. That does not concern the
    /// candidate: its own faults have separate error codes.
    fn failed_twice(&mut self, why: String) -> Result<Result<Response, Judgement>, WorkerError> {
        self.failures += 1;
        if self.failures >= MAX_FAILURES {
            return Err(WorkerError::DeviceLost(why));
        }
        let detail = format!("the device failed twice with this candidate: {why}");
        Ok(Err(Judgement::new(Verdict::NotJudged, detail)))
    }

    /// Sends a request to the device itself.
    fn device(&mut self, request: &Request) -> Result<Response, WorkerError> {
        let mut lost = String::new();
        for attempt in 0..ATTEMPTS {
            pause(attempt);
            match self.send_request(request)? {
                RequestOutcome::Response(Response::Failed(why)) => {
                    return Err(WorkerError::Failed(why));
                }
                RequestOutcome::Response(Response::Unusable(why)) => {
                    return Err(WorkerError::Unusable(why));
                }
                RequestOutcome::Response(response) => return Ok(response),
                RequestOutcome::Hung(why) => return Err(WorkerError::Hung(why)),
                RequestOutcome::Died(detail) => return Err(WorkerError::Failed(detail)),
                RequestOutcome::OutOfTime => return Err(WorkerError::OutOfTime),
                RequestOutcome::DeviceLost(why) => return Err(WorkerError::DeviceLost(why)),
                RequestOutcome::WorkerLost(why) => lost = why,
            }
        }
        Err(WorkerError::Failed(format!(
            "the device worker was lost {ATTEMPTS} times: {lost}"
        )))
    }

    fn start(&self) -> Result<Process, WorkerError> {
        let settings = &self.settings;
        let program = Program {
            path: settings.program.clone(),
            arguments: settings.arguments.iter().map(Into::into).collect(),
            environment: settings.environment.clone(),
            folder: None,
        };
        Process::start(&program)
            .map_err(|error| WorkerError::Start(start_error(&program.path, &error)))
    }

    /// Returns a running worker with its device open.
    fn ready(&mut self) -> Result<Process, WorkerError> {
        let Some(helpers) = self.settings.helpers.clone() else {
            return self.start();
        };
        let request = Request::Open(Box::new(helpers.packed(self.settings.carry)));
        let parts = parts_of(request)?;
        let mut pauses = self.settings.retries.clone().into_iter();
        loop {
            let mut running = self.start()?;
            let answer = self.exchange(&mut running, &parts, Step::Open)?.0;
            let why = match answer {
                RequestOutcome::Response(Response::Opened(opened)) => {
                    self.opened = Some(*opened);
                    return Ok(running);
                }
                RequestOutcome::Response(other) => return Err(strange(&other)),
                RequestOutcome::OutOfTime => return Err(WorkerError::OutOfTime),
                RequestOutcome::Hung(_) => format!(
                    "it does not open within {} s",
                    self.settings.open.as_secs_f64()
                ),
                RequestOutcome::Died(why)
                | RequestOutcome::WorkerLost(why)
                | RequestOutcome::DeviceLost(why) => why,
            };
            // The process ends before the pause, so that the device is free when the next one opens it.
            drop(running);
            match pauses.next() {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(WorkerError::DeviceLost(why)),
            }
        }
    }

    /// Sends a request and waits for its answer; the worker is discarded unless it can continue.
    fn send_request(&mut self, request: &Request) -> Result<RequestOutcome, WorkerError> {
        // A worker that waits for its next request need not be killed.
        if self.time_left().is_some_and(|left| left.is_zero()) {
            return Ok(RequestOutcome::OutOfTime);
        }
        let parts = parts_of(request.clone())?;
        // A worker that died while idle was not killed by this candidate.
        let idle = self.running.take();
        self.restarts += u64::from(idle.as_ref().is_some_and(Process::is_gone));
        let mut running = match idle.filter(|running| !running.is_gone()) {
            Some(running) => running,
            None => self.ready()?,
        };
        // Output of the previous candidate must not explain a crash of this one.
        running.forget_said();
        let (answer, corrupted) = self.exchange(&mut running, &parts, Step::Load)?;
        if matches!(answer, RequestOutcome::Response(_)) && !corrupted {
            self.running = Some(running);
        } else {
            self.restarts += 1;
        }
        Ok(answer)
    }

    /// Sends a request and reads until its answer; also reports whether the worker is corrupted.
    fn exchange(
        &self,
        running: &mut Process,
        request: &Parts,
        mut step: Step,
    ) -> Result<(RequestOutcome, bool), WorkerError> {
        let slices: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        running
            .send(&slices)
            .map_err(|error| WorkerError::Failed(error.to_string()))?;
        let mut corrupted = false;
        let mut patience = Patience::new(running.processor_time());
        let answer = loop {
            let own = self.settings.deadline(step);
            let limits = Limits {
                within: self.time_left().map_or(own, |left| own.min(left)),
                memory_bytes: None,
            };
            let parts = match running.receive(limits) {
                Ok(parts) => parts,
                Err(Failure::Late) if self.time_left().is_some_and(|left| left.is_zero()) => {
                    break RequestOutcome::OutOfTime;
                }
                Err(Failure::Late)
                    if patience.grants_extension(running.processor_time(), limits.within) =>
                {
                    continue;
                }
                Err(Failure::Late) => {
                    let limit = limits.within.as_secs_f64();
                    let why = format!("no answer within {limit} s ({step:?}); worker killed");
                    break RequestOutcome::Hung(why);
                }
                // An external kill is not evidence about the candidate.
                Err(failure) if failure.is_from_outside() => {
                    break RequestOutcome::WorkerLost(failure.to_string());
                }
                Err(failure) => {
                    break RequestOutcome::Died(format!("the device worker died: {failure}"));
                }
            };
            match from_json(&parts) {
                Ok(Response::Begins(next)) => {
                    step = next;
                    patience = Patience::new(running.processor_time());
                }
                Ok(Response::Corrupted(_)) => corrupted = true,
                Ok(Response::Lost(why)) => break RequestOutcome::DeviceLost(why),
                Ok(response) => {
                    break RequestOutcome::Response(with_output(running, response, corrupted));
                }
                Err(error) => {
                    break RequestOutcome::WorkerLost(format!("it sent no answer: {error}"));
                }
            }
        };
        Ok((answer, corrupted))
    }
}

fn parts_of(request: Request) -> Result<Parts, WorkerError> {
    let parts = request.into_parts();
    parts.map_err(|error| WorkerError::Failed(error.to_string()))
}

/// Adds printed text (such as a failed assertion) to the verdict of a crash.
fn with_output(running: &mut Process, mut response: Response, corrupted: bool) -> Response {
    if let Response::Judged(timed) | Response::Measured(timed, ..) = &mut response
        && corrupted
        && timed.judgement.verdict == Verdict::Crashed
    {
        std::thread::sleep(MAX_OUTPUT_LAG);
        let said = running.said();
        if !said.is_empty() {
            let detail = &mut timed.judgement.detail;
            *detail = format!("{detail}; {said}");
        }
    }
    response
}

fn strange(response: &Response) -> WorkerError {
    match response {
        Response::Failed(why) => WorkerError::Failed(why.clone()),
        other => WorkerError::Failed(format!(
            "the device worker answered something else than it was asked: {other:?}"
        )),
    }
}
