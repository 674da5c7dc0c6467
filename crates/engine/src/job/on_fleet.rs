//! Runs whose candidates are judged by a fleet.

use super::final_stage::{FinalResult, FinalStage, OTHER_DATA};
use super::setup::{self, GpuTasks, UNCOMPARED, assemble, compiler, device_start, virtual_facts};
use super::{Device, JobError, Prepared, Request, usage};
use crate::error::EngineError;
use crate::evaluator::Evaluator as _;
use crate::fleet::{
    AssignedTask, Assignment, BundleError, Fleet, FleetEvaluator, FleetSource, FleetTask,
    OFFER_PATIENCE, PackedFiles, describe, kind_of, pack,
};
use crate::pipeline::{Plan, run};
use crate::threads::run_blocking;
use crate::{Event, ReplayEvaluator, Report, StopReason, Task};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tuner_core::objective::Objectives;
use tuner_core::record::DeviceKind;
use tuner_device::replay::Recording;
use tuner_device::{DeviceFacts, DeviceSelector};
use tuner_judge::judgement::TimedJudgement;
use tuner_space::Config;
use tuner_store::{RunId, Store};

/// Prepares the run; see [`Prepared::on_fleet`].
pub(super) fn prepare(
    request: &Request,
    folder: &Path,
    fleet: Arc<dyn Fleet>,
) -> Result<Prepared, JobError> {
    let objectives = request.objective.as_deref().map(str::parse::<Objectives>);
    if objectives.is_some_and(|text| text.is_ok_and(Objectives::measures_energy)) {
        return Err(usage(
            "--objective: a fleet measures no `energy`; choose time,registers, time,p90 or \
             time,code_size, or tune on the machine with the GPU",
        ));
    }
    request.check_but_device()?;
    match request.device.parse() {
        Ok(DeviceSelector::Replay(path)) => setup::replay(request, &path, Some(fleet)),
        Ok(DeviceSelector::Vgpu(name)) => {
            let facts = virtual_facts(&name).map_err(usage)?;
            kernels(request, folder, facts, fleet)
        }
        Ok(DeviceSelector::CudaSeveral(_)) => Err(usage(
            "a fleet's GPUs have no numbers here; type --device cuda, or the name of one kind",
        )),
        Ok(DeviceSelector::Auto | DeviceSelector::Cuda(_)) | Err(_) => {
            let facts = lent(&request.device, &*fleet)?;
            kernels(request, folder, facts, fleet)
        }
    }
}

/// Note for a space with a baseline if the GPU is on another machine.
const REMOTE_BASELINES_NOTE: &str = "note: baselines are omitted: their commands need a local GPU, and the \
     fleet's is remote; `tuner gate` on a machine with the GPU compares with them";

/// Returns the one kind of device among those offered that matches the selector.
fn lent(device: &str, fleet: &dyn Fleet) -> Result<DeviceFacts, JobError> {
    let offers = fleet.offers();
    let real = |kind| kind == DeviceKind::Cuda;
    let named: Vec<_> = offers
        .iter()
        .filter(|offer| match device {
            "auto" => true,
            _ if device.starts_with("cuda") => real(offer.facts.kind),
            name => offer.facts.name == name,
        })
        .collect();
    let mut cuda: Vec<_> = named.iter().filter(|o| real(o.facts.kind)).collect();
    // A GPU in a separate group is meant only by its full name, or if it is the only one.
    if let Some(one) = cuda.iter().find(|o| kind_of(&o.facts.name) == o.facts.name) {
        let one = kind_of(&one.facts.name);
        cuda.retain(|o| kind_of(&o.facts.name) != one || o.facts.name == one);
    }
    match (&cuda[..], &named[..]) {
        ([one], _) => Ok(one.facts.clone()),
        ([], [one]) => Ok(one.facts.clone()),
        ([], []) if offers.is_empty() => Err(usage(format!(
            "no worker of the fleet lends a device that `{device}` could mean; start one with \
             `tuner worker --fleet URL --device cuda:0`, or look with `tuner status --fleet URL`"
        ))),
        ([], []) => Err(usage(format!(
            "no worker of the fleet lends `{device}`; there are: {}",
            describe(&offers)
        ))),
        _ => Err(usage(format!(
            "`{device}` means several kinds of device of the fleet: {}; name one, or type \
             --device any for a run on each",
            describe(&offers)
        ))),
    }
}

