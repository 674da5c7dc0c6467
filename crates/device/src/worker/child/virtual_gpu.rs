//! A virtual GPU in a worker, with predicted times.

use super::{Begins, Failure, GateOutcome, Served, gate};
use crate::step::Step;
use crate::vgpu::{Limits, VirtualGpu};
use crate::worker::protocol::{Job, Request, Response};
use std::io;
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::record::Verdict;
use tuner_judge::gate::references::References;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::session::Session as _;
use tuner_predict::PROTOCOL;
use tuner_process::free_memory;

/// Divisor of the machine's memory for reference data: each core may have a worker.
const HOST_SHARE: u64 = 32;
/// Minimum and maximum memory for reference data, bytes.
const HOST_BYTES: (u64, u64) = (128 << 20, 1 << 30);

/// A virtual GPU with its state between candidates.
pub(super) struct Virtual {
    session: VirtualGpu,
    references: References,
}

impl Virtual {
    pub(super) fn new(arch: &'static ::vgpu::Arch, limits: Limits) -> Self {
        Self {
            session: VirtualGpu::new(arch, limits),
            references: References::bounded(free_memory().map_or(HOST_BYTES.1, |free| {
                (free / HOST_SHARE).clamp(HOST_BYTES.0, HOST_BYTES.1)
            })),
        }
    }
}

impl Served for Virtual {
    fn answer(&mut self, request: Request, begins: Begins<'_>) -> io::Result<Response> {
        let Request::Judge(job) = request else {
            return Ok(Response::Failed(
                "a virtual GPU is not timed; its times are predicted".to_owned(),
            ));
        };
        match judge(&mut self.session, &mut self.references, &job, begins) {
            Ok(judgement) => Ok(Response::Judged(Box::new(judgement))),
            Err(Failure::Oracle(error)) => Ok(Response::Unusable(error.to_string())),
            Err(Failure::Pipe(error)) => Err(error),
        }
    }
}

/// Judges one candidate: each check problem, then the timed one, then its time.
///
/// # Errors
/// See [`Failure`]; a candidate that fails is a judgement.
pub fn judge(
    session: &mut VirtualGpu,
    references: &mut References,
    job: &Job,
    begins: &mut dyn FnMut(Step) -> io::Result<()>,
) -> Result<TimedJudgement, Failure> {
    begins(Step::Load).map_err(Failure::Pipe)?;
    let (passed, last) = match gate(session, references, job, begins)? {
        GateOutcome::Rejected(judgement) => {
            let mut rejected = TimedJudgement::from(judgement);
            let plan = job.timed.as_ref().or(job.checks.last());
            if let (Verdict::Unchecked, Some(plan)) = (rejected.judgement.verdict, plan) {
                begins(Step::Time).map_err(Failure::Pipe)?;
                if let Ok(forecast) = session.forecaster().forecast(plan) {
                    rejected.unproven = Some(forecast.time);
                    rejected.explanation = Some(forecast.explanation);
                }
            }
            return Ok(rejected);
        }
        GateOutcome::Passed { passed, last } => (passed, last),
    };
    let worst = passed.max_error;
    if job.proof_limit.is_some() {
        session.reset();
        return Ok(passed.into());
    }
    if job.timed.is_some() {
        begins(Step::Time).map_err(Failure::Pipe)?;
    } else {
        session.reset();
    }
    let mut answer = TimedJudgement::from(passed);
    if let Some((plan, verified, _)) = last {
        match session.forecaster().forecast(plan) {
            Ok(forecast) => {
                answer.measured = Some(Measured::predicted(&verified, forecast.time, PROTOCOL));
                answer.explanation = Some(forecast.explanation);
            }
            Err(why) if job.timed.is_some() => {
                answer.judgement = Judgement {
                    max_error: worst,
                    ..why
                };
            }
            // If no time was requested, the prediction for the last problem is only informative.
            Err(_) => {}
        }
    }
    Ok(answer)
}
