//! What a kernel is compared with is its own reference, and something is compared at all: two
//! kernels in one run, a reference edited between two runs, and problems whose reference is slow.

use crate::program::{ended, folder, json, root, run, tuner};
use std::path::Path;

/// A small run, but for how much is tried.
const RUN: &str = "run space.yaml --device vgpu:l4 --db a.db --evals";
const BOARD: &str = "leaderboard --db a.db";

/// One elementwise kernel `y = …` of x, with a reference of its own.
fn space(name: &str, source: &str, reference: &str, entry: &str) -> String {
    format!(
        "version: 1\nkernel: {name}\nsource: {source}\nproblems: {{ small: {{ N: 1000 }} }}\n\
         parameters:\n  BLOCK: {{ values: [64, 128], default: 128 }}\n\
         arguments:\n  - {{ name: x, type: f32, role: input, shape: [N] }}\n  \
         - {{ name: y, type: f32, role: output, shape: [N] }}\nlaunches:\n  \
         - {{ entry: f, grid: [\"ceil_div(N, BLOCK)\", 1, 1], block: [BLOCK, 1, 1] }}\n\
         reference: {{ source: {reference}, entry: {entry}, grid: [4, 1, 1], block: [64, 1, 1] }}\n"
    )
}

fn kernel(formula: &str) -> String {
    format!(
        "extern \"C\" __global__ void f(const float* x, float* y) {{\n  int i = blockIdx.x * BLOCK \
         + threadIdx.x;\n  if (i < N) y[i] = {formula};\n}}\n"
    )
}

/// A space whose kernel computes one formula and whose reference another.
fn scale(formula: &str, reference: &str) -> tempfile::TempDir {
    folder(&[
        ("f.cu", &kernel(formula)),
        ("reference.cu", &plain(reference)),
        (
            "space.yaml",
            &space("scale", "f.cu", "reference.cu", "plain"),
        ),
    ])
}

/// The reference of [`scale`].
fn plain(formula: &str) -> String {
    references(&[("plain", formula)])
}

/// Another reference in the place of a space's own.
fn edit(folder: &Path, formula: &str) {
    std::fs::write(folder.join("reference.cu"), plain(formula)).expect("written");
}

fn references(formulas: &[(&str, &str)]) -> String {
    let one = |(name, formula): &(&str, &str)| {
        format!(
            "extern \"C\" __global__ void {name}(const float* x, float* y) {{\n  for (int i = \
             blockIdx.x * 64 + threadIdx.x; i < N; i += 256) y[i] = {formula};\n}}\n"
        )
    };
    formulas.iter().map(one).collect()
}

#[test]
fn a_kernel_that_is_wrong_in_the_way_of_its_neighbour_is_refused_in_any_order() {
    let both = references(&[("twice", "2.0f * x[i]"), ("more", "x[i] + 1.0f")]);
    // Both kernels compute x + 1; the second should double.
    let folder = folder(&[
        ("f.cu", &kernel("x[i] + 1.0f")),
        ("reference.cu", &both),
        (
            "right.yaml",
            &space("right", "f.cu", "reference.cu", "more"),
        ),
        (
            "wrong.yaml",
            &space("wrong", "f.cu", "reference.cu", "twice"),
        ),
    ]);
    let folder = folder.path();
    for order in ["right.yaml wrong.yaml", "wrong.yaml right.yaml"] {
        let db = format!("{}.db", &order[..5]);
        let line = format!("run {order} --evals 4 --seed 1 --device vgpu:l4 --db {db}");
        let ran = run(folder, &line);
        ran.says(0, &[]);
        assert!(ran.stdout.contains("incorrect 2"), "{}", ran.stdout);
        let (_, rows) = json(folder, &format!("leaderboard --db {db}"));
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|row| row["kernel"] == "right"), "{rows:#?}");
        let (code, rows) = json(folder, &format!("check {order}"));
        assert_eq!(code, 4);
        for row in rows {
            let right = row["kernel"] == "right";
            let expected = if right { "ok" } else { "incorrect" };
            assert_eq!(row["verdict"], expected, "{row:#}");
        }
    }
}

#[test]
fn results_that_were_compared_with_a_reference_edited_since_do_not_rank() {
    let folder = scale("2.0f * x[i]", "2.0f * x[i]");
    let folder = folder.path();
    let tuned = |seed: u32| {
        let code = run(folder, &format!("{RUN} 2 --seed {seed}")).code;
        (code, json(folder, BOARD).1.len())
    };
    assert_eq!(tuned(1), (0, 2));
    edit(folder, "3.0f * x[i]");
    run(folder, BOARD).says(0, &["or what its search space says"]);
    assert_eq!(tuned(2), (3, 0), "nothing passes the new reference");
    edit(folder, "2.0f * x[i]");
    assert_eq!(tuned(3), (0, 2), "the first reference is known again");
}

