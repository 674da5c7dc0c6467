//! Cache of model inputs. Candidates return with every new model, and querying all sources for one
//! costs more than the rest of its proposal.

use super::Knowledge;
use crate::encode::Encoder;
use std::collections::HashMap;
use surrogate::Input;
use tuner_space::Config;

/// Largest number of cached inputs.
const MAX_INPUTS: usize = 16_384;

/// Cached results of [`Knowledge::input`].
#[derive(Debug)]
pub(crate) struct InputCache {
    knowledge: Knowledge,
    doubt: f64,
    inputs: HashMap<Config, Input>,
}

impl InputCache {
    /// Creates an empty cache.
    pub(crate) fn new(knowledge: Knowledge, doubt: f64) -> Self {
        Self {
            knowledge,
            doubt,
            inputs: HashMap::new(),
        }
    }

    /// Returns the knowledge of the inputs.
    pub(crate) fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Returns the model input of a configuration, computed on first use.
    pub(crate) fn get(&mut self, config: &Config, encoder: &Encoder) -> &Input {
        if self.inputs.len() >= MAX_INPUTS && !self.inputs.contains_key(config) {
            self.inputs.clear();
        }
        let (knowledge, doubt) = (&self.knowledge, self.doubt);
        self.inputs
            .entry(config.clone())
            .or_insert_with(|| knowledge.input(encoder, config, doubt))
    }
}
