//! Validated settings of an evolution.

use super::Args;
use crate::cli::{CliError, complete, usage};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tuner_core::record::{DeviceKind, TimingKind};
use tuner_core::units::{ContentHash, Seed};
use tuner_device::{DeviceFacts, DeviceSelector};
use tuner_engine::job::{ChangedCode, Jobs, Prepared, ProveBudget, Request};
use tuner_engine::parse_budget;
use tuner_evolve::accept::default_rules;
use tuner_evolve::answer::Headers;
use tuner_evolve::space_change;
use tuner_kernel::catalog::{self, Kernel};
use tuner_kernel::compile::included_names;
use tuner_report::accept::Rules;
use tuner_space::DeviceLimits;
use tuner_store::EvolutionStart;

/// Settings of an evolution.
pub(super) struct Options {
    /// Kernel as the user named it.
    pub(super) kernel: String,
    pub(super) folder: PathBuf,
    pub(super) device: String,
    pub(super) device_name: String,
    pub(super) limits: Option<DeviceLimits>,
    pub(super) predicted: bool,
    pub(super) problems: Vec<String>,
    pub(super) evals: u64,
    pub(super) base_evals: u64,
    pub(super) rounds: u32,
    pub(super) budget: Option<Duration>,
    pub(super) seed: u64,
    pub(super) check_seed: u64,
    pub(super) jobs: Option<Jobs>,
    pub(super) prove_budget: Option<ProveBudget>,
    pub(super) rules: Rules,
    pub(super) timeout: Duration,
    /// Kernel as its files were at the start.
    pub(super) parsed: Arc<Kernel>,
    /// Code of the files.
    pub(super) code: ChangedCode,
    /// Headers of the template.
    pub(super) headers: Headers,
}

impl Options {
    /// Checks the arguments.
    ///
    /// # Errors
    /// An unknown kernel, problem or device, and a rule or time that cannot be parsed.
    pub(super) fn new(args: &Args) -> Result<Self, CliError> {
        let folder = std::env::current_dir()?;
        let mut kernels = catalog::resolve(std::slice::from_ref(&args.kernel), &folder)?;
        let parsed = kernels.swap_remove(0);
        if let Some(why) = parsed.spec.unranked() {
            return Err(usage(format!("{}: {why}", catalog::shown(&parsed.path))));
        }
        let selector: DeviceSelector = args.device.parse()?;
        if matches!(
            selector,
            DeviceSelector::Replay(_) | DeviceSelector::CudaSeveral(_)
        ) {
            return Err(usage(
                "evolve needs one device that compiles; type --device cuda:N or vgpu:NAME",
            ));
        }
        let rules = args.promotion.rules().unwrap_or_else(default_rules);
        let facts = facts(args, &folder)?;
        let problems = match args.problem.is_empty() {
            true => parsed
                .spec
                .problems
                .iter()
                .map(|one| one.name.clone())
                .collect(),
            false => args.problem.clone(),
        };
        let yaml = std::fs::read_to_string(&parsed.path)?;
        let document =
            space_change::document(&yaml).map_err(|error| complete(format!("error: {error}")))?;
        let headers = headers(&parsed);
        Ok(Self {
            kernel: args.kernel.clone(),
            device: args.device.clone(),
            predicted: facts.kind == DeviceKind::Vgpu,
            device_name: facts.name.clone(),
            limits: facts.limits,
            problems,
            evals: args.evals,
            base_evals: args.base_evals,
            rounds: args.rounds,
            budget: args
                .budget
                .as_deref()
                .map(parse_budget)
                .transpose()
                .map_err(usage)?,
            seed: args.seed,
            check_seed: check_seed(args.seed, &parsed.template.hash),
            jobs: args.jobs,
            prove_budget: args.prove_budget,
            rules,
            timeout: parse_budget(&args.timeout)
                .map_err(|error| usage(format!("--timeout: {error}")))?,
            code: ChangedCode {
                source: parsed.template.text.to_string(),
                space: serde_json::to_string_pretty(&document)?,
            },
            headers,
            parsed: Arc::new(parsed),
            folder,
        })
    }

    /// Returns the kind of the device's times.
    pub(super) fn timing(&self) -> TimingKind {
        match self.predicted {
            true => TimingKind::Predicted,
            false => TimingKind::Measured,
        }
    }

    /// Returns the identity of the evolution for the store.
    pub(super) fn start(&self, mutator: String) -> EvolutionStart {
        EvolutionStart {
            kernel: self.parsed.spec.kernel.clone(),
            template_hash: self.parsed.template.hash.to_string(),
            device: self.device_name.clone(),
            timing: self.timing(),
            seed: Seed(self.seed),
            mutator,
            settings: serde_json::json!({
                "accept": self.rules.to_string(),
                "evals": self.evals,
                "base_evals": self.base_evals,
                "rounds": self.rounds,
                "problems": self.problems,
            }),
        }
    }
}

/// Sets up one trial to identify the device and to reject unknown problems.
fn facts(args: &Args, folder: &std::path::Path) -> Result<DeviceFacts, CliError> {
    let request = Request {
        kernels: vec![args.kernel.clone()],
        device: args.device.clone(),
        problems: args.problem.clone(),
        evals: Some(1),
        no_baseline: true,
        ..Request::default()
    };
    let prepared = Prepared::new(&request, folder)?;
    prepared.notes.iter().for_each(|note| say!("{note}"));
    Ok(prepared.facts().clone())
}

/// Returns the names that a template includes, and the texts of its headers.
fn headers(kernel: &Kernel) -> Headers {
    let names = included_names(&kernel.template.text).into_iter();
    let texts = kernel.template.headers.iter();
    Headers {
        names: names.map(|(name, _)| name).collect(),
        texts: texts.map(|header| header.text.clone()).collect(),
    }
}

/// Derives the seed of the checks, which no request to a mutator contains.
fn check_seed(seed: u64, template: &ContentHash) -> u64 {
    let parts = [
        b"checks".as_slice(),
        &seed.to_le_bytes(),
        template.as_str().as_bytes(),
    ];
    let hash = ContentHash::from_parts(parts);
    u64::from_str_radix(hash.as_str().get(..16).unwrap_or_default(), 16).unwrap_or(seed)
}
