//! The worker process: reads requests from standard input, answers on standard output.

mod cuda;
mod virtual_gpu;

pub use virtual_gpu::judge;

use super::protocol::{Job, Request, Response, receive, send};
use crate::step::Step;
use crate::vgpu::Limits;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::mpsc::Receiver;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Plan, PlanArgument, Role};
use tuner_core::record::Verdict;
use tuner_judge::gate::Verified;
use tuner_judge::gate::oracle::OracleError;
use tuner_judge::gate::references::References;
use tuner_judge::gate::verify::{Demands, Evidence, verify};
use tuner_judge::session::Session;

/// A device that answers requests. What fails on it is an answer; an error means that the parent
/// is gone.
trait Served {
    fn answer(
        &mut self,
        request: Request,
        begins: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> io::Result<Response>;

    /// Why this process cannot go on after its last answer, if so.
    fn spoiled(&self) -> Option<String> {
        None
    }
}

/// Runs a worker of a virtual GPU on this process's standard streams.
///
/// # Errors
/// Standard output is gone.
pub fn run(arch: &'static ::vgpu::Arch, limits: Limits) -> io::Result<()> {
    let requests = requests();
    serve(
        arch,
        limits,
        &mut || requests.recv().ok(),
        &mut io::stdout().lock(),
    )
}

/// Runs a worker of the GPU of that number on this process's standard streams.
///
/// # Errors
/// Standard output is gone.
pub fn run_cuda(ordinal: u32) -> io::Result<()> {
    let requests = requests();
    // Not locked for good: the session announces its launches on it as well.
    let mut output = io::stdout();
    serve_on(
        &mut cuda::Cuda::new(ordinal),
        &mut || requests.recv().ok(),
        &mut output,
    )
}

/// The requests on standard input. A thread reads them, so that the end of the parent ends this
/// process even while a kernel hangs.
fn requests() -> Receiver<Request> {
    let (sender, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(request)) = receive::<Request>(&mut input) {
            if sender.send(request).is_err() {
                return;
            }
        }
        die();
    });
    requests
}

/// Ends the process without its exit handlers: the CUDA driver's would wait for a kernel that hangs.
fn die() -> ! {
    let this = rustix::process::getpid();
    // Never fails for a process's own number.
    let _ = rustix::process::kill_process(this, rustix::process::Signal::KILL);
    end(0)
}

/// Ends the process, whatever its other threads do.
#[expect(
    clippy::disallowed_methods,
    reason = "a launch that hangs in another thread never returns"
)]
fn end(code: i32) -> ! {
    std::process::exit(code)
}

/// Faults that tests plant in a worker, from the environment variable `TUNER_FAULT`: they show
/// that the host copes with what a real device does.
fn plant_fault(number: u64) {
    let Ok(fault) = std::env::var("TUNER_FAULT") else {
        return;
    };
    let Some((what, when)) = fault.split_once('@') else {
        return;
    };
    if when != "every" && when.parse() != Ok(number) {
        return;
    }
    match what {
        "hang" => std::thread::sleep(std::time::Duration::from_secs(3600)),
        "abort" => std::process::abort(),
        "exit" => end(7),
        _ => {}
    }
}

/// Serves jobs on the virtual GPU until there is no next one.
///
/// # Errors
/// A broken pipe or a malformed message: the parent has gone or is not a tuner.
pub fn serve(
    arch: &'static ::vgpu::Arch,
    limits: Limits,
    next: &mut dyn FnMut() -> Option<Request>,
    output: &mut impl Write,
) -> io::Result<()> {
    serve_on(&mut virtual_gpu::Virtual::new(arch, limits), next, output)
}

fn serve_on(
    device: &mut dyn Served,
    next: &mut dyn FnMut() -> Option<Request>,
    output: &mut impl Write,
) -> io::Result<()> {
    let mut number = 0;
    while let Some(request) = next() {
        // The opening of a device is not counted: faults are planted by candidates.
        if !matches!(request, Request::Open(_)) {
            plant_fault(number);
            number += 1;
        }
        let answer = {
            let mut begins = |step| send(output, &Response::Begins(step));
            device.answer(request, &mut begins)?
        };
        if let Some(why) = device.spoiled() {
            send(output, &Response::Spoiled(why))?;
        }
        send(output, &answer)?;
    }
    Ok(())
}