#[test]
fn results_of_other_launches_checks_or_constraints_are_judged_anew() {
    let folder = scale("N > 1000 ? 0.0f : 2.0f * x[i]", "2.0f * x[i]");
    let folder = folder.path();
    let right = space("scale", "f.cu", "reference.cu", "plain");
    let written = |text: &str| std::fs::write(folder.join("space.yaml"), text).expect("written");
    let tuned = |text: &str| {
        written(text);
        let code = run(folder, &format!("{RUN} 2 --seed 1")).code;
        (code, json(folder, BOARD).1.len())
    };
    let short = right.replace("ceil_div(N, BLOCK)", "N // BLOCK");
    let checked = right.replace(
        "parameters:",
        "check_problems: { more: { N: 1001 } }\nparameters:",
    );
    let narrow = right.replace(
        "arguments:",
        "constraints: [{ rule: BLOCK == 64, why: found wrong elsewhere }]\narguments:",
    );
    assert_eq!(tuned(&short), (3, 0), "the last block is missing");
    assert_eq!(tuned(&right), (0, 2), "the grid was corrected");
    assert_eq!(tuned(&short), (3, 0), "and broken again");
    assert_eq!(tuned(&checked), (3, 0), "wrong on the check problem");
    assert_eq!(tuned(&right), (0, 2));
    written(&narrow);
    let (_, rows) = json(folder, BOARD);
    let stale: Vec<_> = rows
        .iter()
        .map(|row| (&row["config"]["BLOCK"], &row["stale"]))
        .collect();
    for (block, stale) in stale {
        assert_eq!(*stale, *block == 128, "{rows:#?}");
    }
    assert_eq!(tuned(&narrow), (0, 1));
}

#[test]
fn a_run_whose_reference_was_edited_is_not_resumed() {
    let folder = scale("2.0f * x[i]", "2.0f * x[i]");
    let folder = folder.path();
    run(folder, &format!("{RUN} 2")).says(0, &[]);
    // An interrupted run, as far as the database tells.
    assert!(set_state(folder, "interrupted"), "the run's state was set");
    edit(folder, "3.0f * x[i]");
    run(folder, &format!("{RUN} 2 --resume")).says(3, &["no unfinished run"]);
}

/// Sets the state of all runs in `a.db`.
fn set_state(folder: &Path, state: &str) -> bool {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut connection = crate::rig::database::connected(&folder.join("a.db")).await;
        let done = sqlx::query("UPDATE runs SET state = ?")
            .bind(state.to_owned())
            .execute(&mut connection)
            .await
            .expect("is written");
        done.rows_affected() == 1
    })
}

/// One line of `tuner check` on a space of [`scale`], as JSON.
fn checked(folder: &Path) -> serde_json::Value {
    json(folder, "check space.yaml --config default").1[0].clone()
}

#[test]
fn where_every_expected_value_is_nan_nothing_is_proven() {
    let folder = scale("__int_as_float(0x7fc00000)", "logf(-x[i] * x[i])");
    let row = checked(folder.path());
    assert_eq!(row["verdict"], "unchecked", "{row:#}");
    let detail = row["detail"].as_str().expect("a text");
    assert!(
        detail.contains("every expected value of `y` is NaN"),
        "{detail}"
    );
    run(folder.path(), &format!("{RUN} 2")).says(3, &[]);
    assert_eq!(json(folder.path(), BOARD).1.len(), 0);
}

#[test]
fn a_result_that_is_one_constant_for_every_seed_is_told() {
    let folder = scale("1.0f", "x[i] < 1e6f ? 1.0f : 0.0f");
    let row = checked(folder.path());
    assert_eq!(row["verdict"], "ok", "{row:#}");
    assert!(
        row["warnings"].to_string().contains("`y` is 1 everywhere"),
        "{row:#}"
    );
    let folder = scale("2.0f * x[i]", "2.0f * x[i]");
    let row = checked(folder.path());
    assert!(
        !row["warnings"].to_string().contains("everywhere"),
        "{row:#}"
    );
}

#[test]
fn a_zero_of_either_sign_is_the_same_result() {
    // The right results of two seeds differ in the signs of their zeros alone.
    let folder = scale("0.0f", "0.0f * x[i]");
    assert_eq!(checked(folder.path())["verdict"], "ok");
}

#[test]
fn a_kernel_that_ignores_a_boolean_input_is_found() {
    let folder = scale("2.0f * x[i]", "x[i] ? 2.0f : 0.0f");
    crate::program::replace(
        &folder.path().join("space.yaml"),
        "type: f32, role: input",
        "type: bool, role: input",
    );
    for file in ["f.cu", "reference.cu"] {
        crate::program::replace(&folder.path().join(file), "const float* x", "const bool* x");
    }
    assert_eq!(checked(folder.path())["verdict"], "ok", "it is used");
    crate::program::replace(&folder.path().join("f.cu"), "2.0f * x[i]", "2.0f");
    assert_eq!(checked(folder.path())["verdict"], "incorrect");
}

