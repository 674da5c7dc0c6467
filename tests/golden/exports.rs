//! Exported files, byte for byte.

use crate::golden::{folder, tuner};

const KERNEL: &str = "convolution2d 15x15 (BAT)";

/// Standard output of `tuner export` from the old database.
fn export(kernel: &str, arguments: &[&str]) -> Vec<u8> {
    let folder = folder();
    let arguments = [&["export", kernel, "--db", "old.db"], arguments].concat();
    let output = tuner(folder.path(), &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    output.stdout
}

#[test]
fn the_header_of_recorded_times_is_the_same() {
    insta::assert_binary_snapshot!("recorded.h", export(KERNEL, &[]));
}

#[test]
fn the_header_of_measured_times_is_the_same() {
    insta::assert_binary_snapshot!("measured.h", export("sum_with_defects", &[]));
}

#[test]
fn the_header_of_predicted_times_with_constraints_is_the_same() {
    let header = export("softmax", &["--allow-predicted"]);
    insta::assert_binary_snapshot!("predicted.h", header);
}

#[test]
fn the_json_is_the_same() {
    insta::assert_binary_snapshot!("export.json", export(KERNEL, &["--to", "json"]));
}

#[test]
fn the_kernel_tuner_cache_is_the_same() {
    let cache = export(KERNEL, &["--to", "kernel-tuner"]);
    insta::assert_binary_snapshot!("kernel_tuner.json", cache);
}

#[test]
fn the_t4_results_are_the_same() {
    insta::assert_binary_snapshot!("t4.json", export(KERNEL, &["--to", "t4"]));
}

#[test]
fn the_wisdom_is_the_same() {
    insta::assert_binary_snapshot!("wisdom.json", export(KERNEL, &["--to", "wisdom"]));
}

#[test]
fn the_triton_cache_is_the_same() {
    insta::assert_binary_snapshot!("triton.json", export(KERNEL, &["--to", "triton"]));
}

#[test]
fn the_kernelbench_results_are_the_same() {
    let results = export("sum_with_defects", &["--to", "kernelbench"]);
    insta::assert_binary_snapshot!("kernelbench.json", results);
}
