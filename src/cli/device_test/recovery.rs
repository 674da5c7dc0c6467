//! Poisoned candidates: their verdicts, and the time until the GPU works again.

use super::Subject;
use super::bench::Bench;
use crate::cli::{CliError, usage};
use serde_json::{Value, json};
use std::time::Instant;
use tuner_core::record::Verdict;
use tuner_device::worker::protocol::Job;

/// Arguments of `recovery`.
#[derive(Debug, clap::Args)]
pub(super) struct RecoveryArgs {
    #[command(flatten)]
    subject: Subject,

    /// A poisoned configuration and the verdict it must get, K=V,…:VERDICT; may be given several
    /// times
    #[arg(long, value_name = "K=V,…:VERDICT")]
    poison: Vec<String>,

    /// Number of times that the first of them is judged in a row
    #[arg(long, value_name = "N", default_value_t = 0)]
    row: u32,
}

/// Judges each, with a good candidate after each.
pub(super) fn run(ordinal: u32, args: &RecoveryArgs) -> Result<(Value, bool), CliError> {
    let mut bench = Bench::open(ordinal, &args.subject)?;
    let good = bench.plan("")?;
    let mut poisons = Vec::new();
    for text in &args.poison {
        let bad = || usage(format!("`{text}` is not K=V,…:VERDICT"));
        let (config, verdict) = text.rsplit_once(':').ok_or_else(bad)?;
        let verdict = verdict.parse().map_err(|_| bad())?;
        poisons.push((config, verdict, bench.plan(config)?));
    }
    let mut judge = |plan: &tuner_core::plan::Plan| -> Result<(Verdict, String, f64), CliError> {
        let began = Instant::now();
        let job = Job {
            checks: vec![plan.clone()],
            seeds: vec![1],
            ..Job::default()
        };
        let judgement = bench.worker.judge(job)?.judgement;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        Ok((judgement.verdict, judgement.detail, milliseconds))
    };
    let (_, _, first_ms) = judge(&good)?;
    let (verdict, detail, good_ms) = judge(&good)?;
    let mut passed = verdict == Verdict::Ok;
    let mut rows = vec![json!({
        "config": "", "verdict": verdict, "detail": detail, "first_ms": first_ms, "judged_ms": good_ms
    })];
    for (config, wanted, plan) in &poisons {
        let (verdict, detail, judged_ms) = judge(plan)?;
        let (after, after_detail, recovery_ms) = judge(&good)?;
        passed &= verdict == *wanted && after == Verdict::Ok;
        rows.push(json!({
            "config": config, "wanted": wanted, "verdict": verdict, "detail": detail,
            "judged_ms": judged_ms, "recovery_ms": recovery_ms, "after": after,
            "after_detail": after_detail,
        }));
    }
    let mut in_a_row = Value::Null;
    if let (Some((_, wanted, plan)), true) = (poisons.first(), args.row > 0) {
        let began = Instant::now();
        let mut right = 0;
        for _ in 0..args.row {
            right += u32::from(judge(plan)?.0 == *wanted);
        }
        let seconds = began.elapsed().as_secs_f64();
        let (after, ..) = judge(&good)?;
        passed &= right == args.row && after == Verdict::Ok;
        in_a_row = json!({
            "count": args.row, "right": right, "seconds": seconds, "after": after
        });
    }
    let restarts = bench.worker.restarts();
    let report = json!({ "rows": rows, "in_a_row": in_a_row, "restarts": restarts });
    Ok((report, passed))
}
