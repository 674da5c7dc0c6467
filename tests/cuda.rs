//! Real GPUs, as far as machines without one can show it: the whole program on a stand-in for the
//! driver, which runs kernels on the virtual GPU and fails as a GPU does.

use crate::program::{Ended, ended, in_folder, root, with_gpu};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the program with the stand-in in that folder, with the arguments of a line.
fn run(folder: &Path, line: &str) -> Ended {
    ended(with_gpu(folder).args(line.split(' ')))
}

fn json(folder: &Path, line: &str) -> Value {
    run(folder, line).json()
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

/// A run over the copy of the planted defects.
const RUN: &str = "run planted.yaml --device cuda --db tuner.db";

#[test]
fn a_gpu_that_is_not_there_is_told_with_what_can_be_done() {
    for (device, words) in [
        ("cuda:7", "cuda:0 to cuda:1"),
        ("cuda:0,x", "cuda:0,1 for two"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        planted(folder.path(), "0", "0");
        let line = format!("run planted.yaml --db tuner.db --device {device}");
        run(folder.path(), &line).says(2, &[words]);
    }
}

#[test]
fn results_of_the_stand_in_never_reach_another_database() {
    let folder = tempfile::tempdir().unwrap();
    planted(folder.path(), "0", "0");
    let ran = run(folder.path(), "run planted.yaml --device cuda --db real.db");
    ran.says(2, &["stand-in for tests"]);
}

#[test]
fn a_run_over_poisoned_candidates_accounts_for_all_and_has_the_right_one_on_top() {
    let folder = tempfile::tempdir().unwrap();
    // Silent, wrong, half-written, out of bounds near and far, hanging, asserting, too large.
    planted(folder.path(), "0, 1, 4, 6, 8, 9, 14, 15, 17", "0, 10");
    // What the kernels of the gate find is tried in `device_gate`; here the host is quicker.
    let line = format!("{RUN} --strategy exhaustive --evals 18");
    let mut command = with_gpu(folder.path());
    let ran = ended(command.args(line.split(' ')).env("TUNER_FAKE_GATE", "host"));
    ran.says(0, &[]);
    let summary = ran.stdout;
    for counted in [
        "ok 2",
        "incorrect 6",
        "out_of_bounds 4",
        "timeout 2",
        "crashed 2",
        "launch_failed 2",
    ] {
        assert!(
            summary.contains(counted),
            "{counted}: {summary}{}",
            ran.stderr
        );
    }
    let board = json(folder.path(), "leaderboard --db tuner.db --format json");
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
#[test]
fn the_energy_of_a_launch_is_an_objective_where_the_gpu_counts_it() {
    let folder = tempfile::tempdir().unwrap();
    planted(folder.path(), "0", "0, 10, 20");
    let line = format!("{RUN} --evals 3 --objective time,energy");
    run(folder.path(), &line).says(0, &[]);
    let list = "leaderboard --db tuner.db --format json";
    let rows = run(folder.path(), list).rows();
    assert_eq!(rows.len(), 3);
    for row in &rows {
        let number = |value: &Value| value.as_f64().expect("a number");
        // The stand-in draws 300 W while it works.
        let expected = 0.3 * number(&row["time_us_p50"]);
        let energy = number(&row["energy_mj"]);
        assert!((energy / expected - 1.0).abs() < 0.1, "{row}");
        let interval = &row["energy_ci95_mj"];
        assert!(
            number(&interval[0]) <= energy && energy <= number(&interval[1]),
            "{row}"
        );
    }
    let front = run(folder.path(), &format!("{list} --pareto=time,energy")).rows();
    assert!(!front.is_empty() && front[0]["rank"] == 1);
    run(folder.path(), "report --db tuner.db -o report").says(0, &[]);
    let pages = std::fs::read_dir(folder.path().join("report")).unwrap();
    let pages = pages.map(|page| std::fs::read_to_string(page.unwrap().path()));
    let drawn = |page: &String| page.contains("energy a launch, mJ");
    assert!(pages.filter_map(Result::ok).any(|page| drawn(&page)));

    // A GPU before Volta has no count, and a virtual one none at all.
    let mut older = with_gpu(folder.path());
    older.env("TUNER_FAKE_ENERGY", "none").args(line.split(' '));
    ended(&mut older).says(2, &["does not count its energy", "time,registers"]);
    let virtual_gpu = line.replace("cuda", "vgpu:h100");
    run(folder.path(), &virtual_gpu).says(2, &["a virtual GPU uses no `energy`"]);
}

fn run_with_failure(failure: &str) -> Ended {
    let folder = tempfile::tempdir().expect("a temporary folder");
    planted(folder.path(), "0, 1", "0, 1, 2, 3");
    let mut command = with_gpu(folder.path());
    command.args(RUN.split(' ')).args(["--evals", "8"]);
    ended(command.env("TUNER_FAKE_CUDA_ERROR", failure))
}

#[test]
fn a_device_that_fails_in_every_process_ends_the_run_with_its_reason() {
    // An uncorrectable memory error is no candidate's fault.
    let parts = [
        "the device is lost",
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "all finished work is stored",
    ];
    run_with_failure("cuStreamSynchronize:214").says(1, &parts);
}

#[test]
fn a_gpu_that_another_process_holds_is_told_before_anything_is_stored() {
    let ran = run_with_failure("cuDevicePrimaryCtxRetain:46");
    ran.says(2, &["held by another process"]);
}

#[test]
fn a_driver_that_refuses_the_compilers_code_is_told_with_the_fix() {
    let parts = [
        "supports CUDA up to 13.0",
        "TUNER_NVRTC",
        "UNSUPPORTED_PTX_VERSION",
    ];
    run_with_failure("cuModuleLoadDataEx:222").says(2, &parts);
}

#[test]
fn rows_of_honest_nans_are_not_taken_for_rows_that_nobody_wrote() {
    // An infinite element makes its whole row NaN.
    let folder = tempfile::tempdir().unwrap();
    let space = root().join("search_spaces/softmax.quick.yaml");
    let mut command = with_gpu(folder.path());
    command.arg("check").arg(space);
    let line = "--config default --device cuda:0 --format json";
    ended(command.args(line.split(' '))).says(0, &[]);
}

#[test]
fn two_gpus_share_the_work_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    planted(folder.path(), "0, 4", "0, 10");
    let line = "run planted.yaml --device cuda:0,1 --db tuner.db --evals 4";
    let mut command = with_gpu(folder.path());
    command.args(line.split(' ')).env("TUNER_FAKE_GATE", "host");
    let ran = ended(&mut command);
    ran.says(0, &[]);
    let summary = ran.stdout;
    assert!(
        summary.contains("ok 2") && summary.contains("out_of_bounds 2"),
        "{summary}"
    );
}

/// What a command says of the planted defects, as JSON.
fn planted_test(folder: &Path, command: &str, more: &str) -> Value {
    let mut tuner = with_gpu(folder);
    tuner.args(command.split(' '));
    tuner.arg(root().join("tests/planted/planted.yaml"));
    ended(tuner.args(more.split(' '))).json()
}

#[test]
fn poisoned_candidates_in_a_row_end_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let report = planted_test(
        folder.path(),
        "device-test recovery",
        "--problem small --poison DEFECT=6:out_of_bounds --poison DEFECT=9:crashed --row 200",
    );
    let row = &report["in_a_row"];
    assert_eq!(
        (&row["right"], &row["after"]),
        (&200.into(), &"ok".into()),
        "{report}"
    );
    // One new process for each context that was corrupted, none for the good ones.
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
    let report = json(folder.path(), "device-test paths");
    let tests = report["tests"].as_array().unwrap();
    assert!(tests.len() >= 17);
    for test in tests {
        assert_eq!(test["ok"], true, "{test}");
    }
    let facts = json(folder.path(), "device-test facts");
    assert!(facts["calibration"]["tensor_tflops"].as_f64().unwrap() > 0.0);
    assert_eq!(facts["virtual"], "vgpu:l4", "for scripts/gpu-check");
}

#[test]
fn a_slower_kernel_is_found_and_an_equal_one_ties() {
    let folder = tempfile::tempdir().unwrap();
    let duel = |challenger: &str| {
        let more = format!("--problem short --challenger {challenger}");
        planted_test(folder.path(), "device-test duel", &more)
    };
    assert_eq!(duel("SLOW=10")["slower"], 1);
    assert_eq!(duel("SLOW=0")["ties"], 1);
}

#[test]
fn defects_of_timing_and_of_unwritten_memory_get_their_own_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    for (defect, verdict) in [("11", "incorrect"), ("12", "nondeterministic")] {
        let more =
            format!("--problem small --config DEFECT={defect} --device cuda:0 --format json");
        let rows = planted_test(folder.path(), "check", &more);
        assert_eq!(rows[0]["verdict"], verdict, "{rows:#}");
    }
}

