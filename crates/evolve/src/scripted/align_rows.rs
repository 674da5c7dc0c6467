//! Widen loads: rows of a shared tile begin at whole vectors of 16 bytes, so that the compiler merges
//! neighbouring reads.

use super::{Subject, Variant};
use crate::protocol::SpaceChange;
use serde_json::Value;

/// Row of a shared tile: in the template, in the search space, and what replaces both.
const ROW: &str = "(IN_X + (PADDING ? 1 - IN_X % 2 : 0))";
const ALIGNED: &str = "((IN_X + 3) / 4 * 4 + (PADDING ? 4 : 0))";
const DERIVED: &str = "SHARED_ROW";
const ALIGNED_RULE: &str = "4 * ceil_div(INPUT_COLUMNS, 4) + (4 if PADDING == 1 else 0)";

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let text = subject.code.text;
    if !text.contains(ROW) || !subject.space["derived"][DERIVED].is_string() {
        return Vec::new();
    }
    let mut space = SpaceChange::default();
    space
        .derived
        .insert(DERIVED.to_owned(), Value::from(ALIGNED_RULE));
    vec![Variant {
        label: "align_rows: rows of the shared tile begin at 16 bytes".to_owned(),
        source: text.replacen(ROW, ALIGNED, 1),
        space: Some(space),
    }]
}
