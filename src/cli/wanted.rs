//! Run arguments shared by `run` and `submit`.

use super::CliError;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use tuner_engine::job::{Jobs, ProveBudget, Request};
use tuner_engine::{parse_budget, parse_share};
use tuner_kernel::catalog;
use tuner_search::StrategyName;

/// Kernels, limits, device and search of a run.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Kernels, by name or search space file [default: all in search_spaces/]
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernels: Vec<String>,

    /// Stop after this time, such as 90s, 2h or 1h30m (recorded time on replay)
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,

    /// Stop after this many configurations, over all kernels and problems. A launch over a limit of
    /// the device, such as its threads a block, is `launch_failed` without a compile and not counted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    evals: Option<u64>,

    /// Stop when the expected gain of further trials is at most this share of the best time, with 90 %
    /// confidence [default share: 1%]; --budget and --evals are then upper limits
    #[arg(long, value_name = "SHARE", num_args = 0..=1, require_equals = true, default_missing_value = "1%")]
    until_converged: Option<String>,

    /// Search for the Pareto front of two objectives: time and one of p90, registers, code_size and
    /// energy, such as time,registers (`leaderboard --pareto` shows it)
    #[arg(long, value_name = "TIME,OTHER")]
    pub(super) objective: Option<String>,

    /// Device: auto, cuda, cuda:N, vgpu:NAME, vgpu:NAME@CLOCK or replay:FILE
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(super) device: String,

    /// Compile for this target [default: the GPU's, with the features that the search space requires]
    #[arg(long, value_name = "sm_XX")]
    arch: Option<String>,

    /// Use only this problem; may be repeated
    #[arg(long, value_name = "NAME")]
    problem: Vec<String>,

    /// Search strategy [default: evolve]
    #[arg(long, value_name = "NAME", value_parser = strategy_names())]
    strategy: Option<String>,

    /// Guide the search by predicted times, of a sample of the space before the run and of each
    /// candidate: `vgpu` predicts with the virtual GPU nearest to the device. Results are still
    /// measured on the device
    #[arg(long, value_name = "MODEL", value_parser = ["vgpu"])]
    prior: Option<String>,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of parallel compilations [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<Jobs>,

    /// Use the results in this file as prior knowledge (a recording, a database, a CSV of configurations
    /// and times), in addition to the database's results of other devices, problems and versions; may
    /// be repeated
    #[arg(long, value_name = "FILE")]
    knowledge: Vec<String>,

    /// Ignore results of other devices, problems and versions
    #[arg(long, conflicts_with = "knowledge")]
    no_knowledge: bool,

    /// Run a new best candidate whole on the timed problem before it is announced, on a virtual GPU, if
    /// that takes at most this number of lane instructions; 0: never [default: 3e10]
    #[arg(long, value_name = "N")]
    prove_budget: Option<ProveBudget>,

    /// Judge every candidate again. Otherwise a candidate that an earlier run judged with the same
    /// template, reference, compiler and device is answered from the database, and counts as judged; on a
    /// GPU times within 15 % of the best are measured again
    #[arg(long)]
    fresh: bool,

    /// Skip the baseline commands of the search spaces
    #[arg(long)]
    no_baseline: bool,
}

impl RunArgs {
    /// Returns the user's argument for a kernel: its file, if one was given.
    pub(super) fn name_of<'k>(&'k self, kernel: &'k str) -> &'k str {
        let means = |typed: &&String| {
            let folder = std::env::current_dir().unwrap_or_default();
            catalog::kernel_of(typed, &folder).is_ok_and(|known| known == kernel)
        };
        self.kernels
            .iter()
            .find(means)
            .map_or(kernel, String::as_str)
    }

    /// Returns the option that a kernel's argument is the value of, as it is to be typed.
    fn meant_option(&self, text: &str) -> Option<String> {
        let value: String = text.split_whitespace().collect();
        // The option requires `=`: for clap the share of `--until-converged 1%` is a kernel.
        let converges = self.until_converged.is_some() || value.ends_with('%');
        if converges && parse_share(&value).is_ok() {
            Some(format!("--until-converged={value}"))
        } else if value.parse::<u64>().is_ok() {
            Some(format!("--evals {value}"))
        } else {
            let is_time = parse_budget(&value).is_ok();
            is_time.then(|| format!("--budget {value}"))
        }
    }

    /// Builds the request.
    ///
    /// # Errors
    /// A value of an option that was taken for a kernel.
    pub(super) fn request(&self) -> Result<Request, CliError> {
        let meant = |text: &String| Some((text.clone(), self.meant_option(text)?));
        if let Some((text, option)) = self.kernels.iter().find_map(meant) {
            refuse!("`{text}` is not a kernel; type {option}");
        }
        Ok(Request {
            kernels: self.kernels.clone(),
            device: self.device.clone(),
            arch: self.arch.clone(),
            problems: self.problem.clone(),
            budget: self.budget.clone(),
            evals: self.evals,
            until_converged: self.until_converged.clone(),
            objective: self.objective.clone(),
            strategy: self.strategy.clone(),
            prior: self.prior.clone(),
            seed: self.seed,
            jobs: self.jobs,
            no_baseline: self.no_baseline,
            knowledge: self.knowledge.clone(),
            no_knowledge: self.no_knowledge,
            prove_budget: self.prove_budget,
            fresh: self.fresh,
            shapes: None,
            source: None,
            change: None,
            known_kernel: None,
            spaces_until: None,
            fresh_checks: None,
        })
    }
}

/// Parses the name of a strategy; `--help` lists all of them with their descriptions.
pub(super) fn strategy_names() -> PossibleValuesParser {
    let known = StrategyName::value_variants();
    PossibleValuesParser::new(known.iter().filter_map(ValueEnum::to_possible_value))
}
