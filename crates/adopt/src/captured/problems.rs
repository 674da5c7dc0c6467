//! Problems: the captured launches with their sizes.

use super::infer::{Names, infer};
use super::launch::Facts;
use super::{CapturedData, Observed};
use crate::expr::Expr;
use crate::plan::{Plan, VariableContent};
use capture::{Capture, Launch};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of problems of a search space.
const MAX_PROBLEMS: usize = 8;

/// A captured launch as a problem.
#[derive(Debug)]
pub(super) struct Problem<'c> {
    pub(super) name: String,
    pub(super) capture: &'c Capture,
    pub(super) launch: &'c Launch,
    pub(super) names: Names,
}

/// Problems of a kernel, the largest first, and its names that are sizes.
#[derive(Debug)]
pub(super) struct Problems<'c> {
    pub(super) all: Vec<Problem<'c>>,
    /// Names of scalars that are sizes, by the parameter's position.
    pub(super) scalars: BTreeMap<usize, String>,
    /// Names that are parameters of the search space.
    pub(super) parameters: BTreeSet<String>,
}

/// Chooses the launches for problems: those with the default values of all parameters.
pub(super) fn choose<'c>(plan: &Plan, facts: &Facts<'c>, observed: &Observed<'c>) -> Problems<'c> {
    let mut all: Vec<Problem<'_>> = Vec::new();
    for index in &facts.with_defaults {
        let known = observed.launches.get(*index).zip(facts.names.get(*index));
        let Some(((capture, launch), names)) = known else {
            continue;
        };
        let same = |other: &Problem<'_>| {
            let extents = |of: &Launch| (of.grid, of.block, of.shared_bytes);
            other.names == *names && extents(other.launch) == extents(launch)
        };
        if all.len() < MAX_PROBLEMS && !all.iter().any(same) {
            all.push(Problem {
                name: String::new(),
                capture,
                launch,
                names: names.clone(),
            });
        }
    }
    let threads = |problem: &Problem<'_>| {
        let extents = problem.launch.grid.iter().chain(&problem.launch.block);
        extents.fold(1_u64, |all, extent| all.saturating_mul((*extent).into()))
    };
    // The first problem is tuned, the others only check results.
    all.sort_by_key(|problem| std::cmp::Reverse(threads(problem)));
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for problem in &mut all {
        let values = problem.capture.document.values.iter();
        let sizes = values.filter(|(name, _)| plan.parameters.iter().all(|it| it.name != **name));
        let parts: Vec<String> = sizes
            .map(|(name, value)| format!("{}{value}", name.to_lowercase()))
            .collect();
        let base = match parts.as_slice() {
            [] => "program".to_owned(),
            parts => parts.join("_").replace('-', "m"),
        };
        let mut name = base.clone();
        for number in 2.. {
            if taken.insert(name.clone()) {
                break;
            }
            name = format!("{base}_{number}");
        }
        problem.name = name;
    }
    Problems {
        all,
        scalars: facts.scalars.clone(),
        parameters: plan
            .parameters
            .iter()
            .map(|each| each.name.clone())
            .collect(),
    }
}

impl Problems<'_> {
    /// Returns an expression with these values on the problems: over the kernel's own sizes, or else over
    /// numbers of the program that the user named.
    pub(super) fn extent(&self, values: &[i64]) -> Option<Expr> {
        let own = |_: &Problem<'_>, name: &String| self.scalars.values().any(|it| it == name);
        let named = |problem: &Problem<'_>, name: &String| {
            own(problem, name) || problem.capture.document.values.contains_key(name)
        };
        infer(&self.names(&own), values, &[]).or_else(|| infer(&self.names(&named), values, &[]))
    }

    /// Returns the names of each problem that are not parameters and that a test accepts.
    fn names(&self, accepts: &dyn Fn(&Problem<'_>, &String) -> bool) -> Vec<Names> {
        let problems = self.all.iter().map(|problem| {
            let names = problem.names.iter();
            let names = names
                .filter(|(name, _)| !self.parameters.contains(*name) && accepts(problem, name));
            names.map(|(name, value)| (name.clone(), *value)).collect()
        });
        problems.collect()
    }
}

/// Adds the sizes of all problems: the names that the search space uses.
pub(super) fn finish(plan: &mut Plan, problems: &Problems<'_>, data: &mut CapturedData) {
    let mut used = Vec::new();
    let extents = plan.grid.iter().chain(&plan.block).chain(&plan.shared);
    let arguments = plan.arguments.iter();
    let arguments = arguments.flat_map(|it| it.shape.iter().chain(&it.value));
    extents
        .chain(arguments)
        .for_each(|each| each.names(&mut used));
    for variable in &plan.variables {
        if let VariableContent::Array(extents) = &variable.held {
            extents.iter().for_each(|each| each.names(&mut used));
        }
    }
    used.retain(|name| !problems.parameters.contains(name));
    for (index, problem) in problems.all.iter().enumerate() {
        let value = |name: &String| {
            let own = data.extents.get(name).and_then(|values| values.get(index));
            own.or_else(|| problem.names.get(name)).copied()
        };
        let sizes = used.iter();
        let sizes = sizes.filter_map(|name| Some((name.clone(), value(name)?)));
        let sizes = sizes.collect();
        data.problems.push((problem.name.clone(), sizes));
    }
    plan.sizes = used.into_iter().map(|name| (name, None)).collect();
}
