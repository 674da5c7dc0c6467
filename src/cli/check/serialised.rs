//! Right but serialised: results that pass while most of the device waits.
//!
//! A kernel may be correct on every problem and still run on a few multiprocessors, or take longer
//! for each operation the larger the problem. Only problems that are tuned are judged so: those
//! that are only checked are small on purpose.

use super::row::{CheckRow, Seen};
use super::select::Task;
use super::target::Target;
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_space::Config;
use vgpu::Arch;

/// Time per operation may grow by this from one problem to a larger one.
const GROWTH_MAX: f64 = 1.5;
/// And time over the floor of the roofline by this.
const FLOOR_MAX: f64 = 20.0;
/// Warnings told below a table; the rows have them all.
const TOLD: usize = 10;

/// Adds to each row what is wrong with it although its result is right.
pub(super) fn warn(rows: &mut [CheckRow], arch: &Arch) {
    let found: Vec<Vec<String>> = rows.iter().map(|row| reasons(row, rows, arch)).collect();
    for (row, warnings) in rows.iter_mut().zip(found) {
        row.warnings = warnings;
    }
}

fn reasons(row: &CheckRow, rows: &[CheckRow], arch: &Arch) -> Vec<String> {
    let Some(seen) = row.seen.as_ref().filter(|seen| seen.timed) else {
        return Vec::new();
    };
    let others = rows.iter().filter_map(|other| {
        let seen = other.seen.as_ref().filter(|seen| seen.timed)?;
        (other.config == row.config).then_some((other.problem.as_str(), seen))
    });
    let reasons = [
        few_blocks(seen.blocks, arch.sm_count),
        far_from_floor(seen, "predicted", arch),
        growth(seen, others),
    ];
    reasons.into_iter().flatten().collect()
}

/// A result of a tuned problem, wherever its time comes from.
pub(in crate::cli) struct Result {
    /// The problem.
    pub(in crate::cli) problem: String,
    /// Its time, µs.
    pub(in crate::cli) time_us: f64,
    /// How it came to be, in a word.
    pub(in crate::cli) label: &'static str,
    /// Blocks of the longest launch, where known.
    pub(in crate::cli) blocks: Option<u64>,
    /// The kernel uses tensor cores.
    pub(in crate::cli) tensor: bool,
    /// Useful operations.
    pub(in crate::cli) flops: Option<f64>,
    /// Bytes that must move.
    pub(in crate::cli) bytes: Option<f64>,
}

impl Result {
    fn seen(&self) -> Seen {
        Seen {
            predicted_us: self.time_us,
            blocks: self.blocks.unwrap_or(u64::MAX),
            bank_conflicts: 0.0,
            shared_wavefronts: 0.0,
            tensor: self.tensor,
            flops: self.flops,
            bytes: self.bytes,
            timed: true,
        }
    }

    /// What is wrong with it although it is right; `others` are the results of the same kernel on
    /// its other problems.
    pub(in crate::cli) fn warnings(&self, others: &[Self], arch: &Arch) -> Vec<String> {
        let seen = self.seen();
        let others: Vec<(&str, Seen)> = others
            .iter()
            .map(|other| (other.problem.as_str(), other.seen()))
            .collect();
        let reasons = [
            few_blocks(seen.blocks, arch.sm_count),
            far_from_floor(&seen, self.label, arch),
            growth(&seen, others.iter().map(|(problem, seen)| (*problem, seen))),
        ];
        reasons.into_iter().flatten().collect()
    }
}

fn few_blocks(blocks: u64, multiprocessors: u32) -> Option<String> {
    (blocks < u64::from(multiprocessors)).then(|| {
        format!("right but serialised: {blocks} blocks for {multiprocessors} multiprocessors")
    })
}

/// The least time that the metric's operations and bytes take, µs.
fn floor_us(seen: &Seen, arch: &Arch) -> f64 {
    let (flops, bytes) = (seen.flops.unwrap_or(0.0), seen.bytes.unwrap_or(0.0));
    let [compute, memory] = arch.floors_us(flops, bytes, seen.tensor);
    compute.max(memory)
}

fn far_from_floor(seen: &Seen, label: &str, arch: &Arch) -> Option<String> {
    let floor = floor_us(seen, arch);
    let times = seen.predicted_us / floor;
    (floor > 0.0 && times > FLOOR_MAX).then(|| {
        format!(
            "right but serialised: {:.1} us ({label}) is {times:.0} times the roofline floor of \
             {floor:.2} us",
            seen.predicted_us
        )
    })
}

/// Against the smaller problem where an operation is cheapest.
fn growth<'a>(seen: &Seen, others: impl Iterator<Item = (&'a str, &'a Seen)>) -> Option<String> {
    let flops = seen.flops.filter(|flops| *flops > 0.0)?;
    let each = seen.predicted_us / flops;
    let (problem, times) = others
        .filter_map(|(problem, other)| {
            let smaller = other
                .flops
                .filter(|smaller| *smaller > 0.0 && *smaller < flops)?;
            Some((problem, each / (other.predicted_us / smaller)))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    (times > GROWTH_MAX).then(|| {
        format!(
            "right but serialised: an operation takes {times:.1} times as long as on the smaller \
             problem {problem}"
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(time: f64, blocks: u64, flops: f64) -> Seen {
        Seen {
            predicted_us: time,
            blocks,
            bank_conflicts: 0.0,
            shared_wavefronts: 0.0,
            tensor: true,
            flops: Some(flops),
            bytes: Some(1e6),
            timed: true,
        }
    }

    #[test]
    fn few_blocks_a_distant_floor_and_growing_costs_are_each_told() {
        let arch = Arch::by_name("h100").unwrap();
        assert!(few_blocks(131, arch.sm_count).is_some());
        assert!(few_blocks(132, arch.sm_count).is_none());
        let floor = floor_us(&seen(1.0, 132, 1e9), arch);
        assert!(far_from_floor(&seen(19.0 * floor, 132, 1e9), "predicted", arch).is_none());
        assert!(far_from_floor(&seen(21.0 * floor, 132, 1e9), "predicted", arch).is_some());
        let small = seen(10.0, 132, 1e9);
        let against = |time: f64| growth(&seen(time, 132, 4e9), [("small", &small)].into_iter());
        assert!(against(59.0).is_none());
        assert!(against(61.0).unwrap().contains("small"));
        // A larger problem that is cheaper for each operation is no reason to warn.
        assert!(growth(&small, [("large", &seen(1.0, 132, 4e9))].into_iter()).is_none());
    }
}
