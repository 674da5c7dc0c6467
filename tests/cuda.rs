//! Real GPUs, as far as machines without one can show it: the whole program on a stand-in for the
//! driver, which runs kernels on the virtual GPU and fails as a GPU does.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program with the stand-in, whose results may go to `tuner.db` in the folder only.
pub(crate) fn tuner(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::rig::program());
    command.current_dir(folder).args(arguments);
    command.env("TUNER_FAKE_GPU", folder.join("tuner.db"));
    let own = root().join(".cuda/nvidia/cu13/lib");
    if std::env::var_os("TUNER_NVRTC").is_none() && own.is_dir() {
        command.env("TUNER_NVRTC", own);
    }
    command
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = tuner(folder, arguments).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("{arguments:?}: {error}\n{text}\n{errors}")
    })
}

/// A copy of the planted defects with only these values of DEFECT and SLOW.
pub(crate) fn planted(folder: &Path, defects: &str, slow: &str) -> PathBuf {
    let source = root().join("tests/planted");
    for name in ["planted.cu", "planted_reference.cu"] {
        std::fs::copy(source.join(name), folder.join(name)).expect("the file is copied");
    }
    let text = std::fs::read_to_string(source.join("planted.yaml")).expect("the space is there");
    let narrowed: String = text
        .lines()
        .filter(|line| !line.contains("timed: {"))
        .map(|line| {
            let (head, values) = match line.trim_start().split(':').next() {
                Some("DEFECT") => ("DEFECT", defects),
                Some("SLOW") => ("SLOW", slow),
                _ => return format!("{line}\n"),
            };
            format!("  {head}: {{ values: [{values}], default: 0 }}\n")
        })
        .collect();
    let path = folder.join("planted.yaml");
    std::fs::write(&path, narrowed).expect("the space is written");
    path
}

