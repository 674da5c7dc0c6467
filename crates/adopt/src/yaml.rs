//! The search space file.

use super::Settings;
use super::expr::Expr;
use super::plan::{Argument, Plan, VariableContent, defaults, format_position};
use super::sizes;
use super::template::relative;
use super::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use tuner_core::escape::yaml as quoted;
use tuner_core::plan::Role;

/// Writes the search space of a plan.
pub(crate) fn write(settings: &Settings<'_>, unit: &Unit, item: usize, plan: &Plan) -> String {
    let mut text = String::new();
    let mut line = |one: &str| {
        text.push_str(one);
        text.push('\n');
    };
    line(&format!(
        "# Adopted from {} by `tuner adopt`; what was guessed says so.",
        tuner_core::escape::line(&format_position(unit, item))
    ));
    line("version: 1");
    line(&format!("kernel: {}", plan.kernel));
    line(&format!("source: {}.cu", plan.kernel));
    if plan.sizes.is_empty() {
        line("problems: { file: {} }");
    } else {
        line("sizes: argument                 # the kernel takes its sizes as arguments");
        let origin = match settings.sizes.is_empty() {
            true => "as the file launches it",
            false => "as stated",
        };
        problems(&mut line, plan, origin);
    }
    parameters(&mut line, plan);
    if plan.arguments.is_empty() {
        line("arguments: []");
    } else {
        line("arguments:                      # in the order of the kernel's parameters");
    }
    let least = sizes::least_index(plan);
    let counts = counting(plan);
    for argument in &plan.arguments {
        let guess = Guess {
            least,
            counts: counts.contains(&argument.name),
        };
        line(&argument_line(argument, plan, &guess));
    }
    variables(&mut line, plan, least);
    launch(&mut line, plan, None);
    line("reference: none                 # hazards only; to compare results and to tune, write");
    line("# reference: { source: reference.cu, entry: plain, grid: [1, 1, 1], block: [32, 1, 1] }");
    line(&compile(settings));
    text
}

/// Formats the options and include folders of compiles.
pub(crate) fn compile(settings: &Settings<'_>) -> String {
    let options: Vec<String> = settings.options().map(|option| quoted(&option)).collect();
    format!(
        "compile: {{ options: [{}]{} }}",
        options.join(", "),
        include(settings)
    )
}

/// Formats the folders of headers for `compile`.
fn include(settings: &Settings<'_>) -> String {
    let folders: Vec<String> = settings
        .include
        .iter()
        .filter_map(|folder| relative(settings.folder, folder))
        .map(|folder| quoted(&folder))
        .collect();
    match folders.is_empty() {
        true => String::new(),
        false => format!(", include: [{}]", folders.join(", ")),
    }
}

/// Scales guessed extents in a search space; `None` if one of these arguments' extents is not a guess.
pub(crate) fn enlarged(space: &str, times: &BTreeMap<String, i64>) -> Option<String> {
    let mut lines: Vec<String> = space.lines().map(str::to_owned).collect();
    for (name, times) in times {
        let start = format!("  - {{ name: {name}, ");
        let guess = format!("# guessed: {}", sizes::GUESSED_EXTENT);
        let line = lines
            .iter_mut()
            .find(|line| line.starts_with(&start) && line.contains(&guess))?;
        let (head, rest) = line.split_once("shape: [\"")?;
        let (extent, tail) = rest.split_once("\"]")?;
        let extent = match extent.contains(" + ") || extent.contains(" - ") {
            true => format!("({extent})"),
            false => extent.to_owned(),
        };
        let tail = tail.replace(
            sizes::GUESSED_EXTENT,
            "the extent: as far as the kernel goes",
        );
        *line = format!("{head}shape: [\"{extent} * {times}\"]{tail}");
    }
    // `lines` has dropped the line break at the end.
    lines.push(String::new());
    Some(lines.join("\n"))
}

fn list(values: &BTreeMap<String, i64>, order: &[(String, Option<i64>)]) -> String {
    let each = order
        .iter()
        .filter_map(|(name, _)| Some(format!("{name}: {}", values.get(name)?)));
    each.collect::<Vec<_>>().join(", ")
}

fn problems(line: &mut dyn FnMut(&str), plan: &Plan, origin: &str) {
    let unknown: Vec<&str> = plan
        .sizes
        .iter()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let guessed = if unknown.is_empty() {
        format!("# {origin}")
    } else {
        format!(
            "# guessed: {}; write the sizes that you run",
            unknown.join(", ")
        )
    };
    line("problems:");
    line(&format!(
        "  file: {{ {} }}    {guessed}",
        list(&sizes::of_file(plan), &plan.sizes)
    ));
    line("check_problems:                 # small enough to be run whole");
    let small = sizes::small(plan);
    line(&format!("  small: {{ {} }}", list(&small, &plan.sizes)));
    if let Some(ragged) = sizes::ragged(plan, &small) {
        line(&format!(
            "  ragged: {{ {} }}    # the launch rounds up; remove it where sizes are always multiples",
            list(&ragged, &plan.sizes)
        ));
    }
}

