//! What a kernel is compared with is its own reference, and something is compared at all: two
//! kernels in one run, a reference edited between two runs, and problems whose reference is slow.

use std::path::Path;
use std::process::Command;

fn tuner(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
    command
        .current_dir(folder)
        .args(arguments)
        .env_remove("TUNER_TOKEN");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cuda/nvidia/cu13/lib");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        command.env("TUNER_NVRTC", own);
    }
    command
}

/// A folder with these files.
fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("the file is written");
    }
    folder
}

/// Exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = tuner(folder, arguments).output().expect("tuner runs");
    (
        output.status.code().expect("an exit code"),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn json(folder: &Path, arguments: &[&str]) -> (i32, Vec<serde_json::Value>) {
    let all: Vec<&str> = arguments
        .iter()
        .copied()
        .chain(["--format", "json"])
        .collect();
    let (code, stdout, stderr) = run(folder, &all);
    let rows = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    (code, rows)
}

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
    let folder = project(&[
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
    for order in [["right.yaml", "wrong.yaml"], ["wrong.yaml", "right.yaml"]] {
        let db = format!("{}.db", order[0]);
        let base = [
            "--evals", "4", "--seed", "1", "--device", "vgpu:l4", "--db", &db,
        ];
        let all: Vec<&str> = ["run"].into_iter().chain(order).chain(base).collect();
        let (code, stdout, stderr) = run(folder.path(), &all);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("verdicts incorrect 2"), "{stdout}");
        let (_, rows) = json(folder.path(), &["leaderboard", "--db", &db]);
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|row| row["kernel"] == "right"), "{rows:#?}");
        let (code, rows) = json(folder.path(), &["check", order[0], order[1]]);
        assert_eq!(code, 4);
        for row in rows {
            let expected = if row["kernel"] == "right" {
                "ok"
            } else {
                "incorrect"
            };
            assert_eq!(row["verdict"], expected, "{row:#}");
        }
    }
}

#[test]
fn results_that_were_compared_with_a_reference_edited_since_do_not_rank() {
    let reference = |formula| references(&[("plain", formula)]);
    let (doubled, tripled) = (reference("2.0f * x[i]"), reference("3.0f * x[i]"));
    let folder = project(&[
        ("f.cu", &kernel("2.0f * x[i]")),
        ("reference.cu", &doubled),
        (
            "space.yaml",
            &space("scale", "f.cu", "reference.cu", "plain"),
        ),
    ]);
    let tune = |seed: &str| {
        let base = [
            "run",
            "space.yaml",
            "--evals",
            "2",
            "--device",
            "vgpu:l4",
            "--db",
            "a.db",
        ];
        let all: Vec<&str> = base.into_iter().chain(["--seed", seed]).collect();
        run(folder.path(), &all).0
    };
    let ranked = || {
        json(folder.path(), &["leaderboard", "--db", "a.db"])
            .1
            .len()
    };
    assert_eq!((tune("1"), ranked()), (0, 2));
    std::fs::write(folder.path().join("reference.cu"), &tripled).expect("written");
    let (_, _, stderr) = run(folder.path(), &["leaderboard", "--db", "a.db"]);
    assert!(stderr.contains("or its reference was"), "{stderr}");
    assert_eq!(
        (tune("2"), ranked()),
        (3, 0),
        "nothing passes the new reference"
    );
    std::fs::write(folder.path().join("reference.cu"), &doubled).expect("written");
    assert_eq!(
        (tune("3"), ranked()),
        (0, 2),
        "the first reference is known again"
    );
}

#[test]
fn a_run_whose_reference_was_edited_is_not_resumed() {
    let reference = |formula| references(&[("plain", formula)]);
    let folder = project(&[
        ("f.cu", &kernel("2.0f * x[i]")),
        ("reference.cu", &reference("2.0f * x[i]")),
        (
            "space.yaml",
            &space("scale", "f.cu", "reference.cu", "plain"),
        ),
    ]);
    let base = [
        "run",
        "space.yaml",
        "--evals",
        "2",
        "--device",
        "vgpu:l4",
        "--db",
        "a.db",
    ];
    assert_eq!(run(folder.path(), &base).0, 0);
    // An interrupted run, as far as the database tells.
    let database = set_state(folder.path(), "interrupted");
    assert!(database, "the run's state was set");
    std::fs::write(folder.path().join("reference.cu"), reference("3.0f * x[i]")).expect("written");
    let all: Vec<&str> = base.into_iter().chain(["--resume"]).collect();
    let (code, _, stderr) = run(folder.path(), &all);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("no unfinished run"), "{stderr}");
}

