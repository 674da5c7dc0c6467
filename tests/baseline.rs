//! Baseline commands: what they say is kept, what they do not say is not guessed.

use std::path::Path;
use std::time::{Duration, Instant};
use tuner_core::record::ConfigValues;
use tuner_core::value::Value;
use tuner_engine::baseline::{BaselineError, ask, parse};

fn run(script: &str, deadline: Duration) -> Result<tuner_engine::baseline::Answer, BaselineError> {
    let command: Vec<String> = ["sh", "-c", script].map(str::to_owned).into();
    let problem: ConfigValues = vec![("M".into(), Value::Int(64))];
    ask(&command, Path::new("."), &problem, Some("GPU-1"), deadline)
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn an_answer_is_read_whatever_is_said_before_it() {
    let answer = run(
        r#"echo loading; echo >&2 noise; echo '{"name": "peer", "p50_us": 5.5, "p90_us": 6, "version": "2.9"}'"#,
        LONG,
    )
    .unwrap();
    assert_eq!((answer.name.as_str(), answer.p50_us), ("peer", 5.5));
    assert_eq!(
        (answer.p90_us, answer.version.as_deref()),
        (6.0, Some("2.9"))
    );
}

#[test]
fn the_problem_comes_on_standard_input_and_the_gpu_in_the_environment() {
    let answer = run(
        r#"read p; [ "$p" = '{"M":64}' ] && [ "$CUDA_VISIBLE_DEVICES" = GPU-1 ] && echo '{"name":"x","p50_us":1,"p90_us":1}'"#,
        LONG,
    );
    assert!(answer.is_ok(), "{answer:?}");
}

#[test]
fn absent_failing_and_rambling_commands_say_why_there_is_no_figure() {
    let problem = ConfigValues::new();
    let absent = ask(
        &["no-such-program-anywhere".to_owned()],
        Path::new("."),
        &problem,
        None,
        LONG,
    );
    assert!(
        matches!(absent, Err(BaselineError::Absent { .. })),
        "{absent:?}"
    );
    let failed = run(
        "echo >&2 \"ModuleNotFoundError: No module named 'torch'\"; exit 3",
        LONG,
    );
    let text = failed.unwrap_err().to_string();
    assert!(
        text.contains("exit status: 3") && text.contains("No module named 'torch'"),
        "{text}"
    );
    for rubbish in [
        "true",
        "echo 5.5",
        "echo '{\"name\": \"x\"}'",
        "echo '{\"name\": \"x\", \"p50_us\": 0, \"p90_us\": 1}'",
        "echo '{\"name\": \"x\", \"p50_us\": -5, \"p90_us\": 1}'",
        "echo '{\"name\": \"x\", \"p50_us\": 5, \"p90_us\": 1}'",
        "echo '{\"name\": \"\", \"p50_us\": 5, \"p90_us\": 6}'",
        "echo '{\"name\": \"x\", \"p50_us\": \"fast\", \"p90_us\": 6}'",
        "head -c 5000000 /dev/zero",
    ] {
        let answer = run(rubbish, LONG);
        assert!(
            matches!(answer, Err(BaselineError::Rubbish { .. })),
            "{rubbish}: {answer:?}"
        );
    }
    assert!(parse("{\"name\":\"x\",\"p50_us\":1e999,\"p90_us\":1e999}").is_err());
}

#[test]
fn a_command_that_hangs_is_ended_with_everything_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("alive");
    let began = Instant::now();
    // The grandchild would leave a mark if it outlived the command.
    let script = format!("(sleep 2; touch {}) & sleep 600", mark.display());
    let hung = run(&script, Duration::from_millis(300));
    assert!(matches!(hung, Err(BaselineError::Hung { .. })), "{hung:?}");
    std::thread::sleep(Duration::from_secs(3));
    assert!(!mark.exists());
    // Not a time limit: the command alone would take ten minutes.
    assert!(began.elapsed() < Duration::from_secs(300));
}

#[test]
fn a_helper_that_keeps_the_pipe_open_does_not_hold_the_run_up() {
    let answer = run(
        r#"sleep 600 & echo '{"name":"x","p50_us":1,"p90_us":1}'"#,
        Duration::from_secs(30),
    );
    assert!(answer.is_ok(), "{answer:?}");
}

