//! Worker side of a fleet: a device of this machine and the benches for a hub's assignments.

use super::setup::GpuTasks;
use super::{Device, JobError, Prepared, Request, judge};
use crate::evaluator::{BoxError, Evaluator as _, Judged, Preparation};
use crate::fleet::{Assignment, SiblingTimes, kind_of};
use crate::judging::KernelTask;
use crate::{ReplayEvaluator, Task, Work};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuner_core::fill::Fill;
use tuner_core::units::{ContentHash, Micros};
use tuner_device::replay::Recording;
use tuner_device::worker::host::WorkerError;
use tuner_judge::judgement::TimedJudgement;
use tuner_kernel::compile::Compiler;
use tuner_space::Config;

/// Resource that this machine lends.
#[derive(Debug, Clone)]
pub enum WorkerResource {
    /// Answers from a recorded file.
    Recording(Arc<Recording>),
    /// A device, as `--device` names it.
    Device(String),
    /// Its processors, for compiling.
    Compiler,
}

/// Reason why an order cannot be executed here.
#[derive(Debug, thiserror::Error)]
pub enum LendError {
    /// It cannot be executed anywhere: the files of the request are wrong.
    #[error("{0}")]
    Unusable(String),
    /// This machine cannot; another may.
    #[error("{0}")]
    Here(String),
    /// The device of this machine is lost.
    #[error("{0}")]
    DeviceLost(String),
}

impl From<JobError> for LendError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Usage(text) | JobError::Device(text) | JobError::Input { text, .. } => {
                Self::Unusable(text)
            }
            other => Self::Here(other.to_string()),
        }
    }
}

/// Converts an error of an evaluator or a compiler, by its cause.
fn blamed(error: BoxError) -> LendError {
    match error.downcast::<WorkerError>() {
        Ok(error) => match *error {
            WorkerError::Unusable(why) => LendError::Unusable(why),
            WorkerError::DeviceLost(why) => LendError::DeviceLost(why),
            other => LendError::Here(other.to_string()),
        },
        Err(other) => LendError::Here(other.to_string()),
    }
}

/// One assignment on this machine.
pub struct Bench {
    device: Option<Prepared>,
    compiling: Option<(Arc<Compiler>, Vec<KernelTask>)>,
    /// Indices of the assignment's tasks among the device's.
    places: Vec<usize>,
    /// Local paths of the assignment's files.
    files: LocalPaths,
}

/// Local paths by the hash of their content.
pub type LocalPaths = HashMap<ContentHash, Arc<str>>;

impl Bench {
    /// Creates a bench for a recording.
    ///
    /// # Errors
    /// It is not the assigned recording.
    pub fn recorded(
        recording: &Arc<Recording>,
        assignment: &Assignment,
    ) -> Result<Self, LendError> {
        if assignment.recording.as_ref() != Some(&recording.content) {
            return Err(LendError::Here(
                "the recording of this worker is another one".to_owned(),
            ));
        }
        let request = Request {
            device: format!("replay:{}", recording.path.display()),
            ..Request::default()
        };
        let mut prepared = super::setup::replay(&request, &recording.path, None)?;
        // `replay` has read the file again, but only this recording was compared with the assignment.
        prepared.device = Device::Replay(Arc::new(ReplayEvaluator::new(Arc::clone(recording))));
        Ok(Self {
            device: Some(prepared),
            compiling: None,
            files: LocalPaths::new(),
            places: vec![0; assignment.tasks.len()],
        })
    }

    /// Creates a bench that compiles the assignment's kernels, whose search spaces are at these
    /// paths, with all files below `folder`.
    ///
    /// # Errors
    /// The files are wrong.
    pub fn compiling(
        assignment: &Assignment,
        spaces: &[PathBuf],
        folder: &Path,
        compiler: &Arc<Compiler>,
    ) -> Result<Self, LendError> {
        let request = Request {
            prior: assignment.prior.clone(),
            ..request_for(assignment, spaces, "auto")?
        };
        let planned = GpuTasks::new(&request, folder, &assignment.device, compiler)?;
        let places = places(assignment, &planned.tasks)?;
        Ok(Self {
            device: None,
            compiling: Some((Arc::clone(compiler), planned.builders)),
            files: LocalPaths::new(),
            places,
        })
    }