pub(crate) fn parameters(line: &mut dyn FnMut(&str), plan: &Plan) {
    if plan.parameters.is_empty() {
        line("parameters: {}");
        return;
    }
    line("parameters:                     # proposed: neighbours by powers of two");
    for each in &plan.parameters {
        let values: Vec<String> = each.values.iter().map(i64::to_string).collect();
        line(&format!(
            "  {}: {{ values: [{}], default: {}, doc: {} }}",
            each.name,
            values.join(", "),
            each.default,
            quoted(&each.doc)
        ));
    }
    let product = plan
        .block
        .iter()
        .cloned()
        .reduce(|a, b| Expr::binary("*", a, b));
    let mut rules = Vec::new();
    if let Some(product) = product.filter(|it| it.number().is_none()) {
        rules.push((
            format!("{product} <= DEVICE_MAX_THREADS"),
            "limit of threads per block",
        ));
    }
    if let Some(shared) = plan.shared.as_ref().filter(|it| it.number().is_none()) {
        rules.push((
            format!("{shared} <= DEVICE_SHARED_BYTES"),
            "the shared memory of a block",
        ));
    }
    let size = |text: &str| {
        plan.sizes
            .iter()
            .any(|(name, _)| super::tree::words(text).contains(&name.as_str()))
    };
    rules.retain(|(rule, _)| !size(rule));
    if !rules.is_empty() {
        line("constraints:");
        for (rule, why) in rules {
            line(&format!("  - {{ rule: {}, why: {why} }}", quoted(&rule)));
        }
    }
}

/// Formats the start of an argument's line: name, type, role and shape.
fn argument_head(argument: &Argument) -> String {
    let mut text = format!("  - {{ name: {}, type: {}", argument.name, argument.ty);
    let _ = write!(text, ", role: {}", argument.role);
    if let Some(shape) = &argument.shape {
        let _ = write!(text, ", shape: [{}]", quoted(&shape.to_string()));
    }
    text
}

/// Formats the line of an argument with captured data.
pub(crate) fn captured_line(argument: &Argument, plan: &Plan, fill: Option<&str>) -> String {
    let mut text = argument_head(argument);
    if let Some(fill) = fill {
        let _ = write!(text, ", fill: {fill}");
    }
    value(argument, plan, &mut text);
    text.push_str(" }");
    text
}

/// Adds a scalar's value, unless its name implies it.
fn value(argument: &Argument, plan: &Plan, text: &mut String) {
    if let Some(value) = &argument.composed {
        let _ = write!(text, ", value: {value}");
    }
    if let Some(value) = &argument.value
        && !plan
            .sizes
            .iter()
            .any(|(name, _)| *name == argument.name && value.to_string() == *name)
    {
        let _ = write!(text, ", value: {}", quoted(&value.to_string()));
    }
}

/// Returns the inputs of whole numbers with no more elements than each other buffer: as contents, 0, 1, 2, …
/// are valid indices of all.
fn counting(plan: &Plan) -> BTreeSet<String> {
    let problems = [sizes::of_file(plan), sizes::small(plan)];
    let is_least = |argument: &Argument| {
        problems.iter().all(|sizes| {
            let names: BTreeMap<String, i64> =
                defaults(plan).into_iter().chain(sizes.clone()).collect();
            let extent = |argument: &Argument| argument.shape.as_ref()?.value(&names);
            let own = extent(argument);
            let mut others = plan.arguments.iter().filter_map(extent);
            own.is_some() && others.all(|other| own <= Some(other))
        })
    };
    let plain = ["i32", "u32", "i64", "u64"];
    let inputs = plan.arguments.iter().filter(|argument| {
        argument.role == Role::Input && plain.contains(&argument.ty.as_str()) && is_least(argument)
    });
    inputs.map(|argument| argument.name.clone()).collect()
}

/// Guessed contents of an argument that may hold indices.
struct Guess {
    /// Smallest extent of the data.
    least: i64,
    /// Its elements may be 0, 1, 2, … without an index out of bounds.
    counts: bool,
}

