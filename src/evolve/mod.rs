//! What to try next: search strategies behind one ask/tell interface.
//!
//! Pure: no clock, no files, no threads. The engine asks for proposals while earlier ones are
//! still being compiled, and tells results in whatever order they arrive. The same seed, the same
//! asks and the same tells give the same proposals.

mod evolutionary;
mod exhaustive;
mod fresh;
mod random;
mod variation;

use crate::record::Verdict;
use crate::space::{Config, Space};
use crate::units::{Micros, Seed};

/// The names that [`strategy`] knows, the default first.
pub const STRATEGIES: [&str; 3] = ["evolve", "random", "exhaustive"];

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It is right, and this fast.
    Time(Micros),
    /// It failed, and why.
    Failed(Verdict),
}

/// A search over one space.
///
/// # Contract
/// Never proposes a configuration twice, nor one the space does not contain; takes tells in any
/// order; proposes every configuration of the space if asked often enough.
pub trait Strategy: Send {
    /// The next configuration to try. `None` when the space is exhausted, or when there is nothing
    /// to propose until something is told.
    fn ask(&mut self) -> Option<Proposal>;

    /// Takes the result of the proposal `id`. An unknown or already told `id` changes nothing.
    fn tell(&mut self, id: u64, told: Told);

    /// Takes a result from elsewhere, such as an interrupted run: the configuration counts as
    /// proposed and its result as told.
    fn observe(&mut self, config: &Config, told: Told);

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
    Ok(match name {
        "evolve" => Box::new(evolutionary::Evolve::new(space, seed, start)),
        "random" => Box::new(random::Random::new(space, seed, start)),
        "exhaustive" => Box::new(exhaustive::Exhaustive::new(space, seed, start)),
        _ => {
            return Err(UnknownStrategy {
                name: name.to_owned(),
            });
        }
    })
}
