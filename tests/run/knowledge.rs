//! What a run and a study know beforehand: files, the database, and nothing on request.

use crate::program::words;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

/// A recorded file of the kernel `toy` on a device: 512 configurations, one of them best.
fn recorded(folder: &Path, name: &str, device: &str, best: [i64; 3]) {
    let sizes: Vec<i64> = (0..8).map(|power| 1 << power).collect();
    let mut cache = serde_json::Map::new();
    for a in &sizes {
        for b in &sizes {
            for c in &sizes {
                let far = |size: &i64, best: i64| (*size as f64 / best as f64).log2().abs();
                let time = 1.0
                    + far(a, best[0])
                    + far(b, best[1]) * far(c, best[2]).sqrt()
                    + 0.3 * far(c, best[2]);
                let row = json!({ "a": a, "b": b, "c": c, "time": time, "times": [time] });
                cache.insert(format!("{a},{b},{c}"), row);
            }
        }
    }
    let file = json!({
        "kernel_name": "toy", "device_name": device, "problem_size": [64],
        "tune_params_keys": ["a", "b", "c"],
        "tune_params": { "a": sizes, "b": sizes, "c": sizes },
        "cache": cache,
    });
    std::fs::write(folder.join(name), file.to_string()).unwrap();
}

/// Two devices on which the same is best, and one on which something else is.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path(), "one.json", "One", [16, 2, 64]);
    recorded(folder.path(), "two.json", "Two", [16, 2, 64]);
    recorded(folder.path(), "other.json", "Other", [1, 128, 1]);
    folder
}

