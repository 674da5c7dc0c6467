//! What `tuner space` prints, for every kind of file it reads.

use crate::space_command::support::{KERNEL, space};
use serde_json::json;

const T1: &str = r#"{
  "General": { "FormatVersion": 1 },
  "ConfigurationSpace": {
    "TuningParameters": [
      { "Name": "block_size_x", "Type": "int", "Values": "[16, 32, 64, 128]", "Default": 32 },
      { "Name": "block_size_y", "Type": "int", "Values": "[2**i for i in range(4)]" },
      { "Name": "tile", "Type": "int", "Values": "list(range(1, 5))" },
      { "Name": "padding", "Type": "bool", "Values": [true, false] },
      { "Name": "mode", "Type": "string", "Values": "['row', 'column']" }
    ],
    "Conditions": [
      { "Expression": "32 <= block_size_x * block_size_y <= 256", "Parameters": ["block_size_x", "block_size_y"] },
      { "Expression": "not padding or block_size_x % 32 != 0", "Parameters": ["padding", "block_size_x"] },
      { "Expression": "mode == 'row' or tile in (1, 2)", "Parameters": ["mode", "tile"] }
    ]
  },
  "KernelSpecification": { "Language": "CUDA", "KernelName": "stencil", "KernelFile": "stencil.cu" }
}"#;

const CACHE: &str = r#"{
  "device_name": "GPU", "kernel_name": "copy", "problem_size": "1024", "tune_params_keys": ["x", "y"],
  "tune_params": { "x": [32, 64], "y": [1, 2, 4] },
  "objective": "time",
  "cache": {
    "32,1": { "x": 32, "y": 1, "time": 1.5 },
    "64,4": { "x": 64, "y": 4, "time": 1.0 },
    "64,1": { "x": 64, "y": 1, "time": "CompilationFailedConfig" }
  }
}"#;

#[test]
fn json_has_the_keys_of_the_contract() {
    let json = space(
        "k.yaml",
        KERNEL,
        &["--format", "json", "--sample", "2", "--seed", "7"],
    )
    .json();
    assert_eq!(json["name"], "saxpy");
    assert_eq!(json["cartesian"], "24");
    assert_eq!(json["valid"], "15");
    assert!(json["build_ms"].as_f64().unwrap() >= 0.0);
    assert!(json["bytes"].as_u64().unwrap() > 0);
    let samples = json["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 2);
    for sample in samples {
        let values = sample.as_object().unwrap();
        assert_eq!(values.keys().collect::<Vec<_>>(), ["BLOCK", "UNROLL"]);
        let (block, unroll) = (
            sample["BLOCK"].as_i64().unwrap(),
            sample["UNROLL"].as_i64().unwrap(),
        );
        assert!(block * unroll <= 1024);
    }
}

#[test]
fn draws_repeat_by_seed() {
    let draw = |seed: &str| {
        let arguments = ["--format", "csv", "--sample", "20", "--seed", seed];
        space("k.yaml", KERNEL, &arguments).stdout
    };
    assert_eq!(draw("1"), draw("1"));
    assert_ne!(draw("1"), draw("2"));
    assert_eq!(draw("1").lines().next(), Some("BLOCK,UNROLL"));
    assert_eq!(draw("1").lines().count(), 21);
}

#[test]
fn every_format_is_printed() {
    let print = |format: &str| space("k.yaml", KERNEL, &["--format", format]).stdout;
    assert!(
        print("table").contains("saxpy  24         15     62.5000 %"),
        "{}",
        print("table")
    );
    assert!(
        print("csv")
            .starts_with("name,cartesian,valid,share,build_ms,bytes\nsaxpy,24,15,62.5000 %,")
    );
    assert!(
        print("md").starts_with("| name | cartesian | valid | share | build_ms | bytes |\n| --- |")
    );
}

#[test]
fn t1_files_are_read_without_an_interpreter() {
    let json = space("t1.json", T1, &["--format", "json", "--sample", "1"]).json();
    assert_eq!(json["name"], "stencil");
    assert_eq!(json["cartesian"], (4 * 4 * 4 * 2 * 2).to_string());
    // Pairs of block sizes within 32 to 256: 3 for 16, 4 for 32, 3 for 64, 2 for 128; padding only
    // beside 16; 4 tiles by row and 2 by column.
    assert_eq!(json["valid"], ((3 * 2 + 4 + 3 + 2) * (4 + 2)).to_string());
    assert!(json["samples"][0]["padding"].is_boolean());
}

#[test]
fn t1_values_that_would_run_code_are_refused() {
    for values in [
        "__import__('os').listdir('.')",
        "open('x')",
        "[x.y for x in [1]]",
        "[1, 2",
        "exec('1')",
        "range(10**9)",
    ] {
        let file = T1.replace("[16, 32, 64, 128]", values);
        let ran = space("t1.json", file, &[]);
        assert!(
            ran.refusal().contains("t1.json:5:"),
            "{values}: {}",
            ran.stderr
        );
    }
    let file = T1.replace(
        "mode == 'row' or tile in (1, 2)",
        "__import__('os').system('true') == 0",
    );
    let ran = space("t1.json", file, &[]);
    insta::assert_snapshot!(ran.refusal(), @r#"
    t1.json:14:24: error: unknown function `__import__`
     14 |       { "Expression": "__import__('os').system('true') == 0", "Parameters": ["mode", "tile"] }
        |                        ^^^^^^^^^^
      help: the functions are abs, bool, ceil, ceil_div, float, floor, int, len, log2, max, min, pow, round, sqrt
    "#);
}

#[test]
fn published_json_is_read() {
    let file = r#"{"name": "p", "params": [
        {"name": "a", "values": [1, 2, 3, 4]},
        {"name": "b", "values": [0.5, 1.0]}
    ], "constraints": ["a * b == 2 or a / 4 > b", "a != 3"]}"#;
    let json = space("p.json", file, &["--format", "json"]).json();
    assert_eq!(
        (json["name"].as_str(), json["cartesian"].as_str()),
        (Some("p"), Some("8"))
    );
    // (4, 0.5), (2, 1.0); 4 / 4 > 0.5 is the first again.
    assert_eq!(json["valid"], "2");
    let unknown = file.replace("a != 3", "c != 3");
    insta::assert_snapshot!(space("p.json", unknown, &[]).refusal(), @r#"
    p.json:4:52: error: unknown name `c`
     4 |     ], "constraints": ["a * b == 2 or a / 4 > b", "c != 3"]}
       |                                                    ^
      help: the names are a, b
    "#);
}

