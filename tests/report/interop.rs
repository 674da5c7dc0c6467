//! What other tools write and read: there and back again.

use crate::program::words;
use crate::report::support::{json, run, write};
use serde_json::Value as Json;
use std::path::Path;

/// A cache as Kernel Tuner leaves it while it runs: the last comma still stands.
pub(crate) const CACHE: &str = r#"{
"device_name": "NVIDIA A100-PCIE-40GB",
"kernel_name": "stencil",
"problem_size": [4096, 4096],
"tune_params_keys": ["block_size_x", "tile", "pad", "mode"],
"tune_params": {"block_size_x": [32, 64, 128], "tile": [1, 2], "pad": [true, false], "mode": ["row", "column"]},
"objective": ["time"],
"cache": {
"32,1,True,row": {"block_size_x": 32, "tile": 1, "pad": true, "mode": "row", "time": 1.5, "times": [1.5, 1.4, 1.6], "compile_time": 300.5, "verification_time": 0, "benchmark_time": 12.25, "strategy_time": 0, "framework_time": 1.0, "timestamp": "2026-06-04 07:40:27.255674+00:00"},
"64,1,False,row": {"block_size_x": 64, "tile": 1, "pad": false, "mode": "row", "time": 0.75, "times": [0.75, 0.75], "compile_time": 310.0, "verification_time": 0, "benchmark_time": 10.0, "strategy_time": 0, "framework_time": 1.0, "timestamp": "2026-06-04 07:40:28.255674+00:00"},
"64,2,True,column": {"block_size_x": 64, "tile": 2, "pad": true, "mode": "column", "time": 0.625, "times": [0.625, 0.5, 0.75], "compile_time": 320.0, "verification_time": 0, "benchmark_time": 9.0, "strategy_time": 0, "framework_time": 1.0, "timestamp": "2026-06-04 07:40:29.255674+00:00"},
"128,2,True,row": {"block_size_x": 128, "tile": 2, "pad": true, "mode": "row", "__error__": "RuntimeFailedConfig", "compile_time": 400.0, "verification_time": 0, "benchmark_time": 0, "strategy_time": 0, "framework_time": 1.0, "timestamp": "2026-06-04 07:40:30.255674+00:00"},
"128,2,False,row": {"block_size_x": 128, "tile": 2, "pad": false, "mode": "row", "__error__": "CompilationFailedConfig", "compile_time": 400.0, "verification_time": 0, "benchmark_time": 0, "strategy_time": 0, "framework_time": 1.0, "timestamp": "2026-06-04 07:40:31.255674+00:00"},"#;

pub(crate) const T1: &str = r#"{
  "General": { "FormatVersion": 1 },
  "ConfigurationSpace": {
    "TuningParameters": [
      { "Name": "block_size_x", "Type": "int", "Values": "[16, 32, 64, 128]", "Default": 32 },
      { "Name": "block_size_y", "Type": "int", "Values": "[2**i for i in range(4)]" },
      { "Name": "tile", "Type": "int", "Values": "list(range(1, 5))" },
      { "Name": "alpha", "Type": "float", "Values": "[0.5, 1.0]" },
      { "Name": "mode", "Type": "string", "Values": "['row', 'column: # yes']", "Default": "row" }
    ],
    "Conditions": [
      { "Expression": "32 <= block_size_x * block_size_y <= 256", "Parameters": ["block_size_x", "block_size_y"] },
      { "Expression": "mode == 'row' or tile in (1, 2)", "Parameters": ["mode", "tile"] }
    ]
  },
  "KernelSpecification": {
    "Language": "CUDA", "KernelName": "stencil", "KernelFile": "stencil.cu", "ProblemSize": [4096, 4096],
    "GlobalSize": { "X": "ProblemSize[0]" }, "LocalSize": { "X": "block_size_x" }
  },
  "Search": { "Name": "random_sample" }
}"#;

/// Imports the cache and gives the folder.
pub(crate) fn imported() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "cache.json", CACHE);
    run(folder.path(), &["import", "cache.json", "--db", "t.db"], 0);
    folder
}

fn rows(folder: &Path, db: &str) -> Vec<Json> {
    let rows = json(folder, &["leaderboard", "--db", db, "--format", "json"]);
    rows.as_array().cloned().expect("an array")
}

