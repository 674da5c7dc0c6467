//! The stages that one pair goes through: constraints, compile, run.

use super::row::CheckRow;
use super::select::{Pair, Task};
use super::target::Target;
use crate::catalog::Kernel;
use crate::compile::{
    CompileError, CompileOutcome, Compiler, Image, render_bound, render_reference,
};
use crate::record::{ConfigValues, Verdict};
use crate::space::{Bound, Space};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all pairs of one kernel share.
pub(super) struct Judge<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) tasks: &'a [Task],
    pub(super) target: &'a Target,
    pub(super) compiler: &'a Compiler,
}

impl Judge<'_> {
    /// Compiles the reference kernel, where there is one, for each problem's default
    /// configuration. The inner error is its author's to mend.
    pub(super) fn reference(&self) -> Result<Result<(), String>, CompileError> {
        let Some(reference) = &self.kernel.reference else {
            return Ok(Ok(()));
        };
        for task in self.tasks {
            let bound = match task.binder.bind(&task.space.default_config()) {
                Ok(bound) => bound,
                // The pairs of this problem say so themselves.
                Err(_) => continue,
            };
            let Some(source) = render_reference(reference, &bound, &self.target.arch) else {
                continue;
            };
            if let Some((_, detail)) = self.compiler.compile(&source)?.failure() {
                return Ok(Err(format!("problem {}: {detail}", task.problem)));
            }
        }
        Ok(Ok(()))
    }

    /// Judges all pairs on several threads. The rows are in the order of the pairs.
    pub(super) fn all(
        &self,
        pairs: &[Pair],
        threads: usize,
    ) -> Result<Vec<CheckRow>, CompileError> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(pairs.len()));
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, pairs.len().max(1)) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(pair) = pairs.get(index) else {
                            return;
                        };
                        let row = self.one(pair);
                        if let Ok(mut results) = results.lock() {
                            results.push((index, row));
                        }
                    }
                });
            }
        });
        let mut rows = results.into_inner().unwrap_or_default();
        rows.sort_by_key(|(index, _)| *index);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn one(&self, pair: &Pair) -> Result<CheckRow, CompileError> {
        let task = &self.tasks[pair.task];
        let mut row = self.blank(task, pair);
        if let Some(why) = task.space.reject_reason(&pair.config) {
            return Ok(refused(row, Verdict::Rejected, why));
        }
        let bound = match task.binder.bind(&pair.config) {
            Ok(bound) => bound,
            Err(error) => return Ok(refused(row, Verdict::LaunchFailed, error.to_string())),
        };
        let source = render_bound(&self.kernel.template, &bound, &self.target.arch);
        let outcome = self.compiler.compile(&source)?;
        if let Some((verdict, detail)) = outcome.failure() {
            return Ok(refused(row, verdict, detail));
        }
        if let CompileOutcome::Compiled(image) = outcome {
            row.registers = Some(image.facts.registers);
            row.spill_bytes = Some(image.facts.spill_bytes);
            row.shared_bytes = Some(image.facts.shared_bytes);
            row.cubin_hash = Some(image.facts.cubin_hash.to_string());
            row = run_pair(row, self.target, &bound, &image);
        }
        Ok(row)
    }

    fn blank(&self, task: &Task, pair: &Pair) -> CheckRow {
        CheckRow {
            kernel: self.kernel.spec.kernel.clone(),
            problem: task.problem.clone(),
            config: task.space.values(&pair.config),
            verdict: Verdict::Ok,
            hazards: Vec::new(),
            detail: String::new(),
            registers: None,
            spill_bytes: None,
            shared_bytes: None,
            max_error: None,
            device: self.target.device.clone(),
            cubin_hash: None,
            changed: changed(&task.space, pair),
        }
    }
}

fn refused(row: CheckRow, verdict: Verdict, detail: String) -> CheckRow {
    CheckRow {
        verdict,
        detail,
        ..row
    }
}

/// The parameters that differ from their defaults.
fn changed(space: &Space, pair: &Pair) -> ConfigValues {
    let defaults = space.values(&space.default_config());
    let values = space.values(&pair.config).into_iter().zip(defaults);
    values
        .filter(|(value, default)| value != default)
        .map(|(value, _)| value)
        .collect()
}

/// Runs a compiled pair where the target runs at all. Until the virtual GPU is joined, only what
/// a driver refuses before the launch is judged.
fn run_pair(row: CheckRow, target: &Target, bound: &Bound, image: &Image) -> CheckRow {
    if target.vgpu.is_none() {
        return row;
    }
    match over_a_limit(target, bound, image) {
        Some(detail) => refused(row, Verdict::LaunchFailed, detail),
        None => row,
    }
}

/// What a driver would refuse: too many threads, too much shared memory, an empty grid.
fn over_a_limit(target: &Target, bound: &Bound, image: &Image) -> Option<String> {
    let limits = &target.limits;
    bound.launches.iter().find_map(|launch| {
        let threads = launch
            .block
            .iter()
            .map(|&count| u64::from(count))
            .product::<u64>();
        let fixed = image
            .kernels
            .get(&launch.entry)
            .map_or(0, |kernel| kernel.static_shared);
        let shared = fixed.saturating_add(u64::from(launch.shared));
        if threads == 0 || launch.grid.contains(&0) {
            return Some(format!(
                "{}: an empty launch: grid {:?}, block {:?}",
                launch.entry, launch.grid, launch.block
            ));
        }
        if threads > u64::from(limits.max_threads) {
            return Some(format!(
                "{}: {threads} threads a block, but {} allows {}",
                launch.entry, target.device, limits.max_threads
            ));
        }
        (shared > u64::from(limits.shared_bytes)).then(|| {
            format!(
                "{}: {shared} bytes of shared memory a block, but {} allows {}",
                launch.entry, target.device, limits.shared_bytes
            )
        })
    })
}
