//! The runtime interface: results, errors, hazards, exit codes.

use super::{exec, kernels, program, runtime_program, text};
use std::process::{Command, Output};

fn check(output: &Output, code: i32, stdout: &str) {
    assert_eq!(text(&output.stdout), stdout, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
}

/// Kinds of the hazards of a scenario.
fn hazards(scenario: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("summary.json");
    let output = exec(&["--json", path.to_str().expect("a path")], scenario);
    let document = std::fs::read(&path).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let document: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
    let hazards = document["hazards"].as_array().expect("hazards");
    let found = !hazards.is_empty();
    assert_eq!(
        output.status.code() == Some(4),
        found,
        "{}",
        text(&output.stderr)
    );
    hazards
        .iter()
        .map(|hazard| hazard["kind"].as_str().expect("a kind").to_owned())
        .collect()
}

#[test]
fn a_program_keeps_its_output_and_exit_code() {
    check(&exec(&[], "add"), 7, "PASS\n");
}

#[test]
fn both_versions_of_the_runtime_are_there() {
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .args(["exec", "--"])
        .arg(runtime_program())
        .args(["add"])
        .arg(kernels())
        .env("CUDART", "libcudart.so.12")
        .output()
        .expect("tuner");
    check(&output, 7, "PASS\n");
}

#[test]
fn kernels_see_registered_memory_by_its_device_address() {
    let output = exec(&[], "registered");
    let expected = "before 1\ntwice 712\nkernel right\ncopy right\nafter 1\n";
    check(&output, 0, expected);
}

#[test]
fn graphs_allocate_and_free_memory() {
    let output = exec(&[], "graph_memory");
    check(
        &output,
        0,
        "captured right\nfreed inside right\nbuilt right\n",
    );
}

#[test]
fn a_fault_is_sticky_until_a_reset() {
    let output = exec(&[], "faults");
    let expected = "launch 0\nsynchronize 700\nmalloc 700\nlast 700\nreset 0\nmalloc 0\n";
    check(&output, 4, expected);
    let summary = text(&output.stderr);
    assert!(summary.contains("kernels.cu:19"), "{summary}");
}

#[test]
fn refused_calls_return_what_the_driver_returns() {
    let output = exec(&[], "refusals");
    let expected = "block 9\npeek 9\nlast 9\nlast 0\npageable 1\nbeyond 1\nfree 1\nunknown 98\n\
                    mipmap 801\nunspecified launch failure\n";
    check(&output, 0, expected);
    let summary = text(&output.stderr);
    assert!(
        summary.contains("not supported: cudaMallocMipmappedArray"),
        "{summary}"
    );
    assert!(summary.contains("2048×1×1 threads"), "{summary}");
}

#[test]
fn hazards_of_kernels_are_found_in_programs() {
    assert!(hazards("race").contains(&"race".to_owned()));
    assert_eq!(hazards("unwritten"), ["uninitialized"]);
    assert!(hazards("graph").is_empty());
}

#[test]
fn streams_need_an_order() {
    assert_eq!(hazards("unordered"), ["unordered"]);
    assert!(hazards("ordered").is_empty());
}

#[test]
fn hazards_can_be_left_to_the_program() {
    assert_eq!(
        exec(&["--error-exitcode", "0"], "race").status.code(),
        Some(0)
    );
    assert_eq!(
        exec(&["--error-exitcode", "9"], "race").status.code(),
        Some(9)
    );
    assert_eq!(exec(&["--no-hazards"], "race").status.code(), Some(0));
    assert_eq!(exec(&["--kernel", "add"], "race").status.code(), Some(0));
}

#[test]
fn memory_is_shared_with_the_host() {
    for scenario in ["managed", "pinned"] {
        check(&exec(&[], scenario), 0, "PASS\n");
    }
}

#[test]
fn variables_and_graphs_work() {
    check(&exec(&[], "symbols"), 0, "counter 42, weights 9 6\n");
    check(&exec(&[], "graph"), 0, "captured only\nPASS\n");
}

#[test]
fn device_text_comes_in_the_order_of_the_program() {
    let expected = "before\nthread 0 of 64: 0.50 text\nthread 1 of 64: 0.50 text\nafter\n";
    check(&exec(&[], "printf"), 0, expected);
}

#[test]
fn an_assertion_ends_the_kernel() {
    let output = exec(&[], "assert");
    check(&output, 4, "launch 0\nsynchronize 710\n");
    let summary = text(&output.stderr);
    assert!(
        summary.contains("Assertion `threadIdx.x < n` failed"),
        "{summary}"
    );
}

#[test]
fn a_child_process_cannot_use_its_parents_context() {
    let output = exec(&[], "fork");
    check(&output, 0, "child 3\nparent 0\n");
    assert!(
        text(&output.stderr).contains("fork"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn events_measure_virtual_time() {
    check(&exec(&[], "times"), 0, "PASS\n");
}

#[test]
fn the_named_gpu_is_described() {
    check(
        &exec(&["--device", "vgpu:h100"], "properties"),
        0,
        "1 NVIDIA H100 SXM5 80GB (virtual) 132\n",
    );
}

#[test]
fn a_signal_becomes_an_exit_code() {
    check(&exec(&[], "signal"), 128 + 6, "");
}

#[test]
fn the_format_of_compute_sanitizer() {
    let output = exec(&["--format", "sanitizer"], "faults");
    let summary = text(&output.stderr);
    assert!(
        summary.contains("========= Invalid __global__ write"),
        "{summary}"
    );
    assert!(
        summary.contains("by thread (0,0,0) in block (0,0,0)"),
        "{summary}"
    );
    assert!(
        summary.contains("========= ERROR SUMMARY: 1 error"),
        "{summary}"
    );
}

#[test]
fn a_launch_over_its_limit_is_stopped() {
    let output = exec(&["--max-work", "1000"], "times");
    let summary = text(&output.stderr);
    assert!(summary.contains("--max-work"), "{summary}");
}

#[test]
fn programs_that_cannot_run_are_refused_with_a_reason() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
            .arg("exec")
            .args(arguments)
            .output()
            .expect("tuner");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(refused(&[]).contains("tuner exec -- ./app"));
    assert!(refused(&["--", "./no-such-program"]).contains("not a program"));
    assert!(refused(&["--device", "cuda:0", "--", "true"]).contains("vgpu:a100"));
    let holding = program("static.c");
    let holding = holding.to_str().expect("a path");
    assert!(refused(&["--", holding]).contains("-cudart shared"));
}

#[test]
fn a_program_without_machine_code_runs_with_bounds_for_predicted_times() {
    for option in ["--predict", "--predict-only"] {
        let output = exec(&[option], "add");
        check(&output, 7, "PASS\n");
        let said = text(&output.stderr);
        let note = "a lower bound instead: the program has no machine code for this GPU";
        assert!(said.contains(note), "{said}");
    }
}
