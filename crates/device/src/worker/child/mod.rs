//! The worker process: answers the requests of its parent.

mod cuda;
mod host_data;
mod virtual_gpu;

pub use virtual_gpu::judge;

use super::protocol::{Job, Request, Response};
use crate::step::Step;
use crate::vgpu::Limits;
use std::collections::BTreeSet;
use std::io;
use tuner_core::judgement::{HAZARDS_ONLY, Judgement};
use tuner_core::plan::{Plan, PlanReference};
use tuner_core::record::{Compared, Hazard, Verdict};
use tuner_judge::gate::Verified;
use tuner_judge::gate::oracle::OracleError;
use tuner_judge::gate::references::References;
use tuner_judge::gate::verify::{Demands, Evidence, OUTPUT_LIMIT, add_new, verify};
use tuner_judge::session::Session;
use tuner_process::{Parent, Replies, to_json};

/// Callback that reports the start of a step to the parent; its deadline starts then.
type Begins<'a> = &'a mut dyn FnMut(Step) -> io::Result<()>;

/// A device that answers requests. A failure of the device is an answer; an error means that the parent has
/// exited.
trait Served {
    fn answer(&mut self, request: Request, begins: Begins<'_>) -> io::Result<Response>;

    /// Returns the reason why this process cannot continue after its last answer, if it cannot.
    fn corrupted(&self) -> Option<String> {
        None
    }
}

/// Runs a worker of a virtual GPU on this process's standard streams.
///
/// # Errors
/// The parent has exited or is not a tuner.
pub fn run(arch: &'static ::vgpu::Arch, limits: Limits) -> io::Result<()> {
    let parent = Parent::connect()?;
    serve(&mut virtual_gpu::Virtual::new(arch, limits), &parent)
}

/// Runs a worker of the GPU with that number on this process's standard streams.
///
/// # Errors
/// As for [`run`].
pub fn run_cuda(ordinal: u32) -> io::Result<()> {
    let parent = Parent::connect()?;
    serve(&mut cuda::Cuda::new(ordinal, parent.replies()), &parent)
}

fn serve(device: &mut dyn Served, parent: &Parent) -> io::Result<()> {
    let replies = parent.replies();
    while let Some(request) = parent.request() {
        let request = Request::from_parts(request)?;
        let answer = device.answer(request, &mut |step| {
            reply(&replies, &Response::Begins(step))
        })?;
        if let Some(why) = device.corrupted() {
            // The answer ends the exchange, so the warning is sent before it.
            reply(&replies, &Response::Corrupted(why))?;
        }
        reply(&replies, &answer)?;
    }
    Ok(())
}

fn reply(replies: &Replies, response: &Response) -> io::Result<()> {
    replies.send(&[&to_json(response)?])
}

/// Reasons why a job has no judgement.
#[derive(Debug)]
pub enum Failure {
    /// The space's oracle does not fit its arguments.
    Oracle(OracleError),
    /// The pipe to the parent is broken.
    Pipe(io::Error),
}

/// Outcome of the gate for a job.
enum GateOutcome<'a> {
    /// One problem failed.
    Rejected(Judgement),
    /// All passed: the judgement, and the last problem with its evidence.
    Passed {
        passed: Judgement,
        last: Option<(&'a Plan, Verified, Evidence)>,
    },
}

/// Verifies a candidate: each check problem, then the timed one.
fn gate<'a>(
    session: &mut dyn Session,
    references: &mut References,
    job: &'a Job,
    begins: Begins<'_>,
) -> Result<GateOutcome<'a>, Failure> {
    let mut demands = match &job.outputs {
        Some(folder) => Demands::for_outputs(&job.seeds, folder.clone()),
        None => Demands::for_level(job.level, &job.seeds, job.schedules),
    };
    let whole = job.outputs.as_ref().map(|_| OUTPUT_LIMIT);
    let mut compared = BTreeSet::new();
    let mut worst: Option<f64> = None;
    let mut last = None;
    let mut notes: Vec<String> = Vec::new();
    let mut warnings: Vec<Hazard> = Vec::new();
    let mut not_finite = None;
    // Set while all check problems ran whole and passed.
    let mut checked_whole = !job.checks.is_empty();
    for (number, plan) in job.checks.iter().chain(&job.timed).enumerate() {
        let proof = job.proof_limit.filter(|_| number == job.checks.len());
        begins(proof.or(whole).map_or(Step::Gate, Step::Prove)).map_err(Failure::Pipe)?;
        if number == job.checks.len() {
            if let Some(limit) = proof {
                demands = Demands::proof(&job.seeds, limit);
            } else if !covers(&compared, plan) {
                demands.uncomparable_limit = UNVOUCHED_LIMIT;
            }
        }
        match verify(session, plan, &demands, references).map_err(Failure::Oracle)? {
            Ok((verified, evidence)) => {
                worst = larger(worst, evidence.max_error);
                compared.extend(&evidence.compared);
                if number < job.checks.len() {
                    checked_whole &= !evidence.sampled;
                }
                if let Some(exhausted) = &evidence.budget_exhausted {
                    if number < job.checks.len() || !checked_whole {
                        return Ok(GateOutcome::Rejected(unfinished(exhausted, worst)));
                    }
                    notes.push(format!(
                        "{exhausted}; the part that ran had no hazard, and the check problems, which ran \
                         whole, are right"
                    ));
                }
                notes.extend(evidence.note.clone());
                not_finite = evidence.not_finite.clone().or(not_finite);
                add_new(&mut warnings, evidence.warnings.clone());
                last = Some((plan, verified, evidence));
            }
            Err(mut rejection) => {
                add_new(&mut rejection.warnings, warnings);
                return Ok(GateOutcome::Rejected(rejected(rejection, worst)));
            }
        }
    }
    if let Some((plan, _, evidence)) = &last {
        if plan.reference == PlanReference::None {
            return Ok(GateOutcome::Rejected(Judgement {
                warnings,
                ..hazards_only(&notes)
            }));
        }
        if !covers(&compared, plan) {
            return Ok(GateOutcome::Rejected(Judgement {
                warnings,
                ..unchecked(plan, &compared, &notes, not_finite)
            }));
        }
        if !covers(&evidence.compared, plan) {
            notes.push("they are judged by the check problems".to_owned());
        }
    }
    let state = last.as_ref().map(|(plan, _, evidence)| {
        if !covers(&evidence.compared, plan) {
            Compared::SmallerProblems
        } else if evidence.sampled {
            Compared::Sampled
        } else {
            Compared::Whole
        }
    });
    let passed = Judgement {
        detail: notes.join("; "),
        warnings,
        compared: state,
        ..Judgement::ok(worst)
    };
    Ok(GateOutcome::Passed { passed, last })
}

