//! Swap the loops over filter rows and over the thread's rows: a row of the input is read once and used
//! for every output row that it touches. A thread's rows lie side by side then.

use super::code::{Loop, replace_word, spliced};
use super::{Subject, Variant};

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
    let guarded = replace_word(rest, i, &format!("(step - {r})"));
    let replaced = format!(
        "for (int step = 0; step < {filter} + {rows} - 1; ++step) {{\n        const int row = {base} * {rows} + step;\n\
         #pragma unroll\n        for (int {r} = 0; {r} < {rows}; ++{r}) {{\n            \
         if (step - {r} < 0 || step - {r} >= {filter}) continue;{guarded}}}\n    }}"
    );
    let source = spliced(text, outer.statement.clone(), &replaced);
    // The rows of the output move with those of the input.
    let old = format!("{base} + {r} * {apart}");
    let new = format!("{base} * {rows} + {r}");
    let label = format!(
        "swap_loops: input rows outside, output rows inside, line {}",
        outer.line
    );
    Some(Variant::new(label, source.replace(&old, &new)))
}
