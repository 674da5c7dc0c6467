//! Tasks of a run from kernels on disk, for the engine and the store.

use super::JobError;
use super::identity::reference_hash;
use crate::parallel::in_order;
use crate::{StartPoint, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tuner_core::activity;
use tuner_core::provenance;
use tuner_core::record::{
    ConstraintDefinition, Definition, LaunchDefinition, ParameterDefinition, Provenance, TaskKey,
};
use tuner_core::units::counted;
use tuner_kernel::catalog::{Kernel, shown};
use tuner_search::Knowledge;
use tuner_space::{BindError, Config, DeviceLimits, Diagnostics, KernelSpec, Problem, Space};
use tuner_store::TaskStart;

/// Facts of a device for spaces and provenance.
pub(super) struct Target<'a> {
    /// The name results are stored under.
    pub(super) device: &'a str,
    /// Limits that expressions may use.
    pub(super) limits: DeviceLimits,
    /// Driver version, on real devices.
    pub(super) driver: Option<String>,
    /// `major.minor` of the compiler.
    pub(super) nvrtc: Option<String>,
}

/// One kernel and problem, ready to be tuned.
#[derive(Debug)]
pub(super) struct PlannedTask {
    /// Index of the kernel.
    pub(super) kernel: usize,
    /// For the engine.
    pub(super) task: Task,
    /// For the store.
    pub(super) stored: TaskStart,
}

/// Plans every timed problem of the kernels, or only those named in `wanted`. Also returns notes
/// for the user. From `until` on no further space is built, and the problems that remain are left out.
///
/// # Errors
/// Unknown problems, spaces that cannot be built or are empty, and the same kernel twice.
pub(super) fn plan(
    kernels: &[Kernel],
    wanted: &[String],
    target: &Target<'_>,
    until: Option<Instant>,
) -> Result<(Vec<PlannedTask>, Vec<String>), JobError> {
    known(kernels, wanted)?;
    let mut planned: Vec<PlannedTask> = Vec::new();
    let mut notes = Vec::new();
    let provenances: Vec<_> = kernels
        .iter()
        .map(|kernel| provenance_of(kernel, target))
        .collect();
    let wanted = |problem: &&Problem| wanted.is_empty() || wanted.contains(&problem.name);
    let items: Vec<(usize, &Problem)> = kernels
        .iter()
        .enumerate()
        .flat_map(|(index, kernel)| {
            let problems = kernel.spec.problems.iter().filter(wanted);
            problems.map(move |problem| (index, problem))
        })
        .collect();
    let spaces = build_spaces(kernels, &items, target, until)?;
    let left = spaces.iter().filter(|space| space.is_none()).count();
    if left > 0 {
        notes.push(format!(
            "note: {left} of {} are left out: building their search spaces takes more than half of the \
             budget; give a longer --budget, or name fewer kernels",
            counted(items.len(), "problem")
        ));
    }
    let (items, spaces): (Vec<_>, Vec<Space>) = items
        .into_iter()
        .zip(spaces)
        .filter_map(|(item, space)| Some((item, space?)))
        .unzip();
    let built = items.iter().zip(spaces);
    let built = built.map(|((index, problem), space)| {
        let provenance = &provenances[*index].0;
        plan_problem(*index, &kernels[*index], problem, target, provenance, space)
    });
    let mut built = built.collect::<Result<Vec<_>, _>>()?.into_iter();
    for (index, (kernel, (_, note))) in kernels.iter().zip(&provenances).enumerate() {
        notes.extend(note.clone());
        // A reason shared by several problems of a kernel is reported once.
        let mut left_out: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let own = items.iter().filter(|(of, _)| *of == index);
        for ((_, problem), (one, skipped)) in own.zip(built.by_ref()) {
            for note in skipped {
                left_out.entry(note).or_default().push(&problem.name);
            }
            if planned.iter().any(|other| other.task.key == one.task.key) {
                return Err(JobError::Usage(format!(
                    "error: {}: kernel `{}` is named twice; name one file of each kernel",
                    shown(&kernel.path),
                    kernel.spec.kernel
                )));
            }
            planned.push(one);
        }
        let yaml = shown(&kernel.path);
        let said = |(note, problems): (String, Vec<&str>)| {
            format!("note: {yaml}: {note} (problems {})", problems.join(", "))
        };
        notes.extend(left_out.into_iter().map(said));
    }
    notes.dedup();
    Ok((planned, notes))
}

