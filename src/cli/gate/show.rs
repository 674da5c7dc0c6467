//! The outcome on the terminal.

use super::{Answer, Line, Outcome};
use crate::cli::CliError;
use crate::cli::output;
use crate::cli::output::Format;

const HEADINGS: [&str; 10] = [
    "problem",
    "outcome",
    "timing",
    "shipped us",
    "best us",
    "ratio",
    "95 % interval",
    "shipped from",
    "against",
    "detail",
];

pub(super) fn text(format: Format, answer: &Answer) -> Result<String, CliError> {
    if format == Format::Json {
        return serde_json::to_string_pretty(answer)
            .map_err(|error| CliError::Failed(error.into()));
    }
    let rows: Vec<Vec<String>> = answer.problems.iter().map(cells).collect();
    Ok(output::rows(format, &HEADINGS, &rows))
}

fn cells(line: &Line) -> Vec<String> {
    let worst = line
        .comparisons
        .iter()
        .max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    vec![
        line.problem.clone(),
        match line.outcome {
            Outcome::Passed => "passed",
            Outcome::Regression => "REGRESSION",
            Outcome::Wrong => "WRONG",
            Outcome::Skipped => "skipped",
        }
        .to_owned(),
        line.timing.map_or("-".to_owned(), |timing| {
            format!("{timing:?}").to_lowercase()
        }),
        number(line.shipped_us_p50, 3),
        number(worst.map(|worst| worst.us), 3),
        number(line.ratio, 4),
        line.ci95
            .filter(|[low, high]| high > low)
            .map_or("-".to_owned(), |[low, high]| {
                format!("{low:.4} .. {high:.4}")
            }),
        if line.shipped_from.is_empty() {
            "-".to_owned()
        } else {
            line.shipped_from.clone()
        },
        worst.map_or("-".to_owned(), |worst| worst.against.to_owned()),
        line.detail.clone(),
    ]
}

/// The verdict in words, to standard error.
pub(super) fn tell(answer: &Answer) {
    for line in &answer.problems {
        match line.outcome {
            Outcome::Regression => {
                say!(
                    "regression: {} {}: {}",
                    line.kernel,
                    line.problem,
                    line.detail
                );
            }
            Outcome::Wrong => {
                say!(
                    "wrong result: {} {}: {}",
                    line.kernel,
                    line.problem,
                    line.detail
                );
            }
            Outcome::Skipped => {
                say!("skipped: {} {}: {}", line.kernel, line.problem, line.detail);
            }
            Outcome::Passed => {}
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
