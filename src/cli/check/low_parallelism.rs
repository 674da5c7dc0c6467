//! Warnings about correct results with low device utilization.

use super::row::CheckRow;
use super::select::Task;
use super::target::Target;
use tuner_core::units::counted;
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_report::low_parallelism::{TimedProblem, few_blocks};
use vgpu::Arch;

/// Maximum number of warnings below a table; JSON and CSV contain all.
const MAX_SHOWN_WARNINGS: usize = 10;

/// Adds warnings to each row.
pub(super) fn warn(rows: &mut [CheckRow], arch: &Arch) {
    let timed = |row: &CheckRow| {
        let seen = row.seen.as_ref()?;
        seen.tuned.then(|| seen.time.clone())
    };
    let timed: Vec<Option<TimedProblem>> = rows.iter().map(timed).collect();
    let found: Vec<Vec<String>> = rows
        .iter()
        .zip(&timed)
        .map(|(row, own)| {
            let same = rows
                .iter()
                .zip(&timed)
                // Only times of one configuration show how it scales.
                .filter(|(other, _)| other.config == row.config);
            let others: Vec<TimedProblem> = same.filter_map(|(_, other)| other.clone()).collect();
            let own = own
                .as_ref()
                .map_or_else(Vec::new, |own| own.warnings(&others, arch));
            let seen = row.seen.as_ref().filter(|_| row.passed());
            let impossible = seen.and_then(|seen| seen.time.below_floor(arch));
            own.into_iter().chain(impossible).collect()
        })
        .collect();
    for (row, warnings) in rows.iter_mut().zip(found) {
        row.warnings.extend(warnings);
    }
}

/// A warning of several rows.
struct Warning {
    /// That of the first row.
    text: String,
    rows: usize,
    /// The others have other numbers.
    varies: bool,
}

/// Prints the first distinct warnings of the rows that passed: beside a failure they would distract
/// from it. Those that differ in numbers alone are one, unless `verbose`.
pub(super) fn tell(rows: &[CheckRow], verbose: bool) {
    let mut distinct: Vec<Warning> = Vec::new();
    for row in rows.iter().filter(|row| row.passed()) {
        for warning in &row.warnings {
            let whose = format!("{} {}: ", row.kernel, row.problem);
            let text = format!("{whose}{warning}");
            let same = |known: &&mut Warning| {
                let alike = || wording(&known.text) == wording(&text);
                known.text == text || !verbose && known.text.starts_with(&whose) && alike()
            };
            match distinct.iter_mut().find(same) {
                Some(known) => {
                    known.rows += 1;
                    known.varies |= known.text != text;
                }
                None => distinct.push(Warning {
                    text,
                    rows: 1,
                    varies: false,
                }),
            }
        }
    }
    for Warning { text, rows, varies } in distinct.iter().take(MAX_SHOWN_WARNINGS) {
        match (rows, varies) {
            (1, _) => say!("warning: {text}"),
            (_, false) => say!("warning: {text} ({rows} configurations)"),
            (_, true) => say!("warning: {text} (and {} with other numbers)", rows - 1),
        }
    }
    if distinct.len() > MAX_SHOWN_WARNINGS {
        let more = counted(distinct.len() - MAX_SHOWN_WARNINGS, "more warning");
        say!("and {more}; --format json has all");
    }
}

/// Returns the words of a warning without its numbers.
fn wording(text: &str) -> String {
    let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    text.split(number).filter(|part| !part.is_empty()).collect()
}

/// Warns where the default configuration cannot fill the device on a problem that is not run here;
/// the launch extents suffice for that.
pub(super) fn defaults(kernel: &Kernel, tasks: &[Task], target: &Target) {
    if target.vgpu().is_none() {
        return;
    }
    let spec = &kernel.spec;
    let config = spec.default_config();
    for problem in &spec.problems {
        if tasks.iter().any(|task| task.problem == problem.name) {
            continue;
        }
        let Ok(bound) = spec.bind(&problem.name, &target.limits, &config) else {
            continue;
        };
        let blocks = bound.launches.iter().map(|launch| {
            let extents = launch.grid.iter().map(|extent| u64::from(*extent));
            extents.fold(1, u64::saturating_mul)
        });
        let most = blocks.max().unwrap_or(0);
        if let Some(why) = few_blocks(most, target.limits.sm_count) {
            let yaml = catalog::shown(&kernel.path);
            say!(
                "warning: {yaml}: problem {}, default configuration: {why}",
                problem.name
            );
        }
    }
}
