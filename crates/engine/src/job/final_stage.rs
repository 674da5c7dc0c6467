//! Stages around a run on a real GPU: baselines before and after it, and the final comparison of the best,
//! which decides the run's result.

use crate::baseline::{Baseline, DEADLINE};
use crate::cuda::CudaEvaluator;
use crate::threads::run_blocking;
use crate::{Best, Event, Report, StopReason, Task};
use std::sync::Arc;
use tokio::sync::watch;
use tuner_core::baseline_record::Moment;
use tuner_core::record::{
    Compared, ConfigValues, TimingKind, Verdict, VerdictClass, assignments, rank_class,
};
use tuner_judge::judgement::TimedJudgement;
use tuner_space::Config;
use tuner_store::{RunId, Store};

/// Distinguishes the seed of the final comparison from that of the search.
pub(super) const OTHER_DATA: u64 = 0xf1a1_e000;

/// Candidates of a task that are timed again at the end.
const FINALISTS: usize = 5;

/// The baselines of a run's tasks, and the best candidates so far.
pub(super) struct FinalStage {
    tasks: Vec<Task>,
    /// Baseline of each task, if any.
    baselines: Vec<Option<Baseline>>,
    /// The best of each task, in the order of rank class and time.
    best: Vec<Vec<Finalist>>,
}

/// A candidate for the final comparison.
#[derive(Debug, Clone)]
struct Finalist {
    config: ConfigValues,
    /// Its time in the search, microseconds.
    search_us: f64,
    compared: Option<Compared>,
}

impl Finalist {
    /// Returns the order of finalists of the search.
    fn rank_key(&self) -> (u8, f64) {
        (rank_class(self.compared), self.search_us)
    }
}

/// Result of a task's final comparison.
#[derive(Default)]
pub(super) struct FinalResult {
    /// Lines for the user.
    pub(super) lines: Vec<String>,
    /// The fastest; `None` if none was timed.
    pub(super) best: Option<Best>,
}

impl FinalStage {
    pub(super) fn new(tasks: &[Task], baselines: Vec<Option<Baseline>>) -> Self {
        Self {
            best: vec![Vec::new(); tasks.len()],
            tasks: tasks.to_vec(),
            baselines,
        }
    }

    /// Records a candidate for the final comparison.
    pub(super) fn take(&mut self, event: &Event) {
        let Event::Trial(trial) = event else { return };
        let (Some(us), Some(best)) = (trial.time_us, self.best.get_mut(trial.task)) else {
            return;
        };
        let finalist = Finalist {
            config: trial.config.clone(),
            search_us: us,
            compared: trial.compared,
        };
        let place = best.partition_point(|other| other.rank_key() <= finalist.rank_key());
        // One of several configurations with the same code represents all.
        let known = |other: &Finalist| {
            other.config == trial.config || (trial.reused && other.search_us == us)
        };
        if place < FINALISTS && !best.iter().any(known) {
            best.insert(place, finalist);
            best.truncate(FINALISTS);
        }
    }

    /// Runs every baseline's command sequentially with nothing else running; if `evaluator` knows
    /// the time of a task's reference, drift is removed. Returns notes for the user.
    pub(super) async fn visit(
        &mut self,
        moment: Moment,
        evaluator: &Arc<CudaEvaluator>,
        stop: &watch::Receiver<bool>,
    ) -> Vec<String> {
        let mut baselines = std::mem::take(&mut self.baselines);
        let (evaluator, stop) = (Arc::clone(evaluator), stop.clone());
        let visited = run_blocking("baselines", move || {
            let mut hopeless: Vec<(Vec<String>, String)> = Vec::new();
            let mut notes = Vec::new();
            for (task, baseline) in baselines.iter_mut().enumerate() {
                let Some(baseline) = baseline else { continue };
                if *stop.borrow() {
                    break;
                }
                let command = &baseline.record.command;
                // A command that hung once would take its whole deadline again for every problem.
                if let Some((_, why)) = hopeless.iter().find(|(other, _)| other == command) {
                    baseline.record.failure = Some(why.clone());
                    continue;
                }
                let key = &baseline.key;
                let place = format!("{} {}", key.kernel, key.problem);
                let mut reference = || {
                    evaluator.reference_time(task).unwrap_or_else(|why| {
                        notes.push(format!(
                            "note: {place}: drift is not taken out of the baseline's times, for \
                             the reference cannot be timed: {why}"
                        ));
                        None
                    })
                };
                if let Some(why) = baseline.visit(moment, &mut reference, DEADLINE) {
                    hopeless.push((baseline.record.command.clone(), why));
                }
            }
            (baselines, notes)
        });
        // A panic here costs the baselines, not the run.
        let (baselines, notes) = visited.await.unwrap_or_default();
        self.baselines = baselines;
        notes
    }

