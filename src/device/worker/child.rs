//! The worker process: reads jobs from standard input, answers on standard output.

use super::protocol::{Job, Judgement, Request, Response, Step, receive, send};
use crate::device::plan::Plan;
use crate::device::session::Session;
use crate::device::vgpu::{Limits, VirtualGpu};
use crate::gate::Verified;
use crate::gate::oracle::OracleError;
use crate::gate::references::References;
use crate::gate::verify::{Demands, Evidence, Rejection, verify};
use crate::record::Verdict;
use crate::timing::Measured;
use crate::timing::predict::{self, Explanation, LaunchWork};
use std::io::{self, Write};

/// Runs a worker on this process's standard streams. A thread reads the requests, so that the end
/// of the parent ends this process even while a kernel hangs.
///
/// # Errors
/// Standard output is gone.
pub fn run(arch: &'static ::vgpu::Arch, limits: Limits) -> io::Result<()> {
    let (sender, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(request)) = receive::<Request>(&mut input) {
            if sender.send(request).is_err() {
                return;
            }
        }
        end(0);
    });
    serve(
        arch,
        limits,
        &mut || requests.recv().ok(),
        &mut io::stdout().lock(),
    )
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
    let mut session = VirtualGpu::new(arch, limits);
    let mut references = References::default();
    let mut number = 0;
    while let Some(Request::Judge(job)) = next() {
        plant_fault(number);
        number += 1;
        let mut begins = |step| send(output, &Response::Begins(step));
        let answer = match judge(&mut session, &mut references, &job, &mut begins) {
            Ok(judgement) => Response::Judged(Box::new(judgement)),
            Err(Failure::Oracle(error)) => Response::Unusable(error.to_string()),
            Err(Failure::Pipe(error)) => return Err(error),
        };
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

/// Judges one candidate: each check problem, then the timed one, then its time.
///
/// # Errors
/// See [`Failure`]; a candidate that fails is a judgement.
pub fn judge(
    session: &mut VirtualGpu,
    references: &mut References,
    job: &Job,
    begins: &mut dyn FnMut(Step) -> io::Result<()>,
) -> Result<Judgement, Failure> {
    begins(Step::Load).map_err(Failure::Pipe)?;
    let demands = Demands {
        seeds: job.seeds.clone(),
        schedules: job.schedules,
        ..Demands::default()
    };
    let mut worst: Option<f64> = None;
    let mut last = None;
    for plan in job.checks.iter().chain(&job.timed) {
        begins(Step::Gate).map_err(Failure::Pipe)?;
        match verify(session, plan, &demands, references).map_err(Failure::Oracle)? {
            Ok((verified, evidence)) => {
                worst = larger(worst, evidence.max_error);
                if job
                    .timed
                    .as_ref()
                    .is_some_and(|timed| std::ptr::eq(timed, plan))
                {
                    begins(Step::Time).map_err(Failure::Pipe)?;
                    return Ok(timed(session, plan, &verified, &evidence, worst));
                }
                last = Some((plan, verified, evidence));
            }
            Err(rejection) => return Ok(rejected(rejection, worst)),
        }
    }
    session.reset();
    // Nothing to time: what the last problem took still explains the candidate.
    let explained = last
        .map(|(plan, verified, evidence)| timed(session, plan, &verified, &evidence, worst))
        .filter(|judgement| judgement.verdict == Verdict::Ok);
    Ok(explained.unwrap_or_else(|| passed(worst)))
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

fn passed(max_error: Option<f64>) -> Judgement {
    Judgement {
        verdict: Verdict::Ok,
        detail: String::new(),
        hazards: Vec::new(),
        max_error,
        measurement: None,
        explanation: None,
    }
}

fn rejected(rejection: Rejection, worst: Option<f64>) -> Judgement {
    Judgement {
        verdict: rejection.verdict,
        detail: rejection.detail,
        hazards: rejection.hazards,
        // JSON has no infinity: the largest finite number stands for "not even finite".
        max_error: larger(worst, rejection.max_error).map(|error| error.min(f64::MAX)),
        measurement: None,
        explanation: None,
    }
}

/// Adds the predicted time to a candidate that passed.
fn timed(
    session: &VirtualGpu,
    plan: &Plan,
    verified: &Verified,
    evidence: &Evidence,
    worst: Option<f64>,
) -> Judgement {
    let work: Vec<LaunchWork> = plan
        .launches
        .iter()
        .zip(&evidence.work)
        .map(|(launch, work)| {
            let needs = plan.code.needs(&launch.entry);
            LaunchWork {
                threads: launch.threads(),
                grid_blocks: launch.blocks(),
                registers: needs.registers,
                shared_bytes: launch.shared_bytes + needs.static_shared_bytes,
                counted_blocks: work.blocks,
                counters: work.counters,
            }
        })
        .collect();
    match predict::predict(session.arch(), &work, plan.bytes) {
        Some(prediction) => Judgement {
            measurement: Some(
                Measured::predicted(verified, prediction.time, predict::PROTOCOL).into_record(),
            ),
            explanation: Some(Explanation::new(&prediction, &work)),
            ..passed(worst)
        },
        None => Judgement {
            verdict: Verdict::LaunchFailed,
            detail:
                "too many resources requested for launch: not one block fits on a multiprocessor"
                    .into(),
            ..passed(worst)
        },
    }
}
