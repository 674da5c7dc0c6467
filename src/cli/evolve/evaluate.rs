//! Evaluation of a kernel's code: fresh checks, tuning, and the counters of its best configurations.

use super::checks;
use super::options::Options;
use crate::cli::CliError;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use tuner_core::record::{ConfigValues, Verdict};
use tuner_engine::job::{ChangedCode, FreshChecks, JobError, KnownKernel, Prepared, Request};
use tuner_engine::{Best, Event, Judged, StopReason};
use tuner_evolve::accept::Time;
use tuner_evolve::includes;
use tuner_space::{Config, Space};
use tuner_store::{DeviceFilter, LeaderboardQuery, RunId, Store};

/// Best configuration of a problem with the facts of its code.
#[derive(Debug, Clone)]
pub(super) struct Tuned {
    pub(super) config: ConfigValues,
    pub(super) time: Time,
    pub(super) facts: CodeFacts,
}

/// Facts of a configuration's machine code.
#[derive(Debug, Clone, Default)]
pub(super) struct CodeFacts {
    pub(super) code: String,
    pub(super) registers: Option<u32>,
    pub(super) spill_bytes: Option<u64>,
    /// Counters of the device, by name.
    pub(super) counters: serde_json::Map<String, serde_json::Value>,
    /// Reasons why the predicted time is unreliable.
    pub(super) doubts: Vec<String>,
}

impl CodeFacts {
    fn new(judged: &Judged) -> Self {
        let compiled = judged.compilation.as_ref();
        let explanation = judged.found.explanation.as_ref();
        let counters = explanation.and_then(|one| serde_json::to_value(one).ok());
        Self {
            code: compiled.map_or_else(String::new, |facts| facts.cubin_hash.to_string()),
            registers: compiled.map(|facts| facts.registers),
            spill_bytes: compiled.map(|facts| facts.spill_bytes),
            counters: match counters {
                Some(serde_json::Value::Object(counters)) => counters,
                _ => serde_json::Map::new(),
            },
            doubts: explanation.map_or_else(Vec::new, |one| one.doubts.clone()),
        }
    }
}

/// Best configurations by problem.
pub(super) type Results = BTreeMap<String, Tuned>;

/// Result of an evaluation.
pub(super) enum Evaluation {
    /// Correct on all problems.
    Right(Results),
    /// The machine code equals that of the parent; the text names the compared code.
    Unchanged(&'static str),
    /// A defect.
    Wrong { verdict: Verdict, detail: String },
    /// The user stopped it.
    Interrupted,
}

/// Code to evaluate; `None`: the code of the files.
pub(super) type MaybeCode<'a> = Option<&'a ChangedCode>;

/// Evaluator of one kernel on one device.
pub(super) struct Evaluator<'a> {
    pub(super) options: &'a Options,
    pub(super) store: &'a Store,
    pub(super) shutdown: watch::Receiver<bool>,
}

