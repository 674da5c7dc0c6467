//! Judging on the virtual GPU with the help of other problems: if one problem cannot be run to
//! its end, or its outputs cannot be compared, smaller problems decide.

use super::evaluator::BoxError;
use tuner_core::plan::Plan;
use tuner_core::record::Verdict;
use tuner_device::worker::host::Worker;
use tuner_device::worker::protocol::Job;
use tuner_judge::judgement::TimedJudgement;
use tuner_kernel::build::PlanBuilder;
use tuner_kernel::compile::Compiler;
use tuner_kernel::scaled;
use tuner_kernel::scaled::Scaled;
use tuner_space::{Config, Reference};

/// Input seeds of every candidate.
pub(super) const SEEDS: [u64; 1] = [0x5eed];

/// Finds the largest scaled problem on which `config` is compared with the reference: a ragged one
/// if it is correct on that, else one with the divisors of the original.
fn find<'a>(
    worker: &mut Worker,
    timed: &'a PlanBuilder,
    compiler: &Compiler,
    config: &Config,
) -> Result<Option<&'a Scaled>, BoxError> {
    if let Some(known) = timed.scaled_check().looked_for() {
        return Ok(known);
    }
    let mut chosen = None;
    for scaled in scaled::smaller(timed, config) {
        let verdict = match scaled.builder.build(compiler, config)? {
            Ok(built) => {
                let job = Job {
                    checks: vec![built.plan],
                    seeds: SEEDS.to_vec(),
                    ..Job::default()
                };
                worker.judge(job)?.judgement.verdict
            }
            Err(unbuilt) => unbuilt.judgement.verdict,
        };
        // Wrong on odd sizes: the aligned problem that follows decides. If that is wrong too, the fault is
        // not in the odd sizes.
        let decided = match verdict {
            Verdict::Ok => true,
            // No result: the next candidate is tried.
            Verdict::NotJudged => return Ok(None),
            Verdict::Unchecked | Verdict::Timeout => false,
            _ => !scaled.ragged,
        };
        if decided {
            chosen = Some(scaled);
            break;
        }
    }
    Ok(timed.scaled_check().keep(chosen))
}

/// Judges one configuration on one problem, with the check problems of the job.
///
/// If the problem does not end or nothing in the job could be compared, it is judged again after the
/// kernel's check problems. If these do not help, it is judged after a scaled problem.
///
/// # Errors
/// The compiler or the worker does not work.
pub(super) fn judge(
    worker: &mut Worker,
    job: Job,
    builder: &PlanBuilder,
    compiler: &Compiler,
    config: &Config,
) -> Result<TimedJudgement, BoxError> {
    let mut again = job.clone();
    let brought = job.timed.is_some() && !job.checks.is_empty();
    let alone = worker.judge(job)?;
    if !matches!(
        alone.judgement.verdict,
        Verdict::Timeout | Verdict::Unchecked
    ) {
        return Ok(alone);
    }
    // Without a reference a problem that ran whole needs no further problem: findings on other
    // sizes would concern only those sizes.
    if hazards_only(builder) {
        return Ok(alone);
    }
    // `Work::job` puts an untimed problem last among the checks.
    again.timed = again.timed.or_else(|| again.checks.pop());
    if !brought {
        let Some(checks) = checks(builder, compiler, config)? else {
            return Ok(alone);
        };
        again.checks = checks;
        if !again.checks.is_empty() {
            let helped = worker.judge(again.clone())?;
            match (alone.judgement.verdict, helped.judgement.verdict) {
                (_, Verdict::Ok | Verdict::NotJudged) => return Ok(helped),
                (Verdict::Unchecked, Verdict::Unchecked) => {}
                // A verdict on another problem does not apply to this one.
                _ => return Ok(alone),
            }
        }
    }
    if alone.judgement.verdict == Verdict::Unchecked {
        return on_scaled(worker, again, alone, builder, compiler, config);
    }
    Ok(alone)
}

/// Reports whether a check problem is of a space without a reference.
fn hazards_only(builder: &PlanBuilder) -> bool {
    let spec = &builder.source().spec;
    let is_it = |problem: &tuner_space::Problem| problem.name == builder.problem();
    matches!(spec.reference, Reference::None) && spec.check_problems.iter().any(is_it)
}

/// Returns plans of the kernel's check problems on which the configuration is valid; `None` if one
/// cannot be built.
fn checks(
    builder: &PlanBuilder,
    compiler: &Compiler,
    config: &Config,
) -> Result<Option<Vec<Plan>>, BoxError> {
    let Ok(builders) = builder.check_problems() else {
        return Ok(None);
    };
    let mut plans = Vec::new();
    for check in builders.iter().filter(|check| check.admits(config)) {
        match check.build(compiler, config)? {
            Ok(built) => plans.push(built.plan),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(plans))
}

/// Judges again after a scaled problem. A failure on that is wrong, and the detail names the sizes.
fn on_scaled(
    worker: &mut Worker,
    mut job: Job,
    alone: TimedJudgement,
    builder: &PlanBuilder,
    compiler: &Compiler,
    config: &Config,
) -> Result<TimedJudgement, BoxError> {
    let default = builder.source().spec.default_config();
    // Chosen with the default: a wrong candidate would get a problem that hides its fault.
    let probe = if builder.admits(&default) {
        &default
    } else {
        config
    };
    let found = find(worker, builder, compiler, probe)?;
    let Some(scaled) = found.filter(|scaled| scaled.builder.admits(config)) else {
        return Ok(alone);
    };
    let Ok(built) = scaled.builder.build(compiler, config)? else {
        return Ok(alone);
    };
    job.checks.push(built.plan);
    let mut helped = worker.judge(job)?;
    let unfounded = [Verdict::Ok, Verdict::Unchecked, Verdict::NotJudged];
    if !unfounded.contains(&helped.judgement.verdict) {
        let sizes = scaled.sizes();
        let detail = &mut helped.judgement.detail;
        *detail = format!("{detail} (a generated check problem: {sizes})");
    }
    Ok(helped)
}
