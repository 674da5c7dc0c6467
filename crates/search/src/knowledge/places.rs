//! What is believed of configurations, remembered: candidates come back with every new model, and
//! asking all sources about one costs more than the rest of its proposal.

use super::Knowledge;
use crate::encode::Encoder;
use std::collections::HashMap;
use surrogate::Place;
use tuner_space::Config;

/// Places remembered at most.
const MAX_PLACES: usize = 16_384;

/// Answers of [`Knowledge::place`].
#[derive(Debug)]
pub(crate) struct Places {
    knowledge: Knowledge,
    doubt: f64,
    known: HashMap<Config, Place>,
}

impl Places {
    /// None yet.
    pub(crate) fn new(knowledge: Knowledge, doubt: f64) -> Self {
        Self {
            knowledge,
            doubt,
            known: HashMap::new(),
        }
    }

    /// What they are answers of.
    pub(crate) fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Where a configuration lies, and what is believed of it beforehand.
    pub(crate) fn of(&mut self, config: &Config, encoder: &Encoder) -> &Place {
        if self.known.len() >= MAX_PLACES && !self.known.contains_key(config) {
            self.known.clear();
        }
        let (knowledge, doubt) = (&self.knowledge, self.doubt);
        self.known
            .entry(config.clone())
            .or_insert_with(|| knowledge.place(encoder, config, doubt))
    }
}