fn export(folder: &Path, to: &str, output: &str) {
    run(
        folder,
        &[
            "export", "stencil", "--db", "t.db", "--to", to, "-o", output,
        ],
        0,
    );
}

#[test]
fn a_kernel_tuner_cache_becomes_recorded_rows_once() {
    let folder = imported();
    let folder = folder.path();
    let found = rows(folder, "t.db");
    let times: Vec<f64> = found
        .iter()
        .filter_map(|row| row["time_us_p50"].as_f64())
        .collect();
    assert_eq!(times, [625.0, 750.0, 1500.0]);
    for row in &found {
        assert_eq!(
            (row["timing"].as_str(), row["device_kind"].as_str()),
            (Some("recorded"), Some("replay"))
        );
        assert!(
            row["commit"].is_null()
                && row["template_hash"].is_null()
                && row["cubin_hash"].is_null()
        );
    }
    assert_eq!(found[0]["config"]["mode"], "column");
    let (_, told) = run(folder, &["import", "cache.json", "--db", "t.db"], 0);
    assert!(told.contains("was imported into t.db before"), "{told}");
    assert_eq!(rows(folder, "t.db").len(), 3);
    let (_, counts) = run(folder, &["leaderboard", "--db", "t.db"], 0);
    assert!(
        counts.contains("3 ok, 1 compile_failed, 1 crashed"),
        "{counts}"
    );
}

#[test]
fn what_is_exported_for_kernel_tuner_imports_alike() {
    let folder = imported();
    let folder = folder.path();
    let essence = |db: &str| -> Vec<(String, Json, Json, Json)> {
        rows(folder, db)
            .iter()
            .map(|row| {
                let config = row["config"].to_string();
                (
                    config,
                    row["time_us_p50"].clone(),
                    row["samples"].clone(),
                    row["device"].clone(),
                )
            })
            .collect()
    };
    for (to, file) in [("kernel-tuner", "again.json"), ("t4", "t4.json")] {
        export(folder, to, file);
        let db = format!("{to}.db");
        run(folder, &["import", file, "--db", &db], 0);
        let (was, is) = (essence("t.db"), essence(&db));
        // T4 names neither kernel nor device in a standard place; ours are in its metadata.
        let strip = |all: Vec<(String, Json, Json, Json)>| -> Vec<(String, Json, Json)> {
            all.into_iter()
                .map(|(config, time, samples, _)| (config, time, samples))
                .collect()
        };
        assert_eq!(strip(was), strip(is), "{to}");
    }
    let (_, counts) = run(folder, &["leaderboard", "--db", "kernel-tuner.db"], 0);
    assert!(
        counts.contains("3 ok, 1 compile_failed, 1 crashed"),
        "{counts}"
    );
}

#[test]
fn a_t1_problem_becomes_a_search_space_of_the_same_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "stencil.json", T1);
    let (yaml, _) = run(folder, &["import", "stencil.json"], 0);
    assert!(yaml.contains("#   KernelFile: \"stencil.cu\""), "{yaml}");
    assert!(
        yaml.contains("block_size_x\": { values: [16, 32, 64, 128], default: 32 }"),
        "{yaml}"
    );
    let (_, told) = run(folder, &["import", "stencil.json", "-o", "stencil.yaml"], 0);
    assert!(told.contains("5 parameters, 2 constraints"), "{told}");
    let count = |file: &str| json(folder, &["space", file, "--format", "json"])["valid"].clone();
    assert_eq!(count("stencil.json"), count("stencil.yaml"));
    // Every published space, where they are at hand.
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/spaces/hotspot.json");
    if let Ok(text) = std::fs::read_to_string(published) {
        write(folder, "hotspot.json", &text);
        run(folder, &["import", "hotspot.json", "-o", "hotspot.yaml"], 0);
        assert_eq!(count("hotspot.json"), count("hotspot.yaml"));
    } else {
        eprintln!("left out: no published space at hand");
    }
}

