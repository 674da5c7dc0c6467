//! Facts from captured launches: arguments, roles, sizes, launch, data and expected outputs.
//!
//! The source provides names, types and proposed expressions; captures decide. An expression is used
//! only if it yields the value of every captured launch.

mod arguments;
mod infer;
mod launch;
mod problems;
mod select;
mod values;
mod yaml;

pub(crate) use launch::Facts;
pub(crate) use select::{Observed, select};
pub(crate) use yaml::write;

use crate::AdoptError;
use crate::plan::Plan;
use std::collections::BTreeMap;

/// Contents of a data file of a search space.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// Path, relative to the folder of the search space.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// Captured data in the terms of a search space.
#[derive(Debug, Default)]
pub(crate) struct CapturedData {
    /// Problems with their sizes, the largest first.
    pub(crate) problems: Vec<(String, BTreeMap<String, i64>)>,
    /// `fill` of each argument, by name.
    pub(crate) fills: BTreeMap<String, String>,
    /// Values of sizes that are specific to a buffer, by problem.
    pub(crate) extents: BTreeMap<String, Vec<i64>>,
    /// `fill` of variables, by name.
    pub(crate) variable_fills: BTreeMap<String, String>,
    /// Names of the launch's arguments, if an argument is passed twice.
    pub(crate) passed: Option<Vec<String>>,
    /// Files of expected contents, by argument.
    pub(crate) values: Vec<(String, String)>,
    /// All files.
    pub(crate) files: Vec<DataFile>,
}

/// Describes arguments, data and problems of a plan by the captured launches.
///
/// # Errors
/// A capture that is not of this source, and memory that a search space cannot describe.
pub(crate) fn describe(
    plan: &mut Plan,
    facts: &Facts<'_>,
    observed: &Observed<'_>,
    sizes: &[Option<u64>],
) -> Result<CapturedData, AdoptError> {
    select::check_parameters(plan, observed, sizes)?;
    let mut data = CapturedData::default();
    let problems = problems::choose(plan, facts, observed);
    arguments::describe(plan, &problems, &mut data)?;
    problems::finish(plan, &problems, &mut data);
    Ok(data)
}

/// Reports whether a plan, with the defaults of its parameters, is of this captured instance.
pub(crate) fn is_instance(plan: &Plan, instance: &str) -> bool {
    let own = plan.filled_entry();
    let plain = |name: &str| {
        select::plain(
            name.rsplit("(anonymous namespace)::")
                .next()
                .unwrap_or(name),
        )
    };
    !own.contains('<') && !instance.contains('<') || plain(&own) == plain(instance)
}

/// Builds an error about the captured launches of a kernel.
pub(crate) fn refuse(kernel: &str, why: String, help: String) -> AdoptError {
    AdoptError::Unsupported {
        kernel: kernel.to_owned(),
        why,
        help,
    }
}
