//! JSON of the commands that judge and predict. With the snapshots' NVRTC the whole document is
//! compared, with any other one its keys.

use crate::golden::{
    folder_with_defects, json, lines, masked, nvrtc_is_the_snapshots, pretty, shape,
};
use crate::program::words;
use serde_json::Value;

/// Compares a document under a name.
fn compare(folder: &std::path::Path, name: &str, document: Value) {
    if nvrtc_is_the_snapshots(folder) {
        insta::assert_snapshot!(name, pretty(&document));
    }
    insta::assert_snapshot!(format!("{name}_keys"), shape(&document));
}

#[test]
fn check_says_the_same_of_planted_defects() {
    let folder = folder_with_defects();
    let arguments = words(
        "check sum.yaml --device vgpu:a100 --config DEFECT=0 --config DEFECT=1 --config DEFECT=2 --config DEFECT=3",
    );
    let rows = json(folder.path(), &arguments, 4);
    compare(folder.path(), "check", rows);
}

#[test]
fn check_that_stops_after_the_compile_says_the_same() {
    let folder = folder_with_defects();
    let rows = json(folder.path(), &["check", "sum.yaml", "--arch", "sm_80"], 0);
    compare(folder.path(), "check_arch", rows);
}

#[test]
fn predict_says_the_same() {
    let folder = folder_with_defects();
    let rows = json(
        folder.path(),
        &["predict", "sum.yaml", "--device", "vgpu:a100"],
        0,
    );
    compare(folder.path(), "predict", rows);
}

#[test]
fn ablate_says_the_same() {
    let folder = folder_with_defects();
    let arguments = words("ablate sum.yaml --device vgpu:a100 --db old.db");
    compare(folder.path(), "ablate", json(folder.path(), &arguments, 0));
}

#[test]
fn gate_says_the_same() {
    let folder = folder_with_defects();
    let passes = words("gate sum.yaml --device vgpu:a100 --db old.db");
    compare(folder.path(), "gate", json(folder.path(), &passes, 0));
    let fails = [&passes[..], &["--config", "DEFECT=3"]].concat();
    compare(
        folder.path(),
        "gate_of_a_wrong_kernel",
        json(folder.path(), &fails, 4),
    );
}

#[test]
fn doctor_has_the_same_keys_and_checks() {
    let folder = folder_with_defects();
    let checks = json(folder.path(), &["doctor", "--db", "old.db"], 0);
    let checks = masked(checks, &["status", "detail", "fix"]);
    insta::assert_snapshot!(lines(&checks));
}
