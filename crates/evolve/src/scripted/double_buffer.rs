//! Double-buffer a marked loop: the loads of the next pass are in flight while this one computes.
//!
//! The loop has the mark `// tuner: double-buffer ARRAY` on the line before it and the form `for (…) {
//! ARRAY[…] = LOAD; __syncthreads(); … __syncthreads(); }`, with an array of one dimension.

use super::code::{Loop, has_word, replace_word, spliced};
use super::{Subject, Variant};

const MARK: &str = "// tuner: double-buffer ";
const BARRIER: &str = "__syncthreads();";

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let text = subject.code.text;
    let loops = subject.code.loops();
    let marked = loops.iter().filter_map(|one| {
        let before = text.get(..one.whole.start)?.trim_end();
        let line = before.lines().next_back()?.trim();
        Some((one, line.strip_prefix(MARK)?.trim()))
    });
    marked
        .filter_map(|(one, array)| buffered(text, one, array))
        .collect()
}

fn buffered(text: &str, one: &Loop<'_>, array: &str) -> Option<Variant> {
    let inner = one.body.strip_prefix('{')?.strip_suffix('}')?;
    let (fill, rest) = inner.split_once(BARRIER)?;
    let work = rest.trim_end().strip_suffix(BARRIER)?;
    let (target, value) = fill.trim().strip_suffix(';')?.split_once(" = ")?;
    let index = target
        .strip_prefix(array)?
        .strip_prefix('[')?
        .strip_suffix(']')?;
    if has_word(index, one.name) || fill.matches(';').count() != 1 || work.contains(BARRIER) {
        return None;
    }
    let declared = format!("{array}[");
    let at = text.find(&format!("__shared__ float {declared}"))?;
    let size_at = at + "__shared__ float ".len() + declared.len();
    let size = text.get(size_at..)?.split_once(']')?.0;
    let (name, from, to, step) = (one.name, one.from, one.to, one.step);
    let next = replace_word(value, name, &format!("({name} + {step})"));
    let first = replace_word(value, name, &format!("({from})"));
    let work = replace_word(work, array, "buffer");
    // One barrier per pass suffices: a pass fills the half that all threads have already read.
    let replaced = format!(
        "{array}[{index}] = {first};\n    int turn = 0;\n    for (int {name} = {from}; {name} < {to}; {name} += {step}) {{\n        \
         {BARRIER}\n        float* buffer = {array} + turn * ({size});\n        turn ^= 1;\n        \
         if ({name} + {step} < {to}) {array}[turn * ({size}) + ({index})] = {next};{work}\n    }}"
    );
    let source = spliced(text, one.whole.clone(), &replaced);
    let source = spliced(
        &source,
        size_at..size_at + size.len(),
        &format!("2 * ({size})"),
    );
    let label = format!(
        "double_buffer: {array} in the loop over {name}, line {}",
        one.line
    );
    Some(Variant::new(label, source))
}
