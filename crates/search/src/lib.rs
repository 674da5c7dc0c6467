//! What to try next: search strategies behind one ask/tell interface.
//!
//! Pure: no clock, no files, no threads. The engine asks for proposals while earlier ones are
//! still being compiled, and tells results in whatever order they arrive. The same seed, the same
//! asks and the same tells give the same proposals.
#![expect(
    clippy::indexing_slicing,
    reason = "parameters, choices, coordinates and entries are numbered by the space and the archive that hold them, and configurations come from the space itself"
)]

mod classic;
mod encode;
mod exhaustive;
mod fresh;
mod guided;
mod knowledge;
mod random;
mod survey;
mod variation;

pub use guided::Settings;
pub use knowledge::{Experience, Knowledge, MAX_SOURCES};
pub use survey::Survey;

use tuner_core::record::Verdict;
use tuner_core::units::{Micros, Seed};
use tuner_space::{Config, Space};

/// The names that [`strategy`] knows, the default first.
pub const STRATEGIES: [&str; 7] = [
    "evolve",
    "random",
    "local",
    "annealing",
    "differential",
    "genetic",
    "exhaustive",
];

/// The chance with which [`Strategy::left`] holds, over recorded spaces that it was not calibrated on
/// (`docs/search.md`).
pub const LEFT_CHANCE: f64 = 0.9;

/// A configuration to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Counts up from 0 within a strategy; names the proposal in [`Strategy::tell`].
    pub id: u64,
    /// A valid configuration that was never proposed before.
    pub config: Config,
    /// The operator that made it, such as `mutate`.
    pub origin: &'static str,
}

/// What became of a proposal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observation {
    /// It is right, and this fast.
    Time {
        /// The measured time.
        time: Micros,
        /// Its standard error, as a share of the time; 0 where a time is exact or its error is not
        /// known.
        error: f64,
        /// A second objective beside the time, above 0, where one counts: the search then looks for
        /// the front of both.
        other: Option<f64>,
    },
    /// It failed, and why.
    Failed(Verdict),
    /// It was not judged, through no fault of its own: nothing is known of it.
    Unknown,
}

impl Observation {
    /// A time without an error that is known.
    #[must_use]
    pub fn exactly(time: Micros) -> Self {
        Self::Time {
            time,
            error: 0.0,
            other: None,
        }
    }
}

/// What the compiler and a model of the device say of a candidate that was not evaluated yet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CompileStats {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes a thread that ptxas spilled.
    pub spill_bytes: u64,
    /// Shared memory a block, bytes.
    pub shared_bytes: u64,
    /// Predicted time, where a model was asked.
    pub predicted: Option<Micros>,
    /// The second objective, where one counts and the compiler decides it.
    pub other: Option<f64>,
}

/// A proposal that is compiled and can be evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ready {
    /// The proposal.
    pub id: u64,
    /// What is known of it; `None` where the device knows nothing, as with recorded data.
    pub facts: Option<CompileStats>,
}

/// A search over one space.
///
/// Candidates are compiled ahead of the device, so proposals are asked for before the results that
/// would have changed them. [`Strategy::choose`] makes up for that: which of the compiled ones is
/// evaluated next is decided when the device is free, with all that is known by then.
///
/// # Contract
/// Never proposes a configuration twice unless it was withdrawn, nor one the space does not contain; takes tells in any
/// order; proposes every configuration of the space if asked often enough.
pub trait Strategy: Send {
    /// The next configuration to try. `None` when the space is exhausted, or when there is nothing
    /// to propose until something is told.
    fn ask(&mut self) -> Option<Proposal>;

    /// Which of the compiled proposals to evaluate next, as a place in `ready`, which is not empty
    /// and lists the oldest first. The one chosen counts as being evaluated. A caller that never
    /// asks this evaluates in any order it likes.
    fn choose(&mut self, ready: &[Ready]) -> usize {
        let _ = ready;
        0
    }

    /// Whether [`Strategy::choose`] weighs what is ready; otherwise the oldest is next, whatever is
    /// known of the others, and nobody need wait for those.
    fn chooses(&self) -> bool {
        false
    }

