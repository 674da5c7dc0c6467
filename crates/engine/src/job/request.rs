//! Request of a run, in the terms of the command line, and its validation.

use super::{JobError, Jobs, ProveBudget, usage};
use crate::grid::Shapes;
use crate::{Limits, parse_budget, parse_share};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;
use tuner_core::objective::Objectives;
use tuner_core::record::ConfigValues;
use tuner_core::target::ComputeTarget;
use tuner_device::DeviceSelector;
use tuner_kernel::catalog::Kernel;
use tuner_search::StrategyName;

/// Valid thresholds of `--until-converged`, as shares of the best time: the range that the estimate
/// is calibrated for.
const CONVERGED_SHARES: std::ops::RangeInclusive<f64> = 0.01..=0.2;

/// Request of a run, in the terms of `tuner run`.
///
/// `P` is the type of every text that may name a file. It is `String` for a user of this machine. A
/// request of a client uses a type that cannot be opened, so that each such field passes the check
/// of its paths before a run can be made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[serde(bound(deserialize = "P: Deserialize<'de> + From<&'static str>"))]
#[schema(as = Request)]
pub struct Request<P = String> {
    /// Kernels by name or file; empty: all in `search_spaces/`.
    #[serde(default = "Vec::new")]
    #[schema(value_type = Vec<String>)]
    pub kernels: Vec<P>,
    /// `auto`, `cuda`, `cuda:N`, `vgpu:NAME` or `replay:FILE`.
    #[serde(default = "auto")]
    #[schema(value_type = String)]
    pub device: P,
    /// Compile target, such as `sm_90a`; default: the device's, with the features that the search space
    /// requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Only these problems; empty: all.
    #[serde(default)]
    pub problems: Vec<String>,
    /// Time budget, such as `90s` or `1h30m`.
    #[serde(default)]
    pub budget: Option<String>,
    /// Unique valid configurations to judge.
    #[serde(default)]
    pub evals: Option<u64>,
    /// Stop once further trials gain at most this share of the best time, such as `1%`, with 90 %
    /// confidence; `budget` and `evals` are then upper limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_converged: Option<String>,
    /// Two objectives, the time and one of `p90`, `registers`, `code_size` and `energy` (GPUs that count
    /// it), such as `time,registers`: the search optimizes the Pareto front of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// The search strategy.
    #[serde(default)]
    #[schema(value_type = Option<StrategyName>)]
    pub strategy: Option<String>,
    /// A model that predicts the times of candidates: `vgpu`.
    #[serde(default)]
    pub prior: Option<String>,
    /// Seed of everything random.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Concurrent preparations; default: number of cores.
    #[serde(default)]
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 1024)]
    pub jobs: Option<Jobs>,
    /// Skips the baseline commands of the spaces.
    #[serde(default)]
    pub no_baseline: bool,
    /// Files of prior knowledge, in addition to the database.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub knowledge: Vec<P>,
    /// The search uses no prior knowledge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_knowledge: bool,
    /// Lane instructions that running a finalist whole on a virtual GPU may take, such as 3e10 (the
    /// default); 0: finalists are not proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub prove_budget: Option<ProveBudget>,
    /// Judges every candidate again: results of earlier runs with the same identity are not reused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// Shapes instead of the problems of the files; not part of a stored or remote request.
    #[serde(skip)]
    pub shapes: Option<Shapes>,
    /// Source instead of the template of the files; not part of a stored or remote request.
    #[serde(skip)]
    pub source: Option<SourceText>,
    /// Source and search space instead of those of the files; not part of a stored or remote request.
    #[serde(skip)]
    pub change: Option<ChangedCode>,
    /// Kernel as it was read before, instead of the files of `kernels`; not part of a stored or remote
    /// request.
    #[serde(skip)]
    pub known_kernel: Option<KnownKernel>,
    /// Moment from which on no further search space is built: the problems that remain are left out.
    #[serde(skip)]
    pub spaces_until: Option<Instant>,
    /// Further check problems and other seeds of the inputs; not part of a stored or remote request.
    #[serde(skip)]
    pub fresh_checks: Option<FreshChecks>,
}

