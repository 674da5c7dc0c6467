//! A problem of which the virtual GPU cannot finish one block is judged with the check problems.

use crate::compile::{CompileError, Compiler};
use crate::device::build::PlanBuilder;
use crate::device::worker::host::{Worker, WorkerError};
use crate::device::worker::protocol::{Job, Judgement};
use crate::record::Verdict;
use crate::space::Config;

/// Judges one problem of one configuration, whose plan is the only one of the job. Where it comes
/// to no end, it is judged once more after the kernel's check problems, which may vouch for it: a
/// slow device is no fault of a candidate. A verdict on another problem is never given for this one.
///
/// # Errors
/// The compiler or the worker does not work.
pub(super) fn judge<E>(
    worker: &mut Worker,
    job: Job,
    builder: &PlanBuilder,
    compiler: &Compiler,
    config: &Config,
) -> Result<Judgement, E>
where
    E: From<CompileError> + From<WorkerError>,
{
    let mut again = job.clone();
    let alone = worker.judge(job)?;
    let builders = match (alone.verdict, builder.check_problems()) {
        (Verdict::Timeout, Ok(builders)) if !builders.is_empty() => builders,
        _ => return Ok(alone),
    };
    again.timed = again.timed.or_else(|| again.checks.pop());
    again.checks.clear();
    for builder in builders.iter().filter(|check| check.admits(config)) {
        match builder.build(compiler, config)? {
            Ok(built) => again.checks.push(built.plan),
            Err(_) => return Ok(alone),
        }
    }
    if again.checks.is_empty() {
        return Ok(alone);
    }
    let vouched = worker.judge(again)?;
    Ok(match vouched.verdict {
        Verdict::Ok => vouched,
        _ => alone,
    })
}