    /// Creates a bench that judges the assignment's kernels on a device of this machine. `files`
    /// maps contents to local paths, since the fill data of arguments has another path on the
    /// machine that compiled.
    ///
    /// # Errors
    /// The files are wrong, or the device cannot be used.
    pub fn on_device(
        assignment: &Assignment,
        spaces: &[PathBuf],
        folder: &Path,
        device: &str,
        files: LocalPaths,
    ) -> Result<Self, LendError> {
        let request = request_for(assignment, spaces, device)?;
        let prepared = Prepared::new(&request, folder)?;
        if prepared.facts().name != kind_of(&assignment.device.name) {
            return Err(LendError::Here(format!(
                "this worker lends {}, and candidates for {} were sent to it",
                prepared.facts().name,
                assignment.device.name
            )));
        }
        let places = places(assignment, &prepared.plan.tasks)?;
        Ok(Self {
            device: Some(prepared),
            compiling: None,
            places,
            files,
        })
    }

    fn local_index(&self, task: usize) -> Result<usize, LendError> {
        let place = self.places.get(task).copied();
        place.ok_or_else(|| LendError::Unusable(format!("the run has no task {task}")))
    }

    /// Judges a recorded configuration.
    ///
    /// # Errors
    /// See [`LendError`].
    pub fn recorded_result(&self, task: usize, config: &Config) -> Result<Judged, LendError> {
        let place = self.local_index(task)?;
        let Some(prepared) = &self.device else {
            return Err(nothing("a device"));
        };
        // Choices from the network may be of another space.
        if !self.has(place, config) {
            return Err(LendError::Unusable(
                "the configuration is none of the recording's".to_owned(),
            ));
        }
        match &prepared.device {
            Device::Replay(evaluator) => Ok(judge(&**evaluator, place, config)?),
            _ => Err(nothing("a recording")),
        }
    }

    /// Compiles a configuration for the timed problem and all check problems. Also returns the time
    /// predicted by the assignment's prior.
    ///
    /// # Errors
    /// See [`LendError`].
    pub fn compile(
        &self,
        task: usize,
        config: &Config,
    ) -> Result<Result<(Work, Option<Micros>), Judged>, LendError> {
        let place = self.local_index(task)?;
        let Some((compiler, tasks)) = &self.compiling else {
            return Err(nothing("a compiler"));
        };
        match tasks[place].prepare(compiler, config).map_err(blamed)? {
            Preparation::Ready { work, facts, .. } => {
                let predicted = facts.and_then(|facts| facts.predicted);
                Ok(Ok((work, predicted)))
            }
            Preparation::Judged(judged) => Ok(Err(*judged)),
        }
    }

    /// Judges and times compiled work on the device.
    ///
    /// # Errors
    /// See [`LendError`].
    pub fn run(&self, task: usize, config: &Config, mut work: Work) -> Result<Judged, LendError> {
        let place = self.local_index(task)?;
        self.place_files(&mut work)?;
        let Some(prepared) = &self.device else {
            return Err(nothing("a device"));
        };
        let judged = match &prepared.device {
            Device::Virtual(evaluator) => evaluator.evaluate(place, config, work),
            Device::Cuda(evaluator) => evaluator.evaluate(place, config, work),
            Device::Replay(_) | Device::Fleet(..) => return Err(nothing("a device for kernels")),
        };
        judged.map_err(blamed)
    }

    /// Runs the timed problem of compiled work whole, if that takes at most `limit` lane
    /// instructions.
    ///
    /// # Errors
    /// See [`LendError`].
    pub fn prove(
        &self,
        task: usize,
        config: &Config,
        mut work: Work,
        limit: u64,
    ) -> Result<Judged, LendError> {
        let place = self.local_index(task)?;
        self.place_files(&mut work)?;
        let candidate = work.candidate.clone();
        match self.device.as_ref().map(|prepared| &prepared.device) {
            Some(Device::Virtual(evaluator)) => {
                evaluator.set_proof_limit(limit);
                let proof = evaluator.proof(place, config, work).map_err(blamed)?;
                Ok(Judged::without_device(candidate, proof))
            }
            _ => Err(nothing("a virtual GPU")),
        }
    }