#[test]
fn a_gpu_that_is_not_there_is_told_with_what_can_be_done() {
    for (device, words) in [
        ("cuda:7", "cuda:0 to cuda:1"),
        ("cuda:0,x", "cuda:0,1 for two"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let space = planted(folder.path(), "0", "0");
        let arguments = [
            "run",
            space.to_str().unwrap(),
            "--device",
            device,
            "--db",
            "tuner.db",
        ];
        let output = tuner(folder.path(), &arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
}

#[test]
fn results_of_the_stand_in_never_reach_another_database() {
    let folder = tempfile::tempdir().unwrap();
    let space = planted(folder.path(), "0", "0");
    let arguments = [
        "run",
        space.to_str().unwrap(),
        "--device",
        "cuda",
        "--db",
        "real.db",
    ];
    let output = tuner(folder.path(), &arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("stand-in for tests"), "{errors}");
}

#[test]
fn a_run_over_poisoned_candidates_accounts_for_all_and_has_the_right_one_on_top() {
    let folder = tempfile::tempdir().unwrap();
    // Silent, wrong, half-written, out of bounds near and far, hanging, asserting, too large.
    let space = planted(folder.path(), "0, 1, 4, 6, 8, 9, 14, 15, 17", "0, 10");
    let run = [
        "run",
        space.to_str().unwrap(),
        "--device",
        "cuda",
        "--db",
        "tuner.db",
        "--strategy",
        "exhaustive",
        "--evals",
        "18",
    ];
    let output = tuner(folder.path(), &run).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let summary = String::from_utf8_lossy(&output.stdout);
    for counted in [
        "ok 2",
        "incorrect 6",
        "out_of_bounds 4",
        "timeout 2",
        "crashed 2",
        "launch_failed 2",
    ] {
        assert!(summary.contains(counted), "{counted}: {summary}{errors}");
    }
    let board = json(
        folder.path(),
        &["leaderboard", "--db", "tuner.db", "--format", "json"],
    );
    let best = &board[0];
    assert_eq!(
        best["config"],
        serde_json::json!({ "DEFECT": 0, "SLOW": 0 }),
        "{board}"
    );
    assert_eq!(best["device_kind"], "cuda");
    assert_eq!(best["timing"], "measured");
    assert_eq!(best["device"], "fake GPU of the tests");
    assert_eq!(
        board.as_array().unwrap().len(),
        2,
        "only what is right ranks"
    );
}

/// `tuner run` on a small space with one driver call failing in every process.
fn run_with_failure(failure: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let space = planted(folder.path(), "0, 1", "0, 1, 2, 3");
    let words = [
        "run",
        space.to_str().expect("text"),
        "--device",
        "cuda",
        "--db",
        "tuner.db",
        "--evals",
        "8",
    ];
    let mut command = tuner(folder.path(), &words);
    let output = command
        .env("TUNER_FAKE_CUDA_ERROR", failure)
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

#[test]
fn a_device_that_fails_in_every_process_ends_the_run_with_its_reason() {
    // An uncorrectable memory error is no candidate's fault.
    let (code, errors) = run_with_failure("cuStreamSynchronize:214");
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("the device is lost"), "{errors}");
    assert!(errors.contains("CUDA_ERROR_ECC_UNCORRECTABLE"), "{errors}");
    assert!(errors.contains("all finished work is stored"), "{errors}");
}

#[test]
fn a_gpu_that_another_process_holds_is_told_before_anything_is_stored() {
    let (code, errors) = run_with_failure("cuDevicePrimaryCtxRetain:46");
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("held by another process"), "{errors}");
}

#[test]
fn a_driver_that_refuses_the_compilers_code_is_told_with_the_fix() {
    let (code, errors) = run_with_failure("cuModuleLoadDataEx:222");
    assert_eq!(code, Some(2), "{errors}");
    for words in [
        "supports CUDA up to 13.0",
        "TUNER_NVRTC",
        "UNSUPPORTED_PTX_VERSION",
    ] {
        assert!(errors.contains(words), "{errors}");
    }
}

#[test]
fn rows_of_honest_nans_are_not_taken_for_rows_that_nobody_wrote() {
    // An infinite element makes its whole row NaN.
    let folder = tempfile::tempdir().unwrap();
    let space = root().join("search_spaces/softmax.quick.yaml");
    let words = ["check", space.to_str().unwrap(), "--config", "default"];
    let words = [&words[..], &["--device", "cuda:0", "--format", "json"]].concat();
    let output = tuner(folder.path(), &words).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn two_gpus_share_the_work_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let space = planted(folder.path(), "0, 4", "0, 10");
    let words = [
        "run",
        space.to_str().unwrap(),
        "--device",
        "cuda:0,1",
        "--db",
        "tuner.db",
        "--evals",
        "4",
    ];
    let mut command = tuner(folder.path(), &words);
    let output = command.env("TUNER_FAKE_GATE", "host").output().unwrap();
    let summary = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    assert!(
        summary.contains("ok 2") && summary.contains("out_of_bounds 2"),
        "{summary}"
    );
}

#[test]
fn poisoned_candidates_in_a_row_end_nothing() {
    let space = root().join("tests/planted/planted.yaml");
    let folder = tempfile::tempdir().unwrap();
    let report = json(
        folder.path(),
        &[
            "device-test",
            "recovery",
            space.to_str().unwrap(),
            "--problem",
            "small",
            "--poison",
            "DEFECT=6:out_of_bounds",
            "--poison",
            "DEFECT=9:crashed",
            "--row",
            "200",
        ],
    );
    let row = &report["in_a_row"];
    assert_eq!(
        (&row["right"], &row["after"]),
        (&200.into(), &"ok".into()),
        "{report}"
    );
    // One new process for each context that was spoiled, none for the good ones.
    assert_eq!(report["restarts"], 202, "{report}");
    let asserted = &report["rows"][2]["detail"];
    let asserted = asserted.as_str().unwrap();
    // The driver's error, and what it printed.
    assert!(
        asserted.contains("ASSERT") && asserted.contains("Assertion failed"),
        "{report}"
    );
}

#[test]
fn every_path_of_the_device_works_on_the_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    let report = json(folder.path(), &["device-test", "paths"]);
    let tests = report["tests"].as_array().unwrap();
    assert!(tests.len() >= 17);
    for test in tests {
        assert_eq!(test["ok"], true, "{test}");
    }
    let facts = json(folder.path(), &["device-test", "facts"]);
    assert!(facts["calibration"]["tensor_tflops"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_slower_kernel_is_found_and_an_equal_one_ties() {
    let space = root().join("tests/planted/planted.yaml");
    let space = space.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let duel = |challenger: &str| {
        let words = [
            "device-test",
            "duel",
            space,
            "--problem",
            "short",
            "--challenger",
            challenger,
        ];
        json(folder.path(), &words)
    };
    assert_eq!(duel("SLOW=10")["slower"], 1);
    assert_eq!(duel("SLOW=0")["ties"], 1);
}

#[test]
fn defects_of_timing_and_of_unwritten_memory_get_their_own_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let space = root().join("tests/planted/planted.yaml");
    for (defect, verdict) in [("11", "incorrect"), ("12", "nondeterministic")] {
        let config = format!("DEFECT={defect}");
        let words = [
            "check",
            space.to_str().unwrap(),
            "--problem",
            "small",
            "--config",
            &config,
            "--device",
            "cuda:0",
            "--format",
            "json",
        ];
        let rows = json(folder.path(), &words);
        assert_eq!(rows[0]["verdict"], verdict, "{rows:#}");
    }
}

#[test]
fn the_check_script_lists_its_stages_and_its_needs() {
    let output = std::process::Command::new("python3")
        .args([
            root().join("scripts/gpu-check").to_str().unwrap(),
            "out",
            "--dry-run",
            "--tuner",
        ])
        .arg(crate::rig::program())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let limits: Vec<u32> = text
        .lines()
        .filter_map(|line| {
            line.split_once("at most")?
                .1
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .collect();
    assert_eq!(limits.len(), 10, "{text}");
    assert!(limits.iter().all(|limit| *limit <= 540), "{text}");
    assert!(limits.iter().sum::<u32>() <= 1440, "{text}");
}

#[test]
fn the_check_script_goes_on_where_it_was_and_writes_few_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let check = || {
        let mut command = std::process::Command::new("python3");
        command
            .args([
                root().join("scripts/gpu-check").to_str().unwrap(),
                out.to_str().unwrap(),
            ])
            .arg("--tuner")
            .arg(crate::rig::program())
            .args(["--minutes", "9"])
            .args(["--only", "facts,recovery,attention"])
            .env("TUNER_FAKE_GPU", out.join("tuner.db"))
            .env("TUNER_FAKE_GATE", "host");
        let own = root().join(".cuda/nvidia/cu13/lib");
        if own.is_dir() {
            command.env("TUNER_NVRTC", own);
        }
        command.output().unwrap()
    };
    let first = check();
    let text = String::from_utf8_lossy(&first.stdout);
    assert!(first.status.success(), "{text}");
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["stages"]["recovery"]["passed"], true, "{report}");
    assert_eq!(report["fake"], true);
    // What the choices cost, against the default: nothing was tuned.
    let choices = &report["stages"]["attention"]["ablation"]["threads"]["rows"];
    assert_eq!(choices[0]["change"], "base", "{report}");
    assert!(choices[1]["cost_low"].as_f64().unwrap() > 0.0, "{report}");
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(
        markdown.contains("nothing here is a measurement"),
        "{markdown}"
    );
    assert!(std::fs::read_dir(&out).unwrap().count() <= 8);
}

/// Runs stages of the check script on the stand-in whose driver call fails in every process; gives
/// whether it passed, and its report.
fn check_with_failure(folder: &Path, stages: &str, failure: &str) -> (bool, Value) {
    let out = folder.join(failure.replace(':', "-"));
    let mut command = std::process::Command::new("python3");
    command
        .arg(root().join("scripts/gpu-check"))
        .arg(&out)
        .arg("--tuner")
        .arg(crate::rig::program())
        .args(["--minutes", "3", "--only", stages])
        .env("TUNER_FAKE_GPU", out.join("tuner.db"))
        .env("TUNER_FAKE_CUDA_ERROR", failure);
    let own = root().join(".cuda/nvidia/cu13/lib");
    if own.is_dir() {
        command.env("TUNER_NVRTC", own);
    }
    let output = command.output().expect("python3 runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("Traceback"), "{failure}: {errors}");
    let text = std::fs::read_to_string(out.join("report.json")).expect("there is a report");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    let markdown = std::fs::read_to_string(out.join("report.md")).expect("and for people");
    assert!(markdown.starts_with("# GPU check"), "{failure}: {markdown}");
    (output.status.success(), report)
}

#[test]
fn the_check_script_reports_a_driver_call_that_fails_and_ends_in_time() {
    let folder = tempfile::tempdir().unwrap();
    for failure in [
        "cuInit:999",
        "cuMemAlloc_v2:2",
        "cuGraphUpload:719",
        "cuEventQuery:719",
    ] {
        let (passed, report) = check_with_failure(folder.path(), "facts", failure);
        let stage = &report["stages"]["facts"];
        assert!(!passed && stage["passed"] == false, "{failure}: {stage:#}");
        assert!(
            stage["seconds"].as_f64().unwrap() < 90.0,
            "{failure}: {stage:#}"
        );
    }
}

#[test]
#[ignore = "an hour: all stages for every driver call (make nightly)"]
fn the_check_script_survives_a_failure_of_every_driver_call() {
    const STAGES: &str =
        "facts,paths,gate,recovery,timing,tune,attention,peers,kernel_tuner,counters";
    let folder = tempfile::tempdir().unwrap();
    let calls = tuner_device::cuda::CALLS;
    let half = |calls: &[&str]| {
        for call in calls {
            let failure = format!("{call}:719");
            let (_, report) = check_with_failure(folder.path(), STAGES, &failure);
            for stage in STAGES.split(',') {
                let found = &report["stages"][stage];
                let words = found["error"].as_str().unwrap_or_default();
                // A failure that changes nothing leaves all stages to do, more than there is time for.
                assert!(
                    found["passed"].is_boolean() || words.starts_with("no time left"),
                    "{failure}, {stage}: {found:#}"
                );
                // Not an exception of the script's own.
                let exception = words.split(':').next().unwrap_or_default();
                assert!(!exception.ends_with("Error"), "{failure}, {stage}: {words}");
            }
        }
    };
    std::thread::scope(|scope| {
        let (one, other) = calls.split_at(calls.len() / 2);
        scope.spawn(|| half(one));
        half(other);
    });
}

#[test]
fn the_doctor_examines_a_gpu_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["doctor", "--device", "cuda:0", "--format", "json"];
    let output = tuner(folder.path(), &words).output().expect("it runs");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("rows");
    let rows = rows.as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["check"].as_str().unwrap())
        .collect();
    for check in [
        "driver",
        "gpu",
        "nvml",
        "mig",
        "ecc",
        "other processes",
        "watchdog",
        "probes",
        "floors",
        "clock",
        "power",
        "heat",
        "spin window",
        "ncu",
    ] {
        assert!(names.contains(&check), "{check}: {rows:#?}");
    }
    for row in rows {
        let status = row["status"].as_str().unwrap();
        assert!(["ok", "warn", "fail"].contains(&status), "{row:#}");
        assert_eq!(row["fix"].is_null(), status == "ok", "{row:#}");
    }
    let failed = rows.iter().any(|row| row["status"] == "fail");
    assert_eq!(output.status.code(), Some(if failed { 4 } else { 0 }));
    // A GPU that is not there is a row, and any other device is told what to type.
    let absent = json(
        folder.path(),
        &["doctor", "--device", "cuda:7", "--format", "json"],
    );
    assert_eq!(absent[0]["status"], "fail");
    let other = tuner(folder.path(), &["doctor", "--device", "vgpu:l4"])
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(2));
}