/// A problem of a collection: source, grid and arguments, lists in Python.
const T1_WHOLE: &str = r#"{
  "ConfigurationSpace": {
    "TuningParameters": [
      { "Name": "BLOCK", "Type": "int", "Values": "list(range(32, 129, 32))", "Default": 64 },
      { "Name": "TIMES", "Type": "int", "Values": "[2**i for i in range(3)]", "Default": 2 }
    ],
    "Conditions": [{ "Expression": "BLOCK * TIMES <= 256", "Parameters": ["BLOCK", "TIMES"] }]
  },
  "KernelSpecification": {
    "Language": "CUDA", "KernelName": "scale", "KernelFile": "kernels/scale.cu",
    "CompilerOptions": ["--use_fast_math"], "ProblemSize": [4096, 1],
    "GlobalSizeType": "CUDA", "LocalSize": { "X": "BLOCK", "Y": 1, "Z": 1 },
    "GlobalSize": { "X": "(ProblemSize[0] + BLOCK * TIMES - 1) // (BLOCK * TIMES)", "Y": 1, "Z": 1 },
    "Arguments": [
      { "Name": "x", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "FillType": "Random", "Size": 4096 },
      { "Name": "y", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly", "Size": "ProblemSize[0]" },
      { "Name": "factor", "Type": "float", "MemoryType": "Scalar", "FillValue": 2.5 },
      { "Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": 4096 }
    ]
  }
}"#;

#[test]
fn a_t1_problem_with_arguments_becomes_a_space_that_checks() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("kernels")).expect("a folder");
    write(
        &folder.join("kernels"),
        "scale.cu",
        "__global__ void scale(const float* x, float* y, float factor, int n) {\n  for (int i = 0; i < TIMES; \
         ++i) {\n    int at = (blockIdx.x * TIMES + i) * BLOCK + threadIdx.x;\n    if (at < n) y[at] = factor * \
         x[at];\n  }\n}\n",
    );
    write(folder, "scale.json", T1_WHOLE);
    let (_, told) = run(folder, &["import", "scale.json", "-o", "scale.yaml"], 0);
    assert!(
        told.contains("2 parameters, 1 constraint, 10 valid"),
        "{told}"
    );
    let rows = json(
        folder,
        &words("check scale.yaml --problem imported --format json"),
    );
    assert_eq!(rows[0]["verdict"], "unchecked", "{rows}");
    // Something that a search space cannot say: parameters alone, and why.
    write(
        folder,
        "other.json",
        &T1_WHOLE.replace("\"int32\"", "\"complex\""),
    );
    let (yaml, told) = run(folder, &["import", "other.json"], 0);
    assert!(
        told.contains("parameters and constraints only, because the type complex of `n`"),
        "{told}"
    );
    assert!(yaml.contains("#   KernelFile"), "{yaml}");
}

#[test]
fn wisdom_triton_and_kernelbench_have_the_forms_their_readers_ask_for() {
    let folder = imported();
    let folder = folder.path();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the export");
    export(folder, "wisdom", "stencil.wisdom");
    let lines: Vec<Json> = read("stencil.wisdom")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["version"], "1.0");
    assert_eq!(lines[0]["key"], "stencil");
    let names = lines[0]["tunable_parameters"].as_array().expect("names");
    for line in &lines[1..] {
        assert_eq!(
            line["config"].as_array().expect("values").len(),
            names.len()
        );
        assert_eq!(line["problem_size"], serde_json::json!([4096, 4096]));
        assert_eq!(line["time"], 0.625);
        assert_eq!(line["environment"]["device_name"], "NVIDIA A100-PCIE-40GB");
    }
    export(folder, "triton", "stencil.autotune.json");
    let triton: Json = serde_json::from_str(&read("stencil.autotune.json")).expect("JSON");
    let timings = triton["configs_timings"].as_array().expect("timings");
    assert_eq!(timings.len(), 3);
    assert_eq!(timings[0][1][0], 0.625);
    let keys: Vec<&String> = timings[0][0]
        .as_object()
        .expect("a config")
        .keys()
        .collect();
    // The keyword arguments of Triton's Config, all of them and no others.
    assert_eq!(
        keys,
        [
            "kwargs",
            "num_warps",
            "num_ctas",
            "num_stages",
            "maxnreg",
            "pre_hook",
            "ir_override"
        ]
    );
    assert_eq!(triton["key"], serde_json::json!([4096, 4096]));
    export(folder, "kernelbench", "eval_results.json");
    let bench: Json = serde_json::from_str(&read("eval_results.json")).expect("JSON");
    let samples = bench["stencil/4096x4096/NVIDIA A100-PCIE-40GB"]
        .as_array()
        .expect("samples");
    assert_eq!(samples.len(), 5);
    let best = samples
        .iter()
        .find(|one| one["runtime_stats"]["median"] == 0.625)
        .expect("the best");
    assert_eq!(
        (best["compiled"].as_bool(), best["correctness"].as_bool()),
        (Some(true), Some(true))
    );
    for key in ["mean", "std", "min", "max", "num_trials", "hardware"] {
        assert!(!best["runtime_stats"][key].is_null(), "{key}");
    }
    let failed = samples
        .iter()
        .find(|one| one["compiled"] == false)
        .expect("the one that did not compile");
    assert_eq!(
        (failed["correctness"].as_bool(), failed["runtime"].as_f64()),
        (Some(false), Some(-1.0))
    );
}