#[test]
fn equal_machine_code_of_different_ptx_has_the_verdict_of_its_own_ptx() {
    // The assembler drops the loop, which PTX still has: a hang of the virtual GPU.
    let hangs = "2.0f * x[i]; volatile int f = 0; while (f == 0 && SPIN == 1) {}";
    for values in ["[0, 1]", "[1, 0]"] {
        let folder = scale(hangs, "2.0f * x[i]");
        crate::program::replace(
            &folder.path().join("space.yaml"),
            "parameters:\n",
            &format!("parameters:\n  SPIN: {{ values: {values} }}\n"),
        );
        let ran = run(folder.path(), &format!("{RUN} 4"));
        assert!(
            ran.stdout.contains("verdicts ok 2, deadlock 2"),
            "{values}: {}",
            ran.stdout
        );
    }
}

/// A histogram whose reference is one thread: too slow for the large problem.
const HISTOGRAM: &str = "\
extern \"C\" __global__ void f(const unsigned* x, unsigned* count) {
  unsigned long long i = (unsigned long long)blockIdx.x * BLOCK + threadIdx.x;
  if (i < N) atomicAdd(&count[(x[i] + SHIFT) % 64], 1u);
}
extern \"C\" __global__ void clear(unsigned* count) { count[threadIdx.x] = 0; }
";
const HISTOGRAM_REFERENCE: &str = "\
extern \"C\" __global__ void plain(const unsigned* x, unsigned* count) {
  for (int b = 0; b < 64; ++b) count[b] = 0;
  for (unsigned long long i = 0; i < N; ++i) {
    for (int k = 0; k < 20; ++k) asm volatile(\"\");
    count[x[i] % 64]++;
  }
}
";
const HISTOGRAM_SPACE: &str = "\
version: 1
kernel: histogram
source: f.cu
problems: { large: { N: 4194304 } }
parameters:
  BLOCK: { values: [128, 256], default: 256 }
  SHIFT: { values: [0, 1], default: 0 }
arguments:
  - { name: x, type: u32, role: input, shape: [N], fill: { uniform: { min: 0, max: 1000 } } }
  - { name: count, type: u32, role: output, shape: [64] }
