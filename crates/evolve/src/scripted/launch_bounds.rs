//! Request more resident blocks from the register allocator than the search space offers.

use super::{Subject, Variant};
use crate::protocol::SpaceChange;
use serde_json::{Value, json};

/// Parameter of the shipped templates that is an argument of `__launch_bounds__`.
const PARAMETER: &str = "MIN_BLOCKS";
/// Numbers of blocks that are added.
const ADDED: [i64; 6] = [3, 5, 6, 8, 12, 16];

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let known = &subject.space["parameters"][PARAMETER];
    let Some(values) = known["values"].as_array() else {
        return bare(subject);
    };
    let mut all = values.clone();
    all.extend(
        ADDED
            .map(Value::from)
            .into_iter()
            .filter(|value| !values.contains(value)),
    );
    if all.len() == values.len() {
        return Vec::new();
    }
    let mut parameter = known.clone();
    parameter["values"] = json!(all);
    let mut space = SpaceChange::default();
    space.parameters.insert(PARAMETER.to_owned(), parameter);
    vec![Variant {
        label: "launch_bounds: more choices of resident blocks".to_owned(),
        source: subject.code.text.to_owned(),
        space: Some(space),
    }]
}

/// Adds bounds to a kernel with the parameter THREADS but without bounds.
fn bare(subject: &Subject<'_>) -> Vec<Variant> {
    let text = subject.code.text;
    let is_known = subject.space["parameters"]["THREADS"].is_object();
    if !is_known || text.contains("__launch_bounds__") || !text.contains("__global__ void ") {
        return Vec::new();
    }
    let bounded = text.replace(
        "__global__ void ",
        "__global__ void __launch_bounds__(THREADS) ",
    );
    vec![Variant::new(
        "launch_bounds: threads of a block".to_owned(),
        bounded,
    )]
}
