//! Launch functions of the header: the grid, block and shared-memory expressions of the search
//! space as C functions of the sizes.

use super::header::Plan;
use super::lookup::parameters;
use super::names::suffix;
use super::rules::{SizeValue, Writer};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::entry::Entry;
use tuner_core::escape::CComment;
use tuner_core::record::{LaunchDefinition, value_of};
use tuner_core::value::Value;

/// Writes the functions, one for each launch; nothing if the search space's launches are unknown.
pub(super) fn functions(plan: &Plan<'_>) -> String {
    let names = names(plan);
    if names.is_empty() {
        return String::new();
    }
    let (lower, upper) = (&plan.lower, &plan.upper);
    let mut text = format!(
        "\n/* A launch for the sizes asked: blocks, threads a block, and dynamic shared memory in \
         bytes.\n * `runs` is 0 where it is left out, and where CUDA refuses an extent. */\n\
         typedef struct {lower}_launch {{\n  int runs;\n  long long grid[3];\n  long long block[3];\n\
         \x20 long long shared_bytes;\n}} {lower}_launch;\n"
    );
    limits(plan, &mut text);
    let sizes = parameters(plan.sizes.iter());
    let launch = plan.unused("launch");
    // Compilers warn of unused parameters.
    let unused: String = plan
        .sizes
        .iter()
        .map(|size| format!("  (void){};\n", size.member))
        .collect();
    for (at, name) in names.iter().enumerate() {
        let _ = write!(
            text,
            "\n{upper}FUNCTION {lower}_launch {lower}_launch_{name}(const {lower}_entry *entry{sizes}) {{\n\
             \x20 {lower}_launch {launch} = {{0, {{0, 0, 0}}, {{0, 0, 0}}, 0}};\n{unused}\
             \x20 switch (entry - {lower}_table) {{\n"
        );
        // Entries with equal launches share a case.
        let mut bodies: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, entry) in plan.entries.iter().enumerate() {
            let Some(definition) = entry.definition.launches.get(at) else {
                continue;
            };
            let body = body(plan, entry, definition, &launch);
            match bodies.iter_mut().find(|(known, _)| *known == body) {
                Some((_, entries)) => entries.push(index),
                None => bodies.push((body, vec![index])),
            }
        }
        for (body, entries) in bodies {
            for index in entries {
                let _ = writeln!(text, "  case {index}:");
            }
            let _ = writeln!(text, "  {{\n{body}    break;\n  }}");
        }
        let _ = write!(
            text,
            "  default:\n    break;\n  }}\n\
             \x20 if (!{lower}_fits({launch})) {launch}.runs = 0;\n  return {launch};\n}}\n"
        );
    }
    text
}

/// Writes the function that compares a launch with CUDA's limits (CUDA C++ Programming Guide, table
/// "Technical Specifications per Compute Capability": the same for all).
fn limits(plan: &Plan<'_>, text: &mut String) {
    let within = |(part, axis, most): (&str, usize, i64)| {
        format!("l.{part}[{axis}] >= 1 && l.{part}[{axis}] <= {most}")
    };
    let grid = [
        ("grid", 0, 2_147_483_647),
        ("grid", 1, 65_535),
        ("grid", 2, 65_535),
    ];
    let block = [("block", 0, 1024), ("block", 1, 1024), ("block", 2, 64)];
    let _ = write!(
        text,
        "\n{upper}FUNCTION int {lower}_fits({lower}_launch l) {{\n  return {}\n    && {}\n    \
         && l.block[0] * l.block[1] * l.block[2] <= 1024 && l.shared_bytes >= 0;\n}}\n",
        grid.map(within).join(" && "),
        block.map(within).join(" && "),
        lower = plan.lower,
        upper = plan.upper,
    );
}

/// Returns a name for each launch: its kernel function, numbered if it is launched again.
fn names(plan: &Plan<'_>) -> Vec<String> {
    let all = plan.entries.iter().map(|entry| &entry.definition.launches);
    let most = all.max_by_key(|launches| launches.len());
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    most.into_iter()
        .flatten()
        .map(|launch| {
            let name = suffix(&launch.entry);
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            match *count {
                1 => name,
                again => format!("{name}_{again}"),
            }
        })
        .collect()
}

/// Writes the assignments of one entry's launch.
fn body(plan: &Plan<'_>, entry: &Entry, definition: &LaunchDefinition, launch: &str) -> String {
    let LaunchDefinition {
        when,
        grid,
        block,
        shared,
        ..
    } = definition;
    let extents = grid.iter().chain(block).chain([shared]);
    let all = extents.clone().chain(when.as_ref());
    let mut writer = Writer::new(plan, entry, all.map(String::as_str).collect());
    let lower = &plan.lower;
    let mut text = String::new();
    let mut put = |place: String, source: &str, value: SizeValue, wrapped: &str| {
        let _ = writeln!(text, "    /* {place}: {} */", CComment::new(source));
        if let Some(why) = &value.limit {
            let _ = writeln!(text, "    /* C cannot state it: {why}. */");
        }
        for statement in &value.statements {
            let _ = writeln!(text, "    {statement}");
        }
        let value = wrapped.replace('@', &value.text);
        let _ = writeln!(text, "    {launch}.{place} = {value};");
    };
    match when {
        Some(when) => {
            let truth = format!("{lower}_truth(@) == 1");
            put("runs".to_owned(), when, writer.value(when), &truth);
        }
        None => put("runs".to_owned(), "always", always(), "@"),
    }
    let extent = format!("{lower}_extent(@)");
    for (part, axes) in [("grid", grid), ("block", block)] {
        for (axis, source) in axes.iter().enumerate() {
            let value = writer.value(source);
            put(format!("{part}[{axis}]"), source, value, &extent);
        }
    }
    put(
        "shared_bytes".to_owned(),
        shared,
        writer.value(shared),
        &extent,
    );
    let most = value_of(&entry.environment, "DEVICE_SHARED_BYTES");
    if let Some(most) = most.and_then(Value::as_i64) {
        let _ = writeln!(
            text,
            "    if ({launch}.shared_bytes > {most}) {launch}.runs = 0;"
        );
    }
    text
}

fn always() -> SizeValue {
    SizeValue {
        statements: Vec::new(),
        text: "1".to_owned(),
        limit: None,
    }
}