/// Kernel that was read before. Equality is identity.
#[derive(Debug, Clone)]
pub struct KnownKernel(pub Arc<Kernel>);

impl PartialEq for KnownKernel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for KnownKernel {}

/// Changed code of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedCode {
    /// CUDA source.
    pub source: String,
    /// Search space, YAML or JSON.
    pub space: String,
}

/// Checks that are unknown to the author of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreshChecks {
    /// Seeds of the inputs.
    pub seeds: Vec<u64>,
    /// Check problems by name, with their sizes.
    pub problems: Vec<(String, ConfigValues)>,
}

/// Source of a kernel with the files that it includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// Text of the template.
    pub text: String,
    /// Included files: the name in the directive and the text.
    pub headers: Vec<(String, String)>,
}

fn auto<P: From<&'static str>>() -> P {
    "auto".into()
}

fn default_seed() -> u64 {
    1
}

impl Default for Request {
    fn default() -> Self {
        Self {
            kernels: Vec::new(),
            device: auto(),
            arch: None,
            problems: Vec::new(),
            budget: None,
            evals: None,
            until_converged: None,
            objective: None,
            strategy: None,
            prior: None,
            seed: default_seed(),
            jobs: None,
            no_baseline: false,
            knowledge: Vec::new(),
            no_knowledge: false,
            prove_budget: None,
            fresh: false,
            shapes: None,
            source: None,
            change: None,
            known_kernel: None,
            spaces_until: None,
            fresh_checks: None,
        }
    }
}