/// Checks that every kernel has a reference, and that every wanted problem is a timed one of a kernel.
pub(super) fn known(kernels: &[Kernel], wanted: &[String]) -> Result<(), JobError> {
    if let Some(why) = kernels.iter().find_map(|kernel| kernel.spec.unranked()) {
        return Err(JobError::Usage(format!("error: {why}")));
    }
    let timed: BTreeSet<&str> = kernels
        .iter()
        .flat_map(|kernel| &kernel.spec.problems)
        .map(|problem| problem.name.as_str())
        .collect();
    let Some(unknown) = wanted.iter().find(|name| !timed.contains(name.as_str())) else {
        return Ok(());
    };
    let check = kernels.iter().any(|kernel| {
        kernel
            .spec
            .check_problems
            .iter()
            .any(|problem| problem.name == *unknown)
    });
    let what = if check {
        "is for checks only and never timed"
    } else {
        "is not known"
    };
    let names: Vec<&str> = timed.into_iter().collect();
    Err(JobError::Usage(format!(
        "error: the problem `{unknown}` {what}; choose from: {}",
        names.join(", ")
    )))
}

/// Builds the spaces of these problems, numbered by kernel. Problems whose spaces are the same share
/// one, because a large one takes seconds. With a deadline the small ones come first, and `None` is
/// what it leaves out; the smallest is always built.
fn build_spaces(
    kernels: &[Kernel],
    problems: &[(usize, &Problem)],
    target: &Target<'_>,
    until: Option<Instant>,
) -> Result<Vec<Option<Space>>, JobError> {
    let mut keys = Vec::new();
    let mut firsts: Vec<(usize, &Problem)> = Vec::new();
    let mut places = Vec::with_capacity(problems.len());
    for (index, problem) in problems {
        let key = (*index, kernels[*index].spec.space_sizes(problem));
        let known = keys.iter().position(|known| *known == key);
        places.push(known.unwrap_or(keys.len()));
        if known.is_none() {
            keys.push(key);
            firsts.push((*index, problem));
        }
    }
    let mut order: Vec<usize> = (0..firsts.len()).collect();
    if until.is_some() {
        order.sort_by_key(|at| combinations(&kernels[firsts[*at].0].spec));
    }
    let smallest = order.first().copied();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let build = |at: &usize, _: &mut ()| {
        let is_late = until.is_some_and(|until| Instant::now() >= until);
        if is_late && Some(*at) != smallest {
            return Ok(None);
        }
        let (index, problem) = firsts[*at];
        build_space(&kernels[index], problem, target).map(Some)
    };
    let built = in_order(&order, threads, || (), build)?;
    let mut spaces = vec![None; firsts.len()];
    for (at, space) in order.into_iter().zip(built) {
        spaces[at] = space;
    }
    Ok(places.iter().map(|place| spaces[*place].clone()).collect())
}

/// Returns the number of combinations of a kernel's values, valid or not.
fn combinations(spec: &KernelSpec) -> u128 {
    let values = spec.parameters.iter().map(|each| each.values.len() as u128);
    values.fold(1, u128::saturating_mul)
}

fn build_space(kernel: &Kernel, problem: &Problem, target: &Target<'_>) -> Result<Space, JobError> {
    let spec = &kernel.spec;
    let _doing = activity::begin(
        "building",
        format!("the space of {} {}", spec.kernel, problem.name),
    );
    let space = spec
        .space(&problem.name, &target.limits)
        .map_err(|error| match error {
            BindError::UnknownProblem { .. } | BindError::Config => JobError::Usage(format!(
                "error: {}: problem `{}`: {error}",
                shown(&kernel.path),
                problem.name
            )),
            wrong => JobError::Usage(spec.explain_unbound(&wrong, &problem.name).to_string()),
        })?;
    match spec.explain_empty(&space, &problem.name, target.device) {
        Some(empty) => Err(JobError::Usage(empty.to_string())),
        None => Ok(space),
    }
}

fn plan_problem(
    index: usize,
    kernel: &Kernel,
    problem: &Problem,
    target: &Target<'_>,
    provenance: &Provenance,
    space: Space,
) -> Result<(PlannedTask, Vec<String>), JobError> {
    let spec = &kernel.spec;
    let (start, notes) = start_points(spec, &space);
    let default = space.default_config();
    let effort = Effort::new(spec, problem, &target.limits, &default)
        .map_err(|why| JobError::Usage(why.to_string()))?;
    let stored = TaskStart {
        kernel: spec.kernel.clone(),
        problem: problem.name.clone(),
        sizes: problem.sizes.clone(),
        template_hash: Some(kernel.template.hash.clone()),
        reference_hash: Some(reference_hash(kernel)),
        definition: definition(spec),
        default_config: space.contains(&default).then(|| space.values(&default)),
        space_path: std::path::absolute(&kernel.path).ok(),
        provenance: provenance.clone(),
    };
    let key = TaskKey {
        kernel: spec.kernel.clone(),
        problem: problem.name.clone(),
        device: target.device.to_owned(),
    };
    let task = Task {
        key,
        space,
        start,
        knowledge: Knowledge::default(),
        weight: effort.weight,
        work: effort.work,
    };
    Ok((
        PlannedTask {
            kernel: index,
            task,
            stored,
        },
        notes,
    ))
}

