//! Known pathologies, matched to a space by parameter names.
//!
//! A pathology changes the parameters that cause it and repairs as few others as the constraints
//! require: one stage needs another number of barriers, tiny blocks fewer warps. Tiles and block
//! sizes stay unchanged unless they are the pathology, since another shape would hide its cost. A
//! pathology that cannot be shown that way is omitted.

use std::cmp::Ordering;
use tuner_space::{Config, Parameter, Space};

/// End of a parameter's range that causes a pathology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extreme {
    Lowest,
    Highest,
}

/// A known cause of slow kernels.
#[derive(Debug)]
struct Pathology {
    name: &'static str,
    /// Reports by name whether the pathology concerns a parameter.
    concerns: fn(&str) -> bool,
    extreme: Extreme,
    /// Shown only by code that really spills registers.
    spills: bool,
}

const PATHOLOGIES: [Pathology; 6] = [
    Pathology {
        name: "no padding or swizzle",
        concerns: |name| has_word(name, &["PAD", "PADDING", "SWIZZLE"]),
        extreme: Extreme::Lowest,
        spills: false,
    },
    Pathology {
        name: "unvectorised loads",
        concerns: |name| has_word(name, &["VEC", "VECTOR", "G2S"]),
        extreme: Extreme::Lowest,
        spills: false,
    },
    Pathology {
        name: "one stage",
        concerns: |name| has_word(name, &["STAGES", "PREFETCH"]),
        extreme: Extreme::Lowest,
        spills: false,
    },
    Pathology {
        name: "tiny blocks",
        concerns: |name| {
            matches!(name, "BM" | "BN" | "BLOCK" | "THREADS") || starts(name, "BLOCK_")
        },
        extreme: Extreme::Lowest,
        spills: false,
    },
    Pathology {
        name: "huge blocks",
        concerns: |name| {
            matches!(name, "BM" | "BN" | "BLOCK" | "THREADS") || starts(name, "BLOCK_")
        },
        extreme: Extreme::Highest,
        spills: false,
    },
    Pathology {
        name: "forced spills",
        concerns: |name| name == "MIN_BLOCKS",
        extreme: Extreme::Highest,
        spills: true,
    },
];

/// Reports whether the name contains one of these words between underscores.
fn has_word(name: &str, words: &[&str]) -> bool {
    name.split('_').any(|part| words.contains(&part))
}

fn starts(name: &str, prefix: &str) -> bool {
    name.starts_with(prefix)
}

/// Reports whether a parameter is a tile or block size: changed only by the pathologies of these.
fn is_shape(name: &str) -> bool {
    const SHAPES: [&str; 10] = [
        "BM",
        "BN",
        "BK",
        "WM",
        "WN",
        "WARPS",
        "ROWS",
        "ITEMS",
        "THREADS",
        "PRODUCERS",
    ];
    SHAPES.contains(&name)
        || ["BLOCK_", "THREAD_", "TILE_"]
            .iter()
            .any(|p| starts(name, p))
}

/// One pathology applied to a configuration.
#[derive(Debug, PartialEq, Eq)]
pub struct PathologicalConfig {
    /// Display name.
    pub name: &'static str,
    /// The configuration with the pathology.
    pub config: Config,
}

/// Pathologies that a configuration can show.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inversions {
    /// Pathologies that the space can express and that the base does not have.
    pub found: Vec<PathologicalConfig>,
    /// Pathologies with matching parameters that no valid configuration near the base shows.
    pub left_out: Vec<&'static str>,
}

/// Returns the spilled bytes of a configuration's code; `None` if it does not compile.
pub type Spills<'a, E> = dyn FnMut(&Config) -> Result<Option<u64>, E> + 'a;

/// Applies the pathologies of a space to the base.
///
/// # Errors
/// Errors of the compiler.
pub fn inversions<E>(
    space: &Space,
    base: &Config,
    spills: &mut Spills<'_, E>,
) -> Result<Inversions, E> {
    let mut inversions = Inversions::default();
    for pathology in &PATHOLOGIES {
        let concerned = concerned(space, pathology);
        if concerned.is_empty() {
            continue;
        }
        let config = if pathology.spills {
            // Only one name matches, and names are unique in a space.
            first_that_spills(space, base, concerned[0], spills)?
        } else {
            apply(space, base, pathology, &concerned)
        };
        let name = pathology.name;
        let already = |at: &usize| {
            base.choices()[*at] == extreme(&space.parameters()[*at], pathology.extreme)
        };
        match config {
            Some(config) => inversions.found.push(PathologicalConfig { name, config }),
            None if pathology.spills || !concerned.iter().all(already) => {
                inversions.left_out.push(name);
            }
            // The base itself has this pathology, so no difference can be shown.
            None => {}
        }
    }
    Ok(inversions)
}