/// A space with this baseline command, as a kernel.
fn kernel(folder: &Path, command: &str) -> tuner_kernel::catalog::Kernel {
    let defects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/defects");
    let text = std::fs::read_to_string(defects.join("sum.yaml")).expect("there");
    let file = folder.join("sum.yaml");
    std::fs::write(&file, format!("{text}baseline: {{ command: {command} }}\n")).expect("written");
    std::fs::copy(defects.join("sum.cu"), folder.join("sum.cu")).expect("copied");
    tuner_kernel::catalog::Kernel::load(&file).expect("a good space")
}

fn baseline(folder: &Path, command: &str) -> tuner_engine::baseline::Baseline {
    let key = tuner_core::record::TaskKey {
        kernel: "sum_with_defects".into(),
        problem: "rows".into(),
        device: "cuda".into(),
    };
    tuner_engine::baseline::Baseline::from_kernel(&kernel(folder, command), &key, None)
        .expect("it names one")
}

#[test]
fn a_baseline_runs_beside_its_space_file_before_and_after() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("peer.sh");
    // The second answer comes from a device that runs ten per cent slower.
    std::fs::write(
        &script,
        "read p; case $p in *1024*) ;; *) exit 9;; esac\n\
         if [ -e asked ]; then t=11; else t=10; touch asked; fi\n\
         echo \"{\\\"name\\\": \\\"peer\\\", \\\"version\\\": \\\"1\\\", \\\"p50_us\\\": $t, \\\"p90_us\\\": $t}\"\n",
    )
    .unwrap();
    let mut baseline = baseline(folder.path(), "[sh, peer.sh]");
    let identity = tuner_core::units::ContentHash::from_stored("r".into());
    for (moment, unit) in [
        (tuner_core::baseline_record::Moment::Before, 100.0),
        (tuner_core::baseline_record::Moment::After, 110.0),
    ] {
        let mut reference = || Some((unit, identity.clone()));
        assert_eq!(baseline.visit(moment, &mut reference, LONG), None);
    }
    let record = &baseline.record;
    assert_eq!(record.failure, None);
    assert_eq!(
        (record.visits.len(), record.version.as_deref()),
        (2, Some("1"))
    );
    assert!((record.p50_us().unwrap() - 10.5).abs() < 1e-9 && !record.unsteady());
    let line = record.describe(&baseline.key);
    assert_eq!(line, "baseline of sum_with_defects rows: peer 10.50 µs");
}

#[test]
fn an_absent_tool_is_told_once_and_not_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut baseline = baseline(folder.path(), "[no-such-program-anywhere]");
    let mut reference = || panic!("nothing to take drift out of");
    let moment = tuner_core::baseline_record::Moment::Before;
    let why = baseline.visit(moment, &mut reference, LONG).unwrap();
    assert!(
        why.contains("`no-such-program-anywhere` is not here"),
        "{why}"
    );
    assert_eq!(baseline.visit(moment, &mut reference, LONG), None);
    let line = baseline.record.describe(&baseline.key);
    assert!(
        line.starts_with("baseline of sum_with_defects rows: none, `no-such"),
        "{line}"
    );
    assert_eq!(baseline.record.p50_us(), None);
}

