//! The outcome as JUnit XML for CI systems.

use super::{Answer, Line, Outcome};
use std::fmt::Write as _;
use tuner_core::escape::markup as escape;
use tuner_core::record::{TimingKind, assignments};

/// Renders the document without a time of day: the same outcome gives the same bytes.
pub(super) fn text(answer: &Answer) -> String {
    let all = || answer.problems.iter();
    let count = |outcome| all().filter(|line| line.outcome == outcome).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        answer.problems.len() + usize::from(answer.promotion.is_some()),
        count(Outcome::Regression) + count(Outcome::Wrong),
        count(Outcome::Skipped)
            + usize::from(answer.promotion.as_ref().is_some_and(|p| !p.accepted)),
    );
    let name = escape(&format!(
        "tuner gate {} on {}",
        answer.kernel, answer.device
    ));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tuner gate\" {counts}>\n\
         <testsuite name=\"{name}\" {counts}>\n"
    );
    for line in &answer.problems {
        case(&mut xml, line);
    }
    if let Some(promotion) = &answer.promotion {
        let words: Vec<String> = promotion
            .findings
            .iter()
            .map(|finding| {
                let sign = if finding.holds { "holds" } else { "fails" };
                format!("{sign}: {} ({})", finding.clause, finding.because)
            })
            .collect();
        let _ = writeln!(
            xml,
            "<testcase classname=\"tuner.gate.{}\" name=\"promotion of the leaderboard&apos;s best\">",
            escape(&answer.kernel)
        );
        if !promotion.accepted {
            xml.push_str("<skipped message=\"not promoted\"/>\n");
        }
        let _ = writeln!(
            xml,
            "<system-out>{}</system-out>\n</testcase>",
            escape(&words.join("\n"))
        );
    }
    xml.push_str("</testsuite>\n</testsuites>\n");
    xml
}

fn case(xml: &mut String, line: &Line) {
    let _ = writeln!(
        xml,
        "<testcase classname=\"tuner.gate.{}\" name=\"{}\">",
        escape(&line.kernel),
        escape(&line.problem)
    );
    let detail = escape(&line.detail);
    match line.outcome {
        Outcome::Passed => {}
        Outcome::Skipped => {
            let _ = writeln!(xml, "<skipped message=\"{detail}\"/>");
        }
        Outcome::Regression => {
            let _ = writeln!(xml, "<failure type=\"regression\" message=\"{detail}\"/>");
        }
        Outcome::Wrong => {
            let _ = writeln!(xml, "<failure type=\"wrong result\" message=\"{detail}\"/>");
        }
    }
    let _ = writeln!(
        xml,
        "<system-out>{}</system-out>\n</testcase>",
        escape(&story(line))
    );
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