/// Weight and size of a problem, for the distribution of a budget.
struct Effort {
    weight: f64,
    /// Elements of all arguments and operations of the default configuration.
    work: f64,
}

impl Effort {
    fn new(
        spec: &KernelSpec,
        problem: &Problem,
        limits: &DeviceLimits,
        default: &Config,
    ) -> Result<Self, Diagnostics> {
        // An expression without a value is a failure of the candidate, reported when it is judged.
        let binder = spec.binder(&problem.name, limits).ok();
        let bound = binder.and_then(|binder| binder.bind(default).ok());
        let weight = spec.weight_of(problem, limits)?;
        let elements =
            |shape: &Vec<u64>| shape.iter().map(|extent| *extent as f64).product::<f64>();
        let work = bound.map_or(0.0, |bound| {
            let arguments = bound.arguments.iter();
            let elements: f64 = arguments.map(|argument| elements(&argument.shape)).sum();
            elements + bound.flops.unwrap_or(0.0)
        });
        Ok(Self { weight, work })
    }
}

/// Returns the default configuration, then the file's seeds; invalid ones become notes.
fn start_points(spec: &KernelSpec, space: &Space) -> (Vec<StartPoint>, Vec<String>) {
    let mut points = Vec::new();
    let mut notes = Vec::new();
    let mut add =
        |config: Config, origin: &'static str, name: &str| match space.reject_reason(&config) {
            None => points.push(StartPoint { config, origin }),
            Some(reason) => notes.push(format!("{name} is left out: {reason}")),
        };
    let default = space.default_config();
    add(default.clone(), "default", "the default configuration");
    for (number, seed) in spec.seeds.iter().enumerate() {
        // The reader of the file has checked names and values.
        let config = space.with_known_values(&default, seed);
        add(config, "seed", &format!("seed {}", number + 1));
    }
    (points, notes)
}

/// Returns the parameters, constraints and launches of a search space in the form that is stored with
/// results.
#[must_use]
pub fn definition(spec: &KernelSpec) -> Definition {
    Definition {
        parameters: spec
            .parameters
            .iter()
            .map(|parameter| ParameterDefinition {
                name: parameter.name.clone(),
                values: parameter.values.to_vec(),
                default: parameter.values.get(parameter.default as usize).cloned(),
                doc: parameter.doc.clone(),
            })
            .collect(),
        derived: spec
            .derived
            .iter()
            .map(|(name, expr)| (name.clone(), expr.text().to_owned()))
            .collect(),
        constraints: spec
            .constraints
            .iter()
            .map(|constraint| ConstraintDefinition {
                rule: constraint.rule.text().to_owned(),
                why: constraint.why.clone().unwrap_or_default(),
            })
            .collect(),
        launches: spec
            .launches
            .iter()
            .map(|launch| LaunchDefinition {
                entry: launch.entry.clone(),
                when: launch.when.as_ref().map(|when| when.text().to_owned()),
                grid: launch
                    .grid
                    .each_ref()
                    .map(|extent| extent.text().to_owned()),
                block: launch
                    .block
                    .each_ref()
                    .map(|extent| extent.text().to_owned()),
                shared: launch.shared.text().to_owned(),
                cluster: launch
                    .cluster
                    .as_ref()
                    .map(|cluster| cluster.each_ref().map(|extent| extent.text().to_owned())),
            })
            .collect(),
    }
}

/// Returns commit and dirty flag of the template, its includes, and the space file.
fn provenance_of(kernel: &Kernel, target: &Target<'_>) -> (Provenance, Option<String>) {
    let mut files: Vec<PathBuf> = vec![kernel.spec.source.clone()];
    files.extend(
        kernel
            .template
            .headers
            .iter()
            .map(|header| header.path.clone().into()),
    );
    files.push(kernel.path.clone());
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    provenance::of_files(&files, target.driver.clone(), target.nvrtc.clone())
}

#[cfg(test)]
mod tests;