fn kernels(
    request: &Request,
    folder: &Path,
    facts: DeviceFacts,
    fleet: Arc<dyn Fleet>,
) -> Result<Prepared, JobError> {
    let compiler = compiler(request)?;
    let mut planned = GpuTasks::new(request, folder, &facts, &compiler)?;
    if planned.baselines.iter().any(Option::is_some) {
        let why = match facts.kind {
            DeviceKind::Vgpu => UNCOMPARED,
            _ => REMOTE_BASELINES_NOTE,
        };
        planned.notes.push(why.to_owned());
    }
    let mut files = PackedFiles::new();
    let mut bundles = Vec::new();
    for builder in &planned.builders {
        let bundle = pack(builder.timed.source(), &mut files).map_err(|error| match error {
            named @ BundleError::Absolute { .. } => usage(named),
            other => JobError::Failed(other.into()),
        })?;
        if !bundles.contains(&bundle) {
            bundles.push(bundle);
        }
    }
    let assignment = Assignment {
        device: facts.clone(),
        nvrtc: Some(compiler.nvrtc().version()),
        recording: None,
        kernels: bundles,
        tasks: planned.tasks.iter().map(assigned).collect(),
        arch: request.arch.clone(),
        prior: request.prior.clone(),
    };
    let tasks = planned.tasks.iter().zip(planned.builders);
    let tasks = tasks.map(|(task, builder)| FleetTask {
        key: task.key.clone(),
        space: task.space.clone(),
        source: FleetSource::Kernel(Box::new(builder)),
    });
    let start = match &facts.kind {
        DeviceKind::Vgpu => device_start(&facts, &request.selector()?),
        _ => device_start(&facts, &DeviceSelector::Cuda(0)),
    };
    let jobs = request.jobs.map(|jobs| usize::from(jobs.get()));
    let evaluator = FleetEvaluator::new(fleet, assignment, tasks.collect(), jobs);
    let evaluator = evaluator.with_proofs(request.proof_limit());
    let device = Device::Fleet(Arc::new(evaluator), files);
    let (tasks, stored) = (planned.tasks, planned.stored);
    Ok(Prepared {
        owner: Some(planned.owner),
        ..assemble(request, device, start, tasks, stored, planned.notes)?
    })
}

/// Returns a recording whose results are looked up by workers.
pub(super) fn recorded(
    request: &Request,
    fleet: Arc<dyn Fleet>,
    recording: &Arc<Recording>,
    task: &Task,
) -> Device {
    let assignment = Assignment {
        device: ReplayEvaluator::facts_of(recording),
        nvrtc: None,
        recording: Some(recording.content.clone()),
        kernels: Vec::new(),
        tasks: vec![assigned(task)],
        arch: None,
        prior: None,
    };
    let task = FleetTask {
        key: task.key.clone(),
        space: task.space.clone(),
        source: FleetSource::Recorded(Arc::clone(recording)),
    };
    let jobs = request.jobs.map(|jobs| usize::from(jobs.get()));
    let evaluator = FleetEvaluator::new(fleet, assignment, vec![task], jobs);
    Device::Fleet(Arc::new(evaluator), PackedFiles::new())
}

fn assigned(task: &Task) -> AssignedTask {
    AssignedTask {
        kernel: task.key.kernel.clone(),
        problem: task.key.problem.clone(),
    }
}

/// Executes a run on its fleet.
pub(super) async fn execute(
    evaluator: Arc<FleetEvaluator>,
    files: PackedFiles,
    mut plan: Plan,
    store: &Store,
    shutdown: watch::Receiver<bool>,
    sink: &mut (dyn FnMut(&Event) + Send),
) -> Result<Report, EngineError> {
    let id = match (&plan.resume, &plan.id) {
        // The queues have the run's name, so a resumed run finds answers that arrived meanwhile.
        (Some(stored), _) => stored.id.clone(),
        (None, Some(id)) => id.clone(),
        (None, None) => RunId::new(),
    };
    plan.id = Some(id.clone());
    let opening = Arc::clone(&evaluator);
    let opened = run_blocking("open", move || opening.open(&id, files)).await;
    opened
        .unwrap_or_else(|panic| Err(panic.into()))
        .map_err(EngineError::Fleet)?;
    let finals = (evaluator.facts().kind == DeviceKind::Cuda).then(|| Finals {
        stage: FinalStage::new(&plan.tasks, plan.tasks.iter().map(|_| None).collect()),
        seed: plan.start.seed.0 ^ OTHER_DATA,
        stop: shutdown.clone(),
    });
    let report = match finals {
        None => run(&evaluator, plan, store, shutdown, sink).await,
        Some(mut finals) => {
            let mut report = {
                let mut both = |event: &Event| {
                    finals.stage.take(event);
                    sink(event);
                };
                run(&evaluator, plan, store, shutdown, &mut both).await
            };
            if let Ok(report) = &mut report {
                finals.hold(report, &evaluator, store, sink).await;
            }
            report
        }
    };
    let finished = report
        .as_ref()
        .is_ok_and(|report| report.reason != StopReason::Interrupted);
    let closed = run_blocking("close", move || evaluator.close(finished)).await;
    for text in closed.unwrap_or_default() {
        sink(&Event::Note { text });
    }
    report
}

