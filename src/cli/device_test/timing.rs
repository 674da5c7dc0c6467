//! Tests of the timing: equal kernels tie, slower ones are detected.

use super::Subject;
use super::bench::Bench;
use crate::cli::CliError;
use serde_json::{Value, json};
use tuner_core::evidence::Measured;
use tuner_device::worker::protocol::TimingComparison;
use tuner_judge::gate::level::Level;
use tuner_judge::timing::paired::Decision;

/// Arguments of `duel`.
#[derive(Debug, clap::Args)]
pub(super) struct DuelArgs {
    #[command(flatten)]
    subject: Subject,

    /// The challenger, K=V,…
    #[arg(long, value_name = "K=V,…", default_value = "")]
    challenger: String,

    /// The incumbent, K=V,…
    #[arg(long, value_name = "K=V,…", default_value = "")]
    incumbent: String,

    /// Number of comparisons
    #[arg(long, value_name = "N", default_value_t = 1)]
    trials: u32,
}

/// Arguments of `finale`.
#[derive(Debug, clap::Args)]
pub(super) struct FinaleArgs {
    #[command(flatten)]
    subject: Subject,

    /// A configuration, K=V,…; may be given several times
    #[arg(long, value_name = "K=V,…")]
    config: Vec<String>,

    /// Seed of the data and of the order
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Compares two configurations repeatedly and counts the outcomes.
pub(super) fn duel(ordinal: u32, args: &DuelArgs) -> Result<(Value, bool), CliError> {
    let mut bench = Bench::open(ordinal, &args.subject)?;
    let plans = vec![bench.plan(&args.challenger)?, bench.plan(&args.incumbent)?];
    let mut trials = Vec::new();
    let mut counts = [0u32; 3];
    for _ in 0..args.trials {
        // The same data each time: only the clock differs.
        let contest = TimingComparison {
            reference: None,
            plans: plans.clone(),
            seed: 1,
            level: Level::Screening,
        };
        let Some(result) = bench.worker.duel(contest)? else {
            continue;
        };
        counts[match result.decision {
            Decision::Faster => 0,
            Decision::Slower => 1,
            Decision::Tie => 2,
        }] += 1;
        trials.push(json!({
            "decision": result.decision,
            "ratio": result.ratio,
            "ci95": result.interval,
            "cycles_ci95": result.cycles,
            "blocks": result.ratios.len(),
            "trouble": result.trouble,
        }));
    }
    let report = json!({
        "challenger": args.challenger,
        "incumbent": args.incumbent,
        "trials": trials.len(),
        "faster": counts[0],
        "slower": counts[1],
        "ties": counts[2],
        "results": trials,
    });
    Ok((report, !trials.is_empty()))
}

/// Times configurations together.
pub(super) fn finale(ordinal: u32, args: &FinaleArgs) -> Result<(Value, bool), CliError> {
    let mut bench = Bench::open(ordinal, &args.subject)?;
    let mut plans = Vec::new();
    let mut rows: Vec<Value> = Vec::new();
    // A configuration that does not compile is a row as well.
    let mut timed = Vec::new();
    for config in &args.config {
        match bench.plan(config) {
            Ok(plan) => {
                timed.push(rows.len());
                plans.push(plan);
                rows.push(json!({ "config": config }));
            }
            Err(wrong @ CliError::Usage(_)) => return Err(wrong),
            Err(error) => rows.push(json!({ "config": config, "error": error.to_string() })),
        }
    }
    let contest = TimingComparison {
        reference: None,
        plans,
        seed: args.seed,
        level: Level::Final,
    };
    let times = bench.worker.finale(contest)?;
    let mut passed = true;
    for (row, time) in timed.into_iter().zip(times) {
        match time.measured.as_ref().map(Measured::record) {
            Some(time) => {
                rows[row]["p50_us"] = json!(time.p50.get());
                rows[row]["p90_us"] = json!(time.p90.get());
                rows[row]["ci95_us"] = json!(time.ci95.map(tuner_core::units::Micros::get));
                rows[row]["samples"] = json!(time.samples.len());
                rows[row]["flags"] = json!(time.evidence.as_ref().map(|evidence| &evidence.flags));
            }
            None => {
                passed = false;
                rows[row]["error"] = json!(time.judgement.to_string());
            }
        }
    }
    Ok((json!({ "timing": "measured", "rows": rows }), passed))
}
