//! Every way in which a kernel is known to be wrong and fast, planted: each is caught, and the
//! kernel without it passes. What no kernel can do by itself (a launch that never happened, a clock
//! that lies, work on another stream) is planted in devices: `tests/gate.rs` and `tests/timing.rs`.

use assert_cmd::Command;

/// The judgement of `tuner check` on a kernel with one defect.
fn check(kernel: &str, problem: &str, defect: u32) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/defects"))
        .args(["check", "--format", "json", "--problem", problem])
        .args(["--config", &format!("DEFECT={defect}")])
        .args(["--device", "vgpu:a100", &format!("{kernel}.yaml")])
        .output()
        .expect("tuner runs");
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(rows.len(), 1);
    rows[0].clone()
}

/// Asserts the verdicts of defects, and that the detail says what was seen.
fn caught(kernel: &str, defects: &[(u32, &str, &str, &str, &str)]) {
    for (defect, what, problem, verdict, says) in defects {
        let row = check(kernel, problem, *defect);
        assert_eq!(row["verdict"], *verdict, "{what}: {row:#}");
        let detail = row["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(says), "{what}: {detail}");
    }
}

#[test]
fn defects_of_an_attention_kernel_are_caught() {
    caught(
        "attention",
        &[
            (0, "nothing", "plain", "ok", ""),
            (0, "nothing", "causal", "ok", ""),
            (0, "nothing", "short", "ok", ""),
            (0, "nothing", "ragged", "ok", ""),
            (
                1,
                "no barrier before the tile is refilled",
                "plain",
                "race",
                "",
            ),
            (2, "no barrier after it is filled", "plain", "race", ""),
            (
                3,
                "rows beyond the end are stored",
                "plain",
                "out_of_bounds",
                "",
            ),
            (4, "the causal flag is ignored", "causal", "incorrect", "o["),
            (5, "the last key is dropped", "plain", "incorrect", "o["),
            (
                6,
                "a head is skipped",
                "plain",
                "incorrect",
                "written by nobody",
            ),
            (7, "sums are kept in 16 bits", "plain", "incorrect", "`o`"),
            (
                8,
                "an input is changed",
                "plain",
                "incorrect",
                "changed its input `q`",
            ),
            (
                9,
                "no maximum is subtracted",
                "plain",
                "incorrect",
                "adversarial input",
            ),
            (
                10,
                "a neighbour's key counts nothing but NaN",
                "plain",
                "incorrect",
                "NaN elsewhere",
            ),
            (
                11,
                "the scale is one per cent off",
                "plain",
                "incorrect",
                "`o`",
            ),
            (
                12,
                "the tile's tail is read and never written",
                "short",
                "uninitialized",
                "",
            ),
            (
                13,
                "the grid leaves out the ragged end",
                "ragged",
                "incorrect",
                "written by nobody",
            ),
        ],
    );
}

#[test]
fn defects_of_a_reduction_are_caught() {
    caught(
        "sum",
        &[
            (0, "nothing", "rows", "ok", ""),
            (
                1,
                "atomics add in any order",
                "rows",
                "nondeterministic",
                "`y`",
            ),
            (2, "no wait for cp.async", "rows", "race", ""),
            (3, "the last element is left out", "rows", "incorrect", "y["),
        ],
    );
}
