//! Setup: from a request to a device and a plan.

use super::tasks::{self, Target};
use super::{Device, JobError, Prepared, Request, usage};
use crate::baseline::Baseline;
use crate::fleet::Fleet;
use crate::grid::Shapes;
use crate::judging::DeferredChecks;
use crate::prior::Prior;
use crate::virtual_gpu::VirtualEvaluator;
use crate::{Evaluator as _, KernelTask, Plan, ReplayEvaluator, Task, like};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuner_core::activity::Owner;
use tuner_core::record::DeviceKind;
use tuner_core::target::ComputeTarget;
use tuner_core::units::Seed;
use tuner_core::units::counted;
use tuner_device::replay::Recording;
use tuner_device::worker::host;
use tuner_device::{DeviceFacts, DeviceSelector, SelectorError, limits};
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{Compiler, CompilerSettings, Header, Template};
use tuner_kernel::{declarations, defaults};
use tuner_space::{DeviceLimits, Sizes};
use tuner_store::{DeviceStart, RecordingSource, RunStart, TaskStart};

/// Prepares the run; see [`Prepared::new`].
pub(super) fn prepare(request: &Request, folder: &Path) -> Result<Prepared, JobError> {
    request.check()?;
    match request.selector()? {
        DeviceSelector::Replay(ref path) => replay(request, path, None),
        DeviceSelector::Cuda(ordinal) => super::cuda::prepare(request, folder, &[ordinal]),
        DeviceSelector::CudaSeveral(ref all) => super::cuda::prepare(request, folder, all),
        DeviceSelector::Auto => match super::cuda::automatic() {
            (true, _) => super::cuda::prepare(request, folder, &[0]),
            (false, note) => {
                let mut prepared = kernels(request, folder, limits::DEFAULT)?;
                prepared.notes.extend(note);
                Ok(prepared)
            }
        },
        DeviceSelector::Vgpu(ref name) => kernels(request, folder, name),
    }
}

/// Resolves `auto` to a device.
pub(super) fn resolved(selector: DeviceSelector) -> DeviceSelector {
    match selector {
        DeviceSelector::Auto if super::cuda::automatic().0 => DeviceSelector::Cuda(0),
        DeviceSelector::Auto => DeviceSelector::Vgpu(limits::DEFAULT.to_owned()),
        other => other,
    }
}

/// Returns the request with file names relative to `folder` made absolute, for execution by another
/// process; refuses wrong files and names.
///
/// # Errors
/// Invalid fields, kernels or recording of the request.
pub fn absolute(request: &Request, folder: &Path) -> Result<Request, JobError> {
    request.check()?;
    let mut absolute = request.clone();
    let knowledge = request.knowledge.iter();
    let knowledge = knowledge.map(|file| real(Path::new(file)).to_string_lossy().into_owned());
    absolute.knowledge = knowledge.collect();
    if let DeviceSelector::Replay(file) = request.selector()? {
        let recording = Recording::load(&file)?;
        named_as_recorded(request, &recording)?;
        absolute.device = DeviceSelector::Replay(real(&file)).to_string();
        return Ok(absolute);
    }
    let kernels = catalog::resolve(&request.kernels, folder)?;
    tasks::known(&kernels, &request.problems)?;
    let files = kernels.iter().map(|kernel| real(&kernel.path));
    let texts = files.map(|path| path.to_string_lossy().into_owned());
    absolute.kernels = texts.collect();
    Ok(absolute)
}