const CUTLASS: &str = "Problem,Provider,OperationKind,Operation,Disposition,Status,gemm_kind,m,n,k,A,B,C,Bytes,Flops,Flops/Byte,Runtime,GB/s,GFLOPs
1,CUTLASS,gemm,cutlass_tensorop_f16_slow,passed,success,universal,1024,1024,1024,f16:row,f16:row,f16:row,6291456,2149580800,341,0.050,1,1
1,CUTLASS,gemm,cutlass_tensorop_f16_fast,passed,success,universal,1024,1024,1024,f16:row,f16:row,f16:row,6291456,2149580800,341,0.025,1,1
1,CUTLASS,gemm,cutlass_tensorop_f16_wrong,incorrect,success,universal,1024,1024,1024,f16:row,f16:row,f16:row,6291456,2149580800,341,0.001,1,1
1,CUTLASS,gemm,cutlass_tensorop_f16_other,passed,success,universal,64,64,64,f16:row,f16:row,f16:row,1,1,1,0.001,1,1
";

#[tokio::test]
async fn a_table_of_the_cutlass_profiler_becomes_the_baseline_of_a_measured_kernel() {
    use crate::store::support::{finished, start, timed};
    use tuner_core::value::Value;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let store = tuner_store::Store::open(&path).await.unwrap();
    let mut start = start(tuner_core::record::DeviceKind::Cuda);
    let size = |name: &str| (name.to_owned(), Value::Int(1024));
    start.tasks[0].sizes = vec![size("M"), size("N"), size("K")];
    start.tasks[0].space_path = None;
    let trial = timed(
        &start,
        0,
        start.tasks[0].default_config.clone().unwrap(),
        20.0,
    );
    finished(&store, &start, &[trial]).await;
    store.close().await.unwrap();

    let folder = folder.path();
    write(folder, "p.csv", CUTLASS);
    let import = |more: &[&str], code: i32| {
        let mut arguments = vec!["import", "p.csv", "--db", "t.db"];
        arguments.extend(more);
        run(folder, &arguments, code).1
    };
    assert!(import(&[], 2).contains("--kernel NAME"));
    let told = import(&["--kernel", "gemm"], 0);
    assert!(
        told.contains("25.000 us by cutlass_tensorop_f16_fast"),
        "{told}"
    );
    let found = rows(folder, "t.db");
    assert_eq!(found[0]["speedup_vs_baseline"], 1.25);
    run(folder, &["report", "--db", "t.db", "-o", "out"], 0);
    let md = std::fs::read_to_string(folder.join("out/report.md")).unwrap();
    assert!(
        md.contains("CUTLASS cutlass\\_tensorop\\_f16\\_fast") && md.contains("1.25x"),
        "{md}"
    );
    let told = import(&["--kernel", "stranger"], 2);
    assert!(told.contains("no measured problem of `stranger`"), "{told}");
    write(folder, "p.csv", &CUTLASS.replace("0.050", "soon"));
    let told = import(&["--kernel", "gemm"], 2);
    assert!(
        told.contains("p.csv:2:17: error: `soon` is not a valid Runtime"),
        "{told}"
    );
}

