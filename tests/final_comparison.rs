//! The final comparison of a run, on a stand-in for a GPU that is slower then: its times and its order
//! count in the summary, the leaderboard and exports.

use crate::program::{Ended, ended, folder, with_gpu};
use serde_json::Value;
use std::path::Path;

const SPACE: &str = r#"
version: 1
kernel: scale
summary: y = 2.5 x
source: kernel.cu
problems:
  main: { N: 4096 }
parameters:
  PASSES: { values: [40, 41, 42, 43, 44, 45, 46, 47], default: 47 }
arguments:
  - { name: x, type: f32, role: input, shape: [N], fill: { uniform: { min: 0, max: 1 } } }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: scale, grid: ["ceil_div(N, 64)"], block: [64] }
reference: { source: reference.cu, entry: reference, grid: ["ceil_div(N, 256)"], block: [256] }
"#;

const KERNEL: &str = r#"#ifndef PASSES
#define PASSES 47
#endif
extern "C" __global__ void scale(const float* x, float* y) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= N) return;
    float v = x[i];
    #pragma unroll 1
    for (int pass = 0; pass < PASSES; ++pass) v = v * 1.0000001f;
    y[i] = v > 1e30f ? v : 2.5f * x[i];
}
"#;

const REFERENCE: &str = r#"extern "C" __global__ void reference(const float* x, float* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) y[i] = 2.5f * x[i];
}
"#;

/// Runs a command on the stand-in, which is 30 % slower in a final comparison.
fn tuner(at: &Path, line: &str) -> Ended {
    let mut command = with_gpu(at);
    command
        .env("TUNER_FAKE_GATE", "host")
        .env("TUNER_FAKE_FINAL_SLOWER", "300")
        .args(line.split(' '));
    ended(&mut command)
}

fn rows(at: &Path, more: &str) -> Vec<Value> {
    let line = format!("leaderboard --format json --db tuner.db{more}");
    tuner(at, &line).rows()
}

fn time(row: &Value) -> f64 {
    row["time_us_p50"].as_f64().unwrap()
}

/// Times after "µs in the search, " of the lines of finalists: before and now.
fn finalists(said: &str) -> Vec<(f64, f64)> {
    let number = |text: &str| text.trim().parse::<f64>().unwrap();
    let lines = said
        .lines()
        .filter_map(|line| line.split_once(" µs in the search, "));
    lines
        .map(|(before, now)| (number(before), number(now.split_once(" µs now").unwrap().0)))
        .collect()
}

