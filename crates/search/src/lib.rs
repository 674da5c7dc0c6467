//! Search strategies with a common ask/tell interface.
//!
//! Pure: no clock, no files, no threads. The engine requests proposals while earlier ones are
//! still being compiled, and reports results in the order of arrival. The same seed and the same sequence
//! of calls produce the same proposals.
#![expect(
    clippy::indexing_slicing,
    reason = "parameters, choices, coordinates and entries are numbered by the space and the archive that hold them, and configurations come from the space itself"
)]

mod annealing;
mod classic;
mod differential;
mod encode;
mod exhaustive;
mod fresh;
mod evolve;
mod genetic;
mod knowledge;
mod local;
mod random;
mod survey;
mod variation;

pub use evolve::Settings;
pub use knowledge::{Experience, Knowledge, MAX_SOURCES};
pub use survey::Survey;

use tuner_core::record::Verdict;
use tuner_core::units::{Micros, Seed};
use tuner_space::{Config, Space};

/// Search strategies by their names on the command line, the default first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(
    clap::ValueEnum,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray
)]
#[derive(utoipa::ToSchema)]
#[strum(serialize_all = "lowercase")]
#[schema(rename_all = "lowercase")]
pub enum StrategyName {
    /// Model-based evolution; the only strategy that uses prior knowledge
    #[default]
    Evolve,
    /// Random configurations
    Random,
    /// Local search with restarts
    Local,
    /// Simulated annealing
    Annealing,
    /// Differential evolution
    Differential,
    /// Genetic algorithm
    Genetic,
    /// Every configuration once, in random order
    Exhaustive,
}

impl StrategyName {
    /// All strategies, in order.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the strategy of that name.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(name: &str) -> Result<Self, UnknownStrategy> {
        name.parse().map_err(|_| UnknownStrategy {
            name: name.to_owned(),
        })
    }

    /// Reports whether the strategy learns from results, also from earlier ones.
    #[must_use]
    pub fn has_model(self) -> bool {
        self == Self::Evolve
    }
}

/// Probability with which [`Strategy::remaining_gain`] holds, measured over recorded spaces that did not
/// take part in its calibration (`docs/evidence/search.md`).
pub const LEFT_CHANCE: f64 = 0.9;

/// A proposed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Number that counts up from 0 within a strategy; identifies the proposal in
    /// [`Strategy::tell`].
    pub id: u64,
    /// A valid configuration, not proposed before.
    pub config: Config,
    /// Name of the operator that produced it, such as `mutate`.
    pub origin: &'static str,
}

/// The result of a proposal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observation {
    /// The candidate is correct and has a time.
    Time {
        /// The measured time.
        time: Micros,
        /// Standard error as a share of the time; 0 for an exact time or an unknown error.
        error: f64,
        /// Second objective in addition to the time, above 0, if the run has one. The search then optimizes
        /// the Pareto front of both.
        other: Option<f64>,
    },
    /// The candidate failed with this verdict.
    Failed(Verdict),
    /// The candidate was not judged for an external reason; the result is unknown.
    Unknown,
}

impl Observation {
    /// Creates a time without a known error.
    #[must_use]
    pub fn exactly(time: Micros) -> Self {
        Self::Time {
            time,
            error: 0.0,
            other: None,
        }
    }
}

/// Facts about a candidate before its evaluation, from the compiler and a device model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CompileStats {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes per thread that ptxas spilled.
    pub spill_bytes: u64,
    /// Shared memory per block, bytes.
    pub shared_bytes: u64,
    /// Predicted time, if a device model made a prediction.
    pub predicted: Option<Micros>,
    /// Second objective, if the run has one and the compiler determines it.
    pub other: Option<f64>,
}

/// A compiled proposal, ready for evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ready {
    /// Identifier of the proposal.
    pub id: u64,
    /// Compile-time facts; `None` if the device has none, as with recorded data.
    pub facts: Option<CompileStats>,
}

/// A search over one space.
///
/// The engine compiles candidates ahead of the device, so it requests proposals before the results
/// that would have changed them. [`Strategy::choose`] compensates: it selects the next compiled
/// proposal when the device becomes free, with all results known by then.
///
/// # Contract
/// Never proposes a configuration twice unless it was withdrawn, nor one outside the space.
/// Accepts results in any order. Proposes every configuration of the space after enough requests.
pub trait Strategy: Send {
    /// Returns the next configuration to try. `None` if the space is exhausted, or if the strategy
    /// needs a result before its next proposal.
    fn ask(&mut self) -> Option<Proposal>;

    /// Selects the compiled proposal to evaluate next and returns its index in `ready`, which is
    /// not empty and lists the oldest first. The selected one counts as being evaluated. Calling
    /// this is optional: without it, the caller evaluates in any order.
    fn choose(&mut self, ready: &[Ready]) -> usize {
        let _ = ready;
        0
    }

