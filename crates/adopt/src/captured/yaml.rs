//! The search space of a captured kernel as text.

use super::{CapturedData, Observed};
use crate::Settings;
use crate::plan::{Plan, Variable, VariableContent, format_position};
use crate::unit::Unit;
use crate::yaml;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::escape::yaml as quoted;

/// Writes the search space of a plan with the data of its captures.
pub(crate) fn write(
    settings: &Settings<'_>,
    unit: &Unit,
    item: usize,
    plan: &Plan,
    data: &CapturedData,
    observed: &Observed<'_>,
) -> String {
    let mut text = String::new();
    let mut line = |one: &str| {
        text.push_str(one);
        text.push('\n');
    };
    // A line break in a file's name would end the comment, and the rest would be read as YAML.
    line(&format!(
        "# Adopted from {} by `tuner adopt --captured`; data and results are the program's own:",
        tuner_core::escape::line(&format_position(unit, item))
    ));
    for (capture, launch) in observed.launches.iter().take(8) {
        line(&format!(
            "# launch {} of {}",
            launch.number,
            tuner_core::escape::line(&capture.document.program.join(" "))
        ));
    }
    line("version: 1");
    line(&format!("kernel: {}", plan.kernel));
    line(&format!("source: {}.cu", plan.kernel));
    line("sizes: argument                 # the kernel takes its sizes as arguments");
    let mut problems = data.problems.iter();
    line("problems:                       # the largest captured launch");
    for (name, sizes) in problems.by_ref().take(1) {
        line(&problem(name, sizes));
    }
    let mut rest = problems.peekable();
    if rest.peek().is_some() {
        line("check_problems:                 # the other captured launches");
        rest.for_each(|(name, sizes)| line(&problem(name, sizes)));
    }
    yaml::parameters(&mut line, plan);
    line(if plan.arguments.is_empty() {
        "arguments: []"
    } else {
        "arguments:                      # in the order of the kernel's parameters"
    });
    for argument in &plan.arguments {
        let fill = data.fills.get(&argument.name).map(String::as_str);
        line(&yaml::captured_line(argument, plan, fill));
    }
    if !plan.variables.is_empty() {
        line("variables:                      # as the program set them");
    }
    for variable in &plan.variables {
        line(&variable_line(variable, data));
    }
    yaml::launch(&mut line, plan, data.passed.as_deref());
    let values = data.values.iter();
    let values = values.map(|(name, path)| format!("{name}: {}", quoted(path)));
    let values: Vec<String> = values.collect();
    if values.is_empty() {
        line("reference: none                 # the kernel writes to no buffer");
    } else {
        line("reference:                      # what the program's own launch left");
        line(&format!("  values: {{ {} }}", values.join(", ")));
    }
    line(&yaml::compile(settings));
    text
}

fn variable_line(variable: &Variable, data: &CapturedData) -> String {
    let (name, ty) = (&variable.name, &variable.ty);
    match &variable.held {
        VariableContent::Pointer(to) => format!("  {name}: {{ pointer: {to} }}"),
        VariableContent::Value(value) => format!("  {name}: {{ type: {ty}, value: {value} }}"),
        VariableContent::Array(extents) => {
            let extents = extents.iter().map(|it| quoted(&it.to_string()));
            let shape = extents.collect::<Vec<_>>().join(", ");
            let fill = data.variable_fills.get(name);
            let fill = fill.map_or_else(String::new, |fill| format!(", fill: {fill}"));
            format!("  {name}: {{ type: {ty}, shape: [{shape}]{fill} }}")
        }
    }
}

fn problem(name: &str, sizes: &BTreeMap<String, i64>) -> String {
    let mut text = format!("  {name}: {{");
    for (index, (size, value)) in sizes.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{} {size}: {value}", if index > 0 { "," } else { "" });
    }
    text.push_str(if sizes.is_empty() { "}" } else { " }" });
    text
}