impl Request {
    /// Checks all fields that need neither the device nor a file.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn check(&self) -> Result<(), JobError> {
        self.selector()?;
        self.check_but_device()
    }

    /// Checks the fields other than the device, which may be a name that only a fleet's workers know.
    pub(super) fn check_but_device(&self) -> Result<(), JobError> {
        let recorded = matches!(self.selector(), Ok(DeviceSelector::Replay(_)));
        self.limits()?;
        self.strategy()?;
        self.objectives()?;
        if let Some(arch) = &self.arch {
            arch.parse::<ComputeTarget>().map_err(usage)?;
            if recorded {
                return Err(usage(
                    "--arch needs a kernel to compile, and a recorded file has none; leave it out",
                ));
            }
        }
        if self.has_prior()? && recorded {
            return Err(usage(
                "--prior needs a kernel to compile, and a recorded file has none; leave it out",
            ));
        }
        if !self.knowledge.is_empty() {
            self.guided("takes no knowledge", "--knowledge")?;
        }
        Ok(())
    }

    /// Reports whether a prior is requested.
    ///
    /// # Errors
    /// An unknown name.
    pub(super) fn has_prior(&self) -> Result<bool, JobError> {
        match self.prior.as_deref() {
            None => Ok(false),
            Some("vgpu") => Ok(true),
            Some(other) => Err(usage(format!(
                "no prior is called `{other}`; type --prior vgpu"
            ))),
        }
    }

    /// Parses the device.
    ///
    /// # Errors
    /// An invalid device.
    pub fn selector(&self) -> Result<DeviceSelector, JobError> {
        self.device.parse().map_err(usage)
    }

    /// Parses the limits of the run.
    ///
    /// # Errors
    /// An invalid budget, and zero evaluations.
    pub fn limits(&self) -> Result<Limits, JobError> {
        if self.evals == Some(0) {
            return Err(usage("0 evaluations: use at least 1, or omit it"));
        }
        let budget = self.budget.as_deref().map(parse_budget).transpose();
        Ok(Limits {
            evals: self.evals,
            budget: budget.map_err(usage)?,
            converged: self.converged()?,
        })
    }

    /// Lets the search spaces take half of the budget of wall time, from `began` on. Not for a run that
    /// is resumed, whose tasks are known.
    pub fn limit_spaces(&mut self, began: Instant) {
        let recorded = matches!(self.selector(), Ok(DeviceSelector::Replay(_)));
        let budget = self.limits().ok().and_then(|limits| limits.budget);
        let budget = budget.filter(|_| !recorded);
        self.spaces_until = budget.and_then(|budget| began.checked_add(budget / 2));
    }

    /// Parses the convergence threshold.
    fn converged(&self) -> Result<Option<f64>, JobError> {
        let Some(text) = &self.until_converged else {
            return Ok(None);
        };
        let share =
            parse_share(text).map_err(|error| usage(format!("--until-converged: {error}")))?;
        if !CONVERGED_SHARES.contains(&share) {
            return Err(usage(format!(
                "--until-converged={text}: what further trials may still bring is told from {} to {}; \
                 type a share between, such as 1%",
                percent(*CONVERGED_SHARES.start()),
                percent(*CONVERGED_SHARES.end())
            )));
        }
        self.guided(
            "has no model of what further trials may bring",
            "--until-converged",
        )?;
        Ok(Some(share))
    }

    /// Parses the objectives in addition to the time.
    pub(crate) fn objectives(&self) -> Result<Option<Objectives>, JobError> {
        let Some(text) = &self.objective else {
            return Ok(None);
        };
        let wrong = |error: &dyn std::fmt::Display| usage(format!("--objective: {error}"));
        let objectives: Objectives = text.parse().map_err(|error| wrong(&error))?;
        self.guided("knows the time alone", "--objective")?;
        if self.until_converged.is_some() {
            return Err(usage(
                "--until-converged is about the time alone; leave it or --objective out",
            ));
        }
        // Another name is that of a fleet's device.
        let selector = self.selector().ok();
        let recorded = matches!(selector, Some(DeviceSelector::Replay(_)));
        if objectives.measures_energy() {
            let why = match selector.map(super::setup::resolved) {
                Some(DeviceSelector::Replay(_)) => "a recorded file does not say `energy`",
                Some(DeviceSelector::Vgpu(_)) => "a virtual GPU uses no `energy`",
                _ => return Ok(Some(objectives)),
            };
            return Err(wrong(&format!(
                "{why}; choose time,p90, or a GPU, such as --device cuda:0"
            )));
        }
        if recorded && objectives.other.compiled() {
            return Err(wrong(&format!(
                "a recorded file does not say `{}`; choose time,p90, or a device that compiles",
                objectives.other.name()
            )));
        }
        Ok(Some(objectives))
    }

    /// Returns the strategy.
    ///
    /// # Errors
    /// An unknown name.
    pub fn strategy(&self) -> Result<StrategyName, JobError> {
        let named = self.strategy.as_deref().map(StrategyName::parse);
        named
            .transpose()
            .map(Option::unwrap_or_default)
            .map_err(usage)
    }

    /// Refuses an option that only the model-based search accepts if another strategy is requested,
    /// which `lacks` it.
    pub(super) fn guided(&self, lacks: &str, option: &str) -> Result<(), JobError> {
        let (strategy, model) = (self.strategy()?, StrategyName::default().name());
        if !strategy.has_model() {
            return Err(usage(format!(
                "--strategy {} {lacks}; leave {option} out, or use {model}",
                strategy.name()
            )));
        }
        Ok(())
    }

    /// Returns the lane instructions that a proof may take; 0: no proofs.
    pub(crate) fn proof_limit(&self) -> u64 {
        self.prove_budget.unwrap_or_default().get()
    }

    /// Returns the number of concurrent preparations.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.map_or_else(
            || std::thread::available_parallelism().map_or(1, usize::from),
            |jobs| usize::from(jobs.get()),
        )
    }
}

/// Formats a share as `0.5%`.
fn percent(share: f64) -> String {
    format!("{}%", share * 100.0)
}
