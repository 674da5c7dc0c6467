//! Bad input: a message with the fix, and the right exit code.

use super::{finish, recorded, tuner_run};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs the program; gives its exit code and what it said.
fn tuner(arguments: &[&str]) -> (Option<i32>, String) {
    let dir = TempDir::new().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .args(arguments)
        .current_dir(dir.path())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn nonsense_on_the_command_line_exits_with_2_and_says_what_to_type() {
    let file = format!("replay:{}", recorded().display());
    let cases: [(&[&str], &str); 9] = [
        (&["--strategy", "magic"], "evolve, random, local"),
        (&["--evals", "0"], "0"),
        (&["--evals", "-3"], "-3"),
        (&["--budget", "ten minutes"], "90s, 10m"),
        (&["--budget", "90"], "90s, 10m"),
        (&["--jobs", "0"], "0"),
        (&["gemm_f32"], "leave the name out"),
        (&["--problem", "mission"], "4096x4096"),
        (&["--seed", "x"], "x"),
    ];
    for (arguments, hint) in cases {
        let mut all = vec!["run", "--device", &file];
        all.extend(arguments);
        let (code, text) = tuner(&all);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        assert!(text.contains(hint), "{arguments:?}: {text}");
    }
    for device in ["gpu0", "vgpu:b9000", "cuda:first", "replay:"] {
        let (code, text) = tuner(&["run", "--device", device]);
        assert_eq!(code, Some(2), "{device}: {text}");
    }
}

#[test]
fn a_damaged_recorded_file_exits_with_2_and_points_at_the_place() {
    let dir = TempDir::new().unwrap();
    let bytes = std::fs::read(recorded()).unwrap();
    let cut = dir.path().join("cut.json.gz");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let broken = dir.path().join("broken.json");
    std::fs::write(
        &broken,
        "{\"kernel_name\": \"k\",\n \"cache\": {\"1\": {\"a\": 1, \"time\": }}}",
    )
    .unwrap();
    let missing = dir.path().join("missing.json");
    for (path, place) in [
        (&cut, "cut.json.gz:"),
        (&broken, "broken.json:2:"),
        (&missing, "missing.json"),
    ] {
        for command in ["run", "replay"] {
            let file = path.display().to_string();
            let device = format!("replay:{file}");
            let arguments: Vec<&str> = match command {
                "run" => vec!["run", "--device", &device, "--evals", "5"],
                _ => vec!["replay", &file],
            };
            let (code, text) = tuner(&arguments);
            assert_eq!(code, Some(2), "{text}");
            assert!(text.contains(place) && text.contains("help"), "{text}");
        }
    }
}

#[test]
fn a_run_in_which_nothing_passes_exits_with_3() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bad.json");
    let rows = r#"{"cache": {"1": {"a": 1, "time": "RuntimeFailedConfig"}, "2": {"a": 2, "time": "InvalidConfig"}}}"#;
    std::fs::write(&path, rows).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .args([
            "run",
            "--evals",
            "9",
            "--device",
            &format!("replay:{}", path.display()),
        ])
        .arg("--db")
        .arg(dir.path().join("t.db"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("no candidate passed") && text.contains("crashed 1"),
        "{text}"
    );
}

#[test]
fn a_database_that_cannot_be_written_is_an_error_with_its_name() {
    let mut command = tuner_run(Path::new("/dev/null/t.db"), &["--evals", "5"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{text}");
    assert!(text.contains("/dev/null/t.db"), "{text}");
}

#[test]
fn a_log_that_cannot_be_opened_is_refused_before_the_run() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let mut command = tuner_run(&db, &["--evals", "5", "--events", "/dev/null/x"]);
    assert_eq!(command.output().unwrap().status.code(), Some(2));
    assert!(!db.exists());
}

#[test]
fn without_limits_a_run_stops_by_itself_and_says_when() {
    let dir = TempDir::new().unwrap();
    let output = finish(&mut tuner_run(&dir.path().join("t.db"), &[]));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("stops after 10m of recorded time"), "{text}");
}

#[test]
fn a_space_in_which_nothing_is_valid_exits_with_2_and_names_the_constraint() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("k.yaml");
    std::fs::write(
        dir.path().join("k.cu"),
        "extern \"C\" __global__ void k(float *o) { o[0] = B; }",
    )
    .unwrap();
    let yaml = "version: 1
kernel: k
source: k.cu
problems: { p: { N: 4 } }
parameters: { B: { values: [1, 2], default: 1 } }
constraints: [{ rule: \"B > 2 * N\", why: more than there is }]
arguments: [{ name: o, type: f32, role: output, shape: [N] }]
launches: [{ entry: k, grid: [1, 1, 1], block: [1, 1, 1] }]
reference: { source: k.cu, entry: k, grid: [1, 1, 1], block: [1, 1, 1] }
";
    std::fs::write(&path, yaml).unwrap();
    let (code, text) = tuner(&["run", &path.display().to_string(), "--device", "vgpu:h100"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("more than there is") || text.contains("B > 2 * N"),
        "{text}"
    );
}

#[test]
fn an_unknown_kernel_exits_with_2() {
    let (code, text) = tuner(&["run", "no_such_kernel"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("search_spaces"), "{text}");
}
