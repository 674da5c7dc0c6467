//! Runs over several tasks: weights, plans, progress and the final table.

use super::proof::{KERNEL, REFERENCE, SPACE};
use crate::program::{folder, replace, run};
use tempfile::TempDir;

/// Two problems of a small kernel.
fn project() -> TempDir {
    let folder = folder(&[
        ("space.yaml", SPACE),
        ("kernel.cu", KERNEL),
        ("ref.cu", REFERENCE),
    ]);
    replace(
        &folder.path().join("space.yaml"),
        "{ large: { N: 1048576 } }",
        "{ small: { N: 2048 }, smaller: { N: 1024, weight: 2 } }",
    );
    folder
}

#[test]
fn several_tasks_end_in_a_table_of_at_most_100_columns() {
    let folder = project();
    let ended = run(
        folder.path(),
        "run space.yaml --device vgpu:l4 --evals 3 --db t.db --progress none",
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for part in [
        "kernel",
        "gain",
        "state",
        "converged",
        "few trials",
        "small",
        "smaller",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let table = ended.stdout.lines().take(3);
    for line in table {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn a_plan_lists_the_tasks_cheap_ones_first_and_does_nothing() {
    let folder = project();
    let line = "run space.yaml --device vgpu:l4 --budget 60s --db t.db --plan";
    let planned = run(folder.path(), line);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    let small = planned.stdout.find(" small ").unwrap();
    assert!(planned.stdout.find(" smaller ").unwrap() < small);
    let parts = [
        "2 tasks on vgpu:l4; no run noted the time of a trial of 2",
        "unknown",
        "30s per task",
    ];
    for part in parts {
        assert!(planned.stdout.contains(part), "{part}: {}", planned.stdout);
    }
    assert!(!folder.path().join("t.db").exists());
    // Trials that are limited by their number take time as well.
    run(
        folder.path(),
        "run space.yaml --device vgpu:l4 --evals 3 --problem small --db t.db",
    );
    let planned = run(folder.path(), line);
    for part in [
        "2 tasks on vgpu:l4; no run noted the time of a trial of 1",
        "first trials of 1 task, where a time is known: ",
        "then by expected gain per second",
    ] {
        assert!(planned.stdout.contains(part), "{part}: {}", planned.stdout);
    }
    run(
        folder.path(),
        "run space.yaml --device vgpu:l4 --budget 60s --db t.db",
    );
    let planned = run(folder.path(), line);
    assert!(!planned.stdout.contains("unknown"), "{}", planned.stdout);
    let by_number = run(folder.path(), &line.replace("--budget 60s", "--evals 9"));
    let said = "then by expected gain per trial";
    assert!(by_number.stdout.contains(said), "{}", by_number.stdout);
    let rows = run(folder.path(), "status --db t.db --format json").rows();
    assert_eq!(rows.len(), 2, "a plan is no run");
}

#[test]
fn a_plan_fits_100_columns() {
    let folder = project();
    let file = folder.path().join("space.yaml");
    let long = "a_problem_with_a_name_of_many_words".repeat(4);
    replace(&file, "smaller:", &format!("{long}:"));
    replace(&file, "weight: 2", "weight: 1e-300");
    let line = "run space.yaml --device vgpu:l4 --budget 60s --db t.db --plan";
    let planned = run(folder.path(), line);
    for line in planned.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(planned.stdout.contains("1.000e-300"), "{}", planned.stdout);
}

#[test]
fn a_plan_for_a_device_that_is_not_there_is_refused() {
    let folder = project();
    let planned = run(folder.path(), "run space.yaml --device vgpu:z99 --plan");
    assert_eq!(planned.code, 2, "{}", planned.stderr);
    assert!(planned.stderr.contains("z99"), "{}", planned.stderr);
}

#[test]
fn a_plan_with_a_fleet_is_refused_without_a_server() {
    let folder = project();
    let line = "run space.yaml --plan --fleet nats://127.0.0.1:1";
    run(folder.path(), line).says(2, &["leave --fleet out"]);
}

#[test]
fn a_weight_is_a_number_of_at_least_0() {
    for weight in ["-1", "heavy", "true"] {
        let folder = project();
        let file = folder.path().join("space.yaml");
        replace(&file, "weight: 2", &format!("weight: {weight}"));
        let ended = run(folder.path(), "space space.yaml");
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let said = "error: the weight of a problem is a number of at least 0";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        assert!(ended.stderr.contains("space.yaml:4:"), "{}", ended.stderr);
    }
}

#[test]
fn a_weight_of_the_metric_is_a_number_of_at_least_0_for_every_problem() {
    for (weight, said) in [
        ("0 - N", "is -2048 on problem `small`, but must be a number"),
        ("1 / 0", "has no value on problem `small`: "),
        ("0 / 0", "has no value on problem `small`: "),
        ("sqrt(0 - 1)", "on problem `small`"),
        ("log2(0)", "on problem `small`"),
        ("10 ** 400", "on problem `small`"),
        ("N > 1", "is true on problem `small`, but must be a number"),
        ("WAY", "unknown name `WAY`"),
    ] {
        let folder = project();
        let file = folder.path().join("space.yaml");
        let metric = format!("metric: {{ weight: \"{weight}\" }}\nparameters:");
        replace(&file, "parameters:", &metric);
        let ended = run(folder.path(), "space space.yaml");
        ended.says_of(&weight, 2, &[said, "space.yaml:6:"]);
    }
    // Its value depends on the device of the run.
    let folder = project();
    let file = folder.path().join("space.yaml");
    let metric = "metric: { weight: \"DEVICE_SM_COUNT - 100\" }\nparameters:";
    replace(&file, "parameters:", metric);
    let run_on = |device: &str| {
        let line = format!("run space.yaml --evals 1 --device vgpu:{device} --db t.db --plan");
        run(folder.path(), &line)
    };
    run_on("l4").says(
        2,
        &["space.yaml:6:19: error: the weight of `metric` is -42 on"],
    );
    let planned = run_on("h100");
    planned.says(0, &[]);
    assert!(planned.stdout.contains(" 32 "), "{}", planned.stdout);
}
