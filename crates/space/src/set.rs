//! Space: an immutable, exact, compressed set of configurations.
#![expect(
    clippy::indexing_slicing,
    reason = "a configuration has a choice for each parameter of its space, and a choice is a place among its values"
)]

use super::Fault;
use super::diagram::Diagram;
use super::expr::{Program, Val};
use super::parameter::{Config, Neighbourhood, Parameter};
use rand::Rng;
use std::sync::Arc;
use tuner_core::record::ConfigValues;
use tuner_core::units::ContentHash;
use tuner_core::value::Value;

/// All valid configurations of a kernel: parameters, and the combinations of their values that satisfy the
/// constraints. They are never enumerated, but counted, indexed and drawn from decision diagrams.
///
/// Clones share the data.
#[derive(Debug, Clone)]
pub struct Space(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) name: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) rules: Vec<Rule>,
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) diagrams: Vec<Diagram>,
    /// Group and layer of every parameter.
    pub(super) place: Vec<(usize, usize)>,
    pub(super) count: u128,
    pub(super) hash: ContentHash,
    /// The constraint that empties the space, if it is empty.
    pub(super) empty: Option<Empty>,
}

/// Reason for an empty space.
#[derive(Debug, Clone)]
pub(super) struct Empty {
    pub(super) reason: String,
    /// Index of the responsible constraint.
    pub(super) rule: Option<usize>,
}

/// A constraint compiled for evaluation on one configuration.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) why: Option<String>,
    pub(super) program: Program,
}

/// Named values that do not form a configuration of the space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Unknown parameter.
    #[error("unknown parameter `{name}`{}", help(.near))]
    UnknownParameter {
        /// The given name.
        name: String,
        /// The nearest known name.
        near: Option<String>,
    },
    /// Value outside the parameter's list.
    #[error("`{name}` does not take {value}: its values are {values}")]
    UnknownValue {
        /// The parameter.
        name: String,
        /// The given value.
        value: String,
        /// The possible values.
        values: String,
    },
    /// A parameter given twice.
    #[error("`{name}` is given twice: give it once")]
    Repeated {
        /// The parameter.
        name: String,
    },
}

fn help(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!(": did you mean `{near}`?"))
}

