//! Changes that are timed on the stand-in for a GPU.

use super::{ABLATE, tuner, with_gpu};
use crate::program::words;
use serde_json::Value;
use std::path::Path;

/// A kernel whose time is what WORK says, with faults to choose from.
const WORK_KERNEL: &str = "\
#if FAULT == 3
#error no code
#endif
extern \"C\" __global__ void work(const float* x, float* y, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  const float one = n > 0 ? 1.0f : 2.0f;
#pragma unroll 1
  for (int round = 0; round < 400 * WORK; round++)
    asm volatile(\"mul.f32 %0, %0, %1;\" : \"+f\"(v) : \"f\"(one));
#if FAULT == 1
  v *= 1.01f;
#endif
#if FAULT == 2
  volatile float* spin = y;
  while (spin[i] != 123456.0f) {}
#endif
#if FAULT == 5
  if (x[3] > 0.9f) __trap();
#endif
#if FAULT == 4
  if (n == 515) v *= 1.01f;
#endif
  y[i] = v;
}
extern \"C\" __global__ void copy(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = x[i];
}
";

fn work_space(faults: &str, blocks: &str) -> String {
    format!(
        "\
version: 1
kernel: work
source: kernel.cu
problems: {{ timed: {{ N: 512 }} }}
check_problems: {{ ragged: {{ N: 515 }} }}
parameters:
  FAULT: {{ values: [{faults}], default: 0 }}
  SPARE: {{ values: [0, 1], default: 0 }}
  WORK: {{ values: [1, 2, 4], default: 2 }}
  BLOCK: {{ values: [{blocks}], default: 256 }}
arguments:
  - {{ name: x, type: f32, role: input, shape: [N] }}
  - {{ name: y, type: f32, role: output, shape: [N] }}
  - {{ name: n, type: i32, role: scalar, value: N }}
launches:
  - {{ entry: work, grid: [\"ceil_div(N, BLOCK)\", 1, 1], block: [BLOCK, 1, 1] }}
reference: {{ source: kernel.cu, entry: copy, grid: [\"ceil_div(N, 256)\", 1, 1], block: [256, 1, 1] }}
"
    )
}

pub(super) fn work(faults: &str, blocks: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [
        ("space.yaml", &*work_space(faults, blocks)),
        ("kernel.cu", WORK_KERNEL),
    ] {
        std::fs::write(folder.path().join(name), text).expect("the file is written");
    }
    folder
}

fn measured(folder: &Path, more: &[&str]) -> (Vec<Value>, String, Option<i32>) {
    let mut arguments = ABLATE.to_vec();
    arguments.push("cuda:0");
    arguments.extend(more);
    with_gpu(folder, &arguments)
}

/// The row of a change.
pub(super) fn change<'r>(rows: &'r [Value], parameter: &str, to: &str) -> &'r Value {
    rows.iter()
        .find(|row| row["parameter"] == parameter && row["to"] == to)
        .unwrap_or_else(|| panic!("{parameter} to {to}: {rows:?}"))
}

pub(super) fn figure(row: &Value, field: &str) -> f64 {
    row[field]
        .as_f64()
        .unwrap_or_else(|| panic!("{field}: {row}"))
}

#[test]
fn on_a_gpu_a_cost_has_an_interval_and_only_what_is_right_has_a_cost() {
    let folder = work("0, 1, 2, 3, 4", "128, 256");
    let (rows, story, code) = measured(folder.path(), &[]);
    assert_eq!((code, rows.len()), (Some(0), 1 + 4 + 1 + 2 + 1), "{story}");
    assert!(rows.iter().all(|row| row["timing"] == "measured"));
    let base = &rows[0];
    assert_eq!(
        (&base["change"], &base["cost"]),
        (&"base".into(), &1.0.into())
    );
    assert_eq!(
        (&base["same"], &base["verdict"]),
        (&Value::Null, &"ok".into())
    );
    assert!(figure(base, "cost_low") > 0.99 && figure(base, "cost_high") < 1.01);
    // Slower and faster by more than the noise of half a per cent.
    let slow = change(&rows, "WORK", "4");
    assert!(figure(slow, "cost_low") > 1.03, "{slow}");
    assert!(figure(slow, "cost_low") <= figure(slow, "cost"), "{slow}");
    assert!(figure(slow, "cost_high") >= figure(slow, "cost"), "{slow}");
    assert_eq!(slow["same"], false);
    let expected = figure(slow, "cost") * figure(base, "time_us");
    assert!((figure(slow, "time_us") - expected).abs() < 1e-9 * expected);
    assert!(figure(change(&rows, "WORK", "1"), "cost_high") < 0.99);
    // The same work in other blocks is other launches, and takes the same time.
    let equal = change(&rows, "BLOCK", "128");
    assert_eq!(equal["same"], true, "{equal}");
    // And what only has another name is not timed at all.
    let twin = change(&rows, "SPARE", "1");
    assert_eq!(
        (&twin["same"], &twin["cost_high"]),
        (&true.into(), &1.0.into())
    );
    assert_eq!(
        twin["detail"],
        "the same machine code and launches as the base"
    );
    // The fourth is wrong on the check problem alone.
    for (fault, verdict) in [
        ("1", "incorrect"),
        ("2", "timeout"),
        ("3", "compile_failed"),
        ("4", "incorrect"),
    ] {
        let row = change(&rows, "FAULT", fault);
        assert_eq!(row["verdict"], verdict, "{row}");
        for field in ["time_us", "cost", "cost_low", "cost_high", "same"] {
            assert_eq!(row[field], Value::Null, "{field}: {row}");
        }
    }
    // What the compiler says is known, what only a model says is not.
    assert!(figure(slow, "registers") > 0.0 && figure(slow, "occupancy") > 0.0);
    assert_eq!(
        (&slow["spill_bytes"], &slow["shared_bytes"]),
        (&0.into(), &0.into())
    );
    assert_eq!(
        (&slow["bound"], &slow["bank_conflicts"]),
        (&Value::Null, &Value::Null)
    );
    for words in [
        "the base against itself: ",
        "3 timed: 1 slower than the base, 1 faster, 1 the",
    ] {
        assert!(story.contains(words), "{words}: {story}");
    }
}

#[test]
fn on_a_gpu_the_base_is_the_best_measured_result_and_never_a_predicted_one() {
    let folder = work("0", "256");
    let run = words("run space.yaml --evals 6 --db tuner.db --device");
    let (_, story, code) = tuner(folder.path(), &[&run[..], &["vgpu:h100"]].concat());
    assert_eq!(code, Some(0), "{story}");
    let ablate = ["--db", "tuner.db", "--parameter", "SPARE"];
    let (rows, story, code) = measured(folder.path(), &ablate);
    assert_eq!(code, Some(0), "{story}");
    assert!(
        story.contains("tuner.db has no measured result of work"),
        "{story}"
    );
    assert_eq!(rows[0]["config"]["WORK"], 2, "the default: {rows:?}");
    let (_, story, code) = with_gpu(folder.path(), &[&run[..], &["cuda:0"]].concat());
    assert_eq!(code, Some(0), "{story}");
    let (rows, story, code) = measured(folder.path(), &["--db", "tuner.db", "--parameter", "WORK"]);
    assert_eq!(code, Some(0), "{story}");
    assert!(
        story.contains("the best in tuner.db: ") && story.contains(" us, measured, "),
        "{story}"
    );
    assert_eq!(rows[0]["config"]["WORK"], 1, "{rows:?}");
    assert!(figure(change(&rows, "WORK", "2"), "cost_low") > 1.0);
}

#[test]
fn on_a_gpu_what_fails_in_a_round_takes_nobody_along() {
    // It stops at a value that the data of the final rounds has first.
    let folder = work("0, 5", "128, 256");
    let only = ["--parameter", "FAULT", "--parameter", "BLOCK"];
    let (rows, story, code) = measured(folder.path(), &only);
    assert_eq!((code, rows.len()), (Some(0), 3), "{story}");
    assert!(
        story.contains("timed 2 of 2"),
        "both passed the gate: {story}"
    );
    let failing = change(&rows, "FAULT", "5");
    assert_eq!(
        (&failing["verdict"], &failing["time_us"]),
        (&"crashed".into(), &Value::Null)
    );
    let equal = change(&rows, "BLOCK", "128");
    assert_eq!(
        (&equal["verdict"], &equal["same"]),
        (&"ok".into(), &true.into()),
        "{equal}"
    );
}

#[test]
fn on_a_gpu_pathologies_are_timed_and_a_base_that_is_wrong_is_refused() {
    let folder = work("0, 1", "128, 256");
    let (_, story, code) = measured(folder.path(), &["--config", "FAULT=1"]);
    assert_eq!(code, Some(2), "{story}");
    for words in [
        "the configuration to take apart is incorrect on fake GPU",
        "--config",
    ] {
        assert!(story.contains(words), "{story}");
    }
    let inversion = ["--config", "WORK=1", "--inversion"];
    let (rows, story, code) = measured(folder.path(), &inversion);
    assert_eq!((code, rows.len()), (Some(0), 2), "{story}");
    // A pathology is judged and timed like any other change.
    assert_eq!(
        (&rows[1]["change"], &rows[1]["to"]),
        (&"inversion".into(), &"BLOCK=128".into())
    );
    assert_eq!(
        (&rows[1]["parameter"], &rows[1]["same"]),
        (&"tiny blocks".into(), &true.into())
    );
    for (device, words) in [
        ("cuda:7", "cuda:0 to cuda:1"),
        ("cuda:0,1", "type --device cuda:N"),
        ("replay:x.json", "type --device cuda:N"),
    ] {
        let (_, story, code) =
            with_gpu(folder.path(), &["ablate", "space.yaml", "--device", device]);
        assert_eq!(code, Some(2), "{story}");
        assert!(story.contains(words), "{device}: {story}");
    }
}
