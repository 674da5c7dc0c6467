//! Checks of a change that no request contains: seeds, shapes, and the details that are shown to the
//! mutator.

use super::options::Options;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tuner_core::record::ConfigValues;
use tuner_core::units::ContentHash;
use tuner_core::value::Value;
use tuner_engine::grid::Shapes;
use tuner_engine::job::{ChangedCode, FreshChecks};
use tuner_evolve::answer::AnswerError;
use tuner_kernel::catalog::Kernel;
use tuner_space::{DeviceLimits, KernelSpec, Problem};

/// Number of check problems drawn for each change.
const DRAWN_PROBLEMS: usize = 2;
/// Number of input seeds drawn for each change.
const DRAWN_SEEDS: usize = 2;

/// Draws input seeds, and check problems within the ranges spanned by the sizes of the declared check
/// problems. The draw depends on the code: its author cannot predict the checks.
pub(super) fn draw(options: &Options, code: &ChangedCode, round: u32) -> FreshChecks {
    let hash = ContentHash::from_parts([
        options.check_seed.to_le_bytes().as_slice(),
        &round.to_le_bytes(),
        code.source.as_bytes(),
        code.space.as_bytes(),
    ]);
    let seed = u64::from_str_radix(hash.as_str().get(..16).unwrap_or_default(), 16);
    let mut rng = ChaCha8Rng::seed_from_u64(seed.unwrap_or(options.check_seed));
    let checks = match options.parsed.spec.data_paths().is_empty() {
        true => &options.parsed.spec.check_problems,
        // A data file covers the declared sizes only.
        false => &[][..],
    };
    let mut problems = Vec::new();
    for number in 1..=DRAWN_PROBLEMS {
        let Some(base) = checks.first() else {
            break;
        };
        let sizes = base.sizes.iter().map(|(name, value)| {
            let range = range_of(checks, name);
            let drawn = range.map(|[low, high]| Value::Int(rng.random_range(low..=high)));
            (name.clone(), drawn.unwrap_or_else(|| value.clone()))
        });
        problems.push((format!("drawn{number}"), sizes.collect()));
    }
    FreshChecks {
        seeds: (0..DRAWN_SEEDS).map(|_| rng.random()).collect(),
        problems,
    }
}

/// Returns the smallest and the largest value of a size in the declared check problems.
fn range_of(checks: &[Problem], name: &str) -> Option<[i64; 2]> {
    let values = checks.iter().filter_map(|problem| {
        let (_, value) = problem.sizes.iter().find(|(size, _)| size == name)?;
        match value {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    });
    let values: Vec<i64> = values.collect();
    Some([*values.iter().min()?, *values.iter().max()?])
}

/// Checks that a changed kernel has a valid configuration for each timed problem, and for each check
/// problem for which the shipped one has any.
///
/// # Errors
/// A search space without a valid configuration for such a problem.
pub(super) fn require_valid(
    options: &Options,
    kernel: &Kernel,
    drawn: &FreshChecks,
) -> Result<(), AnswerError> {
    let Some(limits) = options.limits else {
        return Ok(());
    };
    for problem in &options.problems {
        let space = kernel.spec.space(problem, &limits);
        let space = space.map_err(|error| AnswerError::Kernel(error.to_string()))?;
        if let Some(why) = space.empty_reason() {
            return Err(AnswerError::EmptySpace(problem.clone(), why.to_owned()));
        }
    }
    let shipped = with_drawn(&options.parsed.spec, drawn);
    let changed = with_drawn(&kernel.spec, drawn);
    let excluded = shipped.check_problems.iter().any(|check| {
        let is_possible =
            |spec: &KernelSpec| matches!(spec.space(&check.name, &limits), Ok(space) if space.empty_reason().is_none());
        is_possible(&shipped) && !is_possible(&changed)
    });
    match excluded {
        true => Err(AnswerError::ExcludedSizes),
        false => Ok(()),
    }
}

/// Returns the specification with drawn check problems.
fn with_drawn(spec: &KernelSpec, drawn: &FreshChecks) -> KernelSpec {
    let mut spec = spec.clone();
    let problems = Shapes::Listed(drawn.problems.clone()).problems(&spec);
    spec.check_problems.extend(problems.unwrap_or_default());
    spec
}

/// Returns the kind of check problems for which the first configuration, the parent's, is valid and the
/// second is not. Otherwise a constraint could exclude code for single sizes from all checks.
pub(super) fn avoided(
    options: &Options,
    code: &ChangedCode,
    drawn: &FreshChecks,
    [parent, change]: [&ConfigValues; 2],
) -> Option<String> {
    let limits = options.limits?;
    let kernel = options.parsed.with_code(&code.source, &code.space).ok()?;
    let parent = Admitted::new(&options.parsed.spec, &limits, parent, drawn);
    let change = Admitted::new(&kernel.spec, &limits, change, drawn);
    let kind = match (
        parent.drawn && !change.drawn,
        parent.declared && !change.declared,
    ) {
        (true, _) => "sizes drawn for this change",
        (false, true) => "check problems",
        (false, false) => return None,
    };
    Some(format!(
        "the best configuration is not valid for any of the {kind}, and the parent's is; a parameter's value \
         must not be limited to the timed sizes"
    ))
}

/// Kinds of check problems for which a configuration is valid.
#[derive(Debug, Clone, Copy)]
struct Admitted {
    declared: bool,
    drawn: bool,
}

impl Admitted {
    fn new(
        spec: &KernelSpec,
        limits: &DeviceLimits,
        values: &ConfigValues,
        drawn: &FreshChecks,
    ) -> Self {
        let spec = with_drawn(spec, drawn);
        let is_valid = |check: &Problem| {
            let space = spec.space(&check.name, limits);
            space.is_ok_and(|space| {
                let config = space.with_known_values(&space.default_config(), values);
                space.contains(&config)
            })
        };
        let is_drawn = |check: &Problem| drawn.problems.iter().any(|(name, _)| *name == check.name);
        let checks = spec.check_problems.iter();
        let (drawn, declared): (Vec<_>, Vec<_>) = checks.partition(|check| is_drawn(check));
        Self {
            declared: declared.into_iter().any(is_valid),
            drawn: drawn.into_iter().any(is_valid),
        }
    }
}

/// Removes seeds and names of check problems from a finding.
pub(super) fn without_checks(detail: &str, timed: &[String]) -> String {
    let mut out = String::new();
    let mut rest = detail;
    loop {
        let next = ["problem ", "seed "].iter().filter_map(|word| {
            let at = rest.find(word)?;
            Some((at, at + word.len(), *word))
        });
        let Some((_, end, word)) = next.min() else {
            out.push_str(rest);
            return out;
        };
        let (before, after) = rest.split_at(end);
        out.push_str(before);
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '.';
        let length = after.find(|c: char| !is_name(c)).unwrap_or(after.len());
        let (name, tail) = after.split_at(length);
        let is_seed =
            word == "seed " && !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
        let is_check = word == "problem " && timed.iter().all(|one| one != name);
        out.push_str(match is_seed || is_check {
            true => "(of the checks)",
            false => name,
        });
        rest = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_for_the_mutator_has_no_seed_and_no_check_problem() {
        let timed = ["mid".to_owned()];
        let text = "problem mid: 3 of 9 elements differ (problem ragged, seed 148); problem mid: y";
        assert_eq!(
            without_checks(text, &timed),
            "problem mid: 3 of 9 elements differ (problem (of the checks), seed (of the checks)); problem mid: y"
        );
        assert_eq!(without_checks("a seed grows", &timed), "a seed grows");
    }
}