/// Lane instructions up to which a problem whose sample cannot be compared is run whole, if no
/// check problem has compared every output: about a second of one core.
const UNVOUCHED_LIMIT: u64 = 1_000_000_000;

/// Reports whether all outputs of the plan were compared.
fn covers(compared: &BTreeSet<usize>, plan: &Plan) -> bool {
    !compared.is_empty() && compared.len() == plan.compared().count()
}

/// Builds the judgement of a candidate without faults, some of whose outputs were not compared, or
/// (`not_finite`) were compared with values that are no evidence.
fn unchecked(
    plan: &Plan,
    compared: &BTreeSet<usize>,
    notes: &[String],
    not_finite: Option<String>,
) -> Judgement {
    if let Some(why) = not_finite {
        let detail = [&[why], notes].concat();
        return Judgement::new(Verdict::Unchecked, detail.join("; "));
    }
    let missing: Vec<String> = plan
        .compared()
        .enumerate()
        .filter(|(number, _)| !compared.contains(number))
        .map(|(_, argument)| format!("`{}`", argument.name))
        .collect();
    let missing = missing.join(", ");
    let mut detail = vec![format!(
        "nothing that the kernel wrote to {missing} was compared"
    )];
    detail.extend_from_slice(notes);
    detail.push("give a `check_problems` entry small enough to run whole".to_owned());
    Judgement::new(Verdict::Unchecked, detail.join("; "))
}

/// Builds the judgement of a candidate without hazards, if the space disables the comparison of
/// results.
fn hazards_only(notes: &[String]) -> Judgement {
    let detail = [&[HAZARDS_ONLY.to_owned()], notes].concat();
    Judgement::new(Verdict::Unchecked, detail.join("; "))
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// Builds the judgement of a candidate with an unfinished block and no other verification.
fn unfinished(exhausted: &str, worst: Option<f64>) -> Judgement {
    let why = format!(
        "{exhausted}; it hangs, or it is judged right by check problems that run whole: give some"
    );
    Judgement {
        max_error: worst,
        ..Judgement::new(Verdict::Timeout, why)
    }
}

fn rejected(rejection: Judgement, worst: Option<f64>) -> Judgement {
    Judgement {
        // JSON has no infinity, so the largest finite number replaces a non-finite error.
        max_error: larger(worst, rejection.max_error).map(|error| error.min(f64::MAX)),
        ..rejection
    }
}