/// Returns the parameters that a pathology concerns.
fn concerned(space: &Space, pathology: &Pathology) -> Vec<usize> {
    let parameters = space.parameters();
    (0..parameters.len())
        // An unordered parameter has no lowest or highest value.
        .filter(|at| (pathology.concerns)(&parameters[*at].name) && parameters[*at].ordered)
        .collect()
}

/// Returns the configuration with the most concerned parameters at their extremes and the fewest
/// others changed.
fn apply(
    space: &Space,
    base: &Config,
    pathology: &Pathology,
    concerned: &[usize],
) -> Option<Config> {
    let parameters = space.parameters();
    // The full set first, then smaller subsets.
    // At most 255 subsets, since the repair of each one may try all pairs of other parameters.
    let mut parts: Vec<u32> = (1..1u32 << concerned.len().min(8)).collect();
    parts.sort_by_key(|part| (std::cmp::Reverse(part.count_ones()), *part));
    let of_shape = concerned.iter().any(|at| is_shape(&parameters[*at].name));
    let free: Vec<usize> = (0..parameters.len())
        .filter(|at| !concerned.contains(at))
        .collect();
    // Shapes stay unchanged unless the pathology concerns shapes.
    let (shapes, others): (Vec<usize>, Vec<usize>) =
        free.iter().partition(|at| is_shape(&parameters[**at].name));
    for part in parts {
        let mut wanted = base.choices().to_vec();
        for (bit, at) in concerned.iter().enumerate() {
            if part >> bit & 1 == 1 {
                wanted[*at] = extreme(&parameters[*at], pathology.extreme);
            }
        }
        if wanted == base.choices() {
            continue;
        }
        let tiers: &[&[usize]] = if of_shape {
            &[&shapes, &others, &free]
        } else {
            &[&others]
        };
        let repaired = tiers.iter().find_map(|tier| repair(space, &wanted, tier));
        if repaired.is_some() {
            return repaired;
        }
    }
    None
}

/// Maximum parameters that a repair changes.
const MAX_REPAIRS: usize = 2;

/// Returns the valid configuration with the wanted choices except for the fewest repairing
/// parameters, each as close to its wanted value as possible.
fn repair(space: &Space, wanted: &[u32], repairing: &[usize]) -> Option<Config> {
    (0..=MAX_REPAIRS).find_map(|count| {
        let mut choices = wanted.to_vec();
        change(space, &mut choices, repairing, count).then(|| Config::new(choices))
    })
}

/// Changes `count` of the repairing parameters so that the choices are valid; reports success.
fn change(space: &Space, choices: &mut Vec<u32>, repairing: &[usize], count: usize) -> bool {
    if count == 0 {
        return space.contains(&Config::new(choices.clone()));
    }
    for (number, at) in repairing.iter().enumerate() {
        let old = choices[*at];
        let values = u32::try_from(space.parameters()[*at].values.len()).unwrap_or(0);
        let mut others: Vec<u32> = (0..values).filter(|value| *value != old).collect();
        others.sort_by_key(|value| value.abs_diff(old));
        for value in others {
            choices[*at] = value;
            if change(space, choices, &repairing[number + 1..], count - 1) {
                return true;
            }
        }
        choices[*at] = old;
    }
    false
}

/// Returns the first configuration with more resident blocks than registers allow, the largest
/// number first, that spills compared with a base of the same shapes.
fn first_that_spills<E>(
    space: &Space,
    base: &Config,
    at: usize,
    spills: &mut Spills<'_, E>,
) -> Result<Option<Config>, E> {
    let parameters = space.parameters();
    let value = |choice: &u32| parameters[at].values[*choice as usize].as_f64();
    let mut choices: Vec<u32> = (0..u32::try_from(parameters[at].values.len()).unwrap_or(0))
        .filter(|choice| value(choice) > value(&base.choices()[at]))
        .collect();
    choices.sort_by(|a, b| value(b).partial_cmp(&value(a)).unwrap_or(Ordering::Equal));
    let others: Vec<usize> = (0..parameters.len())
        .filter(|other| *other != at && !is_shape(&parameters[*other].name))
        .collect();
    for choice in choices {
        let mut wanted = base.choices().to_vec();
        wanted[at] = choice;
        if let Some(config) = repair(space, &wanted, &others)
            && spills(&config)?.is_some_and(|bytes| bytes > 0)
        {
            return Ok(Some(config));
        }
    }
    Ok(None)
}

/// Returns the index of the extreme value.
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
mod tests;
