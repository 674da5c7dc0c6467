//! The space: an immutable, exact, compressed set of configurations.
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

/// All valid configurations of a kernel: parameters, and which combinations of their values the
/// constraints let through. Never listed: counted, indexed and drawn from as decision diagrams.
///
/// Cloning is cheap; the parts are shared.
#[derive(Debug, Clone)]
pub struct Space(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) name: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) rules: Vec<Rule>,
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) diagrams: Vec<Diagram>,
    /// For every parameter, its group and its layer there.
    pub(super) place: Vec<(usize, usize)>,
    pub(super) count: u128,
    pub(super) hash: ContentHash,
    /// Which constraint leaves nothing, when nothing is left.
    pub(super) empty: Option<Empty>,
}

/// Why nothing is left.
#[derive(Debug, Clone)]
pub(super) struct Empty {
    pub(super) reason: String,
    /// Position of the constraint to blame.
    pub(super) rule: Option<usize>,
}

/// A constraint ready to be evaluated on one configuration.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) why: Option<String>,
    pub(super) program: Program,
}

/// A configuration by name that does not fit the space's parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No parameter of that name.
    #[error("unknown parameter `{name}`{}", help(.near))]
    UnknownParameter {
        /// As given.
        name: String,
        /// The nearest name there is.
        near: Option<String>,
    },
    /// The parameter does not take that value.
    #[error("`{name}` does not take {value}: its values are {values}")]
    UnknownValue {
        /// The parameter.
        name: String,
        /// As given.
        value: String,
        /// Those it takes.
        values: String,
    },
    /// The same parameter twice.
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
    /// The space's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The parameters, in declared order.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.0.parameters
    }

    /// The number of combinations without constraints; the largest number there is if it does
    /// not fit.
    #[must_use]
    pub fn cartesian(&self) -> u128 {
        self.0.parameters.iter().fold(1_u128, |product, parameter| {
            product.saturating_mul(parameter.values.len() as u128)
        })
    }

    /// The number of valid configurations, exactly.
    #[must_use]
    pub fn count(&self) -> u128 {
        self.0.count
    }

    /// Memory held, in bytes.
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

    /// Groups of parameters that share constraints; choices in different groups are independent.
    #[must_use]
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.0.groups
    }

    /// Identifies the set by content: parameters, values, and constraints with the constants
    /// they were built with.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        self.0.hash.clone()
    }

    /// Why no configuration is valid, naming the constraint; `None` while there are some.
    #[must_use]
    pub fn empty_reason(&self) -> Option<&str> {
        self.0.empty.as_ref().map(|empty| &*empty.reason)
    }

    /// The position of the constraint that leaves no configuration.
    pub(super) fn empty_rule(&self) -> Option<usize> {
        self.0.empty.as_ref().and_then(|empty| empty.rule)
    }

    fn blank(&self) -> Box<[u32]> {
        vec![0; self.0.parameters.len()].into()
    }

    /// Draws one valid configuration, all equally likely; `None` when there are none.
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

    /// Whether a configuration satisfies every constraint.
    #[must_use]
    pub fn contains(&self, config: &Config) -> bool {
        config.fits(self.parameters())
            && self
                .0
                .diagrams
                .iter()
                .all(|diagram| diagram.contains(config.choices()))
    }

    /// The number of a valid configuration, from 0 to `count() - 1`, each used once; `None` for
    /// an invalid one.
    #[must_use]
    pub fn index_of(&self, config: &Config) -> Option<u128> {
        if !config.fits(self.parameters()) {
            return None;
        }
        self.0.diagrams.iter().try_fold(0_u128, |index, diagram| {
            Some(index * diagram.count() + diagram.index_of(config.choices())?)
        })
    }

    /// The valid configuration of that number; `None` from `count()` on.
    #[must_use]
    pub fn config_at(&self, mut index: u128) -> Option<Config> {
        if index >= self.0.count {
            return None;
        }
        let mut choices = self.blank();
        for diagram in self.0.diagrams.iter().rev() {
            let count = diagram.count();
            diagram.write(index % count, &mut choices);
            index /= count;
        }
        Some(Config::new(choices))
    }

    /// The valid configurations that differ from this one in one parameter, in the order of the
    /// parameters and their values. The configuration itself need not be valid.
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
            // A change here cannot mend another group.
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

    /// Draws uniformly among the valid configurations that agree with the fixed choices; `None`
    /// when none does.
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

    /// Repairs a wish: takes the parameters in the given order and keeps each wanted choice as
    /// long as some valid configuration has all those kept; what cannot be kept, and what
    /// `order` leaves out, is drawn uniformly. `None` only for an empty space.
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

    /// What the first violated constraint says; `None` for a valid configuration.
    #[must_use]
    pub fn reject_reason(&self, config: &Config) -> Option<String> {
        if !config.fits(self.parameters()) {
            return Some("it is no configuration of this space".to_owned());
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

    /// What to know of constraints that cannot be evaluated for some combination, of which only
    /// so many are tried: such a constraint counts as false there.
    #[must_use]
    pub fn fault_notes(&self) -> Vec<String> {
        const TRIES: usize = 4096;
        let notes = self.0.rules.iter().filter_map(|rule| {
            let sizes = rule.program.vars.iter().map(|var| {
                let values = &self.0.parameters[*var as usize].values;
                (*var, values.len())
            });
            let sizes: Vec<(u32, usize)> = sizes.collect();
            (0..TRIES).find_map(|at| {
                // The digits of `at`, one a parameter, count through all combinations.
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

    /// The configuration's values by name, in declared order.
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

    /// The configuration of these values; parameters not named take their defaults. It may be
    /// invalid: ask `contains` or `reject_reason`.
    ///
    /// # Errors
    /// A name or a value that the space does not have, or a name given twice.
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

    /// The configuration of all defaults. It may be invalid: ask `contains`.
    #[must_use]
    pub fn default_config(&self) -> Config {
        Config::of_defaults(&self.0.parameters)
    }
}

/// The values for a message, the first dozen of many.
pub(super) fn some_values(values: &[Value]) -> String {
    let mut shown: Vec<String> = values.iter().take(12).map(ToString::to_string).collect();
    if values.len() > shown.len() {
        shown.push(format!("… ({} values)", values.len()));
    }
    shown.join(", ")
}