#[test]
fn bad_files_are_answered_with_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (text, hint) in [
        ("", "f.json:1:1: error: this is none of"),
        ("hello, world\n", "f.json:1:1: error: this is none of"),
        ("{\"cache\": {\"1\": {\"a\": 1, \"time\": }}}", "f.json:1:"),
        ("{\"a\": 1}", "f.json:1:"),
        (
            "{\"ConfigurationSpace\": {\"TuningParameters\": [{\"Name\": \"a\", \"Values\": \"[1, __import__('os')]\"}]}}",
            "f.json:1:",
        ),
        (
            "Problem,Provider,OperationKind,Operation,Status,Runtime\n",
            "no column `Disposition`",
        ),
    ] {
        write(folder, "f.json", text);
        let (_, told) = run(
            folder,
            &["import", "f.json", "--db", "t.db", "--kernel", "k"],
            2,
        );
        assert!(told.contains(hint), "{text}: {told}");
    }
    let (_, told) = run(folder, &["import", "none.json"], 2);
    assert!(told.contains("none.json: cannot be read"), "{told}");
}

/// A T1 problem with constant memory, a grid by divisors, and data of each kind.
const T1_DATA: &str = r#"{
  "ConfigurationSpace": {
    "TuningParameters": [{ "Name": "BLOCK", "Type": "int", "Values": "[64, 128]" }]
  },
  "KernelSpecification": {
    "Language": "CUDA", "KernelName": "mix", "KernelFile": "mix.cu", "ProblemSize": [4096],
    "GlobalSizeType": "CUDA", "GridDivX": ["BLOCK"], "LocalSize": { "X": "BLOCK" }, "GlobalSize": { "X": "99 * BLOCK" },
    "Arguments": [
      { "Name": "x", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "FillType": "Generator", "DataSource": "i", "Size": "ProblemSize[0]" },
      { "Name": "y", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly", "FillType": "Constant", "FillValue": 0.0, "Size": 4096 },
      { "Name": "weights", "Type": "float", "MemoryType": "Vector", "MemType": "Constant", "AccessType": "ReadOnly", "FillType": "BinaryRaw", "DataSource": "weights.bin", "Size": 4 },
      { "Name": "offsets", "Type": "int32", "MemoryType": "Symbol", "FillType": "Generator", "DataSource": "3", "Size": 4 }
    ]
  }
}"#;

#[test]
fn a_t1_problem_with_constant_memory_divisors_and_data_becomes_a_space_that_checks() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(
        folder,
        "mix.cu",
        "__constant__ float weights[4];\n__constant__ int offsets[4];\n\
         __global__ void mix(const float* x, float* y, const float* unused) {\n  \
         int at = blockIdx.x * BLOCK + threadIdx.x;\n  y[at] = x[at] * weights[at % 4] + offsets[at % 4];\n}\n",
    );
    std::fs::write(folder.join("weights.bin"), [0; 16]).expect("data");
    write(folder, "mix.json", T1_DATA);
    run(folder, &["import", "mix.json", "-o", "mix.yaml"], 0);
    let yaml = std::fs::read_to_string(folder.join("mix.yaml")).expect("a space");
    for part in [
        "fill: arange",
        r#"fill: { file: "weights.bin" }"#,
        r#""offsets": { type: i32, shape: ["4"], fill: { constant: 3 } }"#,
        "ceil_div(PROBLEM_SIZE_0, (BLOCK))",
    ] {
        assert!(yaml.contains(part), "{part}: {yaml}");
    }
    // More blocks would write past the end.
    let rows = json(
        folder,
        &words("check mix.yaml --problem imported --format json"),
    );
    assert_eq!(rows[0]["verdict"], "unchecked", "{rows}");
    for (from, to, why) in [
        (
            r#""DataSource": "i""#,
            r#""DataSource": "2 * i""#,
            "generated by `2 * i`",
        ),
        (
            "BinaryRaw",
            "BinaryHDF",
            "the contents of `weights` are BinaryHDF",
        ),
    ] {
        write(folder, "other.json", &T1_DATA.replacen(from, to, 1));
        let (_, told) = run(folder, &["import", "other.json"], 0);
        assert!(told.contains(why), "{told}");
    }
}