fn tuner(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tuner"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn means(folder: &Path, arguments: &[&str]) -> Vec<f64> {
    let common = words("replay --seeds 3 --evals 5 --strategy evolve");
    let arguments = [&common[..], arguments, &["--format", "json"]].concat();
    let output = tuner(folder, &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    rows.iter()
        .map(|row| row["mean"].as_f64().unwrap())
        .collect()
}

#[test]
fn a_study_that_leaves_one_out_knows_the_others_of_the_kernel() {
    let folder = folder();
    let cold = means(folder.path(), &["one.json", "two.json"]);
    let knowing = means(folder.path(), &["one.json", "two.json", "--leave-one-out"]);
    assert_eq!(knowing, [1.0, 1.0], "{cold:?}");
    assert!(cold.iter().all(|mean| *mean < 1.0), "{cold:?}");
}

#[test]
fn a_csv_is_knowledge_and_a_file_is_never_its_own() {
    let folder = folder();
    let cold = means(folder.path(), &["one.json"]);
    assert_eq!(
        means(folder.path(), &["one.json", "--knowledge", "one.json"]),
        cold
    );
    let mut csv = "a,b,c,predicted_us\n".to_owned();
    for (place, config) in ["16,2,64", "16,4,64", "1,128,1", "8,2,32"]
        .iter()
        .enumerate()
    {
        csv.push_str(&format!("{config},{}\n", 10 + place));
    }
    std::fs::write(folder.path().join("predicted.csv"), csv).unwrap();
    assert_eq!(
        means(folder.path(), &["one.json", "--knowledge", "predicted.csv"]),
        [1.0]
    );
    let output = tuner(
        folder.path(),
        &["replay", "one.json", "--knowledge", "missing.csv"],
    );
    assert_eq!(output.status.code(), Some(2));
}

/// What a run says, and the time of its best.
fn run(folder: &Path, arguments: &[&str]) -> (String, f64) {
    let output = tuner(folder, &[&["run", "--db", "new.db"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let device = arguments[1].trim_start_matches("replay:").to_owned();
    let device = format!("replay:{device}");
    let board = tuner(
        folder,
        &[
            "leaderboard",
            "--db",
            "new.db",
            "--device",
            &device,
            "--format",
            "json",
        ],
    );
    let rows: Vec<Value> = serde_json::from_slice(&board.stdout).unwrap();
    (said, rows[0]["time_us_p50"].as_f64().unwrap())
}

#[test]
fn a_run_knows_what_the_database_holds_of_another_device_unless_told_not_to() {
    let folder = folder();
    let (said, _) = run(
        folder.path(),
        &["--device", "replay:one.json", "--evals", "200"],
    );
    assert!(!said.contains("the search knows"), "{said}");
    let two = ["--device", "replay:two.json", "--evals", "6"];
    let (said, best) = run(folder.path(), &two);
    assert!(said.contains("the search knows 64 on One"), "{said}");
    assert_eq!(best, 1000.0);
    // The same command again is the same run: its own results are no knowledge.
    let (said, _) = run(folder.path(), &two);
    assert!(said.contains("the search knows 64 on One (--no"), "{said}");
    let other = [
        "--device",
        "replay:other.json",
        "--evals",
        "6",
        "--no-knowledge",
    ];
    let (said, _) = run(folder.path(), &other);
    assert!(!said.contains("the search knows"), "{said}");
}

#[test]
fn a_run_knows_what_the_database_holds_of_a_kernel_with_the_same_parameters() {
    let folder = folder();
    let renamed = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(folder.path().join("two.json")).unwrap();
        std::fs::write(folder.path().join(name), text.replace(from, to)).unwrap();
    };
    renamed("twin.json", "\"toy\"", "\"toy_f16\"");
    renamed("stranger.json", "\"c\"", "\"d\"");
    let one = ["--device", "replay:one.json", "--evals", "200"];
    run(folder.path(), &one);
    let twin = ["--device", "replay:twin.json", "--evals", "6"];
    let (said, best) = run(folder.path(), &twin);
    assert!(said.contains("the search knows toy 64 on One"), "{said}");
    assert_eq!(best, 1000.0);
    // Its own results are no knowledge.
    let (said, _) = run(folder.path(), &twin);
    assert!(
        said.contains("the search knows toy 64 on One (--no"),
        "{said}"
    );
    // Another name for a parameter, and another kernel name: no family.
    let text = std::fs::read_to_string(folder.path().join("stranger.json")).unwrap();
    let text = text.replace("\"toy\"", "\"stranger\"");
    std::fs::write(folder.path().join("stranger.json"), text).unwrap();
    let stranger = ["--device", "replay:stranger.json", "--evals", "6"];
    let (said, _) = run(folder.path(), &stranger);
    assert!(!said.contains("the search knows"), "{said}");
}

#[test]
fn knowledge_that_cannot_be_used_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("empty.csv"), "a,b\n1,2\n").unwrap();
    let refused = [
        (vec!["--knowledge", "empty.csv"], "no column holds times"),
        (
            vec!["--knowledge", "two.json", "--strategy", "random"],
            "takes no knowledge",
        ),
        (
            vec!["--knowledge", "two.json", "--no-knowledge"],
            "--no-knowledge",
        ),
    ];
    for (arguments, wanted) in refused {
        let common = words("run --db new.db --device replay:one.json --evals 3");
        let output = tuner(folder.path(), &[&common[..], &arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn the_report_says_what_each_source_was_worth_and_how_many_trials_it_saved() {
    let folder = folder();
    let all = ["--device", "replay:one.json", "--evals", "200"];
    run(folder.path(), &all);
    let two = ["--device", "replay:two.json", "--evals", "20"];
    let (said, _) = run(folder.path(), &two);
    assert!(said.contains("the search knows 64 on One"), "{said}");
    let cold = [
        "--device",
        "replay:two.json",
        "--evals",
        "120",
        "--no-knowledge",
    ];
    run(folder.path(), &cold);
    let output = tuner(
        folder.path(),
        &["report", "--db", "new.db", "--device", "replay:two.json"],
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = std::fs::read_to_string(folder.path().join("report/report.md")).unwrap();
    let source = text.lines().find(|line| line.starts_with("| 64 on One"));
    let source = source.unwrap_or_else(|| panic!("no line for the source:\n{text}"));
    assert!(source.contains("ordered the results well"), "{source}");
    let saved = text.lines().find(|line| line.contains("Without knowledge"));
    let saved = saved.unwrap_or_else(|| panic!("no trials saved:\n{text}"));
    let trials: Vec<u64> = saved
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let [without, fewer] = trials[..] else {
        panic!("{saved}");
    };
    assert!(fewer > 0 && fewer < without, "{saved}");
}
