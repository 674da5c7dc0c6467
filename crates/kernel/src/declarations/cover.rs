//! Configurations that cover every launch and every possible type of a kernel.

use super::base_name;
use super::overrides::macros;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use tuner_core::value::Value;
use tuner_space::{Binder, Bound, Config, KernelSpec, Space};

/// Maximum number of combinations of values that are queried completely.
const COMBINATIONS_MAX: usize = 32;
/// Random configurations tried to find a launch that the others lack.
const DRAWS_MAX: usize = 256;

/// Inputs that determine the types of a source.
#[derive(Debug)]
pub(super) struct Influences {
    /// Macros: parameters, derived values and sizes.
    macros: BTreeSet<String>,
    /// Inputs that the source mentions; others only name its template's instances.
    of_source: BTreeSet<String>,
    /// Indices of the parameters they depend on.
    parameters: Vec<usize>,
}

impl Influences {
    /// Selects the macros of the search space among the names that the source's types depend on,
    /// and those in its entries.
    pub(super) fn new(spec: &KernelSpec, names: &BTreeSet<String>, entries: &[String]) -> Self {
        let known = macros(spec);
        let of_source: BTreeSet<String> = names.intersection(&known).cloned().collect();
        let mut macros = of_source.clone();
        for entry in entries {
            let words = entry.split(|c: char| !c.is_alphanumeric() && c != '_');
            let words = words.map(str::to_owned);
            macros.extend(words.filter(|word| known.contains(word)));
        }
        let mut reached = macros.clone();
        // Derived values may use those declared before them.
        for (name, formula) in spec.derived.iter().rev() {
            if reached.contains(name) {
                reached.extend(formula.names().map(|(name, _)| name.to_owned()));
            }
        }
        let parameters = spec.parameters.iter().enumerate();
        let parameters = parameters.filter(|(_, each)| reached.contains(&each.name));
        Self {
            macros,
            of_source,
            parameters: parameters.map(|(at, _)| at).collect(),
        }
    }

    /// Returns the key of configurations that may have different types.
    pub(super) fn key(&self, bound: &Bound) -> Vec<(String, String)> {
        values(bound, &self.macros)
    }

    /// Returns the key of configurations whose source may differ: instances of one source can be queried at
    /// once.
    pub(super) fn source_key(&self, bound: &Bound) -> Vec<(String, String)> {
        values(bound, &self.of_source)
    }

    /// Returns the default configuration, valid ones with every relevant value, and ones with the
    /// launches that these lack.
    pub(super) fn configurations(
        &self,
        spec: &KernelSpec,
        space: &Space,
        binder: &Binder,
    ) -> Vec<Bound> {
        // A fixed seed draws the same configurations each time, so their answers are cached.
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let default = space.default_config();
        let mut configs = vec![default.clone()];
        for wish in self.wishes(spec, &default) {
            let rest = (0..spec.parameters.len()).filter(|at| !self.parameters.contains(at));
            let order: Vec<usize> = self.parameters.iter().copied().chain(rest).collect();
            let found = space.nearest(wish.choices(), &order, &mut rng);
            configs.extend(found.filter(|found| !configs.contains(found)));
        }
        let mut all: Vec<Bound> = configs
            .iter()
            .filter_map(|config| binder.bind(config).ok())
            .collect();
        let seen = |all: &[Bound], entry: &str| {
            let mut launches = all.iter().flat_map(|bound| &bound.launches);
            launches.any(|launch| base_name(&launch.entry) == base_name(entry))
        };
        for launch in &spec.launches {
            for _ in 0..DRAWS_MAX {
                if seen(&all, &launch.entry) {
                    break;
                }
                let drawn = space.draw(&mut rng).and_then(|it| binder.bind(&it).ok());
                all.extend(drawn.filter(|bound| seen(std::slice::from_ref(bound), &launch.entry)));
            }
        }
        all
    }

    /// Returns the default with other values of the relevant parameters: all combinations, or, if
    /// there are many, each value once.
    #[expect(
        clippy::indexing_slicing,
        reason = "parameters are numbered by the specification, and its configurations have a choice for each"
    )]
    fn wishes(&self, spec: &KernelSpec, default: &Config) -> Vec<Config> {
        let count = |at: &usize| spec.parameters[*at].values.len();
        let combinations = self.parameters.iter().map(count);
        let all = combinations.fold(1_usize, usize::saturating_mul);
        let mut wishes = vec![default.clone()];
        for at in &self.parameters {
            let bases = if all <= COMBINATIONS_MAX {
                wishes.clone()
            } else {
                vec![default.clone()]
            };
            for base in bases {
                let choices = (0..count(at) as u32).filter(|choice| *choice != base.choices()[*at]);
                wishes.extend(choices.map(|choice| base.with(*at, choice)));
            }
        }
        wishes
    }
}

fn values(bound: &Bound, of: &BTreeSet<String>) -> Vec<(String, String)> {
    let relevant = |pair: &&(String, Value)| of.contains(&pair.0);
    let values = bound.macros.iter().filter(relevant);
    values
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect()
}