    /// Ends the run: the final comparison, whose best becomes the report's, a second visit of the
    /// baselines, and storing the results. Failures here are reported and do not affect the run.
    pub(super) async fn end(
        mut self,
        report: &mut Report,
        evaluator: &Arc<CudaEvaluator>,
        store: &Store,
        seed: u64,
        stop: &watch::Receiver<bool>,
        sink: &mut (dyn FnMut(&Event) + Send),
    ) {
        let run = RunId::from_text(&report.run_id);
        let mut tell = |text: String| sink(&Event::Note { text });
        evaluator.usage().into_iter().for_each(&mut tell);
        if report.reason != StopReason::Interrupted {
            for (task, reported) in report.tasks.iter_mut().enumerate() {
                if *stop.borrow() {
                    break;
                }
                match self.finale(task, evaluator, store, &run, seed).await {
                    Ok(result) => {
                        result.lines.into_iter().for_each(&mut tell);
                        reported.best = result.best.or(reported.best.take());
                    }
                    Err(why) => tell(format!(
                        "note: no final comparison of {} {}: {why}; its times are those of the search",
                        self.tasks[task].key.kernel, self.tasks[task].key.problem
                    )),
                }
            }
            let notes = self.visit(Moment::After, evaluator, stop).await;
            notes.into_iter().for_each(&mut tell);
        }
        for baseline in self.baselines.iter().flatten() {
            tell(baseline.record.describe(&baseline.key));
            let stored = store.store_baseline(&run, &baseline.key, baseline.record.clone());
            if let Err(error) = stored.await {
                tell(format!("note: the baseline is not stored: {error}"));
            }
        }
    }

    /// Times the best of a task again, in a fresh process and on new data, and publishes the
    /// result.
    async fn finale(
        &self,
        task: usize,
        evaluator: &Arc<CudaEvaluator>,
        store: &Store,
        run: &RunId,
        seed: u64,
    ) -> Result<FinalResult, String> {
        let configs = self.finalists(task)?;
        if configs.is_empty() {
            return Ok(FinalResult::default());
        }
        let device = Arc::clone(evaluator);
        // New data: not the seed that the search's times were taken on.
        let again = run_blocking("finale", move || {
            device.finale(task, &configs, seed ^ OTHER_DATA)
        });
        let times = again.await.map_err(|error| error.to_string())?;
        let times = times.map_err(|error| error.to_string())?;
        self.conclude(task, times, Some((store, run)), "").await
    }

    /// Returns the candidates of the final comparison of a task, fastest first.
    pub(super) fn finalists(&self, task: usize) -> Result<Vec<Config>, String> {
        let space = &self.tasks[task].space;
        let configs = self.best[task]
            .iter()
            .map(|finalist| space.config_from_values(&finalist.config));
        let configs: Result<_, tuner_space::ConfigError> = configs.collect();
        configs.map_err(|error| error.to_string())
    }

    /// Returns the result of a task's final comparison, and publishes the times if a store is given.
    /// `on`: the GPU's display name.
    pub(super) async fn conclude(
        &self,
        task: usize,
        times: Vec<TimedJudgement>,
        into: Option<(&Store, &RunId)>,
        on: &str,
    ) -> Result<FinalResult, String> {
        let (key, finalists) = (&self.tasks[task].key, &self.best[task]);
        let mut result = FinalResult::default();
        result.lines.push(format!(
            "{} {}: final comparison of the best {}{on}",
            key.kernel,
            key.problem,
            times.len()
        ));
        for (finalist, time) in finalists.iter().zip(times) {
            let (config, before) = (&finalist.config, finalist.search_us);
            let Some(measured) = time.measured else {
                let why = &time.judgement;
                result
                    .lines
                    .push(format!("  {before:.2} µs in the search, failed now: {why}"));
                // Its time of the search would rank before those of the others.
                let failed = why.verdict.facts().class == VerdictClass::Wrong
                    || matches!(why.verdict, Verdict::Crashed | Verdict::Timeout);
                if let Some((store, run)) = into
                    && failed
                {
                    let stored = store.store_proof(run, key, config, time.judgement).await;
                    stored.map_err(|error| error.to_string())?;
                }
                continue;
            };
            let best = Best {
                config: config.clone(),
                time_us: measured.record().p50.get(),
                timing: Some(TimingKind::Measured),
                compared: finalist.compared,
                ci95_us: Some(measured.record().ci95.map(|end| end.get())),
                search_us: Some(before),
            };
            let [low, high] = measured.record().ci95.map(|end| end.get());
            result.lines.push(format!(
                "  {before:.2} µs in the search, {:.2} µs now ({low:.2} to {high:.2})",
                best.time_us
            ));
            let place = |best: &Best| (rank_class(best.compared), best.time_us);
            if result
                .best
                .as_ref()
                .is_none_or(|other| place(&best) < place(other))
            {
                result.best = Some(best);
            }
            if let Some((store, run)) = into {
                let published = store.publish(run, key, config, measured).await;
                published.map_err(|error| error.to_string())?;
            }
        }
        if let Some(best) = &result.best {
            result.lines.push(format!(
                "  fastest: {:.2} µs with {}",
                best.time_us,
                assignments(&best.config, " ")
            ));
        }
        Ok(result)
    }
}