/// Why a job has no judgement.
#[derive(Debug)]
pub enum Failure {
    /// The space's oracle does not fit its arguments.
    Oracle(OracleError),
    /// The parent cannot be told.
    Pipe(io::Error),
}

/// What the gate made of a job.
enum Gated<'a> {
    /// One problem failed.
    Rejected(Judgement),
    /// All passed: the largest error, what was not looked at, and the last problem with its proof.
    Passed {
        worst: Option<f64>,
        note: String,
        last: Option<(&'a Plan, Verified, Evidence)>,
    },
}

/// Takes a candidate through the gate: each check problem, then the timed one.
fn gate<'a>(
    session: &mut dyn Session,
    references: &mut References,
    job: &'a Job,
    begins: &mut dyn FnMut(Step) -> io::Result<()>,
) -> Result<Gated<'a>, Failure> {
    let mut demands = Demands::of(job.level, &job.seeds, job.schedules);
    let mut compared = BTreeSet::new();
    let mut worst: Option<f64> = None;
    let mut last = None;
    let mut notes: Vec<String> = Vec::new();
    // Whether check problems, all of them run whole, vouch for the candidate.
    let mut vouched = !job.checks.is_empty();
    for (number, plan) in job.checks.iter().chain(&job.timed).enumerate() {
        begins(Step::Gate).map_err(Failure::Pipe)?;
        if number == job.checks.len() && !covers(&compared, plan) {
            demands.uncomparable_limit = UNVOUCHED_LIMIT;
        }
        match verify(session, plan, &demands, references).map_err(Failure::Oracle)? {
            Ok((verified, evidence)) => {
                worst = larger(worst, evidence.max_error);
                compared.extend(&evidence.compared);
                if number < job.checks.len() {
                    vouched &= !evidence.sampled;
                }
                if let Some(exhausted) = &evidence.budget_exhausted {
                    if number < job.checks.len() || !vouched {
                        return Ok(Gated::Rejected(unfinished(exhausted, worst)));
                    }
                    notes.push(format!(
                        "{exhausted}; the part that ran had no hazard, and the check problems, which ran \
                         whole, are right"
                    ));
                }
                notes.extend(evidence.note.clone());
                last = Some((plan, verified, evidence));
            }
            Err(rejection) => return Ok(Gated::Rejected(rejected(rejection, worst))),
        }
    }
    if let Some((plan, _, evidence)) = &last {
        if !covers(&compared, plan) {
            return Ok(Gated::Rejected(unchecked(plan, &compared, &notes)));
        }
        if !covers(&evidence.compared, plan) {
            notes.push("they are judged by the check problems".to_owned());
        }
    }
    let note = notes.join("; ");
    Ok(Gated::Passed { worst, note, last })
}

/// Lane instructions up to which a problem whose sample cannot be compared is run whole, where no
/// check problem has compared every output before: about a second of one core.
const UNVOUCHED_LIMIT: u64 = 1_000_000_000;

/// Whether every output of the plan is among those compared.
fn covers(compared: &BTreeSet<usize>, plan: &Plan) -> bool {
    !compared.is_empty() && compared.len() == outputs(plan).count()
}

fn outputs(plan: &Plan) -> impl Iterator<Item = &PlanArgument> {
    plan.of_role(Role::Output)
}

/// It ran without a fault, and at least one output was compared with nothing.
fn unchecked(plan: &Plan, compared: &BTreeSet<usize>, notes: &[String]) -> Judgement {
    let missing: Vec<String> = outputs(plan)
        .enumerate()
        .filter(|(number, _)| !compared.contains(number))
        .map(|(_, argument)| format!("`{}`", argument.name))
        .collect();
    let missing = missing.join(", ");
    let mut detail = format!("nothing that the kernel wrote to {missing} was compared");
    for note in notes {
        detail.push_str("; ");
        detail.push_str(note);
    }
    detail.push_str("; give a `check_problems` entry small enough to run whole");
    Judgement::new(Verdict::Unchecked, detail)
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// A block was left before its end, and nothing else says that the candidate is right.
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
        // JSON has no infinity: the largest finite number stands for "not even finite".
        max_error: larger(worst, rejection.max_error).map(|error| error.min(f64::MAX)),
        ..rejection
    }
}