    /// Returns true if [`Strategy::choose`] compares the ready proposals. If false, the oldest is
    /// next, so the caller need not wait for the others.
    fn chooses(&self) -> bool {
        false
    }

    /// Selects a compiled proposal to drop in favour of others and returns its index in `ready`; the
    /// strategy may propose it again. `None` keeps all of them.
    fn withdraw(&mut self, ready: &[Ready]) -> Option<usize> {
        let _ = ready;
        None
    }

    /// Takes the result of the proposal `id`. An unknown or already reported `id` is ignored.
    fn tell(&mut self, id: u64, observation: Observation);

    /// Takes a result from elsewhere, such as an interrupted run: the configuration counts as
    /// proposed and its result as reported.
    fn observe(&mut self, config: &Config, observation: Observation);

    /// Replaces the prior knowledge. A strategy without prior knowledge ignores the call.
    fn know(&mut self, knowledge: &Knowledge) {
        let _ = knowledge;
    }

    /// Returns the Spearman rank correlation of each knowledge source's expectations with the
    /// measured times: 1 for the same order, 0 for none, -1 for the reverse. Empty without sources
    /// or with too few timed results.
    fn source_correlations(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Returns the expected gain of further trials as a share of the best time so far: with
    /// probability [`LEFT_CHANCE`] no configuration of the space gains more. `None` without a model
    /// or with too few results.
    fn remaining_gain(&self) -> Option<f64> {
        None
    }

    /// Returns the expected improvement of the next trial by the search's own model: the expected
    /// decrease of the logarithm of the best time. `None` without a model or with too few results.
    fn expected_improvement(&self) -> Option<f64> {
        None
    }

    /// Returns true once every configuration has been proposed.
    fn exhausted(&self) -> bool;
}

/// Error for an unknown strategy name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown strategy `{name}`; choose one of: {}",
    StrategyName::ALL.iter().map(|known| known.name()).collect::<Vec<_>>().join(", ")
)]
pub struct UnknownStrategy {
    /// The requested name.
    pub name: String,
}

/// Creates the strategy called `name`. It proposes `start` first, in order, without duplicates and
/// invalid configurations.
///
/// # Errors
/// [`UnknownStrategy`] if no [`StrategyName`] is called `name`.
pub fn strategy(
    name: &str,
    space: &Space,
    seed: Seed,
    start: &[Config],
) -> Result<Box<dyn Strategy>, UnknownStrategy> {
    with_knowledge(name, space, seed, start, &Knowledge::default())
}

/// Creates the strategy called `name` with prior knowledge, which only `evolve` uses.
///
/// # Errors
/// [`UnknownStrategy`] if no [`StrategyName`] is called `name`.
pub fn with_knowledge(
    name: &str,
    space: &Space,
    seed: Seed,
    start: &[Config],
    knowledge: &Knowledge,
) -> Result<Box<dyn Strategy>, UnknownStrategy> {
    let name = StrategyName::parse(name)?;
    Ok(match name {
        StrategyName::Evolve => {
            evolve_with_knowledge(space, seed, start, Settings::default(), knowledge)
        }
        StrategyName::Random => Box::new(random::Random::new(space, seed, start)),
        StrategyName::Local => classic::<local::Local>(name, space, seed, start),
        StrategyName::Annealing => classic::<annealing::Annealing>(name, space, seed, start),
        StrategyName::Differential => {
            classic::<differential::Differential>(name, space, seed, start)
        }
        StrategyName::Genetic => classic::<genetic::Genetic>(name, space, seed, start),
        StrategyName::Exhaustive => Box::new(exhaustive::Exhaustive::new(space, seed, start)),
    })
}

/// Creates `evolve` with other settings, for ablation studies.
#[must_use]
pub fn evolve_with(
    space: &Space,
    seed: Seed,
    start: &[Config],
    settings: Settings,
) -> Box<dyn Strategy> {
    evolve_with_knowledge(space, seed, start, settings, &Knowledge::default())
}

/// Creates `evolve` with other settings and with prior knowledge.
#[must_use]
pub fn evolve_with_knowledge(
    space: &Space,
    seed: Seed,
    start: &[Config],
    settings: Settings,
    knowledge: &Knowledge,
) -> Box<dyn Strategy> {
    Box::new(evolve::Evolve::new(space, seed, start, settings, knowledge))
}

fn classic<M: classic::Method + Default + 'static>(
    name: StrategyName,
    space: &Space,
    seed: Seed,
    start: &[Config],
) -> Box<dyn Strategy> {
    Box::new(classic::Classic::<M>::new(name, space, seed, start))
}
