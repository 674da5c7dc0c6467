//! Runs on real GPUs.

use super::setup::{GpuTasks, assemble, compiler, device_start};
use super::{Device, JobError, Prepared, Request, usage};
use crate::cuda::{CudaEvaluator, CudaTask};
use crate::judging::DeferredChecks;
use std::path::Path;
use std::sync::Arc;
use tuner_core::objective::Objectives;
use tuner_core::record::DeviceKind;
use tuner_device::gpu;
use tuner_device::gpu::helpers::{Helpers, HelpersError};
use tuner_device::gpu::{GpuError, GpuFacts};
use tuner_device::worker::host::{Settings, Worker, WorkerError};
use tuner_device::{DeviceFacts, DeviceSelector};
use tuner_kernel::compile::Compiler;

/// Reports whether `auto` means a real GPU; if not although there is a driver, also the reason.
pub fn automatic() -> (bool, Option<String>) {
    match gpu::list() {
        Ok(gpus) => (!gpus.is_empty(), None),
        Err(GpuError::Driver(_)) => (false, None),
        Err(error) => {
            let note = format!("note: {error}; the virtual GPU is used instead");
            (false, Some(note))
        }
    }
}

/// Prepares a run on these GPUs, which share the work and must be of one model.
pub(super) fn prepare(
    request: &Request,
    folder: &Path,
    ordinals: &[u32],
) -> Result<Prepared, JobError> {
    let selector = match ordinals {
        [one] => DeviceSelector::Cuda(*one),
        all => DeviceSelector::CudaSeveral(all.to_vec()),
    };
    let gpus = same_model(&selector, ordinals)?;
    let compiler = compiler(request)?;
    let facts = facts(&gpus[0]);
    let helpers = helpers(&compiler, &facts.arch)?;
    let mut planned = GpuTasks::new(request, folder, &facts, &compiler)?;
    for builder in &mut planned.builders {
        // A check with the same program costs only launches, so only those with another compile are
        // deferred.
        builder.puts_off = DeferredChecks::OtherPrograms;
    }
    for baseline in planned.baselines.iter_mut().flatten() {
        // By its UUID: the driver and a library may number GPUs differently.
        baseline.gpu = Some(gpus[0].uuid.clone());
    }
    let start = device_start(&facts, &selector);
    let workers = ordinals.iter().map(|ordinal| {
        let settings = Settings::for_gpu(*ordinal, helpers.clone());
        settings.map(Worker::new).map_err(anyhow::Error::from)
    });
    let tasks = planned.builders.into_iter().zip(&planned.tasks);
    let tasks = tasks.map(|(builder, task)| {
        let default = task.space.default_config();
        CudaTask {
            task: builder,
            default: task.space.contains(&default).then_some(default),
        }
    });
    let evaluator = CudaEvaluator::new(
        facts,
        Arc::new(compiler),
        tasks.collect(),
        workers.collect::<Result<_, _>>()?,
    );
    let energy = request
        .objectives()?
        .is_some_and(Objectives::measures_energy);
    evaluator.measure_energy(energy);
    let mut notes = planned.notes;
    notes.extend(evaluator.open().map_err(closed)?);
    if let Some(gpu) = evaluator.uncounted().filter(|_| energy) {
        return Err(usage(format!(
            "--objective: {gpu} does not count its energy through NVML: GPUs before Volta and parts of \
             one (MIG) do not; choose time,registers, time,p90 or time,code_size"
        )));
    }
    let device = Device::Cuda(Arc::new(evaluator));
    let mut prepared = assemble(request, device, start, planned.tasks, planned.stored, notes)?;
    if request.jobs.is_none() {
        prepared.plan.jobs = jobs_beside(prepared.plan.jobs, ordinals.len());
    }
    Ok(Prepared {
        baselines: planned.baselines,
        owner: Some(planned.owner),
        ..prepared
    })
}

/// Returns the number of concurrent compiles that leaves a free core for the worker of each GPU: late
/// queueing delays timing.
fn jobs_beside(jobs: usize, gpus: usize) -> usize {
    jobs.saturating_sub(gpus).max(1)
}

/// Returns the GPUs, which must be visible to the driver and of one model.
fn same_model(selector: &DeviceSelector, ordinals: &[u32]) -> Result<Vec<GpuFacts>, JobError> {
    let gpus: Vec<GpuFacts> = ordinals
        .iter()
        .map(|ordinal| gpu::find(*ordinal).map_err(|error| absent(selector, &error)))
        .collect::<Result<_, _>>()?;
    let Some(first) = gpus.first() else {
        return Err(usage("no GPU is named; type --device cuda:0"));
    };
    match gpus.iter().find(|gpu| gpu.name != first.name) {
        Some(other) => Err(usage(format!(
            "cuda:{} is a {}, cuda:{} a {}: results belong to one model; start a run for each",
            first.ordinal, first.name, other.ordinal, other.name
        ))),
        None => Ok(gpus),
    }
}

/// Returns the error for a requested GPU that is absent.
pub fn absent(selector: &DeviceSelector, error: &GpuError) -> JobError {
    JobError::Device(format!(
        "error: `{selector}`: {error}; `tuner doctor` shows what is here, and --device vgpu:h100 \
         needs no GPU"
    ))
}

/// Converts a GPU's facts to the engine's.
pub fn facts(gpu: &GpuFacts) -> DeviceFacts {
    DeviceFacts {
        name: gpu.name.clone(),
        kind: DeviceKind::Cuda,
        limits: Some(gpu.limits()),
        arch: gpu.arch(),
        driver: gpu.driver.clone(),
    }
}

/// Compiles the tuner's helper kernels for a target.
///
/// # Errors
/// The compiler cannot work, or refuses the target.
pub fn helpers(compiler: &Compiler, arch: &str) -> Result<tuner_core::plan::Code, JobError> {
    let known = compiler.nvrtc().architectures();
    if !known.is_empty() && !known.iter().any(|one| one == arch) {
        return Err(usage(format!(
            "this NVRTC ({}) does not compile for {arch}; it knows {}; set TUNER_NVRTC to another \
             version",
            compiler.nvrtc().version(),
            known.join(", ")
        )));
    }
    Helpers::compile(compiler, arch).map_err(|error| match error {
        HelpersError::Compiler(error) => JobError::Failed(error.into()),
        refused => usage(refused),
    })
}

/// Returns the error for a GPU that cannot be opened: it is in use or faulty.
pub(crate) fn closed(error: WorkerError) -> JobError {
    match error {
        WorkerError::DeviceLost(why) => JobError::Device(format!(
            "error: the GPU cannot be used: {why}; see `nvidia-smi` for who holds it"
        )),
        WorkerError::Failed(why) => {
            JobError::Device(format!("error: the GPU cannot be used: {why}"))
        }
        other => JobError::Failed(other.into()),
    }
}

/// Returns the error for storing results of the tests' GPU stand-in in the regular database.
pub(super) fn stand_in() -> JobError {
    usage(
        "the GPU of this program is a stand-in for tests: its results go to the database that the \
         test names and to no other; use `tuner` to tune",
    )
}

#[cfg(test)]
mod tests;
