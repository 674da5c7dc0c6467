//! Known pathologies, found in a space by what its parameters are called.
//!
//! A pathology changes the parameters that bring it about and repairs the rest: one stage needs
//! another number of barriers, tiny blocks fewer warps. What cannot be kept is left as near to the
//! base as the constraints allow.

use crate::space::{Config, Parameter, Space};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// Which value of a parameter brings a pathology about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extreme {
    Lowest,
    Highest,
}

/// A known way to make a kernel slow.
#[derive(Debug)]
struct Pathology {
    name: &'static str,
    /// Whether a parameter takes part, by its name.
    concerns: fn(&str) -> bool,
    extreme: Extreme,
}

const PATHOLOGIES: [Pathology; 6] = [
    Pathology {
        name: "no padding or swizzle",
        concerns: |name| has_word(name, &["PAD", "PADDING", "SWIZZLE"]),
        extreme: Extreme::Lowest,
    },
    Pathology {
        name: "unvectorised loads",
        concerns: |name| has_word(name, &["VEC", "VECTOR", "G2S"]),
        extreme: Extreme::Lowest,
    },
    Pathology {
        name: "one stage",
        concerns: |name| has_word(name, &["STAGES", "PREFETCH"]),
        extreme: Extreme::Lowest,
    },
    Pathology {
        name: "tiny blocks",
        concerns: |name| {
            matches!(name, "BM" | "BN" | "BLOCK" | "THREADS") || starts(name, "BLOCK_")
        },
        extreme: Extreme::Lowest,
    },
    Pathology {
        name: "huge blocks",
        concerns: |name| {
            matches!(name, "BM" | "BN" | "BLOCK" | "THREADS") || starts(name, "BLOCK_")
        },
        extreme: Extreme::Highest,
    },
    Pathology {
        name: "forced spills",
        concerns: |name| name == "MIN_BLOCKS",
        extreme: Extreme::Highest,
    },
];

/// Whether one of these words is a part of the name between underscores.
fn has_word(name: &str, words: &[&str]) -> bool {
    name.split('_').any(|part| words.contains(&part))
}

fn starts(name: &str, prefix: &str) -> bool {
    name.starts_with(prefix)
}

/// One pathology applied to a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inverted {
    /// What it is called.
    pub(super) name: &'static str,
    /// The configuration that has it.
    pub(super) config: Config,
}

/// The pathologies that this space can express and that the base does not have already.
pub(super) fn inversions(space: &Space, base: &Config) -> Vec<Inverted> {
    let apply = |pathology: &Pathology| {
        let config = apply(space, base, pathology)?;
        (config != *base).then_some(Inverted {
            name: pathology.name,
            config,
        })
    };
    PATHOLOGIES.iter().filter_map(apply).collect()
}

fn apply(space: &Space, base: &Config, pathology: &Pathology) -> Option<Config> {
    let parameters = space.parameters();
    let concerned: Vec<usize> = (0..parameters.len())
        .filter(|at| (pathology.concerns)(&parameters[*at].name) && parameters[*at].ordered)
        .collect();
    let mut wanted = base.choices().to_vec();
    for at in &concerned {
        wanted[*at] = extreme(&parameters[*at], pathology.extreme);
    }
    // Each extreme as far as the parameters before it let it go: all of them, then the base's own.
    let others = (0..parameters.len()).filter(|at| !concerned.contains(at));
    let order: Vec<usize> = concerned.iter().copied().chain(others).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let config = space.nearest(&wanted, &order, &mut rng)?;
    // Repaired into something without the pathology: nothing to show.
    let kept = |at: &usize| config.choices()[*at] == wanted[*at];
    (!concerned.is_empty() && concerned.iter().any(kept)).then_some(config)
}

/// The index of the extreme value.
fn extreme(parameter: &Parameter, extreme: Extreme) -> u32 {
    let value = |at: usize| parameter.values[at].as_f64().unwrap_or(0.0);
    let all = 0..parameter.values.len();
    let found = match extreme {
        Extreme::Lowest => all.min_by(|a, b| value(*a).total_cmp(&value(*b))),
        Extreme::Highest => all.max_by(|a, b| value(*a).total_cmp(&value(*b))),
    };
    found.and_then(|at| u32::try_from(at).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{DeviceLimits, KernelSpec};
    use std::path::Path;

    const SPACE: &str = "\
version: 1
kernel: k
source: k.cu
problems: { p: { N: 8 } }
parameters:
  BM: { values: [16, 64, 128], default: 64 }
  STAGES_K: { values: [1, 2, 3], default: 2 }
  BARRIERS: { values: [1, 2], default: 1 }
  PAD: { values: [0, 8], default: 8 }
constraints:
  - { rule: \"BARRIERS == 2 or STAGES_K > 1\", why: one barrier needs two stages }
arguments:
  - { name: y, type: f32, role: output, shape: [N] }
launches: [{ entry: k, grid: [1, 1, 1], block: [32, 1, 1] }]
reference: { source: k.cu, entry: k, grid: [1, 1, 1], block: [32, 1, 1] }
";

    #[test]
    fn a_pathology_changes_its_parameters_and_repairs_only_what_it_must() {
        let spec = KernelSpec::parse(SPACE, Path::new("k.yaml")).expect("the space is right");
        let limits = DeviceLimits {
            sm_count: 132,
            shared_bytes: 232_448,
            cc: 90,
            max_threads: 1024,
        };
        let space = spec.space("p", &limits).expect("the space is built");
        let found = inversions(&space, &space.default_config());
        let texts: Vec<String> = found
            .iter()
            .map(|inverted| {
                let values: Vec<String> = space
                    .values(&inverted.config)
                    .iter()
                    .map(|(_, value)| value.to_string())
                    .collect();
                format!("{}: {}", inverted.name, values.join(" "))
            })
            .collect();
        assert_eq!(
            texts,
            [
                "no padding or swizzle: 64 2 1 0",
                "one stage: 64 1 2 8",
                "tiny blocks: 16 2 1 8",
                "huge blocks: 128 2 1 8"
            ]
        );
    }
}
