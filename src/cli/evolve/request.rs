//! Request for a change: task, parent, counters, failures of the line, siblings, rules.

use super::checks;
use super::evaluate::Results;
use super::floor;
use super::options::Options;
use serde_json::{Map, Value, json};
use tuner_core::record::ConfigValues;
use tuner_core::statistics::PREDICTION_RESOLUTION;
use tuner_core::units::ContentHash;
use tuner_evolve::includes;
use tuner_evolve::outcome::Outcome;
use tuner_evolve::protocol::{
    Bottleneck, Failure, MAX_ANSWER_BYTES, MAX_SOURCE_BYTES, MutationRequest, PROTOCOL, Parent,
    ProblemBest, Rules, Sibling, Task,
};
use tuner_evolve::space_change::{self, SpaceError};
use tuner_store::Change;

/// Failures and siblings in a request.
const MAX_HISTORY: usize = 8;
/// Idle causes below this share of cycles are not listed as a bottleneck, percent.
const MIN_IDLE_PCT: f64 = 5.0;
/// Maximum number of bottlenecks listed for a problem.
const MAX_BOTTLENECKS: usize = 3;

/// Parent of a request.
pub(super) struct Asked<'a> {
    pub(super) change: Option<i64>,
    pub(super) source: &'a str,
    pub(super) space: &'a str,
    pub(super) results: &'a Results,
    pub(super) shipped: &'a Results,
}

/// Builds the request of a round.
///
/// # Errors
/// A search space that cannot be read.
pub(super) fn build(
    options: &Options,
    round: u32,
    evolution: &str,
    asked: &Asked<'_>,
    changes: &[Change],
) -> Result<MutationRequest, SpaceError> {
    let document = space_change::document(asked.space)?;
    let part = |key: &str| document.get(key).cloned().unwrap_or(Value::Null);
    let best = asked.results.iter().map(|(problem, tuned)| ProblemBest {
        problem: problem.clone(),
        config: config_map(&tuned.config),
        time_us: tuned.time.us,
        shipped_us: asked
            .shipped
            .get(problem)
            .map_or(tuned.time.us, |one| one.time.us),
        roofline_us: floor::roofline_us(options, problem, &tuned.config),
        bottlenecks: bottlenecks(&tuned.facts.counters),
        counters: tuned.facts.counters.clone(),
    });
    let wanted = |problem: &String| options.problems.contains(problem);
    let problems = part("problems");
    let problems = problems.as_object().into_iter().flatten();
    let problems = problems.filter(|(name, _)| wanted(name));
    Ok(MutationRequest {
        protocol: PROTOCOL,
        id: format!("{evolution}-{round}"),
        round,
        seed: mutator_seed(options.seed, round),
        task: Task {
            kernel: options.parsed.spec.kernel.clone(),
            summary: part("summary").as_str().unwrap_or_default().to_owned(),
            device: options.device_name.clone(),
            timing: options.timing().to_string(),
            arguments: part("arguments"),
            problems: problems
                .map(|(name, sizes)| (name.clone(), sizes.clone()))
                .collect(),
            reference: part("reference"),
            tolerance: part("gate"),
        },
        parent: Parent {
            change: asked.change,
            source: asked.source.to_owned(),
            space: space_change::changeable(&document),
            best: best.collect(),
        },
        failures: failures(asked.change, changes, &options.problems),
        siblings: siblings(asked.change, changes),
        rules: Rules {
            accept: options.rules.to_string(),
            resolution: options.predicted.then_some(PREDICTION_RESOLUTION),
            includes: includes::allowed(&options.headers.names),
            max_source_bytes: MAX_SOURCE_BYTES,
            max_answer_bytes: MAX_ANSWER_BYTES,
        },
        correction: None,
    })
}

/// Derives the seed of a request. It reveals neither the evolution's seed nor that of the checks.
fn mutator_seed(seed: u64, round: u32) -> u64 {
    let hash = ContentHash::from_parts([
        b"mutator".as_slice(),
        &seed.to_le_bytes(),
        &round.to_le_bytes(),
    ]);
    u64::from_str_radix(hash.as_str().get(..16).unwrap_or_default(), 16).unwrap_or(u64::from(round))
}

fn config_map(config: &ConfigValues) -> Map<String, Value> {
    config
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}

/// Returns the failed changes of the same parent and of its ancestors, newest first.
fn failures(parent: Option<i64>, changes: &[Change], timed: &[String]) -> Vec<Failure> {
    let mut line = vec![parent];
    let mut next = parent;
    while let Some(change) = changes.iter().find(|change| Some(change.id) == next) {
        next = change.parent;
        line.push(next);
    }
    let failed = changes.iter().rev().filter(|change| {
        let outcome: Option<Outcome> = change.outcome.parse().ok();
        line.contains(&change.parent) && outcome.is_some_and(|outcome| !outcome.is_right())
    });
    let failure = |change: &Change| Failure {
        change: change.id,
        outcome: change.outcome.clone(),
        verdict: change.verdict.clone(),
        // A finding may name a seed or a check problem, which must be hidden from the code's author.
        detail: checks::without_checks(&change.detail, timed),
        note: change.note.clone(),
    };
    failed.take(MAX_HISTORY).map(failure).collect()
}

/// Returns all changes of the same parent, newest first.
fn siblings(parent: Option<i64>, changes: &[Change]) -> Vec<Sibling> {
    let all = changes
        .iter()
        .rev()
        .filter(|change| change.parent == parent);
    let sibling = |change: &Change| Sibling {
        change: change.id,
        outcome: change.outcome.clone(),
        note: change.note.clone(),
        gains: change
            .times
            .iter()
            .map(|time| (time.problem.clone(), time.incumbent_us / time.us))
            .collect(),
    };
    all.map(sibling).collect()
}

/// Names the unit that limits a kernel, then the largest causes of idle cycles.
fn bottlenecks(counters: &Map<String, Value>) -> Vec<Bottleneck> {
    let bound = counters
        .get("bound")
        .and_then(Value::as_str)
        .map(|unit| Bottleneck {
            name: format!("bound by {unit}"),
            evidence: ["occupancy", "waves", "bank_conflicts"]
                .iter()
                .filter_map(|name| Some(format!("{name} {}", counters.get(*name)?)))
                .collect::<Vec<_>>()
                .join(", "),
        });
    let metrics = counters.get("metrics").and_then(Value::as_object);
    let mut idle: Vec<(&String, f64)> = metrics
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("idle_"))
        .filter_map(|(name, value)| Some((name, value.as_f64()?)))
        .filter(|(_, share)| *share >= MIN_IDLE_PCT)
        .collect();
    idle.sort_by(|a, b| b.1.total_cmp(&a.1));
    let idle = idle.into_iter().map(|(name, share)| Bottleneck {
        name: name
            .trim_start_matches("idle_")
            .trim_end_matches("_pct")
            .replace('_', " "),
        evidence: format!("{name} {share:.1}"),
    });
    bound
        .into_iter()
        .chain(idle)
        .take(MAX_BOTTLENECKS)
        .collect()
}