#[test]
fn a_candidate_that_was_not_in_the_final_comparison_does_not_win_by_its_time_in_the_search() {
    let at = folder(&[
        ("space.yaml", SPACE),
        ("kernel.cu", KERNEL),
        ("reference.cu", REFERENCE),
    ]);
    let at = at.path();
    let run = tuner(
        at,
        "run space.yaml --device cuda --strategy random --evals 8 --db tuner.db",
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let finalists = finalists(&run.stderr);
    assert_eq!(finalists.len(), 5, "{}", run.stderr);
    assert!(finalists.iter().all(|(before, now)| now > &(1.2 * before)));

    let all = rows(at, "");
    assert_eq!(all.len(), 8);
    // The five of the final comparison in its order, then the others, though their times are shorter.
    let finals = all[..5].iter().map(time).collect::<Vec<_>>();
    assert!(finals.is_sorted(), "{finals:?}");
    for (us, row) in finals.iter().zip(&all) {
        let known = finalists.iter().any(|(_, now)| (now - us).abs() < 0.006);
        assert!(known, "{row:#}");
    }
    assert!(all[5..].iter().all(|row| time(row) < finals[0]), "{all:#?}");

    // The summary has the best of the final comparison, with its interval.
    let best = run.stdout.lines().find(|line| line.starts_with("  best "));
    let best = best.unwrap();
    let stated = format!("{:.3} us in the final comparison (95 %: ", finals[0]);
    assert!(best.contains(&stated), "{best} is not {stated}");
    let won = all[0]["config"]["PASSES"].to_string();
    assert!(
        run.stdout.contains(&format!("  config   PASSES={won}\n")),
        "{}",
        run.stdout
    );
    assert!(
        run.stderr.contains(&format!(" µs with PASSES={won}\n")),
        "{}",
        run.stderr
    );
    let speedup = all[0]["speedup_vs_default"].as_f64().unwrap();
    assert!((1.0..1.3).contains(&speedup), "{speedup}");

    // Whatever is shown or exported agrees.
    assert_eq!(rows(at, " --top 1"), all[..1]);
    let front = rows(at, " --pareto=time,registers");
    assert!(
        front.iter().all(|row| row["search_us"].is_number()),
        "{front:#?}"
    );
    assert_eq!(front[0]["config"], all[0]["config"], "{front:#?}");
    let json = tuner(at, "export scale --to json --db tuner.db").json();
    assert_eq!(json["entries"][0]["config"], all[0]["config"]);
    assert_eq!(json["entries"][0]["time_us_p50"], all[0]["time_us_p50"]);
}

/// Each machine code is timed once, whatever number of configurations have it.
#[test]
fn configurations_with_the_same_code_are_one_finalist() {
    let twins = SPACE.replace(
        "PASSES: { values: [40, 41, 42, 43, 44, 45, 46, 47], default: 47 }",
        "PASSES: { values: [44, 45, 46, 47], default: 47 }\n  TWIN: { values: [0, 1], default: 0 }",
    );
    let kernel = KERNEL.replace("pass < PASSES", "pass < PASSES + 0 * TWIN");
    let at = folder(&[
        ("space.yaml", &twins),
        (
            "kernel.cu",
            &kernel.replace("#ifndef", "#ifndef TWIN\n#define TWIN 0\n#endif\n#ifndef"),
        ),
        ("reference.cu", REFERENCE),
    ]);
    let run = tuner(
        at.path(),
        "run space.yaml --device cuda --strategy random --evals 8 --db tuner.db",
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("8 configurations"), "{}", run.stdout);
    assert_eq!(finalists(&run.stderr).len(), 4, "{}", run.stderr);
}

/// The largest of 4096 inputs is below 0.99985 on the search's data, and not on those of the final comparison.
#[test]
fn a_finalist_that_fails_in_the_final_comparison_alone_loses_its_rank() {
    let read = "    float v = x[i];\n";
    let trap = format!("{read}    if (PASSES == 40 && v > 0.99985f) __trap();\n");
    let wrong = "y[i] = PASSES == 41 && x[i] > 0.99985f ? 0.0f : v";
    let kernel = KERNEL.replace(read, &trap).replace("y[i] = v", wrong);
    assert!(kernel.contains(&trap) && kernel.contains(wrong), "{kernel}");
    let files = [
        ("space.yaml", SPACE),
        ("kernel.cu", kernel.as_str()),
        ("reference.cu", REFERENCE),
    ];
    let at = folder(&files);
    let at = at.path();
    let run = tuner(
        at,
        "run space.yaml --device cuda --strategy random --evals 8 --db tuner.db",
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let said = |what: &str| run.stderr.matches(what).count();
    assert_eq!(said("failed now: crashed"), 1, "{}", run.stderr);
    assert_eq!(said("failed now: incorrect"), 1, "{}", run.stderr);
    assert_eq!(
        finalists(&run.stderr.replace("failed now", "0 µs now")).len(),
        5
    );
    // Three are compared without them, and lead the other three.
    let all = rows(at, "");
    let passes: Vec<_> = all
        .iter()
        .map(|row| row["config"]["PASSES"].as_u64().unwrap())
        .collect();
    assert_eq!(all.len(), 6, "{passes:?}");
    assert!(!passes.contains(&40) && !passes.contains(&41), "{passes:?}");
    let finals = all
        .iter()
        .filter(|row| row["search_us"].is_number())
        .count();
    assert_eq!(finals, 3, "{all:#?}");
    assert!(
        all[..3].iter().all(|row| row["search_us"].is_number()),
        "{all:#?}"
    );
}