impl Space {
    /// Returns the space's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the parameters, in declared order.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.0.parameters
    }

    /// Returns the number of combinations without constraints, saturated at `u128::MAX`.
    #[must_use]
    pub fn cartesian(&self) -> u128 {
        self.0.parameters.iter().fold(1_u128, |product, parameter| {
            product.saturating_mul(parameter.values.len() as u128)
        })
    }

    /// Returns the exact number of valid configurations.
    #[must_use]
    pub fn count(&self) -> u128 {
        self.0.count
    }

    /// Returns the memory in use, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let values: usize = self
            .0
            .parameters
            .iter()
            .map(|parameter| parameter.values.len() * size_of::<Value>())
            .sum();
        let diagrams: u64 = self.0.diagrams.iter().map(Diagram::bytes).sum();
        diagrams + values as u64 + size_of::<Inner>() as u64
    }

    /// Returns the groups of parameters that share constraints; choices in different groups are
    /// independent.
    #[must_use]
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.0.groups
    }

    /// Returns the content hash of the set: parameters, values, and constraints with their
    /// constants.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        self.0.hash.clone()
    }

    /// Returns the reason why no configuration is valid, with the constraint; `None` for a space
    /// with configurations.
    #[must_use]
    pub fn empty_reason(&self) -> Option<&str> {
        self.0.empty.as_ref().map(|empty| &*empty.reason)
    }

    /// Returns the index of the constraint that empties the space.
    pub(super) fn empty_rule(&self) -> Option<usize> {
        self.0.empty.as_ref().and_then(|empty| empty.rule)
    }

    fn blank(&self) -> Box<[u32]> {
        vec![0; self.0.parameters.len()].into()
    }

    /// Draws one valid configuration uniformly; `None` for an empty space.
    pub fn draw(&self, rng: &mut impl Rng) -> Option<Config> {
        if self.0.count == 0 {
            return None;
        }
        let mut choices = self.blank();
        for diagram in &self.0.diagrams {
            diagram.draw(rng, &mut choices);
        }
        Some(Config::new(choices))
    }

    /// Reports whether a configuration satisfies every constraint.
    #[must_use]
    pub fn contains(&self, config: &Config) -> bool {
        config.fits(self.parameters())
            && self
                .0
                .diagrams
                .iter()
                .all(|diagram| diagram.contains(config.choices()))
    }

    /// Returns the index of a valid configuration, unique in 0 to `count() - 1`; `None` for an
    /// invalid one.
    #[must_use]
    pub fn index_of(&self, config: &Config) -> Option<u128> {
        if !config.fits(self.parameters()) {
            return None;
        }
        self.0.diagrams.iter().try_fold(0_u128, |index, diagram| {
            Some(index * diagram.count() + diagram.index_of(config.choices())?)
        })
    }

    /// Returns the valid configuration with this index; `None` from `count()` on.
    #[must_use]
    pub fn config_at(&self, mut index: u128) -> Option<Config> {
        if index >= self.0.count {
            return None;
        }
        let mut choices = self.blank();
        // `index_of` makes the last diagram the lowest digit.
        for diagram in self.0.diagrams.iter().rev() {
            let count = diagram.count();
            diagram.write(index % count, &mut choices);
            index /= count;
        }
        Some(Config::new(choices))
    }

    /// Returns the valid configurations that differ from this one in one parameter, in the order of
    /// the parameters and their values. The configuration itself may be invalid.
    #[must_use]
    pub fn neighbours(&self, config: &Config, neighbourhood: Neighbourhood) -> Vec<Config> {
        let mut found = Vec::new();
        if !config.fits(self.parameters()) {
            return found;
        }
        let choices = config.choices();
        let valid: Vec<bool> = self
            .0
            .diagrams
            .iter()
            .map(|diagram| diagram.contains(choices))
            .collect();
        let mut others = Vec::new();
        for (at, parameter) in self.0.parameters.iter().enumerate() {
            let (group, layer) = self.0.place[at];
            // A change in this group cannot fix another group.
            if (0..valid.len()).any(|other| other != group && !valid[other]) {
                continue;
            }
            others.clear();
            self.0.diagrams[group].alternatives(layer, choices, &mut others);
            let near = |choice: u32| {
                choice != choices[at]
                    && (neighbourhood == Neighbourhood::Hamming
                        || !parameter.ordered
                        || choice.abs_diff(choices[at]) == 1)
            };
            let near = others.iter().copied().filter(|choice| near(*choice));
            found.extend(near.map(|choice| config.with(at, choice)));
        }
        found
    }

    /// Draws uniformly among the valid configurations that agree with the fixed choices; `None` if there
    /// are none.
    pub fn complete(&self, fixed: &[Option<u32>], rng: &mut impl Rng) -> Option<Config> {
        if fixed.len() != self.0.parameters.len() {
            return None;
        }
        let mut choices = self.blank();
        for diagram in &self.0.diagrams {
            if !diagram.complete(fixed, rng, &mut choices) {
                return None;
            }
        }
        Some(Config::new(choices))
    }

    /// Repairs a configuration: processes the parameters in the given order and keeps each wanted choice
    /// that is compatible with those kept before. Draws the rest uniformly, including parameters that
    /// `order` omits. `None` only for an empty space.
    pub fn nearest(&self, wanted: &[u32], order: &[usize], rng: &mut impl Rng) -> Option<Config> {
        if self.0.count == 0 || wanted.len() != self.0.parameters.len() {
            return None;
        }
        let mut fixed: Vec<Option<u32>> = vec![None; wanted.len()];
        for at in order {
            fixed[*at] = Some(wanted[*at]);
            let diagram = &self.0.diagrams[self.0.place[*at].0];
            if !diagram.admits(&fixed) {
                fixed[*at] = None;
            }
        }
        self.complete(&fixed, rng)
    }

    /// Returns the message of the first violated constraint; `None` for a valid configuration.
    #[must_use]
    pub fn reject_reason(&self, config: &Config) -> Option<String> {
        if !config.fits(self.parameters()) {
            return Some("it is not a configuration of this space".to_owned());
        }
        let value = |var: u32| {
            let at = var as usize;
            Val::from(&self.0.parameters[at].values[config.choices()[at] as usize])
        };
        for rule in &self.0.rules {
            let verdict = rule.program.evaluate(value).pop().unwrap_or(Val::Unset);
            if verdict.truth() == Some(true) {
                continue;
            }
            let why = rule.why.as_ref().unwrap_or(&rule.text);
            return Some(match verdict {
                Val::Fault(fault) => {
                    format!("{why} ({fault} in `{}`, which counts as false)", rule.text)
                }
                _ => why.clone(),
            });
        }
        if self.contains(config) {
            None
        } else {
            Some("it is not among the listed configurations".to_owned())
        }
    }

    /// Describes constraints that cannot be evaluated for some combination: they count as false
    /// there. Tries a limited number of combinations.
    #[must_use]
    pub fn fault_notes(&self) -> Vec<String> {
        const MAX_COMBINATIONS: usize = 4096;
        let notes = self.0.rules.iter().filter_map(|rule| {
            let sizes = rule.program.vars.iter().map(|var| {
                let values = &self.0.parameters[*var as usize].values;
                (*var, values.len())
            });
            let sizes: Vec<(u32, usize)> = sizes.collect();
            (0..MAX_COMBINATIONS).find_map(|at| {
                // The digits of `at`, one per parameter, enumerate all combinations.
                let mut rest = at;
                let mut chosen = Vec::new();
                for (var, size) in &sizes {
                    chosen.push((*var, &self.0.parameters[*var as usize].values[rest % size]));
                    rest /= size;
                }
                if rest > 0 {
                    return None;
                }
                let value = |var: u32| {
                    let found = chosen.iter().find(|(known, _)| *known == var);
                    found.map_or(Val::Unset, |(_, value)| Val::from(*value))
                };
                match rule.program.evaluate(value).pop() {
                    Some(Val::Fault(fault)) => Some(self.fault_note(fault, rule, &chosen)),
                    _ => None,
                }
            })
        });
        notes.collect()
    }

    fn fault_note(&self, fault: Fault, rule: &Rule, chosen: &[(u32, &Value)]) -> String {
        let chosen: Vec<String> = chosen
            .iter()
            .map(|(var, value)| format!("{} = {value}", self.0.parameters[*var as usize].name))
            .collect();
        let place = match chosen.is_empty() {
            true => String::new(),
            false => format!(" for {}", chosen.join(", ")),
        };
        format!(
            "{fault} in `{}`{place}: the rule counts as false there",
            rule.text
        )
    }

    /// Returns the configuration's values by name, in declared order.
    #[must_use]
    pub fn values(&self, config: &Config) -> ConfigValues {
        self.0
            .parameters
            .iter()
            .zip(config.choices())
            .map(|(parameter, choice)| {
                (
                    parameter.name.clone(),
                    parameter.values[*choice as usize].clone(),
                )
            })
            .collect()
    }

    /// Returns the configuration of these values, with defaults for other parameters. It may be
    /// invalid: see [`Self::contains`] and [`Self::reject_reason`].
    ///
    /// # Errors
    /// An unknown name or value, or a repeated name.
    pub fn config_from_values(&self, values: &[(String, Value)]) -> Result<Config, ConfigError> {
        let mut choices: Vec<u32> = self.0.parameters.iter().map(|each| each.default).collect();
        let mut given = vec![false; choices.len()];
        for (name, value) in values {
            let names = || self.0.parameters.iter().map(|each| each.name.as_str());
            let Some(at) = names().position(|known| known == name) else {
                return Err(ConfigError::UnknownParameter {
                    name: name.clone(),
                    near: super::expr::suggest(name, names()).map(str::to_owned),
                });
            };
            if std::mem::replace(&mut given[at], true) {
                return Err(ConfigError::Repeated { name: name.clone() });
            }
            let parameter = &self.0.parameters[at];
            choices[at] = parameter
                .index_of(value)
                .ok_or_else(|| ConfigError::UnknownValue {
                    name: name.clone(),
                    value: value.to_string(),
                    values: some_values(&parameter.values),
                })?;
        }
        Ok(Config::new(choices))
    }

    /// Returns the base with the named values that exist in the space. It may be invalid: see
    /// [`Self::contains`].
    #[must_use]
    pub fn with_known_values(&self, base: &Config, values: &[(String, Value)]) -> Config {
        let mut config = base.clone();
        for (name, value) in values {
            let place = self
                .0
                .parameters
                .iter()
                .position(|parameter| parameter.name == *name);
            if let Some(place) = place
                && let Some(choice) = self.0.parameters[place].index_of(value)
            {
                config = config.with(place, choice);
            }
        }
        config
    }

    /// Returns the configuration of all defaults. It may be invalid: see [`Self::contains`].
    #[must_use]
    pub fn default_config(&self) -> Config {
        Config::of_defaults(&self.0.parameters)
    }
}

/// Formats the values for a message, at most a dozen.
pub(super) fn some_values(values: &[Value]) -> String {
    let mut shown: Vec<String> = values.iter().take(12).map(ToString::to_string).collect();
    if values.len() > shown.len() {
        shown.push(format!("… ({} values)", values.len()));
    }
    shown.join(", ")
}