/// Maximum time of a final comparison on a fleet, including earlier work of its GPU.
const FINAL_PATIENCE: Duration = Duration::from_secs(600);

/// Waits until fewer GPUs than `needed` have been present for the maximum silence of a worker.
async fn gone(evaluator: &FleetEvaluator, needed: usize) {
    let mut missing = 0;
    while missing < OFFER_PATIENCE.as_secs() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let there = evaluator.capacity().devices >= needed;
        missing = if there { 0 } else { missing + 1 };
    }
}

/// Final comparisons of a run on a fleet: those of a task run on one GPU, and again on a second if there is
/// one.
struct Finals {
    stage: FinalStage,
    seed: u64,
    stop: watch::Receiver<bool>,
}

impl Finals {
    /// Runs them. Failures here are reported and do not affect the run.
    async fn hold(
        &mut self,
        report: &mut Report,
        evaluator: &Arc<FleetEvaluator>,
        store: &Store,
        sink: &mut (dyn FnMut(&Event) + Send),
    ) {
        if report.reason == StopReason::Interrupted {
            return;
        }
        let run = RunId::from_text(&report.run_id);
        for (task, of) in report.tasks.iter_mut().enumerate() {
            let mut tell = |text: String| sink(&Event::Note { text });
            match self.of_task(task, evaluator, store, &run).await {
                Ok(result) => {
                    result.lines.into_iter().for_each(&mut tell);
                    of.best = result.best.or(of.best.take());
                }
                Err(why) => tell(format!(
                    "note: no final comparison of {} {}: {why}; its times are those of the search",
                    of.key.kernel, of.key.problem
                )),
            }
        }
    }

    async fn of_task(
        &mut self,
        task: usize,
        evaluator: &Arc<FleetEvaluator>,
        store: &Store,
        run: &RunId,
    ) -> Result<FinalResult, String> {
        let configs = self.stage.finalists(task)?;
        if configs.is_empty() {
            return Ok(FinalResult::default());
        }
        let (first, times) = self.ask(task, evaluator, &configs, Vec::new()).await?;
        let on = format!(" on the GPU of {first}");
        let mut result = self
            .stage
            .conclude(task, times, Some((store, run)), &on)
            .await?;
        if evaluator.capacity().devices > 1 {
            match self.ask(task, evaluator, &configs, vec![first]).await {
                Ok((second, times)) => {
                    let on = format!(", repeated on the GPU of {second}");
                    let repeated = self.stage.conclude(task, times, None, &on).await?;
                    result.lines.extend(repeated.lines);
                }
                Err(why) => result
                    .lines
                    .push(format!("note: not repeated on a second GPU: {why}")),
            }
        }
        Ok(result)
    }

    async fn ask(
        &mut self,
        task: usize,
        evaluator: &Arc<FleetEvaluator>,
        configs: &[Config],
        excluded: Vec<String>,
    ) -> Result<(String, Vec<TimedJudgement>), String> {
        if evaluator.capacity().devices == 0 {
            return Err("no GPU of the fleet is there".to_owned());
        }
        // The workers that timed them before are still present and do not count.
        let needed = excluded.len() + 1;
        let (asked, configs, seed) = (Arc::clone(evaluator), configs.to_vec(), self.seed);
        let work = move || asked.finale(task, &configs, seed, excluded);
        let timing = run_blocking("finale", work);
        tokio::select! {
            times = timing => {
                let times = times.map_err(|error| error.to_string())?;
                times.map_err(|error| error.to_string())
            }
            () = crate::pipeline::turned(&mut self.stop) => Err("the run was ended".to_owned()),
            () = gone(evaluator, needed) => Err("its GPU has left the fleet".to_owned()),
            () = tokio::time::sleep(FINAL_PATIENCE) => Err(format!(
                "no GPU of the fleet did it within {} s",
                FINAL_PATIENCE.as_secs()
            )),
        }
    }
}

#[cfg(test)]
mod tests;