    /// Replaces the fill data paths of the work's arguments by local paths.
    fn place_files(&self, work: &mut Work) -> Result<(), LendError> {
        for fill in work.fills_mut() {
            let Fill::File(file) = fill else { continue };
            // The path is of another machine and could name any file here, so the content's hash decides.
            let here = file.hash.as_ref().and_then(|hash| self.files.get(hash));
            let here = here.ok_or_else(|| {
                LendError::Here("the code names data that the run does not have".to_owned())
            })?;
            file.path = Arc::clone(here);
        }
        Ok(())
    }

    /// Reports whether the device's space contains that configuration.
    fn has(&self, place: usize, config: &Config) -> bool {
        let Some(prepared) = &self.device else {
            return false;
        };
        let space = &prepared.plan.tasks[place].space;
        config.choices().len() == space.parameters().len() && space.contains(config)
    }

    /// Times the task's reference together with the best candidate so far, for comparison with
    /// sibling GPUs. `None` if there is nothing to compare: the device computes its times, or the
    /// task has no reference.
    ///
    /// # Errors
    /// See [`LendError`].
    pub fn compare(
        &self,
        task: usize,
        best: Option<&Config>,
    ) -> Result<Option<SiblingTimes>, LendError> {
        let place = self.local_index(task)?;
        let best = best.filter(|config| self.has(place, config));
        match self.device.as_ref().map(|prepared| &prepared.device) {
            Some(Device::Cuda(evaluator)) => {
                let times = evaluator.compare(place, best).map_err(blamed)?;
                Ok(times.map(|times| SiblingTimes { task, ..times }))
            }
            _ => Ok(None),
        }
    }

    /// Times configurations that are known to be correct in one comparison, in a fresh process.
    ///
    /// # Errors
    /// See [`LendError`].
    pub fn finale(
        &self,
        task: usize,
        configs: &[Config],
        seed: u64,
    ) -> Result<Vec<TimedJudgement>, LendError> {
        let place = self.local_index(task)?;
        if !configs.iter().all(|config| self.has(place, config)) {
            return Err(LendError::Unusable(
                "a configuration is none of the search space's".to_owned(),
            ));
        }
        match self.device.as_ref().map(|prepared| &prepared.device) {
            Some(Device::Cuda(evaluator)) => evaluator.finale(place, configs, seed).map_err(blamed),
            _ => Err(nothing("a GPU that times")),
        }
    }
}

fn nothing(what: &str) -> LendError {
    LendError::Here(format!("this worker does not lend {what}"))
}

/// Builds the request for these search spaces.
///
/// # Errors
/// The list is empty.
fn request_for(
    assignment: &Assignment,
    spaces: &[PathBuf],
    device: &str,
) -> Result<Request, LendError> {
    // A request without kernels would mean this machine's own, whose code may differ from the sender's.
    if spaces.is_empty() {
        return Err(LendError::Unusable(
            "no search space was sent with the run".to_owned(),
        ));
    }
    let mut problems: Vec<String> = Vec::new();
    for task in &assignment.tasks {
        if !problems.contains(&task.problem) {
            problems.push(task.problem.clone());
        }
    }
    let kernels = spaces
        .iter()
        .map(|path| path.to_string_lossy().into_owned());
    Ok(Request {
        kernels: kernels.collect(),
        device: device.to_owned(),
        arch: assignment.arch.clone(),
        problems,
        // A worker only judges: the search and its knowledge are on the hub.
        no_baseline: true,
        knowledge: Vec::new(),
        no_knowledge: true,
        ..Request::default()
    })
}

/// Returns the indices of the assignment's tasks among these.
fn places(assignment: &Assignment, tasks: &[Task]) -> Result<Vec<usize>, LendError> {
    let place = |task: &crate::fleet::AssignedTask| {
        let names = (&task.kernel, &task.problem);
        let found = tasks
            .iter()
            .position(|here| (&here.key.kernel, &here.key.problem) == names);
        found.ok_or_else(|| {
            LendError::Unusable(format!(
                "the files that were sent have no problem `{}` of a kernel `{}`",
                task.problem, task.kernel
            ))
        })
    };
    assignment.tasks.iter().map(place).collect()
}

#[cfg(test)]
mod tests;
