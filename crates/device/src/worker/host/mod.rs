//! The tuner's side: starts the worker, sends requests, keeps deadlines, restarts it.

mod running;

use super::protocol::{
    Job, MeasureRequest, Opened, RelativeTime, Request, Response, TimingComparison, send,
};
use crate::gpu::fake;
use crate::step::Step;
use running::{Running, start};
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, CodeFormat};
use tuner_core::record::Verdict;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::timing::calibration::Calibration;
use tuner_judge::timing::paired::DuelResult;

/// How to start a worker, and how long each of its steps may take.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Program to start: this one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Added to its environment.
    pub environment: Vec<(String, String)>,
    /// The tuner's own kernels, for a real GPU.
    pub helpers: Option<Code>,
    /// Which form of a candidate's code it runs.
    pub carry: CodeFormat,
    /// Deadline for opening the device.
    pub open: Duration,
    /// Deadline for reading code.
    pub load: Duration,
    /// Deadline for one launch of the gate, where the device tells of launches.
    pub launch: Duration,
    /// Deadline for running and comparing one problem.
    pub gate: Duration,
    /// Deadline for timing.
    pub time: Duration,
    /// Pauses before the device is tried again when it does not open; then it is lost.
    pub retries: Vec<Duration>,
}

impl Settings {
    /// A worker of this very program for the device named `selector`.
    ///
    /// # Errors
    /// The path of the running program is unknown.
    pub fn for_device(selector: &str) -> std::io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            arguments: vec!["device-worker".into(), "--device".into(), selector.into()],
            environment: Vec::new(),
            helpers: None,
            carry: CodeFormat::Ptx,
            open: Duration::from_secs(60),
            load: Duration::from_secs(30),
            launch: Duration::from_secs(10),
            gate: Duration::from_secs(120),
            time: Duration::from_secs(60),
            retries: vec![Duration::from_secs(1), Duration::from_secs(4)],
        })
    }

    /// A worker for the GPU of that number, with the tuner's own kernels compiled for it.
    ///
    /// # Errors
    /// The path of the running program is unknown.
    pub fn for_gpu(ordinal: u32, helpers: Code) -> std::io::Result<Self> {
        let stand_in = fake::asked_for().is_some();
        Ok(Self {
            helpers: Some(helpers),
            carry: if stand_in {
                CodeFormat::PtxAsCubin
            } else {
                CodeFormat::Cubin
            },
            // Naive references of large problems take their time; the stand-in hangs for tests only.
            launch: Duration::from_secs(if stand_in { 2 } else { 10 }),
            // Pauses for heat, a warm-up and a duel of a slow kernel.
            time: Duration::from_secs(120),
            // Kernels are loaded with their module: never while a graph is recorded.
            environment: vec![("CUDA_MODULE_LOADING".to_owned(), "EAGER".to_owned())],
            ..Self::for_device(&format!("cuda:{ordinal}"))?
        })
    }

    fn deadline(&self, step: Step) -> Duration {
        match step {
            Step::Open => self.open,
            Step::Load => self.load,
            Step::Launch => self.launch,
            Step::Gate => self.gate,
            Step::Time => self.time,
        }
    }
}

/// Why a worker could not be used at all. A candidate that fails, hangs or crashes is not one.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The process did not start.
    #[error("the device worker did not start ({program}): {source}")]
    Start {
        /// Program.
        program: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The space file and its oracle do not fit together.
    #[error("{0}")]
    Unusable(String),
    /// The device does not answer any more, in fresh processes either.
    #[error(
        "the device is lost: {0}; all finished work is stored (look at `nvidia-smi` and the \
         kernel's log, then go on with --resume)"
    )]
    DeviceLost(String),
    /// What was asked for failed.
    #[error("{0}")]
    Failed(String),
    /// What was asked of the device itself did not end.
    #[error("{0}")]
    Hung(String),
}

/// A device behind a process border.
pub struct Worker {
    settings: Settings,
    running: Option<Running>,
    opened: Option<Opened>,
    restarts: u64,
    /// Candidates in a row with which the device failed twice.
    failures: u32,
}

/// Candidates in a row with which the device fails although it opens, before it counts as lost.
const FAILURES_MAX: u32 = 3;

/// What came of a request.
enum Answer {
    Response(Response),
    /// No answer in time.
    Hung(Step),
    /// The process ended, or talks nonsense: what is known of it.
    Died(String),
    /// The device failed.
    Lost(String),
}