/// Returns the absolute path of a file that another process reads.
pub(super) fn real(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

/// Note for a space with a baseline if the device only predicts.
pub(super) const UNCOMPARED: &str =
    "note: baselines are omitted: predicted times are not compared with measured ones";

/// Prepares kernels on a virtual GPU.
fn kernels(request: &Request, folder: &Path, name: &str) -> Result<Prepared, JobError> {
    let facts = virtual_facts(name).map_err(usage)?;
    // Nothing is timed here, so no core is kept idle.
    let compiler = compiler_with(request.jobs())?;
    let mut planned = GpuTasks::new(request, folder, &facts, &compiler)?;
    // With sizes as macros every problem is a separate program, so each must be verified.
    for builder in &mut planned.builders {
        if builder.timed.source().spec.sizes != Sizes::Macro {
            builder.puts_off = DeferredChecks::AllButSmallest;
        }
    }
    if planned.baselines.iter().any(Option::is_some) {
        planned.notes.push(UNCOMPARED.to_owned());
    }
    let worker = host::Settings::for_device(&facts.name).map_err(anyhow::Error::from)?;
    let start = device_start(&facts, &DeviceSelector::Vgpu(name.to_owned()));
    let evaluator = VirtualEvaluator::new(facts, Arc::new(compiler), planned.builders, &worker);
    evaluator.set_proof_limit(request.proof_limit());
    let device = Device::Virtual(Arc::new(evaluator));
    let (tasks, stored) = (planned.tasks, planned.stored);
    Ok(Prepared {
        owner: Some(planned.owner),
        ..assemble(request, device, start, tasks, stored, planned.notes)?
    })
}

/// Returns the facts of a virtual GPU.
///
/// # Errors
/// An unknown name.
pub fn virtual_facts(name: &str) -> Result<DeviceFacts, SelectorError> {
    let limits = limits::by_name(name);
    let limits = limits.ok_or_else(|| SelectorError::UnknownVgpu(name.to_owned()))?;
    Ok(DeviceFacts {
        name: DeviceSelector::Vgpu(name.to_owned()).to_string(),
        kind: DeviceKind::Vgpu,
        limits: Some(limits),
        arch: ComputeTarget::of_device(limits.cc).to_string(),
        driver: None,
    })
}

/// The tasks of a run on a GPU, real or virtual.
pub(super) struct GpuTasks {
    pub(super) tasks: Vec<Task>,
    pub(super) stored: Vec<TaskStart>,
    pub(super) builders: Vec<KernelTask>,
    /// Baselines of the spaces, by task.
    pub(super) baselines: Vec<Option<Baseline>>,
    /// Owner of the activities on these tasks.
    pub(super) owner: Owner,
    pub(super) notes: Vec<String>,
}

impl GpuTasks {
    /// Finds the kernels and plans their problems for the device.
    pub(super) fn new(
        request: &Request,
        folder: &Path,
        facts: &DeviceFacts,
        compiler: &Compiler,
    ) -> Result<Self, JobError> {
        let kernels = resolve(request, folder)?;
        let limits = facts
            .limits
            .ok_or_else(|| usage(format!("{} has no known limits", facts.name)))?;
        let target = Target {
            device: &facts.name,
            limits,
            driver: facts.driver.clone(),
            nvrtc: Some(compiler.nvrtc().version()),
        };
        let arch = requested_target(request.arch.as_deref(), &limits, compiler)?;
        let (planned, mut notes) =
            tasks::plan(&kernels, &request.problems, &target, request.spaces_until)?;
        for kernel in &kernels {
            let told = defaults::words_in_conditions(&kernel.template, &kernel.spec.parameters);
            notes.extend(told.iter().map(|told| format!("warning: {told}")));
        }
        for (index, kernel) in kernels.iter().enumerate() {
            let tasks = planned.iter().filter(|one| one.kernel == index);
            let tasks = tasks.map(|one| (&*one.task.key.problem, &one.task.space));
            let problems: Vec<_> = tasks.collect();
            if problems.is_empty() {
                continue;
            }
            declarations::check(kernel, &problems, &limits, &arch, compiler)?;
        }
        let kernels: Vec<_> = kernels.into_iter().map(Arc::new).collect();
        let prior = prior(request, facts, &limits)?;
        let mut all = Self {
            tasks: Vec::new(),
            stored: Vec::new(),
            builders: Vec::new(),
            baselines: Vec::new(),
            owner: Owner::unique(),
            notes,
        };
        for one in planned {
            let kernel = &kernels[one.kernel];
            let builder = KernelTask::new(kernel, &one.task.key.problem, &limits, &arch);
            let mut builder = builder.map_err(usage)?;
            builder.prior.clone_from(&prior);
            builder.owner = Some(all.owner);
            if let Some(fresh) = &request.fresh_checks {
                builder.seeds.clone_from(&fresh.seeds);
            }
            all.builders.push(builder);
            let baseline = Baseline::from_kernel(kernel, &one.task.key, None);
            all.baselines
                .push(baseline.filter(|_| !request.no_baseline));
            all.tasks.push(one.task);
            all.stored.push(one.stored);
        }
        Ok(all)
    }
}

/// Finds the kernels of a request, and applies its shapes and its source.
fn resolve(request: &Request, folder: &Path) -> Result<Vec<Kernel>, JobError> {
    let mut kernels = match &request.known_kernel {
        Some(known) => vec![Kernel::clone(&known.0)],
        None => catalog::resolve(&request.kernels, folder)?,
    };
    for kernel in &mut kernels {
        if let Some(change) = &request.change {
            *kernel = kernel.with_code(&change.source, &change.space)?;
        }
        // After the change, whose search space replaces the check problems.
        if let Some(fresh) = &request.fresh_checks {
            let listed = Shapes::Listed(fresh.problems.clone());
            let drawn = listed.problems(&kernel.spec).map_err(usage)?;
            kernel.spec.check_problems.extend(drawn);
        }
        if let Some(shapes) = &request.shapes {
            kernel.spec.problems = shapes.problems(&kernel.spec).map_err(usage)?;
        }
        if let Some(source) = &request.source {
            let headers = source.headers.iter().map(|(spelled, text)| Header {
                spelled: spelled.clone(),
                path: spelled.as_str().into(),
                text: text.clone(),
            });
            let template = &kernel.template;
            let folders = template.include_dirs.to_vec();
            let headers = headers.collect();
            kernel.template = Template::new(&template.name, &source.text, headers, folders);
        }
    }
    Ok(kernels)
}

/// Returns the target for a GPU: that of `--arch`, else the portable one of the GPU.
///
/// # Errors
/// A target that is invalid, or that the GPU or this NVRTC does not support.
pub(crate) fn requested_target(
    requested: Option<&str>,
    limits: &DeviceLimits,
    compiler: &Compiler,
) -> Result<String, JobError> {
    let target = ComputeTarget::choose(limits.cc, requested).map_err(usage)?;
    if requested.is_some() {
        compiler.nvrtc().require(target).map_err(usage)?;
    }
    Ok(target.to_string())
}

/// Returns the requested prior model.
fn prior(
    request: &Request,
    facts: &DeviceFacts,
    limits: &DeviceLimits,
) -> Result<Option<Arc<Prior>>, JobError> {
    if !request.has_prior()? {
        return Ok(None);
    }
    let arch = like(&facts.name, limits).ok_or_else(|| {
        usage(format!(
            "--prior vgpu: no virtual GPU has compute capability {}, which {} has; leave the prior \
             out, or give a table in TUNER_ARCH_DIR",
            limits.cc, facts.name
        ))
    })?;
    let memory = tuner_device::vgpu::Limits::default().memory_bytes;
    Ok(Some(Arc::new(Prior::new(
        arch,
        memory.min(arch.memory_bytes),
    ))))
}

/// Returns the compiler with as many workers as concurrent preparations.
pub(super) fn compiler(request: &Request) -> Result<Compiler, JobError> {
    let usual = CompilerSettings::default().jobs;
    compiler_with(request.jobs.map_or(usual, |jobs| usize::from(jobs.get())))
}

/// Returns a compiler with `jobs` concurrent compiles.
pub(crate) fn compiler_with(jobs: usize) -> Result<Compiler, JobError> {
    let settings = CompilerSettings::with_jobs(jobs);
    Compiler::new(settings).map_err(|error| JobError::Failed(anyhow::anyhow!("{error}")))
}

/// Prepares a recorded file as a device; on a fleet its workers look up the results.
pub(super) fn replay(
    request: &Request,
    path: &Path,
    fleet: Option<Arc<dyn Fleet>>,
) -> Result<Prepared, JobError> {
    let recording = Arc::new(Recording::load(path)?);
    named_as_recorded(request, &recording)?;
    let evaluator = Arc::new(ReplayEvaluator::new(Arc::clone(&recording)));
    let device = DeviceStart {
        recording: Some(RecordingSource {
            path: real(path),
            hash: recording.content.clone(),
        }),
        ..device_start(evaluator.facts(), &DeviceSelector::Replay(path.to_owned()))
    };
    let task = ReplayEvaluator::task(&recording);
    let mut notes = Vec::new();
    if recording.excluded_rows > 0 {
        notes.push(format!(
            "note: left out: {} that the file's own constraints forbid",
            counted(recording.excluded_rows, "recorded row")
        ));
    }
    if request.budget.is_some() && !recording.has_costs() {
        notes.push(
            "note: the file records no compile or benchmark times, so --budget never runs out; \
             use --evals"
                .to_owned(),
        );
    }
    let tasks = vec![ReplayEvaluator::searched(&recording)];
    let device_kind = match fleet {
        None => Device::Replay(evaluator),
        Some(fleet) => super::on_fleet::recorded(request, fleet, &recording, &tasks[0]),
    };
    assemble(request, device_kind, device, tasks, vec![task], notes)
}

/// Checks that requested names agree with the recording, which replaces the kernel.
fn named_as_recorded(request: &Request, recording: &Recording) -> Result<(), JobError> {
    let unknown = |what: &str, given: &str, known: &str| {
        usage(format!(
            "{}: the recorded {what} is `{known}`, not `{given}`; leave the name out: with \
             replay:FILE the file is the kernel",
            recording.path.display()
        ))
    };
    let other = |names: &[String], known: &str| names.iter().find(|name| *name != known).cloned();
    if let Some(name) = other(&request.kernels, &recording.kernel) {
        return Err(unknown("kernel", &name, &recording.kernel));
    }
    if let Some(name) = other(&request.problems, &recording.problem) {
        return Err(unknown("problem", &name, &recording.problem));
    }
    Ok(())
}

pub(super) fn device_start(facts: &DeviceFacts, selector: &DeviceSelector) -> DeviceStart {
    DeviceStart {
        name: facts.name.clone(),
        kind: facts.kind,
        arch: facts.arch.clone(),
        selector: selector.to_string(),
        recording: None,
        environment: facts
            .limits
            .map(|limits| limits.constants().collect())
            .unwrap_or_default(),
    }
}

/// Builds the plan of a run on any device.
pub(super) fn assemble(
    request: &Request,
    device: Device,
    start: DeviceStart,
    tasks: Vec<Task>,
    stored: Vec<TaskStart>,
    notes: Vec<String>,
) -> Result<Prepared, JobError> {
    let limits = request.limits()?;
    let plan = Plan {
        id: None,
        tasks,
        start: RunStart {
            device: start,
            seed: Seed(request.seed),
            strategy: request.strategy()?.name().to_owned(),
            settings: serde_json::Value::Null,
            tasks: stored,
        },
        resume: None,
        limits,
        jobs: request.jobs(),
        live: None,
        objectives: request.objectives()?,
        known: Vec::new(),
    };
    Ok(Prepared {
        device,
        plan,
        limited: limits != crate::Limits::default(),
        strategy_given: request.strategy.is_some(),
        prove_budget_given: request.prove_budget.is_some(),
        jobs: request.jobs,
        arch: request.arch.clone(),
        fresh: request.fresh,
        baselines: Vec::new(),
        owner: None,
        knowledge: (!request.no_knowledge)
            .then(|| request.knowledge.iter().map(PathBuf::from).collect()),
        knowledge_record: None,
        prior_experiences: Vec::new(),
        notes,
    })
}
