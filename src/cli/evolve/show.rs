//! Messages of an evolution.

use super::session::{End, Session};
use std::fmt::Write as _;
use tuner_core::escape;
use tuner_evolve::lineage;
use tuner_report::us;
use tuner_store::Lineage;

/// Returns the summary: the family tree, the counts and the next commands.
pub(super) fn summary(session: &Session<'_>, end: End, db: &str) -> String {
    let mut text = String::new();
    let kernel = &session.options.parsed.spec.kernel;
    let ended = match end {
        End::Rounds => "all rounds done",
        End::Budget => "the budget is used up",
        End::Silent => "the mutator answers no more",
        End::Interrupted => "interrupted",
    };
    let _ = writeln!(text, "{ended}: {kernel} on {}", session.options.device_name);
    for (problem, tuned) in &session.shipped {
        let _ = writeln!(text, "  shipped  {problem} {} us", us(tuned.time.us));
    }
    let lineage = Lineage {
        name: session.name.clone(),
        start: session.options.start(session.mutator_name.clone()),
        state: String::new(),
        changes: session.changes.clone(),
    };
    text.push_str(&lineage::tree(&lineage, None).text());
    let kernel = escape::shell(kernel);
    let _ = writeln!(text, "next: tuner leaderboard {kernel} --lineage{db}");
    if end == End::Interrupted {
        text.push_str("go on: the same command with --resume\n");
    }
    text
}
