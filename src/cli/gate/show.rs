//! The outcome on the terminal.

use super::{Answer, Line, Outcome};
use crate::cli::output::{self, Column, Format, number, or};

const COLUMNS: [Column<Line>; 11] = [
    ("problem", |line| line.problem.clone()),
    ("outcome", |line| line.outcome.table_word().to_owned()),
    ("timing", |line| or("-", line.timing)),
    ("shipped us", |line| number("-", line.shipped_us_p50, 3)),
    ("best us", |line| {
        number("-", line.worst().map(|worst| worst.us), 3)
    }),
    ("ratio", |line| number("-", line.ratio, 4)),
    ("95 % interval", |line| {
        let interval = line.ci95.filter(|[low, high]| high > low);
        or(
            "-",
            interval.map(|[low, high]| format!("{low:.4} .. {high:.4}")),
        )
    }),
    ("compared", |line| or("-", line.compared)),
    ("shipped from", |line| {
        let from = Some(&line.shipped_from);
        or("-", from.filter(|from| !from.is_empty()))
    }),
    ("against", |line| {
        or("-", line.worst().map(|worst| worst.against))
    }),
    ("detail", |line| line.detail.clone()),
];

pub(super) fn text(format: Format, answer: &Answer) -> Result<String, serde_json::Error> {
    match format {
        Format::Json => output::json(answer),
        _ => Ok(output::in_columns(format, &COLUMNS, &answer.problems)),
    }
}

/// Prints the verdict as text to standard error.
pub(super) fn tell(answer: &Answer) {
    for line in &answer.problems {
        let what = match line.outcome {
            Outcome::Regression => "regression",
            Outcome::Wrong => "wrong result",
            Outcome::Skipped => "skipped",
            Outcome::Passed => continue,
        };
        say!("{what}: {} {}: {}", line.kernel, line.problem, line.detail);
    }
    for line in &answer.problems {
        if let (Outcome::Passed, Some(why)) = (line.outcome, &line.unproven) {
            say!(
                "note: {} {}: passed without a proof: {why}",
                line.kernel,
                line.problem
            );
        }
    }
    for line in &answer.problems {
        for change in line.changes.iter().flatten() {
            say!(
                "changed since it was shipped: {} {}: {change}",
                line.kernel,
                line.problem
            );
        }
    }
    if let Some(promotion) = &answer.promotion {
        for finding in &promotion.findings {
            let sign = if finding.holds { "holds" } else { "fails" };
            say!("{sign}: {} ({})", finding.clause, finding.because);
        }
        let verdict = if promotion.accepted {
            "may be promoted"
        } else {
            "is not promoted"
        };
        say!("the leaderboard's best {verdict} by: {}", promotion.rules);
    }
}
