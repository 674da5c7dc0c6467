//! Runs whose candidates are judged by a fleet.

use super::setup::{self, Planned, UNCOMPARED, assemble, compiler, device_start};
use super::{Device, JobError, Prepared, Request, usage};
use crate::error::EngineError;
use crate::fleet::{
    AssignedTask, Assignment, Fleet, FleetEvaluator, FleetSource, FleetTask, PackedFiles, describe,
    pack,
};
use crate::pipeline::{Plan, run};
use crate::{Event, ReplayEvaluator, Report, StopReason, Task};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;
use tuner_core::record::DeviceKind;
use tuner_device::replay::Recording;
use tuner_device::{DeviceFacts, DeviceSelector, SelectorError, limits};
use tuner_store::{RunId, Store};

/// See [`Prepared::on_fleet`].
pub(super) fn prepare(
    request: &Request,
    folder: &Path,
    fleet: Arc<dyn Fleet>,
) -> Result<Prepared, JobError> {
    request.limits()?;
    request.strategy()?;
    if request.prior.is_some() {
        return Err(usage(
            "--prior works on this machine only, not with --fleet; leave it out",
        ));
    }
    match request.device.parse() {
        Ok(DeviceSelector::Replay(path)) => setup::replay(request, &path, Some(fleet)),
        Ok(DeviceSelector::Vgpu(name)) => {
            let facts = virtual_facts(&name)?;
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

fn virtual_facts(name: &str) -> Result<DeviceFacts, JobError> {
    let Some(limits) = limits::by_name(name) else {
        return Err(usage(SelectorError::UnknownVgpu(name.to_owned())));
    };
    Ok(DeviceFacts {
        name: DeviceSelector::Vgpu(name.to_owned()).to_string(),
        kind: DeviceKind::Vgpu,
        limits: Some(limits),
        arch: format!("sm_{}", limits.cc),
        driver: None,
    })
}

/// The one kind of device that the words mean among those that are lent.
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
    let cuda: Vec<_> = named.iter().filter(|o| real(o.facts.kind)).collect();
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
    let mut planned = Planned::new(request, folder, &facts, &compiler)?;
    if planned.baselines.iter().any(Option::is_some) && facts.kind == DeviceKind::Vgpu {
        planned.notes.push(UNCOMPARED.to_owned());
    }
    let mut files = PackedFiles::new();
    let mut bundles = Vec::new();
    for builder in &planned.builders {
        let bundle = pack(builder.timed.source(), &mut files).map_err(anyhow::Error::from)?;
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
    let device = Device::Fleet(Arc::new(evaluator), files);
    let (tasks, stored) = (planned.tasks, planned.stored);
    assemble(request, (device, start), tasks, stored, planned.notes)
}

/// A recording whose results are looked up by workers.
pub(super) fn recorded(
    request: &Request,
    fleet: Arc<dyn Fleet>,
    recording: &Arc<Recording>,
    task: &Task,
) -> Device {
    let assignment = Assignment {
        device: ReplayEvaluator::facts_of(recording),
        nvrtc: None,
        recording: Some(recording.content().clone()),
        kernels: Vec::new(),
        tasks: vec![assigned(task)],
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

/// Carries a run out on its fleet.
pub(super) async fn execute(
    (evaluator, files): (Arc<FleetEvaluator>, PackedFiles),
    mut plan: Plan,
    store: &Store,
    shutdown: watch::Receiver<bool>,
    sink: &mut (dyn FnMut(&Event) + Send),
) -> Result<Report, EngineError> {
    let id = match (&plan.resume, &plan.id) {
        (Some(stored), _) => stored.id.clone(),
        (None, Some(id)) => id.clone(),
        (None, None) => RunId::new(),
    };
    plan.id = Some(id.clone());
    let opening = Arc::clone(&evaluator);
    let opened = tokio::task::spawn_blocking(move || opening.open(&id, files)).await;
    opened
        .unwrap_or_else(|panic| Err(panic.into()))
        .map_err(EngineError::Fleet)?;
    let report = run(&evaluator, plan, store, shutdown, sink).await;
    let finished = report
        .as_ref()
        .is_ok_and(|report| report.reason != StopReason::Interrupted);
    let closed = tokio::task::spawn_blocking(move || evaluator.close(finished)).await;
    for text in closed.unwrap_or_default() {
        sink(&Event::Note { text });
    }
    report
}
