//! A second search that knows nothing of the first.
//!
//! The model believes in the optimum that it has found: what differs from it in several parameters
//! at once promises nothing, whatever is there. A search that begins elsewhere and never hears of
//! that optimum finds others (multi-start; Rinnooy Kan and Timmer 1987). It gets its turns only while
//! the first gains nothing, and is given up for a third when it gains nothing either.

use super::archive::{Archive, Outcome};
use super::{Guided, Settings};
use crate::knowledge::Knowledge;
use crate::{Observation, Strategy as _};
use rand::RngExt as _;
use std::collections::HashMap;
use tuner_core::record::Verdict;
use tuner_core::units::{Micros, Seed};
use tuner_space::Config;

/// Proposals in a row that the first search has tried already, and whose results are told at once,
/// before the first search goes on.
const MOST_KNOWN: usize = 20;

/// The second search.
#[derive(Default)]
pub(super) struct Second {
    search: Option<Box<Guided>>,
    /// What it waits for, by its own numbers.
    asked: HashMap<Config, u64>,
    /// Proposals since the first search began to gain nothing.
    turn: usize,
}

impl Guided {
    /// What the second search proposes, where it has its turn.
    pub(super) fn ask_second(&mut self) -> Option<Config> {
        let after = self.settings.second_after;
        if self.archive.since_gain < after {
            return None;
        }
        self.second.turn += 1;
        if !self.second.turn.is_multiple_of(self.settings.second_every) {
            return None;
        }
        let over = |search: &Guided| search.archive.since_gain >= after;
        if self.second.search.as_deref().is_none_or(over) {
            self.second.search = Some(Box::new(self.another()));
            self.second.asked.clear();
        }
        let search = self.second.search.as_mut()?;
        for _ in 0..MOST_KNOWN {
            let proposal = search.ask()?;
            if self.fresh.claim(&proposal.config) {
                let asked = &mut self.second.asked;
                asked.insert(proposal.config.clone(), proposal.id);
                return Some(proposal.config);
            }
            search.tell(proposal.id, self.archive.told_of(&proposal.config));
        }
        None
    }

    /// A search of the same space, from nothing.
    fn another(&mut self) -> Self {
        let settings = Settings {
            second_after: usize::MAX,
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

    /// Tells the second search of a result that it has asked for.
    pub(super) fn tell_second(&mut self, place: usize, told: Observation) {
        let config = &self.archive.entries[place].config;
        let id = self.second.asked.remove(config);
        if let Some((search, id)) = self.second.search.as_mut().zip(id) {
            search.tell(id, told);
        }
    }
}

impl Archive {
    /// What is known of a configuration, as it was told.
    fn told_of(&self, config: &Config) -> Observation {
        let mut entries = self.entries.iter().enumerate();
        let found = entries.find(|(_, entry)| entry.config == *config);
        let Some((place, Some(result))) = found.map(|(place, entry)| (place, entry.result)) else {
            return Observation::Unknown;
        };
        match result {
            Outcome::Failed => Observation::Failed(Verdict::LaunchFailed),
            Outcome::Log(log, error) => {
                Micros::new(log.exp()).map_or(Observation::Unknown, |time| Observation::Time {
                    time,
                    error,
                    other: self.other(place).map(f64::exp),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
