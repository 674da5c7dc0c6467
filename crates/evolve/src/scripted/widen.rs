//! Widen loads: a row of a global image is copied to shared memory in pairs.
//!
//! The form is the shipped convolution's copy: rows of a width that is known at compile time, and a guard
//! `inside`. If a pair would not be aligned the copy stays scalar.

use super::code::spliced;
use super::{Subject, Variant};

/// Number of rows whose loads are issued before their stores.
const PASSES: [u32; 3] = [1, 2, 4];

const INNER: &str = "for (int column = threadIdx.x; column < ROW_LENGTH; column += BLOCK_X) {";
const GUARD: &str = "row0 + row < X_HEIGHT && column0 + column < X_WIDTH";

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let text = subject.code.text;
    let loops = subject.code.loops();
    let copy = loops
        .iter()
        .find(|one| one.body.starts_with(INNER) && one.body.contains(GUARD));
    let Some(copy) = copy.filter(|one| one.name == "row" && one.step == "BLOCK_Y") else {
        return Vec::new();
    };
    let variant = |passes: u32| {
        let label = format!(
            "widen: pairs of floats in the copy in line {}, {passes} rows at a time",
            copy.line
        );
        Variant::new(label, spliced(text, copy.whole.clone(), &pairs(passes)))
    };
    PASSES.map(variant).into()
}

fn pairs(passes: u32) -> String {
    format!(
        "constexpr int PAIR = X_WIDTH % 2 == 0 && OUT_X % 2 == 0 ? 2 : 1;
        for (int row = threadIdx.y; row < IN_Y; row += {passes} * BLOCK_Y)
            for (int column = threadIdx.x * PAIR; column < ROW_LENGTH; column += BLOCK_X * PAIR) {{
                float2 held[{passes}];
#pragma unroll
                for (int pass = 0; pass < {passes}; ++pass) {{
                    const int at = row + pass * BLOCK_Y;
                    held[pass] = make_float2(0.0f, 0.0f);
                    if (at < IN_Y && row0 + at < X_HEIGHT && column0 + column < X_WIDTH) {{
                        const float* from = x + (u64)(row0 + at) * X_WIDTH + column0 + column;
                        if constexpr (PAIR == 2) held[pass] = __ldg((const float2*)from);
                        else held[pass].x = load(from);
                    }}
                }}
#pragma unroll
                for (int pass = 0; pass < {passes}; ++pass)
                    if (row + pass * BLOCK_Y < IN_Y) {{
                        float* to = shared_memory + (row + pass * BLOCK_Y) * ROW_LENGTH + column;
                        to[0] = held[pass].x;
                        if (PAIR == 2 && column + 1 < ROW_LENGTH) to[1] = held[pass].y;
                    }}
            }}"
    )
}
