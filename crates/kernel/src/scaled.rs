//! Generated check problems for a kernel without comparable ones: the timed problem's sizes,
//! scaled down until its reference kernel can be run whole.

use super::build::PlanBuilder;
use std::sync::OnceLock;
use tuner_core::value::Value;
use tuner_space::{Config, Problem};

/// Sums of elements and operations of the scaled problems to try, each an eighth of its predecessor: a
/// reference kernel that does more work than the space's `metric` states is slower.
const COSTS: [f64; 4] = [4e6, 5e5, 6e4, 8e3];

/// Largest size that is not scaled: heads, batches, flags, extents of a filter.
const MAX_UNSCALED_SIZE: i64 = 32;

/// A smaller version of a timed problem.
pub struct Scaled {
    /// Builder of its candidates.
    pub builder: PlanBuilder,
    /// Its scaled sizes are odd, so that tiles and vectors do not divide them.
    pub ragged: bool,
}

impl Scaled {
    /// Formats the sizes as in `check_problems`.
    #[must_use]
    pub fn sizes(&self) -> String {
        let sizes = self.builder.problem_sizes();
        let sizes: Vec<String> = sizes
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        format!("{{ {} }}", sizes.join(", "))
    }
}

/// A generated check problem, after the search for one.
#[derive(Default)]
pub struct ScaledCheck(OnceLock<Option<Box<Scaled>>>);

impl ScaledCheck {
    /// Returns the result of the search; the outer `None` before it, the inner one if it found none.
    #[must_use]
    pub fn looked_for(&self) -> Option<Option<&Scaled>> {
        self.0.get().map(Option::as_deref)
    }

    /// Records the result, once.
    pub fn keep(&self, found: Option<Scaled>) -> Option<&Scaled> {
        self.0.get_or_init(|| found.map(Box::new)).as_deref()
    }

    /// Returns the note for the user; `None` if none was needed.
    #[must_use]
    pub fn note(&self, kernel: &str, problem: &str) -> Option<String> {
        let needs = format!(
            "note: {kernel} {problem}: the results of this problem cannot be compared with the \
             reference on a virtual GPU, and no check problem can"
        );
        Some(match self.0.get()? {
            Some(scaled) => {
                let how = if scaled.ragged {
                    ""
                } else {
                    " (the default configuration fails on odd sizes)"
                };
                format!(
                    "{needs}; candidates are checked on {}{how}: write it, or one of your own, \
                     under `check_problems`",
                    scaled.sizes()
                )
            }
            None => format!(
                "{needs}; candidates will be `unchecked` and will not rank: give a \
                 `check_problems` entry that the reference computes in about a second"
            ),
        })
    }
}

/// Returns smaller versions of a builder's problem on which `config` is valid, in the order to try them:
/// large before small, and the ragged one first for one size. Empty if no size can be scaled.
#[must_use]
pub fn smaller(timed: &PlanBuilder, config: &Config) -> Vec<Scaled> {
    let original = timed.problem_sizes();
    let mut found: Vec<Scaled> = Vec::new();
    // Data in files have a fixed size.
    if !timed.source().spec.data_paths().is_empty() {
        return found;
    }
    for most in COSTS {
        let Some(sizes) = shrunk(timed, config, &original, most) else {
            continue;
        };
        for ragged in [true, false] {
            let problem = Problem {
                name: format!("{}_scaled", timed.problem()),
                sizes: shaped(&original, &sizes, ragged),
                weight: None,
            };
            let known = |scaled: &Scaled| scaled.builder.problem_sizes() == problem.sizes;
            if problem.sizes == original || found.iter().any(known) {
                continue;
            }
            let builder = timed.on_problem(&problem);
            if let Some(builder) = builder.filter(|builder| builder.admits(config)) {
                found.push(Scaled { builder, ragged });
            }
        }
    }
    found
}

/// Halves the largest of the sizes repeatedly, until the problem costs at most `most`.
fn shrunk(
    timed: &PlanBuilder,
    config: &Config,
    original: &[(String, Value)],
    most: f64,
) -> Option<Vec<(String, Value)>> {
    let mut sizes = original.to_vec();
    while cost(timed, config, &sizes)? > most {
        let scalable = sizes.iter_mut().filter_map(|(_, value)| match value {
            Value::Int(size) if *size > MAX_UNSCALED_SIZE => Some(size),
            _ => None,
        });
        let largest = scalable.max()?;
        *largest /= 2;
    }
    Some(sizes)
}

/// Returns elements of all arguments plus operations of the problem with these sizes.
fn cost(timed: &PlanBuilder, config: &Config, sizes: &[(String, Value)]) -> Option<f64> {
    let problem = Problem {
        name: timed.problem().to_owned(),
        sizes: sizes.to_vec(),
        weight: None,
    };
    let bound = timed.on_problem(&problem)?.bind(config)?;
    let shapes = bound.arguments.iter().map(|argument| &argument.shape);
    let elements = shapes.map(|shape| shape.iter().map(|extent| *extent as f64).product::<f64>());
    Some(elements.sum::<f64>() + bound.flops.unwrap_or(0.0) / 16.0)
}

/// Makes scaled sizes odd, or as divisible by powers of two up to 64 as they were.
fn shaped(
    original: &[(String, Value)],
    scaled: &[(String, Value)],
    ragged: bool,
) -> Vec<(String, Value)> {
    let pairs = original.iter().zip(scaled);
    let shape = |((name, before), (_, now)): (&(String, Value), &(String, Value))| {
        let value = match (before, now) {
            (Value::Int(before), Value::Int(now)) if before != now && ragged => {
                Value::Int((now - 3) | 1)
            }
            (Value::Int(before), Value::Int(now)) if before != now => {
                let step = 1 << before.trailing_zeros().min(6);
                Value::Int((now / step * step).max(step.min(*before)))
            }
            _ => now.clone(),
        };
        (name.clone(), value)
    };
    pairs.map(shape).collect()
}

#[cfg(test)]
mod tests;
