//! Independent second search.
//!
//! The model is confident in the optimum it has found: candidates that differ from it in several parameters
//! score low, even if they are fast. A search that starts elsewhere without these results finds other
//! optima (multi-start; Rinnooy Kan and Timmer 1987). It gets turns only while the first search gains
//! nothing, and is replaced by another one once it stops gaining too.

use super::archive::{Archive, Outcome};
use super::{Evolve, Settings};
use crate::knowledge::Knowledge;
use crate::{Observation, Strategy as _};
use rand::RngExt as _;
use std::collections::HashMap;
use tuner_core::record::Verdict;
use tuner_core::units::{Micros, Seed};
use tuner_space::Config;

/// Largest number of consecutive proposals that the first search has already tried. Their results
/// are reported immediately; after them the first search takes the turn.
const MAX_REPEATED_PROPOSALS: usize = 20;

/// The second search.
#[derive(Default)]
pub(super) struct Second {
    search: Option<Box<Evolve>>,
    /// Pending proposals by configuration, with the identifiers of the second search.
    asked: HashMap<Config, u64>,
    /// Proposals since the first search stopped gaining.
    turn: usize,
}

impl Evolve {
    /// Requests a proposal of the second search, if it has the turn.
    pub(super) fn propose_second(&mut self) -> Option<Config> {
        let after = self.settings.second_after;
        // Only a stalled search shares its proposals with a restart.
        if self.archive.since_gain < after {
            return None;
        }
        self.second.turn += 1;
        if !self.second.turn.is_multiple_of(self.settings.second_every) {
            return None;
        }
        let over = |search: &Evolve| search.archive.since_gain >= after;
        if self.second.search.as_deref().is_none_or(over) {
            self.second.search = Some(Box::new(self.new_search()));
            self.second.asked.clear();
        }
        let search = self.second.search.as_mut()?;
        for _ in 0..MAX_REPEATED_PROPOSALS {
            let proposal = search.ask()?;
            if self.fresh.claim(&proposal.config) {
                let asked = &mut self.second.asked;
                asked.insert(proposal.config.clone(), proposal.id);
                return Some(proposal.config);
            }
            // Already evaluated: the restart gets the known result without a launch.
            search.tell(proposal.id, self.archive.observation_for(&proposal.config));
        }
        None
    }

    /// Creates a search of the same space without results.
    fn new_search(&mut self) -> Self {
        let settings = Settings {
            // The restart must not start another one.
            second_after: usize::MAX,
            // Prior knowledge may have shortened this search's opening; the restart has no knowledge.
            opening: Settings::default().opening,
            ..self.settings.clone()
        };
        let seed = Seed(self.rng.random());
        Self::new(
            self.fresh.space(),
            seed,
            &[],
            settings,
            &Knowledge::default(),
        )
    }

    /// Reports a result to the second search if it proposed the configuration.
    pub(super) fn report_to_second(&mut self, index: usize, observation: Observation) {
        let config = &self.archive.entries[index].config;
        let id = self.second.asked.remove(config);
        if let Some((search, id)) = self.second.search.as_mut().zip(id) {
            search.tell(id, observation);
        }
    }
}

impl Archive {
    /// Returns the observation of a configuration as it was reported.
    fn observation_for(&self, config: &Config) -> Observation {
        let mut entries = self.entries.iter().enumerate();
        let found = entries.find(|(_, entry)| entry.config == *config);
        let Some((index, Some(result))) = found.map(|(index, entry)| (index, entry.result)) else {
            return Observation::Unknown;
        };
        match result {
            Outcome::Failed => Observation::Failed(Verdict::LaunchFailed),
            Outcome::Log(log, error) => {
                Micros::new(log.exp()).map_or(Observation::Unknown, |time| Observation::Time {
                    time,
                    error,
                    other: self.other(index).map(f64::exp),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
