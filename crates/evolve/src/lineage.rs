//! Family tree and figures of a stored evolution.

use crate::figures::{ChangeFacts, Figures};
use crate::outcome::Outcome;
use std::collections::BTreeMap;
use tuner_report::family::{FamilyRow, FamilyTree};
use tuner_report::us;
use tuner_store::{Board, Change, DeviceFilter, LeaderboardQuery, Lineage};

/// Returns the family tree of an evolution. `speedups` as for [`figures`].
#[must_use]
pub fn tree(lineage: &Lineage, speedups: Option<&[Option<f64>]>) -> FamilyTree {
    let mut rows = Vec::new();
    add_children(&lineage.changes, None, 1, &mut rows);
    let start = &lineage.start;
    FamilyTree {
        title: format!(
            "{} on {}, evolution {} by {}, {}",
            start.kernel, start.device, lineage.name, start.mutator, start.timing
        ),
        timing: start.timing.name(),
        rows,
        figures: figure_texts(&figures(&lineage.changes, speedups)),
    }
}

/// Returns the query of the boards that [`speedups`] needs.
#[must_use]
pub fn boards_query(lineage: &Lineage) -> LeaderboardQuery {
    LeaderboardQuery {
        kernel: Some(lineage.start.kernel.clone()),
        device: Some(DeviceFilter::Name(lineage.start.device.clone())),
        timings: vec![lineage.start.timing],
        top: Some(1),
        ..LeaderboardQuery::default()
    }
}

/// Returns the speed-up of the best correct change over the baseline, by problem; `None` if no baseline was
/// measured: a predicted time is never compared with a measured one.
#[must_use]
pub fn speedups(lineage: &Lineage, boards: &[Board]) -> Option<Vec<Option<f64>>> {
    let speedup = |board: &Board| {
        let over = board.rows.first()?.speedup_vs_baseline?;
        let times = lineage.changes.iter().flat_map(|change| &change.times);
        let times = times.filter(|time| time.problem == board.key.problem);
        let best = times
            .map(|time| time.shipped_us / time.us)
            .max_by(f64::total_cmp);
        Some(best.map(|gain| gain * over))
    };
    let all: Vec<Option<f64>> = boards.iter().filter_map(speedup).collect();
    (!all.is_empty()).then_some(all)
}

/// Computes the figures of changes. `speedups` has the best change's speed-up over the baseline by problem;
/// `None` if no baseline was measured.
#[must_use]
pub fn figures(changes: &[Change], speedups: Option<&[Option<f64>]>) -> Figures {
    let facts: Vec<ChangeFacts> = changes
        .iter()
        .map(|change| ChangeFacts {
            outcome: outcome(change),
            verdict: change.verdict.clone(),
            tokens: u64::from(change.tokens),
            seconds: change.seconds,
            gains: change
                .times
                .iter()
                .map(|time| time.shipped_us / time.us)
                .collect(),
        })
        .collect();
    Figures::new(&facts, speedups)
}

/// Returns the outcome of a stored change.
#[must_use]
pub fn outcome(change: &Change) -> Outcome {
    change.outcome.parse().unwrap_or(Outcome::Malformed)
}

/// Returns a change's gains over the shipped template in one line, or its finding.
#[must_use]
pub fn found(change: &Change) -> String {
    if change.times.is_empty() {
        return change.detail.clone();
    }
    let gain = |time: &tuner_store::ChangeTime| {
        let percent = (time.shipped_us / time.us - 1.0) * 100.0;
        format!("{} {} us {percent:+.1} %", time.problem, us(time.us))
    };
    let gains: Vec<String> = change.times.iter().map(gain).collect();
    gains.join(", ")
}

/// Returns the display text of a change's outcome, with the verdict of a failure.
#[must_use]
pub fn outcome_text(change: &Change) -> String {
    let outcome = outcome(change);
    match (&change.verdict, outcome) {
        (Some(verdict), Outcome::Failed) => format!("failed ({verdict})"),
        _ => outcome.words(),
    }
}

/// Adds the changes of a parent, each followed by its own children.
fn add_children(changes: &[Change], parent: Option<i64>, depth: usize, rows: &mut Vec<FamilyRow>) {
    for change in changes.iter().filter(|change| change.parent == parent) {
        rows.push(FamilyRow {
            depth,
            change: change.id,
            outcome: outcome_text(change),
            found: found(change),
            note: change.note.clone(),
            diff: change.diff.clone(),
            better: outcome(change).is_incumbent(),
        });
        // A change is stored after its parent, so that no row is its own ancestor.
        add_children(changes, Some(change.id), depth + 1, rows);
    }
}

fn figure_texts(figures: &Figures) -> Vec<(String, String)> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let shares: Vec<String> = figures
        .shares
        .iter()
        .map(|(outcome, share)| format!("{} {}", outcome.words(), percent(*share)))
        .collect();
    let verdicts: Vec<String> = figures
        .verdicts
        .iter()
        .map(|(verdict, count)| format!("{verdict} {count}"))
        .collect();
    let fast = |all: &BTreeMap<String, f64>| {
        let each = all
            .iter()
            .map(|(p, share)| format!("fast_{p} {}", percent(*share)));
        each.collect::<Vec<String>>().join(", ")
    };
    let or_none = |text: String| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            text
        }
    };
    vec![
        ("changes by outcome".to_owned(), or_none(shares.join(", "))),
        (
            "verdicts of the gate".to_owned(),
            or_none(verdicts.join(", ")),
        ),
        (
            "best gain".to_owned(),
            figures
                .best_gain_pct
                .map_or("none".to_owned(), |gain| format!("{gain:+.1} %")),
        ),
        (
            "tokens".to_owned(),
            match figures.gain_per_1000_tokens {
                Some(gain) => format!("{}, gain {gain:.2} % per thousand", figures.tokens),
                None => figures.tokens.to_string(),
            },
        ),
        (
            "against the baseline".to_owned(),
            figures
                .fast_p
                .as_ref()
                .map_or("not measured".to_owned(), fast),
        ),
    ]
}
