//! `tuner run` on the virtual GPU, as a user without a GPU runs it.

use crate::program::words;
use assert_cmd::Command;
use std::path::Path;

const KERNEL: &str = r#"
extern "C" __global__ void scale(const float* x, float* y) {
  __shared__ float tile[BLOCK];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  tile[threadIdx.x] = i < N ? x[i] : 0.0f;
  if (SYNC) __syncthreads();
  float left = tile[(threadIdx.x + BLOCK - 32) % BLOCK];
  if (i < N || OVER) y[i] = FACTOR * x[i] + 0.0f * left;
}
"#;

pub(crate) const REFERENCE: &str = r#"
extern "C" __global__ void plain(const float* x, float* y) {
  for (int i = blockIdx.x * 64 + threadIdx.x; i < N; i += gridDim.x * 64) y[i] = 2.0f * x[i];
}
"#;

const SPACE: &str = r#"
version: 1
kernel: scale
source: kernel.cu
problems:
  small: { N: 1000 }
  large: { N: 5000 }
parameters:
  BLOCK: { values: [64, 128, 256, 512], default: 128 }
  SYNC: { values: [1, 0], default: 1 }
  OVER: { values: [0, 1], default: 0 }
  FACTOR: { values: [2, 3], default: 2 }
arguments:
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: scale, grid: ["ceil_div(N, BLOCK)", 1, 1], block: [BLOCK, 1, 1] }
reference: { source: reference.cu, entry: plain, grid: [4, 1, 1], block: [64, 1, 1] }
metric: { bytes: "8 * N" }
"#;

fn project(space: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [
        ("space.yaml", space),
        ("kernel.cu", KERNEL),
        ("reference.cu", REFERENCE),
    ] {
        std::fs::write(folder.path().join(name), text).expect("the file is written");
    }
    folder
}

fn tuner(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::rig::program());
    command.current_dir(folder).args(arguments);
    // The compiler that the project's own set-up has fetched.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cuda/nvidia/cu13/lib");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        command.env("TUNER_NVRTC", own);
    }
    command
}

/// A run on the small problem.
fn run_small(folder: &Path, more: &[&str]) -> Command {
    let mut command = tuner(folder, &["run", "space.yaml", "--problem", "small"]);
    command
        .args(more)
        .args(["--device", "vgpu:h100", "--db", "t.db"]);
    command
}

