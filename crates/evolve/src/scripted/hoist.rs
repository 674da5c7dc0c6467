//! Hoist loads out of a loop, and above the reduction that they do not depend on.

use super::{Subject, Variant};

/// Loads of the layer normalisation's scale and shift: before the rows' reduction, held in registers.
const LOADS: &str = "const Vector scale = load(gamma + at), shift = load(beta + at);";
const HELD: &str = "const Vector scale = KEEP == 2 ? scales[i % IN_REGISTERS] : load(gamma + at), shift = KEEP == 2 ? shifts[i % IN_REGISTERS] : load(beta + at);";
const FILL: &str = "    Vector scales[IN_REGISTERS], shifts[IN_REGISTERS];
    if (KEEP == 2)
#pragma unroll
        for (int i = 0; i < IN_REGISTERS; ++i) {
            const int at = (lane + i * LANES) * WIDE;
            if (at < N) scales[i] = load(gamma + at), shifts[i] = load(beta + at);
        }
";
const LOOP: &str = "    for (int group = blockIdx.x;";

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let text = subject.code.text;
    if !text.contains(LOADS) || !text.contains(LOOP) {
        return Vec::new();
    }
    let held = text.replacen(LOADS, HELD, 1);
    let source = held.replacen(LOOP, &format!("{FILL}{LOOP}"), 1);
    let label = "hoist: scale and shift are loaded once, before the rows".to_owned();
    vec![Variant::new(label, source)]
}
