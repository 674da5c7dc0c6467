//! Every way in which a kernel is known to be wrong and fast, planted: each is caught, and the
//! kernel without it passes. What no kernel can do by itself (a launch that never happened, a clock
//! that lies, work on another stream) is planted in devices: `tests/gate.rs` and `tests/timing.rs`.

use assert_cmd::Command;

/// The judgement of `tuner check` on a kernel with one defect.
fn check(kernel: &str, problem: &str, defect: &str) -> serde_json::Value {
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

/// Asserts the verdicts of a table's defects, and that the detail says what was seen. A line is the
/// defect's number, the problem, the verdict, a word of the detail, and what is wrong.
fn caught(kernel: &str, table: &str) {
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [defect, problem, verdict, says, what] = cells.as_slice() else {
            panic!("five cells: {line}");
        };
        let row = check(kernel, problem, defect);
        assert_eq!(row["verdict"], *verdict, "{what}: {row:#}");
        let detail = row["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(says), "{what}: {detail}");
    }
}

#[test]
fn defects_of_an_attention_kernel_are_caught() {
    caught(
        "attention",
        "
         0 | plain  | ok            |                       | nothing
         0 | causal | ok            |                       | nothing
         0 | short  | ok            |                       | nothing
         0 | ragged | ok            |                       | nothing
         1 | plain  | race          |                       | no barrier before the tile is refilled
         2 | plain  | race          |                       | no barrier after it is filled
         3 | plain  | out_of_bounds |                       | rows beyond the end are stored
         4 | causal | incorrect     | o[                    | the causal flag is ignored
         5 | plain  | incorrect     | o[                    | the last key is dropped
         6 | plain  | incorrect     | never written         | a head is skipped
         7 | plain  | incorrect     | `o`                   | sums are kept in 16 bits
         8 | plain  | incorrect     | changed its input `q` | an input is changed
         9 | plain  | incorrect     | adversarial input     | no maximum is subtracted
        10 | plain  | incorrect     | NaN elsewhere         | a neighbour's key counts nothing but NaN
        11 | plain  | incorrect     | `o`                   | the scale is one per cent off
        12 | short  | uninitialized |                       | the tile's tail is read and never written
        13 | ragged | incorrect     | never written         | the grid leaves out the ragged end
        ",
    );
}

#[test]
fn defects_of_a_reduction_are_caught() {
    caught(
        "sum",
        "
        0 | rows | ok               |     | nothing
        1 | rows | nondeterministic | `y` | atomics add in any order
        2 | rows | race             |     | no wait for cp.async
        3 | rows | incorrect        | y[  | the last element is left out
        ",
    );
}
