//! Stages of judging a pair: constraints, compile, run.

use super::row::{CheckRow, RunFigures};
use super::select::{Pair, Task};
use super::target::Target;
use crate::cli::{CliError, complete};
use anyhow::Context as _;
use std::path::PathBuf;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Plan;
use tuner_core::record::{Compared, ConfigValues, Hazard, Verdict};
use tuner_engine::job::JobError;
use tuner_engine::{Demand, JudgePool, Judged};
use tuner_judge::gate::level::Level;
use tuner_judge::gate::tolerance;
use tuner_judge::judgement::TimedJudgement;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::Compiler;
use tuner_predict::serialization;
use tuner_report::low_parallelism::TimedProblem;
use tuner_space::{Reference, Space};

/// Input seeds for every pair.
const SEEDS: [u64; 2] = [0x5eed, 0xc0ffee];

/// Operations and bytes of a plan, and its tolerance.
type PlanFigures = (Option<f64>, Option<f64>, String);

/// State shared by all pairs of one kernel.
pub(super) struct Judge<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) tasks: &'a [Task],
    pub(super) target: &'a Target,
    pub(super) compiler: &'a Compiler,
    /// Number of runs of each pair; all but the first use a different order of warps and blocks.
    pub(super) schedules: u32,
    /// Folder for the outputs of one whole run.
    pub(super) outputs: Option<PathBuf>,
}

impl Judge<'_> {
    /// Compiles the reference kernel, if any, for each problem.
    pub(super) fn reference(&self) -> Result<(), CliError> {
        let reference = self.kernel.reference.as_ref();
        if reference.is_none_or(|reference| reference.hash == self.kernel.template.hash) {
            // There is no reference, or it is in the kernel's own file: its errors are reported as the
            // candidates' verdict.
            return Ok(());
        }
        for task in self.tasks {
            let compiled = task.judged.timed.compile_reference(self.compiler);
            compiled.context("cannot compile")?.map_err(complete)?;
        }
        Ok(())
    }

    /// Judges all pairs on several threads. Rows are in the order of the pairs.
    #[expect(
        clippy::indexing_slicing,
        reason = "pairs are numbered by the list of tasks that they were made from"
    )]
    pub(super) fn judge_pairs(
        &self,
        pairs: &[Pair],
        threads: usize,
    ) -> Result<Vec<CheckRow>, JobError> {
        let arch = self.target.arch.to_string();
        let pool = JudgePool {
            compiler: self.compiler,
            device: self.target.runner.clone().map(|runner| (runner, &*arch)),
            threads,
            demand: Demand {
                seeds: SEEDS.to_vec(),
                schedules: self.schedules - 1,
                level: Level::Check,
                timed: false,
                outputs: self.outputs.clone(),
            },
        };
        let task = |pair: &Pair| &self.tasks[pair.task];
        let why: Vec<Option<String>> = pairs
            .iter()
            .map(|pair| task(pair).space.reject_reason(&pair.config))
            .collect();
        let valid: Vec<_> = pairs
            .iter()
            .zip(&why)
            .filter(|(_, why)| why.is_none())
            .map(|(pair, _)| (&task(pair).judged, &pair.config))
            .collect();
        let look = |plan: &Plan| (plan.flops, plan.bytes, tolerance::describe(plan));
        let mut judged = pool.judge_all(&valid, look)?.into_iter();
        let rows = pairs.iter().zip(why).filter_map(|(pair, why)| {
            let row = self.blank(task(pair), pair);
            Some(match why {
                Some(why) => CheckRow {
                    judgement: Judgement::new(Verdict::Rejected, why),
                    ..row
                },
                None => {
                    let (judged, seen) = judged.next()?;
                    self.filled(row, judged, seen)
                }
            })
        });
        Ok(rows.collect())
    }

    fn filled(&self, row: CheckRow, judged: Judged, plan: Option<PlanFigures>) -> CheckRow {
        let found = judged.found;
        let warnings = warnings(&found);
        let facts = judged.compilation.as_ref();
        let (flops, bytes, tolerance) = plan.unwrap_or_default();
        let mut timed = self.kernel.spec.problems.iter();
        let tuned = timed.any(|problem| problem.name == row.problem);
        let time = found.measured.map(|measured| measured.p50().get());
        let time_us = time.unwrap_or(0.0);
        CheckRow {
            arch: facts.map(|facts| facts.arch.clone()),
            registers: facts.map(|facts| facts.registers),
            spill_bytes: facts.map(|facts| facts.spill_bytes),
            shared_bytes: facts.map(|facts| facts.shared_bytes),
            cubin_hash: facts.map(|facts| facts.cubin_hash.to_string()),
            max_error: found.judgement.max_error,
            compared: found.judgement.compared,
            tolerance: Some(tolerance).filter(|_| is_compared_here(&found.judgement)),
            warnings,
            seen: found.explanation.map(|explanation| RunFigures {
                predicted_us: time_us,
                blocks: explanation.blocks,
                bank_conflicts: explanation.bank_conflicts,
                shared_wavefronts: explanation.shared_wavefronts,
                tuned,
                time: TimedProblem {
                    problem: row.problem.clone(),
                    time_us,
                    label: "predicted",
                    blocks: Some(explanation.blocks),
                    tensor: explanation.tensor_flops > 0.0,
                    flops,
                    bytes,
                },
            }),
            judgement: found.judgement,
            ..row
        }
    }

    fn blank(&self, task: &Task, pair: &Pair) -> CheckRow {
        CheckRow {
            kernel: self.kernel.spec.kernel.clone(),
            problem: task.problem.clone(),
            config: task.space.values(&pair.config),
            judgement: Judgement::ok(None),
            arch: None,
            registers: None,
            spill_bytes: None,
            shared_bytes: None,
            max_error: None,
            compared: None,
            tolerance: None,
            device: self.target.device.clone(),
            cubin_hash: None,
            seen: None,
            warnings: Vec::new(),
            hazards_only: matches!(self.kernel.spec.reference, Reference::None),
            changed: changed(&task.space, pair),
        }
    }
}

/// Reports whether the results of this problem were compared, not only those of smaller ones.
fn is_compared_here(judgement: &Judgement) -> bool {
    let elsewhere = judgement.compared == Some(Compared::SmallerProblems);
    judgement.max_error.is_some() && !elsewhere
}

/// Returns the parameters whose values differ from the defaults.
fn changed(space: &Space, pair: &Pair) -> ConfigValues {
    let defaults = space.values(&space.default_config());
    let values = space.values(&pair.config).into_iter().zip(defaults);
    values
        .filter(|(value, default)| value != default)
        .map(|(value, _)| value)
        .collect()
}

/// Returns the findings of a candidate that are warnings.
fn warnings(found: &TimedJudgement) -> Vec<String> {
    let seen = found.explanation.as_ref();
    let serialized = seen.and_then(serialization);
    let warned = found.judgement.warnings.iter().map(warning);
    warned.chain(serialized).collect()
}

/// Formats a finding that is a warning and not a failure.
fn warning(found: &Hazard) -> String {
    match (&found.file, found.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: {}", found.detail),
        _ => found.detail.clone(),
    }
}
