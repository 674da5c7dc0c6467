//! `tuner portfolio`: recorded files and kernels as a user has them.

use crate::program::{replace, root, write};
use crate::report::support::{json, project, run};
use std::path::Path;

/// A recorded file of a device with a time for each value of `T`; 0 is a failure.
fn recorded(folder: &Path, name: &str, device: &str, size: u64, times: [f64; 4]) {
    let row = |(value, time): (usize, f64)| {
        let time = if time > 0.0 {
            time.to_string()
        } else {
            "\"RuntimeFailedConfig\"".to_owned()
        };
        format!("\"{value}\": {{\"T\": {value}, \"time\": {time}}}")
    };
    let rows: Vec<String> = times.into_iter().enumerate().map(row).collect();
    let text = format!(
        r#"{{"device_name": "{device}", "kernel_name": "k", "problem_size": [{size}],
        "tune_params_keys": ["T"], "tune_params": {{"T": [0, 1, 2, 3]}}, "cache": {{{}}}}}"#,
        rows.join(", ")
    );
    write(folder, name, &text);
}

/// Three devices: no configuration is good on all, `T=3` is fair on all.
fn devices() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path(), "a.json", "GPU A", 64, [1.0, 3.0, 2.0, 1.2]);
    recorded(folder.path(), "b.json", "GPU B", 64, [1.02, 2.0, 1.0, 1.1]);
    recorded(folder.path(), "c.json", "GPU C", 64, [0.0, 1.0, 1.9, 1.5]);
    folder
}

#[test]
fn recorded_devices_need_the_fewest_configurations_within_the_loss() {
    let folder = devices();
    let of = |more: &[&str], code: i32| {
        let files = [
            "portfolio",
            "a.json",
            "b.json",
            "c.json",
            "--format",
            "json",
        ];
        let (out, told) = run(folder.path(), &[&files, more].concat(), code);
        let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        (json, told)
    };
    let (found, _) = of(&["--loss", "2%"], 0);
    assert_eq!(found["timing"], "recorded");
    assert_eq!(found["variants"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(found["variants"][0]["config"]["T"], 0);
    assert_eq!(found["variants"][0]["shapes"], 2);
    assert_eq!(
        found["variants"][1]["worst_loss_without"],
        serde_json::Value::Null
    );
    let worst = found["worst_loss"].as_f64().unwrap();
    assert!((worst - 0.02).abs() < 1e-9, "{worst}");
    assert_eq!(found["tree"]["in"], serde_json::json!(["GPU A", "GPU B"]));
    let curve = &found["curve"];
    assert!(
        (curve[0]["worst_loss"].as_f64().unwrap() - 0.5).abs() < 1e-9,
        "{curve}"
    );
    assert_eq!(curve[2]["worst_loss"], 0.0);

    let (found, _) = of(&["--loss", "50%"], 0);
    assert_eq!(found["variants"][0]["config"]["T"], 3);
    let (found, told) = of(&["--loss", "2%", "--variants", "1"], 3);
    assert_eq!(found["within_loss"], false);
    assert!(
        told.contains("no set of 1 stays within 2.00 %: the best loses 50.00 %"),
        "{told}"
    );
}

#[test]
fn untuned_sizes_of_recorded_files_have_the_losses_around_them() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path(), "s.json", "GPU", 64, [1.0, 3.0, 9.0, 9.0]);
    recorded(folder.path(), "m.json", "GPU", 256, [2.0, 2.5, 9.0, 9.0]);
    recorded(folder.path(), "l.json", "GPU", 4096, [9.0, 3.0, 9.0, 9.0]);
    let files = ["portfolio", "s.json", "m.json", "l.json"];
    let all = json(folder.path(), &[&files[..], &["--format", "json"]].concat());
    let size = all["tree"]["size"].as_str().unwrap().to_owned();
    // The geometric mean of 256 and 4096.
    assert_eq!(all["tree"]["at_most"], 1024, "{all}");
    let at = format!("{size}=1000");
    let (out, _) = run(folder.path(), &[&files[..], &["--at", &at]].concat(), 0);
    let line = "variant 1; known around it: 0.00 % at 256 on GPU, 200.00 % at 4096 on GPU";
    assert!(out.contains(line), "{out}");
    let outside = format!("{size}=5000");
    let (_, told) = run(
        folder.path(),
        &[&files[..], &["--at", &outside]].concat(),
        2,
    );
    assert!(
        told.contains("outside of the tuned sizes, 64 to 4096"),
        "{told}"
    );
}