impl Worker {
    /// A worker that is started when the first job comes.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            running: None,
            opened: None,
            restarts: 0,
            failures: 0,
        }
    }

    /// How often a worker had to be started anew after the first.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The device as the worker found it when it was last opened; real GPUs only.
    #[must_use]
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// Opens a real GPU, where that has not happened.
    ///
    /// # Errors
    /// It cannot be opened.
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
    ) -> Result<(TimedJudgement, Option<RelativeTime>), WorkerError> {
        let carry = self.settings.carry;
        measuring.job = self.packed(measuring.job);
        measuring.reference = measuring.reference.map(|plan| plan.packed(carry));
        if let Some(rival) = &mut measuring.incumbent {
            rival.plan = rival.plan.clone().packed(carry);
        }
        let request = Request::Measure(Box::new(measuring));
        match self.candidate(&request)? {
            Ok(Response::Measured(judgement, standing)) => Ok((*judgement, standing)),
            Ok(other) => Err(strange(&other)),
            Err(judgement) => Ok((judgement.into(), None)),
        }
    }

    /// What the device can do at best.
    ///
    /// # Errors
    /// It cannot be measured, or the device is lost.
    pub fn calibrate(&mut self) -> Result<Calibration, WorkerError> {
        match self.device(&Request::Calibrate)? {
            Response::Calibrated(calibration) => Ok(*calibration),
            other => Err(strange(&other)),
        }
    }

    /// Compares two candidates, the challenger first; each is judged right before.
    ///
    /// # Errors
    /// One of them is wrong, or the device failed.
    pub fn duel(&mut self, contest: TimingComparison) -> Result<Option<DuelResult>, WorkerError> {
        let request = Request::Duel(Box::new(self.packed_contest(contest)));
        match self.device(&request)? {
            Response::Dueled(result) => Ok(result.map(|result| *result)),
            other => Err(strange(&other)),
        }
    }

    /// Times the best candidates once more, together, in a fresh process. One time or reason each.
    ///
    /// # Errors
    /// The device failed.
    pub fn finale(
        &mut self,
        contest: TimingComparison,
    ) -> Result<Vec<TimedJudgement>, WorkerError> {
        if let Some(running) = self.running.take() {
            running.kill();
        }
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

    /// A request whose failure is a candidate's: hangs and deaths are its judgement. A failure of
    /// the device gets a second try in a fresh process.
    fn candidate(&mut self, request: &Request) -> Result<Result<Response, Judgement>, WorkerError> {
        let mut failure = String::new();
        for _ in 0..2 {
            match self.ask(request)? {
                Answer::Response(Response::Unusable(why)) => {
                    return Err(WorkerError::Unusable(why));
                }
                Answer::Response(response) => {
                    self.failures = 0;
                    return Ok(Ok(response));
                }
                Answer::Hung(step) => {
                    let limit = self.settings.deadline(step).as_secs_f64();
                    return Ok(Err(Judgement::new(
                        Verdict::Timeout,
                        format!("no answer within {limit} s ({step:?}); worker killed"),
                    )));
                }
                Answer::Died(detail) => return Ok(Err(Judgement::new(Verdict::Crashed, detail))),
                Answer::Lost(why) => failure = why,
            }
        }
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            return Err(WorkerError::DeviceLost(failure));
        }
        Ok(Err(Judgement::new(
            Verdict::Crashed,
            format!("the device failed twice with this candidate: {failure}"),
        )))
    }

    /// A request to the device itself.
    fn device(&mut self, request: &Request) -> Result<Response, WorkerError> {
        match self.ask(request)? {
            Answer::Response(Response::Failed(why)) => Err(WorkerError::Failed(why)),
            Answer::Response(Response::Unusable(why)) => Err(WorkerError::Unusable(why)),
            Answer::Response(response) => Ok(response),
            Answer::Hung(step) => Err(WorkerError::Hung(format!(
                "no answer within {} s ({step:?}); worker killed",
                self.settings.deadline(step).as_secs_f64()
            ))),
            Answer::Died(detail) => Err(WorkerError::Failed(detail)),
            Answer::Lost(why) => Err(WorkerError::DeviceLost(why)),
        }
    }

    /// A running worker with its device open.
    fn ready(&mut self) -> Result<Running, WorkerError> {
        let Some(helpers) = self.settings.helpers.clone() else {
            return start(&self.settings);
        };
        let request = Request::Open(Box::new(helpers.packed(self.settings.carry)));
        let mut pauses = self.settings.retries.clone().into_iter();
        loop {
            let mut running = start(&self.settings)?;
            let answer = match send(&mut running.requests, &request) {
                Ok(()) => self.listen(&mut running, Step::Open),
                Err(error) => Answer::Died(error.to_string()),
            };
            let why = match answer {
                Answer::Response(Response::Opened(opened)) => {
                    self.opened = Some(*opened);
                    return Ok(running);
                }
                Answer::Response(other) => return Err(strange(&other)),
                Answer::Hung(_) => format!(
                    "it does not open within {} s",
                    self.settings.open.as_secs_f64()
                ),
                Answer::Died(why) | Answer::Lost(why) => why,
            };
            running.kill();
            match pauses.next() {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(WorkerError::DeviceLost(why)),
            }
        }
    }

    /// Sends a request and waits for its answer; the worker is gone unless it can go on.
    fn ask(&mut self, request: &Request) -> Result<Answer, WorkerError> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.ready()?,
        };
        running.forget_noise();
        if send(&mut running.requests, request).is_err() {
            // It died while idle: no fault of this candidate.
            self.restarts += 1;
            running.kill();
            running = self.ready()?;
            if let Err(error) = send(&mut running.requests, request) {
                self.restarts += 1;
                return Ok(Answer::Died(running.last_words(&error.to_string())));
            }
        }
        let answer = self.listen(&mut running, Step::Load);
        match &answer {
            Answer::Response(_) if !running.spoiled => self.running = Some(running),
            Answer::Died(_) => self.restarts += 1,
            _ => {
                self.restarts += 1;
                running.kill();
            }
        }
        Ok(answer)
    }

    fn listen(&self, running: &mut Running, mut step: Step) -> Answer {
        loop {
            match running.responses.recv_timeout(self.settings.deadline(step)) {
                Ok(Ok(Response::Begins(next))) => step = next,
                Ok(Ok(Response::Spoiled(_))) => running.spoiled = true,
                Ok(Ok(Response::Lost(why))) => return Answer::Lost(why),
                Ok(Ok(response)) => return Answer::Response(running.with_noise(response)),
                Ok(Err(error)) => return Answer::Died(running.last_words(&error.to_string())),
                Err(RecvTimeoutError::Timeout) => return Answer::Hung(step),
                Err(RecvTimeoutError::Disconnected) => return Answer::Died(running.last_words("")),
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }
}

fn strange(response: &Response) -> WorkerError {
    match response {
        Response::Failed(why) => WorkerError::Failed(why.clone()),
        other => WorkerError::Failed(format!(
            "the device worker answered something else than it was asked: {other:?}"
        )),
    }
}