    /// Which of the compiled proposals to give up, as a place in `ready`, to make room for others;
    /// it may be proposed again. `None`: none of them.
    fn withdraw(&mut self, ready: &[Ready]) -> Option<usize> {
        let _ = ready;
        None
    }

    /// Takes the result of the proposal `id`. An unknown or already told `id` changes nothing.
    fn tell(&mut self, id: u64, told: Observation);

    /// Takes a result from elsewhere, such as an interrupted run: the configuration counts as
    /// proposed and its result as told.
    fn observe(&mut self, config: &Config, told: Observation);

    /// Takes over what is known from elsewhere by now, in place of what was known before. A strategy
    /// that uses none takes no notice.
    fn know(&mut self, knowledge: &Knowledge) {
        let _ = knowledge;
    }

    /// How well each source of what it knew beforehand ordered the results that came: the rank
    /// correlation (Spearman) of what was expected and measured, 1 for the same order, 0 for none and
    /// -1 for the reverse. Empty where it knew nothing, or too few results have a time.
    fn worth(&self) -> Vec<f64> {
        Vec::new()
    }

    /// What further trials may still bring: with a chance of [`LEFT_CHANCE`] no configuration of the
    /// space is faster than the fastest so far by more than this share of its time. `None` where
    /// there is no model, or too few results for one.
    fn left(&self) -> Option<f64> {
        None
    }

    /// The name it is chosen by.
    fn name(&self) -> &'static str;

    /// Whether every configuration has been proposed.
    fn exhausted(&self) -> bool;
}

/// No strategy has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no strategy is called `{name}`; choose one of: {}", STRATEGIES.join(", "))]
pub struct UnknownStrategy {
    /// What was asked for.
    pub name: String,
}

/// Makes the strategy called `name`. `start` is proposed first, in order, duplicates and invalid
/// configurations left out.
///
/// # Errors
/// [`UnknownStrategy`] when none has that name.
pub fn strategy(
    name: &str,
    space: &Space,
    seed: Seed,
    start: &[Config],
) -> Result<Box<dyn Strategy>, UnknownStrategy> {
    knowing(name, space, seed, start, &Knowledge::default())
}

/// The same with what is known from elsewhere, of which only `evolve` makes use.
///
/// # Errors
/// [`UnknownStrategy`] when none has that name.
pub fn knowing(
    name: &str,
    space: &Space,
    seed: Seed,
    start: &[Config],
    knowledge: &Knowledge,
) -> Result<Box<dyn Strategy>, UnknownStrategy> {
    let searched = || (space, seed, start);
    Ok(match name {
        "evolve" => evolve_knowing(space, seed, start, Settings::default(), knowledge),
        "random" => Box::new(random::Random::new(space, seed, start)),
        "local" => classic(classic::Local::default(), searched()),
        "annealing" => classic(classic::Annealing::default(), searched()),
        "differential" => classic(classic::Differential::default(), searched()),
        "genetic" => classic(classic::Genetic::default(), searched()),
        "exhaustive" => Box::new(exhaustive::Exhaustive::new(space, seed, start)),
        _ => {
            return Err(UnknownStrategy {
                name: name.to_owned(),
            });
        }
    })
}

/// `evolve` with other constants: for studies of what its parts bring.
#[must_use]
pub fn evolve_with(
    space: &Space,
    seed: Seed,
    start: &[Config],
    settings: Settings,
) -> Box<dyn Strategy> {
    evolve_knowing(space, seed, start, settings, &Knowledge::default())
}

/// `evolve` with other constants, and with what is known from elsewhere.
#[must_use]
pub fn evolve_knowing(
    space: &Space,
    seed: Seed,
    start: &[Config],
    settings: Settings,
    knowledge: &Knowledge,
) -> Box<dyn Strategy> {
    Box::new(guided::Guided::new(space, seed, start, settings, knowledge))
}

fn classic<M: classic::Method + 'static>(
    method: M,
    (space, seed, start): (&Space, Seed, &[Config]),
) -> Box<dyn Strategy> {
    Box::new(classic::Classic::new(method, space, seed, start))
}