/// Tunes the kernel on the stand-in for a GPU; gives what was said and the leaderboard.
fn tune(folder: &Path, command: &str) -> (String, serde_json::Value) {
    kernel(folder, command);
    let database = folder.join("stand-in.db");
    let tuner = |arguments: &[&str]| {
        let output = assert_cmd::Command::new(crate::rig::program())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("TUNER_FAKE_GPU", &database)
            .env("TUNER_FAKE_GATE", "host")
            .args(arguments)
            .arg("--db")
            .arg(&database)
            .output()
            .expect("tuner runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        (said, output.stdout)
    };
    let file = folder.join("sum.yaml");
    let file = file.to_str().expect("a plain path");
    let (said, _) = tuner(&["run", file, "--device", "cuda", "--evals", "2"]);
    let (_, rows) = tuner(&["leaderboard", "--format", "json"]);
    (said, serde_json::from_slice(&rows).expect("rows"))
}

#[test]
fn a_run_on_a_gpu_is_compared_with_the_peer_and_ends_with_a_final_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let peer = r#"[sh, -c, 'echo "{\"name\": \"peer\", \"p50_us\": 500, \"p90_us\": 600}"']"#;
    let (said, rows) = tune(folder.path(), peer);
    assert!(
        said.contains("sum_with_defects rows: final comparison of the best"),
        "{said}"
    );
    assert!(
        said.contains("baseline of sum_with_defects rows: peer 500.00 µs"),
        "{said}"
    );
    let (best, time) = (&rows[0], rows[0]["time_us_p50"].as_f64().unwrap());
    assert_eq!(best["timing"], "measured", "{best:#}");
    let speedup = best["speedup_vs_baseline"].as_f64().unwrap();
    assert!((speedup * time / 500.0 - 1.0).abs() < 0.1, "{best:#}");
}

#[test]
fn a_run_whose_peer_is_absent_says_so_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (said, rows) = tune(folder.path(), "[no-such-program-anywhere]");
    assert!(
        said.contains("none, `no-such-program-anywhere` is not here"),
        "{said}"
    );
    assert!(rows[0]["speedup_vs_baseline"].is_null(), "{rows:#}");
}

/// What `templates/KERNEL/baseline.py` says on a stand-in for PyTorch whose times are known.
fn peer(kernel: &str, problem: &str, kernel_us: &str, replay_us: &str) -> serde_json::Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = assert_cmd::Command::new("python3")
        .arg(root.join("templates").join(kernel).join("baseline.py"))
        .env("PYTHONPATH", root.join("tests/data/fake_torch"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FAKE_KERNEL_US", kernel_us)
        .env("FAKE_REPLAY_US", replay_us)
        .write_stdin(problem)
        .output()
        .expect("python3 runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn a_peer_is_timed_behind_a_blocking_kernel_and_no_time_of_the_host_counts() {
    let rows = r#"{"R": 4, "N": 4}"#;
    for kernel_us in ["2.5", "5", "900"] {
        // A host that takes longer to queue than the first blocking kernel lasts is waited for.
        for replay_us in ["15", "900"] {
            let answer = peer("softmax", rows, kernel_us, replay_us);
            let found = answer["p50_us"].as_f64().unwrap();
            let wanted: f64 = kernel_us.parse().unwrap();
            assert!((found / wanted - 1.0).abs() < 0.001, "{answer}");
        }
    }
}

#[test]
fn the_fastest_backend_that_can_be_forced_is_the_peer_by_name() {
    let problem = r#"{"B": 1, "H": 2, "S": 16, "D": 16}"#;
    let answer = peer("attention_f16", problem, "5", "15");
    assert_eq!(answer["name"], "PyTorch 0.0 SDPA (efficient)");
    assert!((answer["p50_us"].as_f64().unwrap() - 5.0).abs() < 0.01);
    let all = answer["variants_us"].as_object().unwrap();
    // cuDNN refuses this problem there.
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(names, ["default", "flash", "efficient", "math"]);
}

#[test]
fn a_peer_that_takes_another_of_its_ways_the_second_time_is_the_same_peer() {
    let folder = tempfile::tempdir().unwrap();
    let command = r#"[sh, -c, 'if [ -e again ]; then echo "{\"name\": \"SDPA (flash)\", \"p50_us\": 9, \"p90_us\": 9}"; else touch again; echo "{\"name\": \"SDPA (cudnn)\", \"p50_us\": 10, \"p90_us\": 10}"; fi']"#;
    let mut baseline = baseline(folder.path(), command);
    for moment in [
        tuner_core::baseline_record::Moment::Before,
        tuner_core::baseline_record::Moment::After,
    ] {
        assert_eq!(baseline.visit(moment, &mut || None, LONG), None);
    }
    assert_eq!(baseline.record.failure, None);
    assert_eq!(baseline.record.name.as_deref(), Some("SDPA (flash)"));
}