launches:
  - { entry: clear, args: [count], grid: [1, 1, 1], block: [64, 1, 1] }
  - { entry: f, grid: [\"ceil_div(N, BLOCK)\", 1, 1], block: [BLOCK, 1, 1] }
reference: { source: reference.cu, entry: plain, grid: [1, 1, 1], block: [1, 1, 1] }
metric: { bytes: \"4 * N\" }
";

/// The histogram with that reference.
fn histogram(reference: &str) -> tempfile::TempDir {
    folder(&[
        ("f.cu", HISTOGRAM),
        ("reference.cu", reference),
        ("space.yaml", HISTOGRAM_SPACE),
    ])
}

#[test]
fn where_nothing_can_be_compared_a_smaller_problem_is_made_and_told() {
    let folder = histogram(HISTOGRAM_REFERENCE);
    let folder = folder.path();
    let ran = run(folder, &format!("{RUN} 4 --prove-budget 0"));
    ran.says(0, &["under `check_problems`"]);
    let said = ran.stderr.find("cannot be compared").expect("the note");
    let began = ran.stderr.find(": evolve").expect("the run's line");
    assert!(said < began, "{}", ran.stderr);
    let (_, rows) = json(folder, BOARD);
    assert_eq!(rows.len(), 2, "{rows:#?}");
    let right = rows.iter().all(|row| row["config"]["SHIFT"] == 0);
    assert!(right, "{rows:#?}");
    let wrong = "check space.yaml --problem large --config SHIFT=1";
    let (code, rows) = json(folder, wrong);
    assert_eq!((code, &rows[0]["verdict"]), (4, &"incorrect".into()));
    let detail = rows[0]["detail"].as_str().expect("a detail");
    let generated = "a generated check problem: { N: ";
    assert!(detail.contains(generated), "{detail}");
}

#[test]
fn references_that_the_budget_has_no_time_for_are_left_to_the_first_trials() {
    let folder = histogram(HISTOGRAM_REFERENCE);
    let ran = run(
        folder.path(),
        "run space.yaml --device vgpu:l4 --budget 1ms",
    );
    ran.says(3, &["the budget is used up"]);
    assert!(!ran.stderr.contains("cannot be compared"), "{}", ran.stderr);
}

#[test]
fn what_no_reference_can_pay_for_is_unchecked_and_goes_nowhere() {
    // The reference waits ever longer, whatever the size.
    let slow = HISTOGRAM_REFERENCE.replace(
        "count[b] = 0;",
        "{ count[b] = 0; for (int k = 0; k < 400000000; ++k) asm volatile(\"\"); }",
    );
    let folder = histogram(&slow);
    let folder = folder.path();
    let ran = run(folder, &format!("{RUN} 2 --prove-budget 0"));
    ran.says(3, &["will be `unchecked` and will not rank"]);
    assert!(ran.stdout.contains("unchecked 2"), "{}", ran.stdout);
    let (_, rows) = json(folder, BOARD);
    assert!(rows.is_empty(), "{rows:#?}");
    let shipped = run(folder, "export histogram --allow-predicted --db a.db");
    assert_ne!(shipped.code, 0, "{}", shipped.stderr);
    let (code, rows) = json(folder, "check space.yaml --problem large");
    assert_eq!((code, &rows[0]["verdict"]), (4, &"unchecked".into()));
}

#[test]
fn a_reference_that_does_not_write_its_outputs_is_the_spaces_fault() {
    let folder = scale("2.0f * x[i]", "2.0f * x[i]");
    let folder = folder.path();
    crate::program::replace(&folder.join("reference.cu"), "i < N", "i < N / 2");
    for line in ["check space.yaml", &format!("{RUN} 2")] {
        let parts = ["space.yaml", "from element 500 of 1000 on"];
        run(folder, line).says(2, &parts);
    }
}

#[test]
fn a_wrong_result_says_which_elements_differ_and_how() {
    for (formula, words) in [
        ("x[i]", "each is 0.5000 times what is expected"),
        (
            "i < 990 ? 2.0f * x[i] : 7.0f",
            "they are the last 10 of 1000",
        ),
        (
            "i % 17 ? 2.0f * x[i] : 7.0f",
            "one element in 17, from 0 on",
        ),
    ] {
        let folder = scale(formula, "2.0f * x[i]");
        let (code, rows) = json(folder.path(), "check space.yaml");
        let detail = rows[0]["detail"].as_str().expect("a detail");
        assert_eq!(code, 4);
        assert!(detail.contains(words), "{formula}: {detail}");
    }
}

/// Trials by kernel of one run over these spaces and the verdicts of all, from the run's own summary.
fn verdicts(spaces: &[String], db: &Path) -> (std::collections::BTreeMap<String, String>, String) {
    let line = format!(
        "run --evals {} --seed 1 --device vgpu:l4 --db",
        spaces.len()
    );
    let mut command = tuner(root());
    let ran = ended(command.args(line.split(' ')).arg(db).args(spaces));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let all = ran
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("verdicts "));
    let table = ran
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with(" kernel "));
    let rows = table.skip(1).take_while(|line| line.starts_with(' '));
    let trials = rows.map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        (words[0].to_owned(), words[2].to_owned())
    });
    (trials.collect(), all.expect("verdicts").to_owned())
}

#[test]
fn all_pairs_of_shipped_kernels_in_one_run_have_the_same_verdicts_in_any_order() {
    let folder = root().join("search_spaces");
    let mut spaces: Vec<String> = std::fs::read_dir(folder)
        .expect("the spaces")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".quick.yaml"))
        .map(|name| format!("search_spaces/{name}"))
        .collect();
    spaces.sort();
    assert!(spaces.len() >= 10, "{spaces:?}");
    let databases = tempfile::tempdir().expect("a temporary folder");
    let forwards = verdicts(&spaces, &databases.path().join("a.db"));
    spaces.reverse();
    let backwards = verdicts(&spaces, &databases.path().join("b.db"));
    assert_eq!(forwards, backwards);
    let (trials, verdicts) = forwards;
    assert_eq!(verdicts, format!("ok {}", spaces.len()));
    assert_eq!(trials.len(), spaces.len());
    assert!(trials.values().all(|trials| trials == "1"), "{trials:?}");
}

/// A daemon that ends with its test.
struct Daemon(std::process::Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_daemon_compares_each_run_with_the_reference_as_it_is_then() {
    let folder = scale("2.0f * x[i]", "2.0f * x[i]");
    let folder = folder.path();
    let line = "serve --listen 127.0.0.1:0 --db a.db --kernels .";
    let child = tuner(folder)
        .args(line.split(' '))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the daemon starts");
    let mut daemon = Daemon(child);
    let mut line = String::new();
    let output = daemon.0.stdout.take().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
    assert!(line.contains("http://"), "{line}");
    run(folder, &format!("{RUN} 2")).says(0, &[]);
    edit(folder, "3.0f * x[i]");
    let ran = run(folder, &format!("{RUN} 2"));
    ran.says(3, &[]);
    assert!(ran.stdout.contains("incorrect 2"), "{}", ran.stdout);
    let (_, rows) = json(folder, BOARD);
    assert!(rows.is_empty(), "{rows:#?}");
}