#[test]
fn a_grid_is_predicted_and_a_wrong_kernel_is_never_chosen() {
    let folder = project();
    // Without its barrier the kernel is faster and races.
    let space = folder.path().join("search_spaces/scale.yaml");
    replace(
        &space,
        "metric:",
        "seeds: [{ BLOCK: 256, PAD: 1, SYNC: 0 }, { BLOCK: 256, PAD: 1 }]\nmetric:",
    );
    let line = [
        "portfolio",
        "scale",
        "--device",
        "vgpu:a100",
        "--db",
        "none.db",
        "-o",
        "out",
    ];
    let more = [
        "--grid",
        "N=1024..65536:x8",
        "--variants",
        "1",
        "--format",
        "json",
    ];
    let (out, told) = run(folder.path(), &[&line[..], &more].concat(), 0);
    assert!(
        told.contains("left out: a chosen configuration fails on"),
        "{told}"
    );
    assert!(told.contains("race"), "{told}");
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(found["timing"], "predicted");
    assert_eq!(found["shapes"], 3);
    assert_eq!(found["variants"][0]["config"]["SYNC"], 1, "{found}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("predicted times (no measurement)"));
    assert!(!folder.path().join("none.db").exists());
}

#[test]
fn a_search_first_stores_its_trials_and_finds_better_configurations() {
    let folder = project();
    let line = [
        "portfolio",
        "scale",
        "--device",
        "vgpu:a100",
        "--db",
        "t.db",
    ];
    let grid = ["--grid", "N=4096,65536", "--loss", "0%", "--format", "json"];
    let without = json(folder.path(), &[&line[..], &grid].concat());
    let (out, told) = run(
        folder.path(),
        &[&line[..], &grid, &["--evals", "24"]].concat(),
        0,
    );
    let with: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let count = |found: &serde_json::Value| found["configurations"].as_u64().unwrap();
    assert!(count(&with) > count(&without), "{with}");
    assert!(!told.contains(" 0 stored times"), "{told}");
    // Shapes with the sizes of a problem of the file have its name.
    let board = json(
        folder.path(),
        &[
            "leaderboard",
            "scale",
            "--problem",
            "small",
            "--db",
            "t.db",
            "--format",
            "json",
        ],
    );
    assert!(!board.as_array().unwrap().is_empty());
}

#[test]
fn bad_input_is_explained() {
    let folder = devices();
    recorded(folder.path(), "again.json", "GPU A", 64, [1.0; 4]);
    let text = std::fs::read_to_string(folder.path().join("b.json")).unwrap();
    write(folder.path(), "other.json", &text.replace("\"T\"", "\"U\""));
    let kernel = root().join("search_spaces/gemm_f32.yaml");
    let kernel = kernel.to_str().unwrap();
    let grid = ["--grid", "M=64", "--device", "vgpu:a100"];
    for (arguments, why) in [
        (vec!["a.json", "again.json"], "same sizes and device"),
        (vec!["a.json", "other.json"], "different spaces"),
        (vec!["a.json", "--grid", "S=1"], "--grid is for kernels"),
        (vec!["a.json", "missing.json"], "cannot read"),
        (
            vec!["a.json", "b.json", "--at", "S=1"],
            "`S` is not in the grid",
        ),
        (
            vec!["a.json", "b.json", "--at", "GPU A"],
            "is not NAME=VALUE",
        ),
        (vec!["a.json", "--loss", "200%"], "0% to 100%"),
        (vec![kernel], "--grid is needed"),
        (vec![kernel, kernel, grid[0], grid[1]], "name one kernel"),
        (
            vec![kernel, "--grid", "MM=64"],
            "is not a size of the kernel",
        ),
        (vec![kernel, "--grid", "M=0"], "M=0: a size of at least 1"),
        (vec![kernel, "--grid", "M=1..8"], "has no step"),
        (
            vec![kernel, grid[0], grid[1], "--device", "replay:a.json"],
            "a portfolio is for one GPU",
        ),
        (
            vec![
                kernel,
                grid[0],
                grid[1],
                grid[2],
                grid[3],
                "--problem",
                "no",
            ],
            "the problem `no` is not known",
        ),
    ] {
        let all = [&["portfolio"], &arguments[..]].concat();
        let (_, told) = run(folder.path(), &all, 2);
        assert!(told.contains(why), "{arguments:?}: {told}");
    }
}
