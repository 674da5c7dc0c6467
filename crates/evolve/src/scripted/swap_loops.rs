//! Swap the loops over filter rows and over the thread's rows: a row of the input is read once and used for
//! every output row that it contributes to. A thread's rows are adjacent then.

use super::code::{Loop, has_word, replace_word, spliced};
use super::{Subject, Variant};
use crate::protocol::SpaceChange;
use serde_json::{Map, Value};

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let loops = subject.code.loops();
    let outer = loops
        .iter()
        .filter(|one| one.from == "0" && one.step == "1" && !one.innermost);
    let swapped = outer.filter_map(|outer| {
        let inner = loops.iter().find(|one| {
            one.statement.start > outer.statement.start && one.statement.end <= outer.statement.end
        })?;
        swapped(subject, outer, inner)
    });
    swapped.collect()
}

/// Swaps `for i { for r { const int row = BASE + r * APART + i; BODY } }`.
fn swapped(subject: &Subject<'_>, outer: &Loop<'_>, inner: &Loop<'_>) -> Option<Variant> {
    let text = subject.code.text;
    let (i, r) = (outer.name, inner.name);
    let body = inner.body.strip_prefix('{')?.strip_suffix('}')?;
    let (row, rest) = body
        .trim_start()
        .strip_prefix("const int row = ")?
        .split_once(';')?;
    let parts: Vec<&str> = row.split(" + ").collect();
    let [base, apart, last] = parts.as_slice() else {
        return None;
    };
    let apart = apart
        .strip_prefix(r)?
        .trim_start()
        .strip_prefix('*')?
        .trim();
    if last.trim() != i || inner.to == outer.to {
        return None;
    }
    let (rows, filter) = (inner.to, outer.to);
    let pragma = text
        .get(outer.whole.start..outer.statement.start)
        .unwrap_or_default()
        .trim_end_matches(' ');
    let (loads, rest) = hoisted(rest, i, r);
    let work = replace_word(&rest, i, &format!("(step - {r})"));
    // Passes at both ends contribute to a part of the output rows; those between contribute to all, without
    // a test.
    let replaced = format!(
        "auto pass = [&](int step, bool whole) {{
        const int row = {base} * {rows} + step;
{loads}#pragma unroll
        for (int {r} = 0; {r} < {rows}; ++{r})
            if (whole || (step - {r} >= 0 && step - {r} < {filter})) {{{work}}}
    }};
#pragma unroll
    for (int step = 0; step < {rows} - 1; ++step) pass(step, false);
{pragma}    for (int step = {rows} - 1; step < {filter}; ++step) pass(step, true);
#pragma unroll
    for (int step = {filter} < {rows} ? {rows} - 1 : {filter}; step < {filter} + {rows} - 1; ++step) pass(step, false);"
    );
    let source = spliced(text, outer.whole.clone(), &replaced);
    // The rows of the output move with those of the input.
    let old = format!("{base} + {r} * {apart}");
    let new = format!("{base} * {rows} + {r}");
    let label = format!(
        "swap_loops: input rows outside, output rows inside, line {}",
        outer.line
    );
    Some(Variant {
        space: Some(SpaceChange {
            seeds: seeds(subject),
            ..SpaceChange::default()
        }),
        ..Variant::new(label, source.replace(&old, &new))
    })
}

/// Moves the loads of a row that depend on neither loop out of a body of the form `if (COND) { T NAME[…];
/// for (…) NAME[…] = …; … }`. Returns them, and the body without them.
fn hoisted(body: &str, i: &str, r: &str) -> (String, String) {
    let split = || {
        let (condition, inner) = body.trim_start().strip_prefix("if (")?.split_once(") {")?;
        let (declaration, after) = inner.split_once(';')?;
        let end = after.find(';')? + after.get(after.find(';')? + 1..)?.find(';')? + 1;
        let end = end + after.get(end + 1..)?.find(';')? + 2;
        let (fill, others) = after.split_at_checked(end)?;
        let free = [declaration, fill]
            .iter()
            .all(|text| !has_word(text, i) && !has_word(text, r));
        let is_fill = fill.contains("for (") && declaration.contains('[');
        (free && is_fill).then(|| {
            let loads = format!(
                "        {};\n        if ({condition}) {{{fill}\n        }}\n",
                declaration.trim()
            );
            (loads, format!("\n            if ({condition}) {{{others}"))
        })
    };
    split().unwrap_or_else(|| (String::new(), body.to_owned()))
}

/// Returns starting points of the shipped convolution's space that suit the order: adjacent rows in
/// registers, the filter in shared memory.
fn seeds(subject: &Subject<'_>) -> Vec<Map<String, Value>> {
    const NAMES: [&str; 9] = [
        "BLOCK_X",
        "BLOCK_Y",
        "TILE_X",
        "TILE_Y",
        "STRIDED",
        "REUSE",
        "FILTER_SHARED",
        "PADDING",
        "UNROLL_ROWS",
    ];
    const POINTS: [[u32; 9]; 4] = [
        [32, 8, 4, 4, 0, 1, 1, 0, 0],
        [32, 4, 4, 4, 0, 1, 1, 0, 0],
        [48, 4, 2, 4, 0, 1, 1, 0, 1],
        [16, 4, 2, 4, 0, 1, 1, 1, 0],
    ];
    if NAMES
        .iter()
        .any(|name| !subject.space["parameters"][name].is_object())
    {
        return Vec::new();
    }
    let point = |values: &[u32; 9]| {
        let named = NAMES.iter().zip(values);
        named
            .map(|(name, value)| ((*name).to_owned(), Value::from(*value)))
            .collect()
    };
    POINTS.iter().map(point).collect()
}
