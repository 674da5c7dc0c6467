//! Recorded files: the formats, what failures become, and damage.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tuner_core::record::Verdict;
use tuner_core::recorded::{Outcome, Recorded};
use tuner_core::value::Value;
use tuner_device::replay::Recording;

const HEAD: &str = r#"{
"device_name": "Some GPU",
"kernel_name": "toy",
"problem_size": [64, 32],
"tune_params_keys": ["B", "M"],
"tune_params": {"M": ["a", "b"], "B": [1, 2, 4]},
"objective": "time",
"cache": {"#;

const ROWS: [&str; 6] = [
    r#""1,a": {"B": 1, "M": "a", "time": 2.0, "compile_time": 100.5, "verification_time": 7.0, "benchmark_time": 50.0}"#,
    r#""2,a": {"B": 2, "M": "a", "time": 1.0, "times": [1.5, 0.5, 1.0], "compile_time": 1.0, "benchmark_time": 1.0}"#,
    r#""4,a": {"B": 4, "M": "a", "__error__": "CompilationFailedConfig", "compile_time": 3.0}"#,
    r#""1,b": {"B": 1, "M": "b", "time": "RuntimeFailedConfig"}"#,
    r#""2,b": {"B": 2, "M": "b", "time": "InvalidConfig"}"#,
    r#""4,b": {"B": 4, "M": "b", "time": 1e20}"#,
];

fn write(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn closed() -> String {
    format!("{HEAD}\n{}}}\n}}", ROWS.join(",\n"))
}

fn look(recording: &Recording, values: &[(&str, Value)]) -> Recorded {
    let values: Vec<(String, Value)> = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    recording.lookup(&recording.space.config_from_values(&values).unwrap())
}

fn verdict(recorded: &Recorded) -> Verdict {
    match recorded.outcome {
        Outcome::Timed { .. } => Verdict::Ok,
        Outcome::Failed { verdict, .. } => verdict,
    }
}

fn row(recording: &Recording, b: i64, m: &str) -> Recorded {
    look(
        recording,
        &[("B", Value::Int(b)), ("M", Value::Text(m.into()))],
    )
}

#[test]
fn a_time_that_no_kernel_takes_is_none() {
    let dir = TempDir::new().unwrap();
    for time in ["1e-300", "1e-8", "-1", "0", "1e15"] {
        let text = closed().replace("\"time\": 2.0", &format!("\"time\": {time}"));
        let recording = Recording::load(&write(&dir, "x.json", text.as_bytes())).unwrap();
        assert_eq!(
            verdict(&row(&recording, 1, "a")),
            Verdict::Crashed,
            "{time}"
        );
        assert_eq!(verdict(&row(&recording, 2, "a")), Verdict::Ok);
    }
}

/// Loads, and gives the message of the failure.
fn failure(path: &Path) -> String {
    Recording::load(path).err().unwrap().to_string()
}

#[test]
fn a_kernel_tuner_cache_is_read_whole() {
    let dir = TempDir::new().unwrap();
    let recording = Recording::load(&write(&dir, "x.json", closed().as_bytes())).unwrap();
    assert_eq!(&recording.kernel, "toy");
    assert_eq!(&recording.device, "Some GPU");
    assert_eq!(&recording.problem, "64x32");
    assert_eq!(recording.space.count(), 6);
    assert_eq!(recording.optimum().map(|time| time.get()), Some(1000.0));
    let names: Vec<&str> = recording
        .space
        .parameters()
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    assert_eq!(names, ["B", "M"], "the order is that of tune_params_keys");
    let first = row(&recording, 1, "a");
    assert_eq!(
        (first.compile_us, first.benchmark_us, first.charged_us()),
        (100_500, 50_000, 150_500)
    );
    let Outcome::Timed { samples, .. } = row(&recording, 2, "a").outcome else {
        panic!("it has a time");
    };
    assert_eq!(
        samples.iter().map(|us| us.get()).collect::<Vec<_>>(),
        [1500.0, 500.0, 1000.0]
    );
}

#[test]
fn recorded_failures_become_verdicts() {
    let dir = TempDir::new().unwrap();
    let recording = Recording::load(&write(&dir, "x.json", closed().as_bytes())).unwrap();
    for (b, m, expected) in [
        (1, "a", Verdict::Ok),
        (4, "a", Verdict::CompileFailed),
        (1, "b", Verdict::Crashed),
        (2, "b", Verdict::LaunchFailed),
        (4, "b", Verdict::Crashed),
    ] {
        assert_eq!(verdict(&row(&recording, b, m)), expected, "{b},{m}");
    }
}

#[test]
fn constants_that_python_writes_are_no_times() {
    let dir = TempDir::new().unwrap();
    let text = closed()
        .replacen(r#""time": 2.0"#, r#""time": NaN, "power": -Infinity"#, 1)
        .replacen(r#""compile_time": 1.0"#, r#""compile_time": Infinity"#, 1)
        .replacen("\"Some GPU\"", "\"NaN \\\" Infinity\"", 1);
    let recording = Recording::load(&write(&dir, "x.json", text.as_bytes())).unwrap();
    assert_eq!(&recording.device, "NaN \" Infinity");
    assert_eq!(verdict(&row(&recording, 1, "a")), Verdict::Crashed);
    let second = row(&recording, 2, "a");
    assert_eq!((verdict(&second), second.compile_us), (Verdict::Ok, 0));
}

#[test]
fn open_closed_and_gzipped_files_say_the_same() {
    let dir = TempDir::new().unwrap();
    let reference = Recording::load(&write(&dir, "x.json", closed().as_bytes())).unwrap();
    let rows = ROWS.join(",\n");
    let forms: [(&str, Vec<u8>); 5] = [
        ("open.json", format!("{HEAD}\n{rows},").into_bytes()),
        (
            "open-newline.json",
            format!("{HEAD}\n{rows},\n\n").into_bytes(),
        ),
        ("no-comma.json", format!("{HEAD}\n{rows}").into_bytes()),
        (
            "half-closed.json",
            format!("{HEAD}\n{rows}}}\n").into_bytes(),
        ),
        ("zipped-without-gz.json", gzip(&closed())),
    ];
    for (name, bytes) in forms {
        let recording = Recording::load(&write(&dir, name, &bytes)).unwrap();
        assert_eq!(recording.space.hash(), reference.space.hash(), "{name}");
        for index in 0..6 {
            let config = reference.space.config_at(index).unwrap();
            assert_eq!(
                recording.lookup(&config),
                reference.lookup(&config),
                "{name}"
            );
        }
    }
}

#[test]
fn constraints_define_the_space_and_a_missing_row_is_a_failure_of_its_own() {
    let dir = TempDir::new().unwrap();
    let head = HEAD.replace(
        "\"objective\"",
        "\"constraints\": [\"B <= 2\"],\n\"objective\"",
    );
    let text = format!("{head}\n{},\n{}}}}}", ROWS[0], ROWS[2]);
    let recording = Recording::load(&write(&dir, "x.json", text.as_bytes())).unwrap();
    assert_eq!(recording.space.count(), 4);
    assert_eq!(recording.excluded_rows, 1, "B = 4 is outside");
    let missing = row(&recording, 2, "b");
    assert_eq!(
        (verdict(&missing), missing.charged_us()),
        (Verdict::LaunchFailed, 0)
    );
    assert!(format!("{missing:?}").contains("not recorded"));
}

#[test]
fn without_constraints_the_rows_define_the_space() {
    let dir = TempDir::new().unwrap();
    let text = format!("{HEAD}\n{},\n{}}}}}", ROWS[0], ROWS[2]);
    let recording = Recording::load(&write(&dir, "x.json", text.as_bytes())).unwrap();
    assert_eq!(recording.space.count(), 2);
}

#[test]
fn a_cut_file_is_refused_with_its_place_and_what_to_do() {
    let dir = TempDir::new().unwrap();
    let text = format!("{HEAD}\n{},\n{}", ROWS[0], &ROWS[1][..40]);
    let message = failure(&write(&dir, "cut.json", text.as_bytes()));
    assert!(message.contains("cut.json:10:"), "{message}");
    assert!(
        message.contains("ends in the middle") && message.contains("last whole row"),
        "{message}"
    );
    let zipped = gzip(&closed());
    let message = failure(&write(&dir, "cut.json.gz", &zipped[..zipped.len() / 2]));
    assert!(
        message.contains("cut.json.gz:") && message.contains("gzip"),
        "{message}"
    );
}

#[test]
fn every_cut_of_a_file_is_whole_rows_or_a_message() {
    let dir = TempDir::new().unwrap();
    let text = closed();
    for end in 0..text.len() {
        let path = write(&dir, "cut.json", &text.as_bytes()[..end]);
        match Recording::load(&path) {
            Ok(recording) => assert!(recording.space.count() >= 1),
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("cut.json"), "cut at {end}: {message}");
            }
        }
    }
}

#[test]
fn numbers_of_python_that_json_does_not_have_are_read_as_missing() {
    let dir = TempDir::new().unwrap();
    let good = closed();
    let rows = |text: &str| {
        let path = write(&dir, "python.json", text.as_bytes());
        let recording = Recording::load(&path).unwrap();
        let configs = recording.configs();
        let timed = configs
            .iter()
            .filter(|at| recording.lookup(at).time().is_some());
        (configs.len(), timed.count())
    };
    let (all, timed) = rows(&good);
    for number in ["NaN", "Infinity", "-Infinity"] {
        let other = format!("\"time\": 2.0, \"power\": {number}, \"note\": \"{number} \\\" NaN\"");
        assert_eq!(
            rows(&good.replacen("\"time\": 2.0", &other, 1)),
            (all, timed)
        );
        let failed = format!("\"time\":{number}");
        assert_eq!(
            rows(&good.replacen("\"time\": 2.0", &failed, 1)),
            (all, timed - 1)
        );
    }
}

#[test]
fn damaged_files_are_refused_with_line_and_column() {
    let dir = TempDir::new().unwrap();
    let good = closed();
    let refused = |what: &str, text: &str, expected: &str| {
        let message = failure(&write(&dir, "bad.json", text.as_bytes()));
        assert!(message.contains("bad.json"), "{what}: {message}");
        assert!(message.contains(expected), "{what}: {message}");
    };
    for (from, to, expected) in [
        (r#""time": 2.0"#, r#""time" 2.0"#, ":9:"),
        (r#""compile_time": 1.0"#, r#""compile_time": "x""#, ":10:"),
        (r#"{"B": 4, "M": "a""#, r#"{"B": 5, "M": "a""#, "`B` = 5"),
    ] {
        refused(to, &good.replacen(from, to, 1), expected);
    }
    for (rule, expected) in [("B <", ":7:"), ("X < 1", "X"), ("B > 9", "B > 9")] {
        let rules = format!("\"constraints\": [\"{rule}\"],\n\"objective\"");
        refused(rule, &good.replacen("\"objective\"", &rules, 1), expected);
    }
    for (text, expected) in [
        ("", "the file is empty"),
        ("{\"a\": 1}", "neither a Kernel Tuner cache"),
        ("[1, 2]", ":1:1"),
    ] {
        refused(text, text, expected);
    }
    let message = failure(&write(&dir, "bad.json", b"\xff\xfe"));
    assert!(message.contains("UTF-8"), "{message}");
    let message = failure(Path::new("/nonexistent/x.json"));
    assert!(message.contains("/nonexistent/x.json"), "{message}");
}

#[test]
fn t4_results_are_read_with_their_units_and_invalidities() {
    let dir = TempDir::new().unwrap();
    let text = r#"{"results": [
      {"configuration": {"T": 64}, "times": {"compilation": 20.0, "benchmark": 2.0, "runtimes": [1.0, 3.0]},
       "invalidity": "correct", "correctness": 1,
       "measurements": [{"name": "time", "value": 2.0, "unit": "ms"}], "objectives": ["time"]},
      {"configuration": {"T": 8}, "times": {"compilation_time": 5.0}, "invalidity": "compile", "correctness": 1},
      {"configuration": {"T": 16}, "times": {}, "invalidity": "runtime", "correctness": 1},
      {"configuration": {"T": 32}, "times": {}, "invalidity": "timeout", "correctness": 1},
      {"configuration": {"T": 128}, "times": {}, "invalidity": "correctness", "correctness": 0},
      {"configuration": {"T": 999}, "times": {}, "invalidity": "constraints", "correctness": 0}],
      "schema_version": "1.0.0", "metadata": {"timeunit": "milliseconds"}}"#;
    let path = write(&dir, "results.json", text.as_bytes());
    let recording = Recording::load(&path).unwrap();
    assert_eq!(
        (recording.kernel.as_str(), recording.space.count()),
        ("results", 5)
    );
    for (t, expected) in [
        (64, Verdict::Ok),
        (8, Verdict::CompileFailed),
        (16, Verdict::Crashed),
        (32, Verdict::Timeout),
        (128, Verdict::Incorrect),
    ] {
        let recorded = look(&recording, &[("T", Value::Int(t))]);
        assert_eq!(verdict(&recorded), expected, "{t}");
        if t == 64 {
            assert_eq!(recorded.time().map(|time| time.get()), Some(2000.0));
            assert_eq!(recorded.charged_us(), 22_000);
        }
    }
}

#[test]
fn the_projects_own_file_has_the_published_figures() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded/convbat_RTX3090.json.gz");
    let recording = Recording::load(&path).unwrap();
    assert_eq!(recording.space.count(), 6768);
    assert_eq!(
        recording.optimum().map(|time| (time.get() * 10.0).round()),
        Some(5229.0)
    );
    assert!(recording.has_costs());
}

#[test]
fn every_valid_configuration_of_the_shared_files_is_recorded() {
    let Ok(files) =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recorded"))
    else {
        return;
    };
    for file in files {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gz") {
            continue;
        }
        let recording = Recording::load(&path).unwrap();
        assert_eq!(recording.excluded_rows, 0, "{}", path.display());
        for index in 0..recording.space.count() {
            let config = recording.space.config_at(index).unwrap();
            let recorded = recording.lookup(&config);
            assert!(
                !format!("{recorded:?}").contains("not recorded"),
                "{}",
                path.display()
            );
        }
    }
}
