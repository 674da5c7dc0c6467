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
    let timed = |row: &CheckRow| row.seen.as_ref()?.timed.clone();
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
            own.as_ref()
                .map_or_else(Vec::new, |own| own.warnings(&others, arch))
        })
        .collect();
    for (row, warnings) in rows.iter_mut().zip(found) {
        row.warnings.extend(warnings);
    }
}

/// Prints the first distinct warnings of all rows.
pub(super) fn tell(rows: &[CheckRow]) {
    let mut told: Vec<(String, usize)> = Vec::new();
    for row in rows {
        for warning in &row.warnings {
            let text = format!("{} {}: {warning}", row.kernel, row.problem);
            match told.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => told.push((text, 1)),
            }
        }
    }
    for (text, count) in told.iter().take(MAX_SHOWN_WARNINGS) {
        match count {
            1 => say!("warning: {text}"),
            count => say!("warning: {text} ({count} configurations)"),
        }
    }
    if told.len() > MAX_SHOWN_WARNINGS {
        let more = counted(told.len() - MAX_SHOWN_WARNINGS, "more warning");
        say!("and {more}; --format json has all");
    }
}

/// Warns if the default configuration cannot fill the device on a problem that is not run here; only the
/// launch extents are needed.
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
