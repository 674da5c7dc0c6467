//! Warnings of `check` about results that are right while most of the device waits.

use super::row::CheckRow;
use super::select::Task;
use super::target::Target;
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_report::low_parallelism::{TimedProblem, few_blocks};
use tuner_space::Config;
use vgpu::Arch;

/// Warnings told below a table; the rows have them all.
const TOLD: usize = 10;

/// Adds to each row what is wrong with it although its result is right.
pub(super) fn warn(rows: &mut [CheckRow], arch: &Arch) {
    let timed: Vec<Option<TimedProblem>> = rows.iter().map(CheckRow::timed_problem).collect();
    let found: Vec<Vec<String>> = rows
        .iter()
        .zip(&timed)
        .map(|(row, own)| {
            let same = rows
                .iter()
                .zip(&timed)
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

/// Tells the first warnings of all rows.
pub(super) fn tell(rows: &[CheckRow]) {
    let warned: Vec<&CheckRow> = rows.iter().filter(|row| !row.warnings.is_empty()).collect();
    for row in warned.iter().take(TOLD) {
        for warning in &row.warnings {
            say!("warning: {} {}: {warning}", row.kernel, row.problem);
        }
    }
    if warned.len() > TOLD {
        say!("and {} more rows with warnings", warned.len() - TOLD);
    }
}

/// Tells where the default configuration cannot fill the device on a problem that is not run here:
/// its launches say so without a run.
pub(super) fn defaults(kernel: &Kernel, tasks: &[Task], target: &Target) {
    if target.vgpu().is_none() {
        return;
    }
    let spec = &kernel.spec;
    let choices: Vec<u32> = spec.parameters.iter().map(|each| each.default).collect();
    let config = Config::new(choices);
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
