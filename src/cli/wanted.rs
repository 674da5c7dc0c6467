//! What a run is asked to do: the arguments that `run` and `submit` share.

use std::path::PathBuf;
use tuner_engine::job::{Jobs, Request};

/// Kernels, limits, device and search of a run.
#[derive(Debug, clap::Args)]
pub(super) struct Wanted {
    /// Kernels by name, or search space files; none: all in search_spaces/
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernels: Vec<String>,

    /// Time to spend, such as 90s, 2h or 1h30m (recorded time on replay)
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,

    /// Unique valid configurations to judge, over all kernels and problems
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    evals: Option<u64>,

    /// auto, cuda, cuda:N, vgpu:NAME or replay:FILE
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,

    /// Only this problem; may be repeated
    #[arg(long, value_name = "NAME")]
    problem: Vec<String>,

    /// How to search: evolve, random, local, annealing, differential, genetic or exhaustive
    /// [default: evolve]
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,

    /// Let a model say beforehand what candidates may take: `vgpu`, the virtual GPU most like the
    /// device. It helps to choose what is evaluated; results are the device's own
    #[arg(long, value_name = "MODEL", value_parser = ["vgpu"])]
    prior: Option<String>,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Candidates prepared (compiled) at once [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<Jobs>,

    /// Results that the search may know beforehand, beside those that the database has of other
    /// devices, problems and versions of the kernel: recorded files, databases, CSV of
    /// configurations and times; may be repeated
    #[arg(long, value_name = "FILE")]
    knowledge: Vec<PathBuf>,

    /// Start from nothing, whatever the database holds
    #[arg(long, conflicts_with = "knowledge")]
    no_knowledge: bool,

    /// Do not ask the baselines' commands of the spaces, which take some seconds each
    #[arg(long)]
    no_baseline: bool,
}

impl Wanted {
    /// What the arguments ask for.
    pub(super) fn request(&self) -> Request {
        Request {
            kernels: self.kernels.clone(),
            device: self.device.clone(),
            problems: self.problem.clone(),
            budget: self.budget.clone(),
            evals: self.evals,
            strategy: self.strategy.clone(),
            prior: self.prior.clone(),
            seed: self.seed,
            jobs: self.jobs,
            no_baseline: self.no_baseline,
            knowledge: self.knowledge.clone(),
            no_knowledge: self.no_knowledge,
        }
    }
}