fn leaderboard(folder: &Path, db: &str) -> Vec<serde_json::Value> {
    let output = tuner(folder, &["leaderboard", "--db", db, "--format", "json"])
        .output()
        .expect("tuner runs");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The rows without what differs between any two runs.
fn timeless(mut rows: Vec<serde_json::Value>) -> Vec<serde_json::Value> {
    for row in &mut rows {
        let row = row.as_object_mut().expect("an object");
        row.remove("run_id");
        row.remove("measured_at");
    }
    rows
}

#[test]
fn the_same_seed_gives_the_same_leaderboard_whatever_the_number_of_jobs() {
    let project = project(SPACE);
    let run = |db: &str, seed: &str, jobs: &str| {
        let arguments = words("run space.yaml --evals 16 --device vgpu:a100");
        tuner(project.path(), &arguments)
            .args(["--db", db, "--seed", seed, "--jobs", jobs])
            .assert()
            .code(0);
        timeless(leaderboard(project.path(), db))
    };
    let first = run("a.db", "1", "1");
    assert!(!first.is_empty());
    assert_eq!(first, run("b.db", "1", "4"));
    for row in &first {
        assert_eq!(row["device"], "vgpu:a100");
        assert_eq!(row["device_kind"], "vgpu");
        assert_eq!(row["timing"], "predicted");
        assert!(row["registers"].as_u64().unwrap() > 0);
        assert!(row["time_us_p50"].as_f64().unwrap() > 0.0);
        // What is wrong in any way never ranks.
        assert_eq!(row["config"]["SYNC"], 1, "{row}");
        assert_eq!(row["config"]["OVER"], 0, "{row}");
        assert_eq!(row["config"]["FACTOR"], 2, "{row}");
    }
}

#[test]
fn a_prior_predicts_before_the_run_and_the_first_trials_come_of_it() {
    let project = project(SPACE);
    let run = |db: &str, more: &[&str]| {
        let more = [more, &["--evals", "4", "--objective", "time,registers"]].concat();
        let mut command = tuner(project.path(), &["run", "space.yaml", "--problem", "small"]);
        let output = command
            .args(more)
            .args(["--device", "vgpu:h100", "--db", db, "--events", "-"])
            .output()
            .expect("tuner runs");
        assert!(output.status.success(), "{output:?}");
        let events = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (said, events.matches(r#""origin":"known""#).count())
    };
    let (said, known) = run("prior.db", &["--prior", "vgpu"]);
    assert!(said.contains("predictions for vgpu:h100"), "{said}");
    assert!(known > 0, "{said}");
    let (said, known) = run("cold.db", &["--prior", "vgpu", "--no-knowledge"]);
    assert!(!said.contains("predictions for") && known == 0, "{said}");

    let arguments = words("leaderboard --db cold.db --pareto --format json");
    let output = tuner(project.path(), &arguments)
        .output()
        .expect("tuner runs");
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(!rows.is_empty(), "{output:?}");
    assert!(
        rows[0]["code_bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 0),
        "{rows:?}"
    );
}

#[test]
fn a_check_problem_on_which_a_configuration_is_not_valid_does_not_fail_it() {
    let space = SPACE
        .replace("{ N: 1000 }", "{ N: 1000, LIMIT: 512 }")
        .replace(
            "  large: { N: 5000 }\n",
            "check_problems:\n  tight: { N: 300, LIMIT: 128 }\n",
        )
        .replace("[1, 0], default: 1", "[1], default: 1")
        .replace("[0, 1], default: 0", "[0], default: 0")
        .replace("[2, 3], default: 2", "[2], default: 2")
        .replace(
            "arguments:",
            "constraints:\n  - { rule: \"BLOCK <= LIMIT\", why: too large for the problem }\narguments:",
        )
        .replace(
            "block: [BLOCK, 1, 1] }",
            "block: [BLOCK, 1, 1], shared: \"(BLOCK - 1) // LIMIT * 240000\" }",
        );
    let project = project(&space);
    let arguments = ["run", "space.yaml", "--device", "vgpu:a100", "--db", "a.db"];
    let output = tuner(project.path(), &arguments)
        .args(["--strategy", "exhaustive", "--evals", "4"])
        .output()
        .unwrap();
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(summary.contains("ok 4"), "{summary}");
}

#[test]
fn wrong_candidates_are_counted_by_verdict_and_the_header_says_predicted() {
    let project = project(SPACE);
    let arguments = words("run space.yaml --problem small --strategy exhaustive");
    let output = tuner(project.path(), &arguments)
        .args(["--device", "vgpu:h100", "--db", "t.db"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    // Of 4 · 2 · 2 · 2: 16 write beyond the end, 8 of the others race, 4 of the rest compute 3 x.
    for count in ["ok 4", "out_of_bounds 16", "race 8", "incorrect 4"] {
        assert!(text.contains(count), "{count}: {text}");
    }
    let export = |more: &[&str]| {
        tuner(
            project.path(),
            &["export", "scale", "--db", "t.db", "-o", "tuned.h"],
        )
        .args(more)
        .assert()
    };
    export(&[]).code(3);
    assert!(!project.path().join("tuned.h").exists());
    export(&["--allow-predicted"]).code(0);
    let header = std::fs::read_to_string(project.path().join("tuned.h")).unwrap();
    assert!(
        header.lines().next().unwrap().contains("PREDICTED"),
        "{header}"
    );
}

#[test]
fn a_worker_that_dies_costs_one_candidate_and_not_the_run() {
    let project = project(SPACE);
    let output = run_small(project.path(), &["--strategy", "exhaustive"])
        .env("TUNER_FAULT", "abort@3")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    // Every worker dies at its fourth candidate; the others are judged as ever.
    assert!(text.contains("crashed"), "{text}");
    assert!(text.contains("32 configurations"), "{text}");
}

#[test]
fn workers_that_are_killed_from_outside_change_nothing_in_the_results() {
    let run = |fault: Option<&str>| {
        let project = project(SPACE);
        let mut command = run_small(project.path(), &["--evals", "24", "--seed", "7"]);
        command.envs(fault.map(|fault| ("TUNER_FAULT", fault)));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        timeless(leaderboard(project.path(), "t.db"))
    };
    assert_eq!(run(Some("kill@2")), run(None));
}

#[test]
fn a_candidate_without_a_living_worker_is_stored_as_not_judged_and_the_run_goes_on() {
    let project = project(SPACE);
    let output = run_small(project.path(), &["--evals", "3", "--events", "-"])
        .env("TUNER_FAULT", "kill@every")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert_eq!(
        text.matches(r#""verdict":"not_judged""#).count(),
        3,
        "{text}"
    );
}

#[test]
fn when_nothing_passes_the_exit_code_says_so_and_all_is_stored() {
    let project = project(&SPACE.replace(
        "FACTOR: { values: [2, 3], default: 2 }",
        "FACTOR: { values: [3], default: 3 }",
    ));
    tuner(
        project.path(),
        &["run", "space.yaml", "--problem", "small", "--evals", "5"],
    )
    .args(["--device", "vgpu:h100", "--db", "t.db"])
    .assert()
    .code(3);
    assert!(leaderboard(project.path(), "t.db").is_empty());
}

#[test]
fn an_oracle_that_does_not_fit_the_arguments_is_the_users_to_mend() {
    let reference =
        "reference: { source: reference.cu, entry: plain, grid: [4, 1, 1], block: [64, 1, 1] }";
    let project = project(&SPACE.replace(reference, "reference: { oracle: gemm }"));
    for command in [
        &["check", "space.yaml"][..],
        &["run", "space.yaml", "--evals", "2", "--db", "t.db"],
    ] {
        let output = tuner(project.path(), command)
            .args(["--device", "vgpu:h100"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command:?}: {text}");
        assert!(text.contains("[M, K]"), "{text}");
    }
}

#[test]
fn predictions_come_in_input_order_with_what_explains_them() {
    let project = project(SPACE);
    std::fs::write(
        project.path().join("c.csv"),
        "BLOCK,SYNC\n256,1\n64,0\n64,1\n",
    )
    .unwrap();
    let arguments = words("predict space.yaml --device vgpu:l4 --configs c.csv");
    let rows = |more: &[&str]| -> Vec<serde_json::Value> {
        let output = tuner(project.path(), &arguments)
            .args(["--problem", "large", "--format", "json"])
            .args(more)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // Nothing is checked unless asked for.
    let unchecked = rows(&[]);
    assert!(
        unchecked
            .iter()
            .all(|row| row["time_us"].as_f64().unwrap() > 0.0)
    );
    let rows = rows(&["--check"]);
    assert_eq!(rows[0]["time_us"], unchecked[0]["time_us"]);
    let blocks: Vec<_> = rows
        .iter()
        .map(|row| row["config"]["BLOCK"].as_u64().unwrap())
        .collect();
    assert_eq!(blocks, [256, 64, 64]);
    let verdicts: Vec<_> = rows
        .iter()
        .map(|row| row["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["ok", "race", "ok"]);
    for row in &rows {
        assert_eq!(row["timing"], "predicted");
        assert_eq!(row["time_us"].is_null(), row["verdict"] != "ok", "{row}");
    }
    // Each of 5000 elements is read twice, once of them through the bounds check of the tile.
    assert!(
        rows[0]["global_load_bytes"].as_f64().unwrap() >= 20_000.0,
        "{}",
        rows[0]
    );
    // 20 blocks, of which the last is not full: they count by their work.
    let stored = rows[0]["global_store_bytes"].as_f64().unwrap();
    assert!(
        (19.0 * 1024.0..=20.0 * 1024.0).contains(&stored),
        "{stored}"
    );
    assert_eq!(rows[0]["reliability"], "ok");
    assert!(
        rows[0]["metrics"]["smsp__inst_executed.sum"]
            .as_f64()
            .unwrap()
            > 0.0
    );
}

const WALK: &str = r#"
extern "C" __global__ void walk(const int* count, const float* x, float* y) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= N) return;
  float sum = 0;
  for (int k = 0; k < (count[i] & 7); k++) sum += x[(i + k) % N];
  y[i] = sum;
}
"#;

const WALKED: &str = r#"
version: 1
kernel: walk
source: kernel.cu
problems:
  small: { N: 1000 }
  large: { N: 600000 }
parameters: {}
arguments:
  - { name: count, type: i32, role: input, shape: [N] }
  - { name: x, type: f32, role: input, shape: [N] }
  - { name: y, type: f32, role: output, shape: [N] }
launches:
  - { entry: walk, grid: ["ceil_div(N, 128)", 1, 1], block: [128, 1, 1] }
reference: none
"#;

#[test]
fn a_way_that_depends_on_data_that_are_not_those_of_the_space_is_told() {
    let project = project(WALKED);
    std::fs::write(project.path().join("kernel.cu"), WALK).unwrap();
    let predicted = |problem: &str| {
        let arguments = ["predict", "space.yaml", "--device", "vgpu:a100"];
        let output = tuner(project.path(), &arguments)
            .args(["--problem", problem, "--format", "csv"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        let mut reader = csv::Reader::from_reader(output.stdout.as_slice());
        let names = reader.headers().unwrap().clone();
        let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
        // A row that is not reliable comes last, and behind one line of names.
        assert_eq!(rows.len(), 1, "{rows:?}");
        let column = names.iter().position(|name| name == "reliability").unwrap();
        rows[0][column].to_owned()
    };
    assert_eq!(predicted("small"), "ok");
    let large = predicted("large");
    assert!(large.contains("depends on the data of `count`"), "{large}");
}

#[test]
fn configurations_outside_the_space_are_refused_with_their_line() {
    let project = project(SPACE);
    for (text, hint) in [
        ("BLOCK\n64\n65\n", "c.csv:3:1: `BLOCK` cannot be `65`"),
        (
            "SYNC,BLOK\n1,64\n",
            "c.csv:1:6: `BLOK` is not a parameter of `scale`; did you mean `BLOCK`?",
        ),
        (
            "BLOCK,SYNC\n64,1\n64\n",
            "c.csv:3:3: 1 values under 2 names; give each name a value",
        ),
        (
            "BLOCK\n64, 1\n",
            "c.csv:2:5: 2 values under 1 names; leave out what has no name",
        ),
        (
            "",
            "c.csv:1:1: the file is empty; its first line names parameters, each other line gives \
             their values: BLOCK,SYNC,OVER,FACTOR",
        ),
    ] {
        std::fs::write(project.path().join("c.csv"), text).unwrap();
        let output = tuner(
            project.path(),
            &["predict", "space.yaml", "--strict", "--configs", "c.csv"],
        )
        .output()
        .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.contains(hint) && message.contains("c.csv"),
            "{message}"
        );
    }
    let refused = tuner(
        project.path(),
        &["predict", "space.yaml", "--device", "vgpu:b9000"],
    );
    { refused }.assert().code(2);
}