/// Sets the state of all runs in `a.db`.
fn set_state(folder: &Path, state: &str) -> bool {
    use sqlx::Connection as _;
    let path = format!("sqlite://{}", folder.join("a.db").display());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut connection = sqlx::SqliteConnection::connect(&path).await.expect("opens");
        let done = sqlx::query("UPDATE runs SET state = ?")
            .bind(state.to_owned())
            .execute(&mut connection)
            .await
            .expect("is written");
        done.rows_affected() == 1
    })
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
  for (unsigned long long i = 0; i < N; ++i) count[x[i] % 64]++;
}
";
const HISTOGRAM_SPACE: &str = "\
version: 1
kernel: histogram
source: f.cu
problems: { large: { N: 67108864 } }
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

#[test]
fn where_nothing_can_be_compared_a_smaller_problem_is_made_and_told() {
    let folder = project(&[
        ("f.cu", HISTOGRAM),
        ("reference.cu", HISTOGRAM_REFERENCE),
        ("space.yaml", HISTOGRAM_SPACE),
    ]);
    let base = [
        "run",
        "space.yaml",
        "--evals",
        "4",
        "--device",
        "vgpu:l4",
        "--db",
        "a.db",
    ];
    let (code, _, stderr) = run(folder.path(), &base);
    assert_eq!(code, 0, "{stderr}");
    let said = stderr.find("cannot be compared").expect("the note");
    assert!(
        said < stderr.find(": evolve").expect("the run's line"),
        "{stderr}"
    );
    assert!(stderr.contains("under `check_problems`"), "{stderr}");
    let (_, rows) = json(folder.path(), &["leaderboard", "--db", "a.db"]);
    assert_eq!(rows.len(), 2, "{rows:#?}");
    assert!(
        rows.iter().all(|row| row["config"]["SHIFT"] == 0),
        "{rows:#?}"
    );
    let (code, rows) = json(
        folder.path(),
        &[
            "check",
            "space.yaml",
            "--problem",
            "large",
            "--config",
            "SHIFT=1",
        ],
    );
    assert_eq!((code, &rows[0]["verdict"]), (4, &"incorrect".into()));
    let detail = rows[0]["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("a generated check problem: { N: "),
        "{detail}"
    );
}

#[test]
fn what_no_reference_can_pay_for_is_unchecked_and_goes_nowhere() {
    // The reference waits ever longer, whatever the size.
    let slow = HISTOGRAM_REFERENCE.replace(
        "count[b] = 0;",
        "{ count[b] = 0; for (int k = 0; k < 400000000; ++k) asm volatile(\"\"); }",
    );
    let folder = project(&[
        ("f.cu", HISTOGRAM),
        ("reference.cu", &slow),
        ("space.yaml", HISTOGRAM_SPACE),
    ]);
    let base = [
        "run",
        "space.yaml",
        "--evals",
        "2",
        "--device",
        "vgpu:l4",
        "--db",
        "a.db",
    ];
    let (code, stdout, stderr) = run(folder.path(), &base);
    assert_eq!(code, 3, "{stderr}");
    assert!(
        stderr.contains("will be `unchecked` and will not rank"),
        "{stderr}"
    );
    assert!(stdout.contains("unchecked 2"), "{stdout}");
    let (_, rows) = json(folder.path(), &["leaderboard", "--db", "a.db"]);
    assert!(rows.is_empty(), "{rows:#?}");
    let (code, _, stderr) = run(
        folder.path(),
        &["export", "histogram", "--allow-predicted", "--db", "a.db"],
    );
    assert_ne!(code, 0, "{stderr}");
    let (code, rows) = json(
        folder.path(),
        &["check", "space.yaml", "--problem", "large"],
    );
    assert_eq!((code, &rows[0]["verdict"]), (4, &"unchecked".into()));
}

#[test]
fn a_reference_that_does_not_write_its_outputs_is_the_spaces_fault() {
    let half = references(&[("plain", "2.0f * x[i]")]).replace("i < N", "i < N / 2");
    let folder = project(&[
        ("f.cu", &kernel("2.0f * x[i]")),
        ("reference.cu", &half),
        (
            "space.yaml",
            &space("scale", "f.cu", "reference.cu", "plain"),
        ),
    ]);
    for arguments in [
        &["check", "space.yaml"][..],
        &[
            "run",
            "space.yaml",
            "--evals",
            "2",
            "--device",
            "vgpu:l4",
            "--db",
            "a.db",
        ],
    ] {
        let (code, _, stderr) = run(folder.path(), arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(
            stderr.contains("space.yaml") && stderr.contains("from element 500 of 1000 on"),
            "{stderr}"
        );
    }
}

#[test]
fn a_wrong_result_says_which_elements_differ_and_how() {
    let plain = references(&[("plain", "2.0f * x[i]")]);
    for (formula, words) in [
        ("x[i]", "each is 0.5000 times what is expected"),
        (
            "i < 990 ? 2.0f * x[i] : 7.0f",
            "they are the last 10 of 1000",
        ),
        (
            "i % 17 ? 2.0f * x[i] : 7.0f",
            "every 17th element from 0 on",
        ),
    ] {
        let folder = project(&[
            ("f.cu", &kernel(formula)),
            ("reference.cu", &plain),
            (
                "space.yaml",
                &space("scale", "f.cu", "reference.cu", "plain"),
            ),
        ]);
        let (code, rows) = json(folder.path(), &["check", "space.yaml"]);
        let detail = rows[0]["detail"].as_str().expect("a detail");
        assert_eq!(code, 4);
        assert!(detail.contains(words), "{formula}: {detail}");
    }
}

/// Verdicts by kernel of one run over these spaces, from the run's own summary.
fn verdicts(spaces: &[String], db: &Path) -> std::collections::BTreeMap<String, String> {
    let count = spaces.len().to_string();
    let db = db.to_string_lossy();
    let base = [
        "run", "--evals", &count, "--seed", "1", "--device", "vgpu:l4", "--db", &db,
    ];
    let names = spaces.iter().map(String::as_str);
    let all: Vec<&str> = base.into_iter().chain(names).collect();
    let (code, stdout, stderr) = run(Path::new(env!("CARGO_MANIFEST_DIR")), &all);
    assert_eq!(code, 0, "{stderr}");
    let mut found = std::collections::BTreeMap::new();
    let mut kernel = String::new();
    for line in stdout.lines() {
        match (
            line.split_once(" | "),
            line.trim().strip_prefix("verdicts "),
        ) {
            (Some((name, _)), _) => name.clone_into(&mut kernel),
            (None, Some(verdicts)) => {
                found.insert(kernel.clone(), verdicts.to_owned());
            }
            _ => {}
        }
    }
    found
}

#[test]
fn all_pairs_of_shipped_kernels_in_one_run_have_the_same_verdicts_in_any_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("search_spaces");
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
    assert_eq!(forwards.len(), spaces.len());
    for (kernel, verdicts) in forwards {
        assert_eq!(verdicts, "ok 1", "{kernel}");
    }
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
    let reference = |formula| references(&[("plain", formula)]);
    let folder = project(&[
        ("f.cu", &kernel("2.0f * x[i]")),
        ("reference.cu", &reference("2.0f * x[i]")),
        (
            "space.yaml",
            &space("scale", "f.cu", "reference.cu", "plain"),
        ),
    ]);
    let mut serve = tuner(
        folder.path(),
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--db",
            "a.db",
            "--kernels",
            ".",
        ],
    );
    let child = serve
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the daemon starts");
    let mut daemon = Daemon(child);
    let mut line = String::new();
    let output = daemon.0.stdout.take().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
    assert!(line.contains("http://"), "{line}");
    let base = [
        "run",
        "space.yaml",
        "--evals",
        "2",
        "--device",
        "vgpu:l4",
        "--db",
        "a.db",
    ];
    let (code, _, stderr) = run(folder.path(), &base);
    assert_eq!(code, 0, "{stderr}");
    let tripled = reference("3.0f * x[i]");
    std::fs::write(folder.path().join("reference.cu"), tripled).expect("written");
    let (code, stdout, stderr) = run(folder.path(), &base);
    assert_eq!(code, 3, "{stdout}{stderr}");
    assert!(stdout.contains("incorrect 2"), "{stdout}");
    let (_, rows) = json(folder.path(), &["leaderboard", "--db", "a.db"]);
    assert!(rows.is_empty(), "{rows:#?}");
}
