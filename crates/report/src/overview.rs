//! Overview: every problem against its baseline.

use super::analysis::time;
use super::document::{Block, code, plain};
use super::model::{Input, Peer, Subject};
use super::plots;
use tuner_core::record::{TimingKind, assignments};
use tuner_core::statistics::ratio_of_medians;

/// Formats a time with five significant digits, its actual precision.
#[must_use]
pub fn us(us: f64) -> String {
    let whole = us.abs().max(1e-9).log10().floor().max(0.0) as usize;
    format!("{us:.*}", 4_usize.saturating_sub(whole))
}

/// Returns the comparison of the winner: the baseline if it was timed, else the default
/// configuration.
pub(super) fn versus(subject: &Subject) -> Option<Peer> {
    if subject.baseline.is_some() {
        return subject.baseline.clone();
    }
    let best = subject.best()?;
    let [our_low, our_high] = best.sampled_interval_us();
    let own = subject
        .candidate(&best.config)
        .filter(|_| best.search_us.is_some());
    let own = own.and_then(|own| own.trial.measurement.as_ref());
    // Candidates have times of the search; those of a final comparison have a different protocol.
    let ours = match own {
        Some(own) => (own.p50.get(), own.ci95[0].get(), own.ci95[1].get()),
        None => (best.time_us_p50, our_low, our_high),
    };
    let default = subject.candidate(subject.board.default_config.as_ref()?)?;
    time(&default.trial)?;
    let taken = default.trial.measurement.as_ref()?;
    let [low, high] = taken.ci95;
    Some(Peer {
        name: "default configuration".to_owned(),
        p50_us: taken.p50.get(),
        p90_us: taken.p90.get(),
        ratio: ratio_of_medians((taken.p50.get(), low.get(), high.get()), ours),
    })
}

/// Formats a problem with its sizes.
pub(super) fn shape(subject: &Subject) -> String {
    let problem = plain(&subject.board.key.problem);
    match assignments(&subject.board.sizes, " ") {
        sizes if sizes.is_empty() => problem,
        sizes => format!("{problem} ({})", plain(&sizes)),
    }
}

/// Formats a ratio with its interval, if it has one.
pub(super) fn speedup([middle, low, high]: [f64; 3]) -> String {
    if high > low {
        format!("{middle:.2}x ({low:.2} to {high:.2})")
    } else {
        format!("{middle:.2}x")
    }
}

/// Builds the table of all subjects and its plot.
pub(super) fn blocks(input: &Input) -> Vec<Block> {
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for subject in &input.subjects {
        let Some(best) = subject.best() else { continue };
        let versus = versus(subject);
        let dash = || "-".to_owned();
        let stale = if best.stale == Some(true) {
            ", stale"
        } else {
            ""
        };
        rows.push(vec![
            code(&subject.board.key.kernel),
            shape(subject),
            plain(&subject.board.key.device),
            format!("{}{stale}", subject.label()),
            versus.as_ref().map_or_else(dash, |v| plain(&v.name)),
            versus
                .as_ref()
                .map_or_else(dash, |v| format!("{} / {}", us(v.p50_us), us(v.p90_us))),
            format!("{} / {}", us(best.time_us_p50), us(best.time_us_p90)),
            versus.as_ref().map_or_else(dash, |v| speedup(v.ratio)),
        ]);
        if let Some(versus) = versus {
            bars.push((subject.board.key.to_string(), versus.ratio));
        }
    }
    let head = [
        "kernel",
        "problem",
        "device",
        "times",
        "baseline",
        "baseline p50 / p90, µs",
        "ours p50 / p90, µs",
        "speed-up (95 %)",
    ];
    let mut blocks = vec![Block::table(&head, 5, rows)];
    blocks.push(Block::text(kinds(input)));
    if !bars.is_empty() {
        blocks.push(Block::Plot {
            name: "speedups".to_owned(),
            svg: plots::speedups(&bars),
            caption: "Speed-up of the best configuration over the baseline; whiskers are 95 % intervals where several samples were taken.".to_owned(),
        });
    }
    blocks
}

/// Explains the kinds of time that occur.
fn kinds(input: &Input) -> String {
    let has = |kind| {
        input
            .subjects
            .iter()
            .any(|subject| subject.board.timing == kind)
    };
    let mut text = String::new();
    for (kind, sentence) in [
        (
            TimingKind::Measured,
            "Measured times were taken on a real GPU by this tuner. ",
        ),
        (
            TimingKind::Predicted,
            "Predicted times are the virtual GPU's model: they order candidates, those within 14 % of the best are ties, and nothing was measured. ",
        ),
        (
            TimingKind::Recorded,
            "Recorded times were measured by others and read from a file. ",
        ),
    ] {
        if has(kind) {
            text.push_str(sentence);
        }
    }
    text.push_str(
        "Where no other implementation was timed, the baseline is the default configuration.",
    );
    text
}
