//! Widen loads: rows of a shared tile begin at whole vectors of 16 bytes, so that the compiler merges
//! neighbouring reads.

use super::{Subject, Variant};
use crate::protocol::SpaceChange;
use serde_json::Value;

/// Row of a shared tile: text in the template, text in the search space, and their replacement.
const ROW: &str = "(IN_X + (PADDING ? 1 - IN_X % 2 : 0))";
const ALIGNED: &str = "((IN_X + 3) / 4 * 4 + (PADDING ? 4 : 0))";
const DERIVED: &str = "SHARED_ROW";
const ALIGNED_RULE: &str = "4 * ceil_div(INPUT_COLUMNS, 4) + (4 if PADDING == 1 else 0)";

/// Filter in shared memory: replacements that begin each of its rows at 16 bytes.
const FILTER: [(&str, &str); 4] = [
    (
        "#define USED (FILTER_AT + (FILTER_SHARED ? FILTER_HEIGHT * FILTER_WIDTH : 0))",
        "#define FILTER_ROW ((FILTER_WIDTH + 3) / 4 * 4)\n#define USED (FILTER_AT + (FILTER_SHARED ? FILTER_HEIGHT * FILTER_ROW : 0))",
    ),
    (
        "#define FILTER_AT (USE_SHARED ? IN_Y * ROW_LENGTH : 0)",
        "#define FILTER_AT (USE_SHARED ? (IN_Y * ROW_LENGTH + 3) / 4 * 4 : 0)",
    ),
    (
        "shared_memory[FILTER_AT + i * FILTER_WIDTH + j]",
        "shared_memory[FILTER_AT + i * FILTER_ROW + j]",
    ),
    (
        "i < FILTER_HEIGHT * FILTER_WIDTH; i += THREAD_COUNT)
            shared_memory[FILTER_AT + i] = load(filter + i);",
        "i < FILTER_HEIGHT * FILTER_ROW; i += THREAD_COUNT)
            shared_memory[FILTER_AT + i] = i % FILTER_ROW < FILTER_WIDTH ? load(filter + i / FILTER_ROW * FILTER_WIDTH + i % FILTER_ROW) : 0.0f;
    if (USE_SHARED && FILTER_SHARED && threadIdx.y == 0 && threadIdx.x < FILTER_AT - IN_Y * ROW_LENGTH) shared_memory[IN_Y * ROW_LENGTH + threadIdx.x] = 0.0f;",
    ),
];
const BYTES: &str = "SHARED_BYTES";
const FILTER_BYTES: &str = "16 * (ceil_div(TILE_FLOATS, 4) + (FILTER_HEIGHT * ceil_div(FILTER_WIDTH, 4) if FILTER_SHARED == 1 else 0))";

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    tile(subject).into_iter().chain(filter(subject)).collect()
}

/// Returns the variant of the tile's rows.
pub(super) fn tile(subject: &Subject<'_>) -> Option<Variant> {
    let text = subject.code.text;
    let source = text.contains(ROW).then(|| text.replacen(ROW, ALIGNED, 1))?;
    let label = "align_rows: rows of the shared tile begin at 16 bytes";
    variant(subject, label, source, [DERIVED, ALIGNED_RULE])
}

/// Returns the variant of the filter's rows.
pub(super) fn filter(subject: &Subject<'_>) -> Option<Variant> {
    let mut source = subject.code.text.to_owned();
    for (from, to) in FILTER {
        source = source
            .contains(from)
            .then(|| source.replacen(from, to, 1))?;
    }
    let label = "align_rows: rows of the shared filter begin at 16 bytes";
    variant(subject, label, source, [BYTES, FILTER_BYTES])
}

fn variant(
    subject: &Subject<'_>,
    label: &str,
    source: String,
    [derived, rule]: [&str; 2],
) -> Option<Variant> {
    let mut space = SpaceChange::default();
    space.derived.insert(derived.to_owned(), Value::from(rule));
    subject.space["derived"][derived]
        .is_string()
        .then(|| Variant {
            space: Some(space),
            ..Variant::new(label.to_owned(), source)
        })
}