#[test]
fn a_recorded_cache_is_its_rows_or_its_constraints() {
    let json = space("c.json", CACHE, &["--format", "json"]).json();
    assert_eq!(
        (json["cartesian"].as_str(), json["valid"].as_str()),
        (Some("6"), Some("3"))
    );
    // A run that was not ended has no closing brackets.
    let open = CACHE
        .trim_end()
        .trim_end_matches(|c: char| c == '}' || c.is_whitespace());
    let open = format!("{open}}},");
    assert_eq!(
        space("c.json", open, &["--format", "json"]).json()["valid"],
        "3"
    );
    let ruled = CACHE.replace(
        "\"objective\"",
        "\"constraints\": [\"x * y <= 128\"], \"objective\"",
    );
    assert_eq!(
        space("c.json", ruled, &["--format", "json"]).json()["valid"],
        "5"
    );
    let misfit = CACHE.replace("\"x\": 64, \"y\": 4", "\"x\": 64, \"y\": 3");
    insta::assert_snapshot!(space("c.json", misfit, &[]).refusal(), @r#"
    c.json:7:5: error: the row "64,4" does not fit `tune_params`
     7 |     "64,4": { "x": 64, "y": 3, "time": 1.0 },
       |     ^^^^^^
      help: every parameter of a row takes one of its listed values
    "#);
}

#[test]
fn bare_spaces_are_read_as_yaml_and_as_json() {
    let yaml = "version: 1\nname: bare\nparameters:\n  A: { values: [1, 2, 3] }\n  M: { values: [x, 'y', \"z\"] }\n  F: { values: [true, 0.5] }\nderived: { D: 2 * A }\nconstraints:\n  - { rule: \"D > 2 or M == 'x'\", why: because }\n";
    let json = space("b.yaml", yaml, &["--format", "json"]).json();
    assert_eq!(
        (json["name"].as_str(), json["valid"].as_str()),
        (Some("bare"), Some("14"))
    );
    let flow = json!({ "parameters": { "A": { "values": [1, 2, 3] } }, "constraints": [{ "rule": "A > 1" }] });
    let json = space("flow.json", flow.to_string(), &["--format", "json"]).json();
    assert_eq!(
        (json["name"].as_str(), json["valid"].as_str()),
        (Some("flow"), Some("2"))
    );
}

#[test]
fn published_and_recorded_files_at_hand_are_counted() {
    let shared = std::path::Path::new("../shared");
    if !shared.exists() {
        eprintln!("skipped: no ../shared here");
        return;
    }
    let here = std::env::current_dir().unwrap();
    for (file, valid) in [
        ("spaces/hotspot.json", "349853"),
        ("spaces/prl_8x8.json", "48720"),
        ("recorded/conv2d_A100.json.gz", "4362"),
    ] {
        let path = shared.join(file);
        let ran = crate::space_command::support::space_in(
            &here,
            &[path.to_str().unwrap(), "--format", "json"],
        );
        assert_eq!(ran.json()["valid"], valid, "{file}");
    }
}