impl Evaluator<'_> {
    fn request(&self, code: MaybeCode<'_>, problems: &[String], evals: u64) -> Request {
        Request {
            kernels: vec![self.options.kernel.clone()],
            device: self.options.device.clone(),
            problems: problems.to_vec(),
            evals: Some(evals),
            seed: self.options.seed,
            jobs: self.options.jobs,
            no_baseline: code.is_some(),
            prove_budget: self.options.prove_budget,
            change: code.cloned(),
            // A mutator may edit the files in the meantime.
            known_kernel: Some(KnownKernel(Arc::clone(&self.options.parsed))),
            ..Request::default()
        }
    }

    /// Tunes code on a problem, and returns its best; `Err` of the inner result is the verdict if no
    /// configuration passed. `None`: interrupted.
    pub(super) async fn tune(
        &self,
        code: MaybeCode<'_>,
        problem: &str,
        evals: u64,
    ) -> Result<Option<Result<Best, Verdict>>, CliError> {
        let request = self.request(code, &[problem.to_owned()], evals);
        let mut prepared = Prepared::new(&request, &self.options.folder)?;
        if code.is_some() {
            let id = RunId::new();
            // Before the first trial: after a crash in between, times of a change would be ranked.
            self.store.mark_change_run(&id).await?;
            prepared.name(id);
        }
        prepared.ready(self.store, &self.shutdown).await?;
        let mut ignore = |_: &Event| {};
        let report = prepared.execute(self.store, self.shutdown.clone(), &mut ignore);
        let report = report.await?;
        if report.reason == StopReason::Interrupted {
            return Ok(None);
        }
        let Some(task) = report.tasks.into_iter().next() else {
            return Ok(Some(Err(Verdict::NotJudged)));
        };
        let most = task.verdicts.iter().max_by_key(|(_, count)| **count);
        let verdict = most.map_or(Verdict::NotJudged, |(verdict, _)| *verdict);
        Ok(Some(task.best.ok_or(verdict)))
    }

    /// Returns the fastest stored configuration of the shipped template on a problem, if it is faster
    /// than `found`: an earlier run may have tuned it for longer.
    pub(super) async fn stored_best(&self, problem: &str, found: Best) -> Result<Best, CliError> {
        let query = LeaderboardQuery {
            kernel: Some(self.options.parsed.spec.kernel.clone()),
            problem: Some(problem.to_owned()),
            device: Some(DeviceFilter::Name(self.options.device_name.clone())),
            timings: vec![self.options.timing()],
            top: Some(1),
            ..LeaderboardQuery::default()
        };
        let template = self.options.parsed.template.hash.to_string();
        let boards = self.store.boards(&query).await?;
        let rows = boards.into_iter().flat_map(|board| board.rows);
        let mut same = rows.filter(|row| row.template_hash.as_ref() == Some(&template));
        Ok(match same.next() {
            Some(row) if row.time_us_p50 < found.time_us => Best {
                config: row.config,
                time_us: row.time_us_p50,
                timing: Some(row.timing),
                compared: row.compared,
                ci95_us: row.ci95_us,
                search_us: None,
            },
            _ => found,
        })
    }

    /// Sets up the judgement of single configurations with fresh seeds and shapes.
    fn judge(&self, code: &ChangedCode, drawn: &FreshChecks) -> Result<Prepared, JobError> {
        let mut request = self.request(Some(code), &self.options.problems, 1);
        request.no_baseline = true;
        request.fresh_checks = Some(drawn.clone());
        Prepared::new(&request, &self.options.folder)
    }

    /// Takes the facts of code at known configurations.
    pub(super) fn facts(
        &self,
        code: MaybeCode<'_>,
        configs: &BTreeMap<String, ConfigValues>,
    ) -> Result<BTreeMap<String, CodeFacts>, CliError> {
        let prepared = Prepared::new(
            &self.request(code, &self.options.problems, 1),
            &self.options.folder,
        )?;
        let mut facts = BTreeMap::new();
        for (task, one) in prepared.plan().tasks.iter().enumerate() {
            let problem = one.key.problem.clone();
            if let Some(config) = configs.get(&problem) {
                let config = projected(&one.space, config);
                facts.insert(problem, CodeFacts::new(&prepared.judge(task, &config)?));
            }
        }
        Ok(facts)
    }

    /// Evaluates a change: its parent's best configurations under fresh checks, tuning, and fresh
    /// checks of what tuning found.
    pub(super) async fn evaluate(
        &self,
        code: &ChangedCode,
        parent: &Parent<'_>,
        round: u32,
    ) -> Result<Evaluation, CliError> {
        if code.space == parent.code.space
            && includes::is_same_code(&code.source, &parent.code.source)
        {
            return Ok(Evaluation::Unchanged("the machine code is the parent's"));
        }
        let drawn = checks::draw(self.options, code, round);
        let prepared = match self.judge(code, &drawn) {
            Ok(prepared) => prepared,
            Err(error) => return not_judged(error),
        };
        // Before tuning, which judges many configurations: most defects show with the parent's best one.
        for (task, one) in prepared.plan().tasks.iter().enumerate() {
            if *self.shutdown.borrow() {
                return Ok(Evaluation::Interrupted);
            }
            let config = parent
                .results
                .get(&one.key.problem)
                .map(|tuned| &tuned.config);
            let config = config.map_or_else(
                || one.space.default_config(),
                |config| projected(&one.space, config),
            );
            let judged = prepared.judge(task, &config)?;
            if !judged.found.judgement.is_ok() {
                return Ok(wrong(&judged, &one.key.problem));
            }
        }
        let mut best = BTreeMap::new();
        for problem in &self.options.problems {
            match self.tune(Some(code), problem, self.options.evals).await? {
                None => return Ok(Evaluation::Interrupted),
                Some(Ok(found)) => best.insert(problem.clone(), found),
                Some(Err(verdict)) => {
                    let detail = format!("problem {problem}: no configuration passed");
                    return Ok(Evaluation::Wrong { verdict, detail });
                }
            };
        }
        // Checked after tuning: the change may only affect configurations other than the parent's best.
        let avoids = |problem: &str, config: &ConfigValues| {
            let parent = parent.results.get(problem)?;
            checks::avoided(self.options, code, &drawn, [&parent.config, config])
        };
        let found = finalists(&prepared, best, &avoids)?;
        let before = parent.results.values().map(|tuned| &tuned.facts.code);
        Ok(match found {
            Evaluation::Right(results)
                if before.eq(results.values().map(|tuned| &tuned.facts.code)) =>
            {
                Evaluation::Unchanged("the machine code of the best configurations is the parent's")
            }
            other => other,
        })
    }
}