/// The check script with the program of the tests, and where its report goes.
fn check_script(out: &Path) -> Command {
    let mut command = in_folder("python3", root());
    command.arg("scripts/gpu-check").arg(out);
    command.arg("--tuner").arg(crate::rig::program());
    command.env("TUNER_FAKE_GPU", out.join("tuner.db"));
    command
}

/// What stands in the script's report.
fn report(out: &Path) -> Value {
    let text = std::fs::read_to_string(out.join("report.json")).expect("there is a report");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn the_check_script_lists_its_stages_and_its_needs() {
    let checked = ended(check_script(Path::new("out")).arg("--dry-run"));
    checked.says(0, &[]);
    let text = checked.stdout;
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
    assert_eq!(limits.len(), 12, "{text}");
    assert!(limits.iter().all(|limit| *limit <= 540), "{text}");
    assert!(limits.iter().sum::<u32>() <= 1440, "{text}");
}

#[test]
fn the_check_script_goes_on_where_it_was_and_writes_few_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = check_script(&out);
    let line = "--minutes 9 --only facts,recovery,attention";
    command.args(line.split(' ')).env("TUNER_FAKE_GATE", "host");
    ended(&mut command).says(0, &[]);
    let report = report(&out);
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
    let mut command = check_script(&out);
    command.args(["--minutes", "3", "--only", stages]);
    let checked = ended(command.env("TUNER_FAKE_CUDA_ERROR", failure));
    let errors = &checked.stderr;
    assert!(!errors.contains("Traceback"), "{failure}: {errors}");
    let markdown = std::fs::read_to_string(out.join("report.md")).expect("and for people");
    assert!(markdown.starts_with("# GPU check"), "{failure}: {markdown}");
    (checked.code == 0, report(&out))
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
            stage["seconds"].as_f64().unwrap() < 450.0,
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
    let doctor = run(folder.path(), "doctor --device cuda:0 --format json");
    let rows = doctor.rows();
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
    for row in &rows {
        let status = row["status"].as_str().unwrap();
        assert!(["ok", "warn", "fail"].contains(&status), "{row:#}");
        assert_eq!(row["fix"].is_null(), status == "ok", "{row:#}");
    }
    let failed = rows.iter().any(|row| row["status"] == "fail");
    assert_eq!(doctor.code, if failed { 4 } else { 0 });
    // A GPU that is not there is a row, and any other device is told what to type.
    let absent = json(folder.path(), "doctor --device cuda:7 --format json");
    assert_eq!(absent[0]["status"], "fail");
    run(folder.path(), "doctor --device vgpu:l4").says(2, &[]);
}
