//! The outcome as JUnit XML for CI systems.

use super::{Answer, Line, Outcome};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use std::fmt::Write as _;
use tuner_core::escape;
use tuner_core::record::{TimingKind, assignments};

/// Renders the document without timestamps: the same outcome gives the same bytes.
///
/// # Errors
/// The document cannot be written.
pub(super) fn text(answer: &Answer) -> Result<String, SerializeError> {
    let name = format!("tuner gate {} on {}", answer.kernel, answer.device);
    let mut suite = TestSuite::new(visible(&name));
    suite.add_test_cases(answer.problems.iter().map(case));
    if let Some(promotion) = &answer.promotion {
        let findings = promotion.findings.iter().map(|finding| {
            let sign = if finding.holds { "holds" } else { "fails" };
            format!("{sign}: {} ({})", finding.clause, finding.because)
        });
        let words: Vec<String> = findings.collect();
        let status = if promotion.accepted {
            TestCaseStatus::success()
        } else {
            // The promotion does not affect the exit code, so that it must not fail the suite either.
            with_message(TestCaseStatus::skipped(), "not promoted")
        };
        let name = "promotion of the leaderboard's best";
        suite.add_test_case(named(&answer.kernel, name, status, &words.join("\n")));
    }
    let mut report = Report::new("tuner gate");
    report.add_test_suite(suite);
    report.to_string()
}

fn case(line: &Line) -> TestCase {
    let failure = |kind: &str| {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type(kind);
        with_message(status, &line.detail)
    };
    let status = match line.outcome {
        Outcome::Passed => TestCaseStatus::success(),
        Outcome::Skipped => with_message(TestCaseStatus::skipped(), &line.detail),
        Outcome::Regression => failure("regression"),
        Outcome::Wrong => failure("wrong result"),
    };
    named(&line.kernel, &line.problem, status, &story(line))
}

fn with_message(mut status: TestCaseStatus, message: &str) -> TestCaseStatus {
    status.set_message(visible(message));
    status
}

fn named(kernel: &str, name: &str, status: TestCaseStatus, output: &str) -> TestCase {
    let mut case = TestCase::new(visible(name), status);
    case.set_classname(format!("tuner.gate.{}", visible(kernel)));
    case.set_system_out(visible(output));
    case
}

/// Replaces invisible characters, and those that XML forbids.
fn visible(text: &str) -> String {
    escape::lines(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

fn story(line: &Line) -> String {
    let mut text = String::new();
    if let Some(config) = &line.shipped {
        let (from, values) = (&line.shipped_from, assignments(config, ","));
        let _ = writeln!(text, "shipped ({from}): {values}");
    }
    if let Some(us) = line.shipped_us_p50 {
        let label = line.timing.map_or("", TimingKind::name);
        let _ = writeln!(text, "p50 {us:.3} us, {label}");
    }
    for one in &line.comparisons {
        let [low, high] = one.ci95;
        let _ = writeln!(
            text,
            "{:.4}x ({low:.4} to {high:.4}) of {:.3} us: {}",
            one.ratio, one.us, one.against
        );
    }
    text
}
