//! Provenance and functions of one entry of the header.

use super::plan::Plan;
use super::plan::{Condition, EntryCode};
use super::values::c_value;
use super::{lookup, shipped};
use std::fmt::Write as _;
use tuner_core::entry::Entry;
use tuner_core::escape::CComment;
use tuner_core::record::{ConfigValues, TimingKind, value_of};
use tuner_core::units::counted;

impl Plan<'_> {
    /// Writes the provenance and the functions of an entry.
    #[expect(
        clippy::indexing_slicing,
        reason = "entries are numbered by the export that holds them"
    )]
    pub(super) fn entry(&self, text: &mut String, index: usize) {
        self.provenance(text, index);
        let upper = &self.upper;
        let several = self.entries.len() > 1;
        if several {
            let _ = writeln!(
                text,
                "#if !defined({upper}ENTRY) || {upper}ENTRY == {index}"
            );
        }
        self.functions(text, index, &self.entries[index], &self.codes[index]);
        if several {
            text.push_str("#endif\n");
        }
    }

    /// Writes the functions of a configuration: a test of sizes, and its launches.
    pub(super) fn functions(
        &self,
        text: &mut String,
        index: usize,
        entry: &Entry,
        code: &EntryCode,
    ) {
        let (lower, upper) = (&self.lower, &self.upper);
        let parameters = lookup::parameters(self.sizes.iter());
        let parameters = if parameters.is_empty() {
            "void"
        } else {
            &parameters
        };
        let _ = writeln!(
            text,
            "{upper}STATIC inline int {lower}_{index}_valid({parameters}) {{"
        );
        self.valid(text, entry, code);
        let arguments = lookup::arguments(self.sizes.iter());
        for (name, launch) in self.launches.iter().zip(&code.launches) {
            let _ = writeln!(
                text,
                "{upper}STATIC inline {lower}_launch {lower}_{index}_launch_{name}({parameters}) {{"
            );
            let made = launch.arguments.join(", ");
            let made = format!("{lower}_make({made})");
            let valid = format!("{lower}_{index}_valid({arguments})");
            if launch.statements.is_empty() {
                let _ = writeln!(text, "  return {valid} ? {made} : {lower}_none; }}");
                continue;
            }
            let _ = writeln!(text, "  if (!{valid}) return {lower}_none;");
            for statement in &launch.statements {
                let _ = writeln!(text, "  {statement}");
            }
            let _ = writeln!(text, "  return {made}; }}");
        }
    }

    /// Writes the body of an entry's test of sizes.
    fn valid(&self, text: &mut String, entry: &Entry, code: &EntryCode) {
        let lower = &self.lower;
        let free = || self.sizes.iter().filter(|size| !size.exact);
        let mut conditions: Vec<String> = Vec::new();
        if free().next().is_some() && !code.alone {
            conditions.push(format!("{lower}_sized({})", lookup::arguments(free())));
        }
        for size in self.sizes.iter().filter(|size| size.exact) {
            let own = c_value(value_of(&entry.sizes, &size.name), lookup::size_type(size));
            conditions.push(match lookup::size_type(size) {
                "const char *" => format!("{lower}_same({}, {own})", size.member),
                _ => format!("{} == {own}", size.member),
            });
        }
        // Temporaries may overflow for out-of-range sizes, so these are rejected first.
        if !code.statements.is_empty() {
            let first = conditions.join(" && ");
            let _ = writeln!(text, "  if (!({first})) return 0;");
            conditions.clear();
            for statement in &code.statements {
                let _ = writeln!(text, "  {statement}");
            }
        }
        let own = (!conditions.is_empty()).then(|| conditions.join(" && "));
        let rules = code.conditions.iter();
        let rules = rules.map(|Condition { text, source }| format!("{text} /* {source} */"));
        let all: Vec<String> = own.into_iter().chain(rules).collect();
        let all = if all.is_empty() {
            "1".to_owned()
        } else {
            all.join("\n    && ")
        };
        let _ = writeln!(text, "  return {all}; }}");
    }

    /// Writes the comments of an entry: the source of its numbers, and the data that `tuner gate` reads
    /// back.
    #[expect(
        clippy::indexing_slicing,
        reason = "entries are numbered by the export that holds them"
    )]
    fn provenance(&self, text: &mut String, index: usize) {
        let entry = &self.entries[index];
        let row = &entry.best;
        let kind = match row.timing {
            TimingKind::Measured => "measured",
            TimingKind::Predicted => "PREDICTED",
            TimingKind::Recorded => "recorded by others",
        };
        let speedup = row
            .speedup_vs_default
            .map(|ratio| format!(", {ratio:.2}x the default's speed"))
            .unwrap_or_default();
        let compared = row
            .compared
            .map(|compared| format!("; compared {compared}: {}", compared.describe()))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "/* [{index}] {} on {}, {kind}: p50 {:.3} us, p90 {:.3} us, {}{speedup}{compared}",
            CComment::new(&assignments(&row.problem, &entry.sizes)),
            CComment::new(&row.device),
            row.time_us_p50,
            row.time_us_p90,
            counted(row.samples, "sample"),
        );
        if row.stale == Some(true) {
            let _ = writeln!(
                text,
                " * STALE: the template was edited since; tune again before relying on this."
            );
        }
        let or_none = |value: Option<&str>| CComment::new(value.unwrap_or("none"));
        let dirty = if row.dirty == Some(true) {
            " (dirty)"
        } else {
            ""
        };
        let diff = row.diff_hash.as_deref();
        let diff = diff.map(|hash| format!(" diff {} (SHA-256),", CComment::new(hash)));
        let _ = writeln!(
            text,
            " * {}, driver {}, commit {}{dirty},{} template {} */",
            CComment::new(row.measured_at.get(..10).unwrap_or("no date")),
            or_none(entry.driver.as_deref()),
            or_none(row.commit.as_deref()),
            diff.unwrap_or_default(),
            or_none(row.template_hash.as_deref()),
        );
        text.push_str(&shipped::as_comment(entry));
    }
}

fn assignments(head: &str, values: &ConfigValues) -> String {
    let mut text = head.to_owned();
    for (name, value) in values {
        let _ = write!(text, " {name}={value}");
    }
    text
}