/// Judges the best configurations with fresh checks; `avoids` returns the checks for which a configuration
/// is invalid.
fn finalists(
    prepared: &Prepared,
    mut best: BTreeMap<String, Best>,
    avoids: &dyn Fn(&str, &ConfigValues) -> Option<String>,
) -> Result<Evaluation, CliError> {
    let mut results = Results::new();
    for (task, one) in prepared.plan().tasks.iter().enumerate() {
        let problem = &one.key.problem;
        let Some(found) = best.remove(problem) else {
            continue;
        };
        // The gate skips check problems for which a configuration is invalid.
        if let Some(why) = avoids(problem, &found.config) {
            return Ok(Evaluation::Wrong {
                verdict: Verdict::NotJudged,
                detail: format!("problem {problem}: {why}"),
            });
        }
        let judged = prepared.judge(task, &projected(&one.space, &found.config))?;
        if !judged.found.judgement.is_ok() {
            return Ok(wrong(&judged, problem));
        }
        let facts = CodeFacts::new(&judged);
        let tuned = Tuned::new(found.config, found.time_us, found.ci95_us, facts);
        results.insert(problem.clone(), tuned);
    }
    Ok(Evaluation::Right(results))
}

/// Parent of a change, with the data that its evaluation needs.
pub(super) struct Parent<'a> {
    pub(super) code: &'a ChangedCode,
    pub(super) results: &'a Results,
}

impl Tuned {
    pub(super) fn new(
        config: ConfigValues,
        us: f64,
        ci95_us: Option<[f64; 2]>,
        facts: CodeFacts,
    ) -> Self {
        Self {
            time: Time {
                us,
                ci95_us,
                spill_bytes: facts.spill_bytes,
                registers: facts.registers,
            },
            config,
            facts,
        }
    }
}

/// Rejects a change that cannot be set up, unless the tuner itself failed.
fn not_judged(error: JobError) -> Result<Evaluation, CliError> {
    match error {
        JobError::Usage(detail) | JobError::Input { text: detail, .. } => Ok(Evaluation::Wrong {
            verdict: Verdict::CompileFailed,
            detail,
        }),
        other => Err(other.into()),
    }
}

fn wrong(judged: &Judged, problem: &str) -> Evaluation {
    let judgement = &judged.found.judgement;
    let mut detail = format!("problem {problem}: {}", judgement.detail);
    for hazard in judgement.hazards.iter().take(3) {
        if let (Some(file), Some(line)) = (&hazard.file, hazard.line) {
            detail.push_str(&format!("; {file}:{line}: {}", hazard.detail));
        }
    }
    Evaluation::Wrong {
        verdict: judgement.verdict,
        detail,
    }
}

/// Returns the configuration with these values if the space has them, else the defaults.
fn projected(space: &Space, values: &ConfigValues) -> Config {
    let config = space.with_known_values(&space.default_config(), values);
    match space.contains(&config) {
        true => config,
        false => space.default_config(),
    }
}
