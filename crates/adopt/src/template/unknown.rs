//! Names that neither the compiler nor the unit knows, which the project's build may define.

use crate::cut;
use crate::plan::Plan;
use crate::tree::{Source, words};
use crate::unit::{Around, Kind, Unit};
use std::collections::BTreeSet;

/// Names that the compiler does not find and the unit does not declare.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// Called names: functions of the host.
    pub(super) functions: Vec<String>,
    /// Other names, which may be macros of the build.
    pub(super) values: Vec<String>,
}

impl Unknown {
    pub(super) fn find(unit: &Unit, log: &str) -> Self {
        let is_called = |name: &String| {
            let call = format!("{name}(");
            let code = |source: &Source| source.code(&(0..source.len())).contains(&call);
            unit.files.iter().any(code)
        };
        let (functions, values) = unknown_names(unit, log).into_iter().partition(is_called);
        Self { functions, values }
    }
}

/// Returns names that the compiler does not find: those that the unit does not declare, and the macros of the
/// conditions around the declarations of the others.
fn unknown_names(unit: &Unit, log: &str) -> Vec<String> {
    let missed = log.lines().filter_map(|line| {
        let (_, rest) = line.split_once("error: identifier \"")?;
        let (name, rest) = rest.split_once('"')?;
        rest.starts_with(" is undefined").then(|| name.to_owned())
    });
    // Parameters of a function whose head does not compile are undefined too.
    let local = cut::given_names(unit, &(0..unit.items.len()).collect());
    let mut names: Vec<String> = Vec::new();
    for name in missed {
        let is_declared = unit.declaring(&name).next().is_some();
        let found = match (is_declared, local.contains_key(&name)) {
            (true, _) => deciding(unit, &name),
            (false, true) => Vec::new(),
            (false, false) => vec![name],
        };
        for name in found {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Returns the undefined macros in the conditions around the declarations of a name.
fn deciding(unit: &Unit, name: &str) -> Vec<String> {
    let around = unit.declaring(name).flat_map(|(item, ..)| &item.around);
    let conditions = around.filter_map(|around| match around {
        Around::Condition(branch) => Some(branch.opening.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = conditions.collect();
    undefined_macros(unit, &texts.join("\n"))
        .into_iter()
        .collect()
}

/// Words of conditions that are no macros of a project.
const OPERATORS: [&str; 10] = [
    "defined", "and", "or", "not", "true", "false", "if", "elif", "ifdef", "ifndef",
];

/// Returns the macros in the `#if` directives of a text that nothing in the unit or the compiler defines.
fn undefined_macros(unit: &Unit, text: &str) -> BTreeSet<String> {
    let directives = text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        (rest.starts_with("if") || rest.starts_with("el")).then_some(rest)
    });
    let is_defined = |name: &str| {
        let mut items = unit.items.iter().filter(|item| item.kind == Kind::Macro);
        items.any(|item| item.names.iter().any(|known| known == name))
    };
    let found = directives.flat_map(words).filter(|name| {
        // Names with an underscore in front are those of compilers and platforms.
        !name.starts_with('_') && !OPERATORS.contains(name) && *name != "else" && !is_defined(name)
    });
    found.map(str::to_owned).collect()
}

/// Returns a note on the macros that choose branches of a template and that nothing defines.
pub(super) fn undefined_in_conditions(unit: &Unit, plan: &Plan, text: &str) -> Option<String> {
    let code = cuda_source::blanked(text, true);
    let mut names = undefined_macros(unit, &code);
    names.retain(|name| plan.parameters.iter().all(|each| each.name != *name));
    if names.is_empty() {
        return None;
    }
    let names: Vec<String> = names.into_iter().collect();
    Some(format!(
        "nothing defines {}, which choose branches of #if: they are taken as undefined; where your build defines \
         one, type --define NAME=VALUE",
        names.join(", ")
    ))
}
