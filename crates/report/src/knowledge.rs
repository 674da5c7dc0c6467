//! Prior knowledge of the search, and the value of each source.

use super::document::{Block, code, plain};
use super::model::Subject;
use super::overview::us;
use serde::Deserialize;
use tuner_core::units::counted;
use tuner_store::TimeLine;

/// Factor of a run's best time within which times count as equal.
const EQUAL_TIME_FACTOR: f64 = 1.02;

/// Knowledge record of a run's task.
#[derive(Deserialize)]
struct SourceRecord {
    kernel: String,
    problem: String,
    /// Names, and the rank correlation of expected and measured times.
    sources: Vec<(String, f64)>,
}

/// Estimate of the remaining gain on one task at the end of a run.
#[derive(Deserialize)]
struct RemainingGain {
    kernel: String,
    problem: String,
    /// Upper bound of the gain of further trials, as a share of the best time.
    share: f64,
    /// Its confidence.
    chance: f64,
}

/// Formats the estimated remaining gain of a run; empty without an estimate.
pub(super) fn left(subject: &Subject, line: &TimeLine) -> String {
    let noted = line.run.settings.get("left");
    let noted =
        noted.and_then(|noted| serde_json::from_value::<Vec<RemainingGain>>(noted.clone()).ok());
    let (kernel, problem) = (&subject.board.key.kernel, &subject.board.key.problem);
    let own = noted
        .into_iter()
        .flatten()
        .find(|left| left.kernel == *kernel && left.problem == *problem);
    own.map_or_else(String::new, |left| {
        format!(
            ", further trials bring less than {:.1} % with a chance of {:.0} %",
            left.share * 100.0,
            left.chance * 100.0
        )
    })
}

/// Builds a table of each run's sources, and the number of trials to its result.
pub(super) fn blocks(subject: &Subject) -> Vec<Block> {
    let mut blocks = Vec::new();
    for line in &subject.runs {
        let Some(sources) = sources(subject, line) else {
            continue;
        };
        let rows = sources
            .iter()
            .map(|(name, worth)| vec![plain(name), format!("{worth:+.2}"), verdict(*worth)]);
        let head = &["source", "rank correlation", "what it was worth"];
        blocks.push(Block::text(course(line)));
        blocks.extend(saved(subject, line).map(Block::text));
        blocks.push(Block::table(head, 1, rows.collect()));
    }
    blocks
}

fn sources(subject: &Subject, line: &TimeLine) -> Option<Vec<(String, f64)>> {
    let noted = line.run.settings.get("knowledge_worth")?;
    let noted: Vec<SourceRecord> = serde_json::from_value(noted.clone()).ok()?;
    let (kernel, problem) = (&subject.board.key.kernel, &subject.board.key.problem);
    let own = noted
        .into_iter()
        .find(|worth| worth.kernel == *kernel && worth.problem == *problem)?;
    (!own.sources.is_empty()).then_some(own.sources)
}

fn verdict(worth: f64) -> String {
    let words = match worth {
        worth if worth >= 0.7 => "ordered the results well",
        worth if worth >= 0.3 => "ordered them roughly",
        worth if worth > -0.3 => "said nothing",
        _ => "said the reverse",
    };
    words.to_owned()
}

/// Describes the trials saved by knowledge against the runs without; `None` without such runs.
fn saved(subject: &Subject, line: &TimeLine) -> Option<String> {
    let fastest = |line: &TimeLine| {
        let times = line.steps.iter().filter_map(|step| step.p50_us);
        times.fold(f64::INFINITY, f64::min)
    };
    let enough = EQUAL_TIME_FACTOR * fastest(line);
    let reached = |line: &TimeLine| {
        let timed = line.steps.iter().enumerate();
        let mut timed = timed.filter_map(|(at, step)| Some((at + 1, step.p50_us?)));
        timed.find(|(_, us)| *us <= enough).map(|(trial, _)| trial)
    };
    let own = reached(line)?;
    // A run of another strategy differs for other reasons.
    let others = subject.runs.iter().filter(|other| {
        other.run.settings.get("knowledge").is_none() && other.run.strategy == line.run.strategy
    });
    let mut cold: Vec<(usize, bool)> = others
        .map(|other| match reached(other) {
            Some(trial) => (trial, true),
            // A run that never reached it needs more than all its trials.
            None => (other.steps.len(), false),
        })
        .collect();
    cold.sort_unstable();
    let (trials, found) = *cold.get(cold.len() / 2)?;
    let runs = if cold.len() == 1 {
        "the run".to_owned()
    } else {
        format!("the median of {} runs", cold.len())
    };
    Some(if found {
        format!(
            "Without knowledge, {runs} came to that after {}: {} saved.",
            counted(trials, "trial"),
            trials.saturating_sub(own)
        )
    } else {
        format!(
            "Without knowledge, {runs} had not come to that after {}.",
            counted(trials, "trial")
        )
    })
}

/// Describes the first trial, and the one after which no improvement exceeded 2 %.
fn course(line: &TimeLine) -> String {
    let times = || line.steps.iter().enumerate();
    let timed = || times().filter_map(|(at, step)| Some((at + 1, step.p50_us?)));
    let best = timed().map(|(_, time)| time).fold(f64::INFINITY, f64::min);
    let reached = timed().find(|(_, time)| *time <= EQUAL_TIME_FACTOR * best);
    let name = code(&line.run.name);
    match (timed().next(), reached) {
        (Some((_, first)), Some((trial, _))) => format!(
            "{name}: the first trial that passed took {} µs; within 2 % of its best, {} µs, after {trial} of {}.",
            us(first),
            us(best),
            counted(line.steps.len(), "trial")
        ),
        _ => format!("{name}: no trial passed."),
    }
}