fn argument_line(argument: &Argument, plan: &Plan, guess: &Guess) -> String {
    let mut text = argument_head(argument);
    let mut note = argument.guessed.map(str::to_owned);
    let mut guessed = is_guessed_value(argument, plan);
    if argument.role.is_filled() && argument.zeroed {
        text.push_str(", fill: zeros");
    } else if argument.role.is_filled() && is_whole(&argument.ty) {
        // Distinct and ascending, as permutations, offsets and keys are.
        let (fill, values) = match guess.counts {
            true => ("fill: arange".to_owned(), "the values: 0, 1, 2, …"),
            false => (
                indices(guess.least),
                "the values: indices of the smallest size",
            ),
        };
        let _ = write!(text, ", {fill}");
        note = Some(note.map_or(values.to_owned(), |note| format!("{note}, and {values}")));
        // Those of a struct and of another argument are not known to be data alone.
        guessed = argument.parameter.is_none() || plan.indices.contains(&argument.name);
    }
    value(argument, plan, &mut text);
    if guessed {
        text.push_str(", guessed: true");
    }
    if argument.guessed == Some(sizes::GUESSED_EXTENT) {
        text.push_str(", guessed_extent: true");
    }
    text.push_str(" }");
    if let Some(note) = note {
        let _ = write!(text, "    # guessed: {note}");
    }
    text
}

/// Reports whether the value of a scalar is a guess that addresses may depend on. Sizes that are all guessed
/// are equal; one between known sizes may not fit them, as the guess of a pitch.
fn is_guessed_value(argument: &Argument, plan: &Plan) -> bool {
    if argument.role != Role::Scalar {
        return false;
    }
    let known = |wanted: bool| {
        let mut sizes = plan.sizes.iter();
        sizes.any(|(_, value)| value.is_some() == wanted)
    };
    let is_unknown = |name: &String| {
        let mut sizes = plan.sizes.iter();
        sizes.any(|(size, value)| size == name && value.is_none())
    };
    match (&argument.value, &argument.composed) {
        (Some(Expr::Name(name)), _) => known(true) && is_unknown(name),
        (_, Some(value)) => argument.guessed.is_some() && value.contains('{'),
        _ => argument.guessed.is_some() && is_whole(&argument.ty),
    }
}

fn is_whole(ty: &str) -> bool {
    let lanes = |c: char| c.is_ascii_digit();
    let whole = ["int", "uint", "longlong", "ulonglong"];
    let names = ["i32", "u32", "i64", "u64", "i16", "u16", "i8", "u8"];
    names.contains(&ty) || whole.contains(&ty.trim_end_matches(lanes))
}

/// Returns fill data that may be used as indices.
fn indices(least: i64) -> String {
    format!("fill: {{ uniform: {{ min: 0, max: {} }} }}", least - 1)
}

fn variables(line: &mut dyn FnMut(&str), plan: &Plan, least: i64) {
    if !plan.variables.is_empty() {
        line("variables:                      # guessed: what the host copies to them");
    }
    for variable in &plan.variables {
        let (name, ty) = (&variable.name, &variable.ty);
        line(&match &variable.held {
            VariableContent::Pointer(to) => format!("  {name}: {{ pointer: {to} }}"),
            VariableContent::Value(value) => format!("  {name}: {{ type: {ty}, value: {value} }}"),
            VariableContent::Array(extents) => {
                let extents: Vec<String> =
                    extents.iter().map(|it| quoted(&it.to_string())).collect();
                let fill = if is_whole(ty) {
                    format!(", {}", indices(least))
                } else {
                    String::new()
                };
                let shape = extents.join(", ");
                format!("  {name}: {{ type: {ty}, shape: [{shape}]{fill} }}")
            }
        });
    }
}

/// Writes the launch; `passed` lists its arguments if they are not all arguments in order.
pub(crate) fn launch(line: &mut dyn FnMut(&str), plan: &Plan, passed: Option<&[String]>) {
    let extents = |all: &[Expr]| {
        let each = all.iter().map(|each| match each.number() {
            Some(number) => number.to_string(),
            None => quoted(&each.to_string()),
        });
        each.chain(std::iter::repeat("1".to_owned()))
            .take(3)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = format!(
        "  - {{ entry: {}, grid: [{}], block: [{}]",
        quoted(&plan.entry),
        extents(&plan.grid),
        extents(&plan.block)
    );
    if let Some(passed) = passed {
        let _ = write!(text, ", args: [{}]", passed.join(", "));
    }
    if let Some(shared) = &plan.shared {
        let _ = write!(text, ", shared: {}", quoted(&shared.to_string()));
    }
    if let Some([x, y, z]) = plan.cluster {
        let _ = write!(text, ", cluster: [{x}, {y}, {z}]");
    }
    if plan.cooperative {
        text.push_str(", cooperative: true");
    }
    if plan.guesses_launch() {
        text.push_str(", guessed: true");
    }
    text.push_str(" }");
    if !plan.guessed_launch.is_empty() {
        let _ = write!(text, "    # guessed: {}", plan.guessed_launch.join(", "));
    } else if let Some(file) = &plan.launch_of {
        let _ = write!(
            text,
            "    # as {} launches it",
            tuner_core::escape::line(file)
        );
    }
    line("launches:");
    line(&text);
}

#[cfg(test)]
mod tests;
