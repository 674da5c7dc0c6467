//! Differences from the reference that a right kernel may have: warnings of `check`, which `run` prints.

use crate::program::{folder, json, run};

/// A space of one kernel with an input and an output of these types.
fn chosen(input: &str, kernel: &str, reference: &str) -> tempfile::TempDir {
    let files = format!(
        "version: 1\nkernel: chosen\nsource: chosen.cu\nproblems: {{ main: {{ R: 64, C: 64 }} }}\n\
         parameters: {{ BLOCK: {{ values: [1], default: 1 }} }}\narguments:\n\
         - {{ name: x, type: {input}, role: input, shape: [R, C] }}\n\
         - {{ name: y, type: i32, role: output, shape: [R] }}\n\
         launches: [{{ entry: chosen, grid: [R], block: [BLOCK] }}]\n\
         reference: {{ source: reference.cu, entry: chosen, grid: [R], block: [1] }}\n"
    );
    let code = |body: &str| {
        let ty = if input == "f32" { "float" } else { "int" };
        format!("extern \"C\" __global__ void chosen(const {ty}* x, int* y) {{ {body} }}\n")
    };
    folder(&[
        ("space.yaml", &files),
        ("chosen.cu", &code(kernel)),
        ("reference.cu", &code(reference)),
    ])
}

#[test]
fn a_difference_that_may_be_right_is_a_warning_that_a_run_prints() {
    let first = "int best = 0; for (int c = 1; c < C; ++c) \
                 if (x[blockIdx.x * C + c] > x[blockIdx.x * C + best]) best = c; y[blockIdx.x] = best;";
    let sign = "float v = x[blockIdx.x * C]; y[blockIdx.x] = (v > 0.0f) - (v < 0.0f);";
    let half = "y[blockIdx.x] = x[blockIdx.x * C] / 2;";
    for (input, kernel, reference, words) in [
        (
            "f32",
            first.replace('>', ">="),
            first,
            "another choice among equal numbers",
        ),
        (
            "f32",
            sign.replace("v < 0.0f", "v <= 0.0f"),
            sign,
            "differs from the reference on zeros",
        ),
        (
            "i32",
            half.replace("/ 2", ">> 1"),
            half,
            "whole numbers that no `fill` rules out",
        ),
    ] {
        let folder = chosen(input, &kernel, reference);
        let (code, rows) = json(folder.path(), "check space.yaml");
        assert_eq!((code, &rows[0]["verdict"]), (0, &"ok".into()), "{rows:#?}");
        let warnings = rows[0]["warnings"].to_string();
        assert!(warnings.contains(words), "{warnings}");
        let ran = run(
            folder.path(),
            "run space.yaml --evals 1 --device vgpu:l4 --db a.db",
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(
            ran.stdout.contains(words) || ran.stderr.contains(words),
            "{}",
            ran.stderr
        );
    }
}
