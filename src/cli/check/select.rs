//! Selection of the configurations and problems to check.

use crate::cli::{CliError, usage};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use tuner_core::value::Value;
use tuner_engine::KernelTask;
use tuner_space::{Config, Space};

/// Number of pairs drawn without `--sample` and `--config`, in addition to the default configuration and
/// the seeds.
pub(super) const SAMPLE_DEFAULT: usize = 32;

/// A problem with its space.
pub(super) struct Task {
    pub(super) problem: String,
    pub(super) space: Space,
    /// The kernel and problem for the judge.
    pub(super) judged: KernelTask,
}

/// A pair to check: a configuration (possibly invalid) and the index of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) task: usize,
    pub(super) config: Config,
}

/// Draws distinct pairs of (valid configuration, problem) uniformly; returns all pairs in order if there
/// are at most `count`.
pub(super) fn sample(tasks: &[Task], count: usize, seed: u64) -> Vec<Pair> {
    let total = tasks
        .iter()
        .fold(0_u128, |sum, task| sum.saturating_add(task.space.count()));
    // The loop below would never find `count` distinct pairs.
    if total <= count as u128 {
        return (0..total)
            .filter_map(|index| pair_at(tasks, index))
            .collect();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut seen = HashSet::new();
    let mut pairs = Vec::with_capacity(count);
    while pairs.len() < count {
        let index = rng.random_range(0..total);
        if seen.insert(index) {
            pairs.extend(pair_at(tasks, index));
        }
    }
    pairs
}

fn pair_at(tasks: &[Task], mut index: u128) -> Option<Pair> {
    for (number, task) in tasks.iter().enumerate() {
        let count = task.space.count();
        if index < count {
            return Some(Pair {
                task: number,
                config: task.space.config_at(index)?,
            });
        }
        index -= count;
    }
    None
}

/// Parses `K=V,K=V`; each value is one of its parameter's, in the search space's spelling. Commas
/// inside a text value are kept, because an assignment starts with a known name. `default`, as
/// tables print it, is the default configuration.
pub(in crate::cli) fn parse_config(space: &Space, text: &str) -> Result<Config, CliError> {
    if text.trim() == "default" {
        return Ok(space.default_config());
    }
    let mut assignments: Vec<(String, String)> = Vec::new();
    for piece in text.split(',') {
        match (piece.split_once('='), assignments.last_mut()) {
            (Some((name, value)), _) => {
                assignments.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            (None, Some((_, value))) => {
                value.push(',');
                value.push_str(piece);
            }
            (None, None) => {
                refuse!("invalid configuration `{text}`; use --config NAME=VALUE,NAME=VALUE");
            }
        }
    }
    let typed: Vec<(String, Value)> = assignments
        .into_iter()
        .map(|(name, text)| {
            let value = typed(space, &name, &text);
            (name, value)
        })
        .collect();
    space
        .config_from_values(&typed)
        .map_err(|error| usage(format!("--config: {error}")))
}

/// Returns the parameter's value with this spelling, else text, which the space then rejects with a list of
/// the valid values.
fn typed(space: &Space, name: &str, text: &str) -> Value {
    let parameter = space
        .parameters()
        .iter()
        .find(|parameter| parameter.name == name);
    let values = parameter
        .map(|parameter| &*parameter.values)
        .unwrap_or_default();
    let printed = values.iter().find(|value| value.to_string() == text);
    let number = || {
        let number: f64 = text.parse().ok()?;
        values.iter().find(|value| value.as_f64() == Some(number))
    };
    printed
        .or_else(number)
        .cloned()
        .unwrap_or_else(|| Value::Text(text.into()))
}
