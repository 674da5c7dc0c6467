//! Predictions against times that an H200 and an H100 measured (docs/evidence/hardware.md).

use crate::program::{ended, root, tuner};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read as _;

/// Configurations of a kernel that are predicted, spread over its measured times.
const SAMPLE: usize = 12;

/// Measured configurations of a kernel and problem, fastest first: times in microseconds.
fn measured(gpu: &str, file: &str) -> (Vec<String>, Vec<(f64, Vec<String>)>) {
    let path = root().join("tests/data").join(gpu).join(file);
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).expect("the file is there"))
        .read_to_string(&mut text)
        .expect("it is text");
    let cache: Value = serde_json::from_str(&text).expect("it is JSON");
    let names = cache["tune_params_keys"].as_array().expect("names");
    let names: Vec<String> = names
        .iter()
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect();
    let rows = cache["cache"].as_object().expect("rows").values();
    let mut rows: Vec<(f64, Vec<String>)> = rows
        .filter_map(|row| {
            let time = row["time"].as_f64()? * 1e3;
            let values = names.iter().map(|name| row[name].to_string());
            Some((time, values.collect()))
        })
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    (names, rows)
}

/// Predicted over measured time of a sample, slowest configurations last, and the pairs that the
/// prediction orders as measured, as a share.
fn compared(gpu: &str, kernel: &str, problem: &str) -> (Vec<f64>, f64) {
    let (names, rows) = measured(gpu, &format!("{kernel}-{problem}.json.gz"));
    let sample: Vec<_> = rows
        .iter()
        .step_by((rows.len() / SAMPLE).max(1))
        .take(SAMPLE)
        .collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = folder.path().join("configs.csv");
    let mut text = names.join(",") + "\n";
    for (_, values) in &sample {
        text += &(values.join(",") + "\n");
    }
    std::fs::write(&table, text).expect("the file is written");
    let mut command = tuner(root());
    command.args(["predict", kernel, "--problem", problem, "--configs"]);
    command.arg(&table);
    command.args(["--device", &format!("vgpu:{gpu}"), "--format", "json"]);
    let ended = ended(&mut command);
    ended.says(0, &[]);
    let predicted: Vec<Value> = serde_json::from_str(&ended.stdout).expect("rows");
    // Rows with an unreliable time come last, so they are found by their configuration.
    let by_config: BTreeMap<Vec<String>, f64> = predicted
        .iter()
        .map(|row| {
            let values = names.iter().map(|name| row["config"][name].to_string());
            (values.collect(), row["time_us"].as_f64().expect("a time"))
        })
        .collect();
    let pairs: Vec<(f64, f64)> = sample
        .iter()
        .map(|(time, values)| (*time, by_config[values]))
        .collect();
    let (mut right, mut all) = (0.0, 0.0);
    for (at, one) in pairs.iter().enumerate() {
        // Times within 5 % are ties.
        for other in pairs[at..].iter().filter(|other| other.0 > one.0 * 1.05) {
            all += 1.0;
            right += f64::from(other.1 > one.1);
        }
    }
    let ratios = pairs
        .iter()
        .map(|(measured, predicted)| predicted / measured);
    (ratios.collect(), right / all)
}

/// The model was made with the H200's times at hand, and without those of the H100.
#[test]
fn predictions_order_measured_times_and_are_near_them() {
    for (gpu, kernel, problem) in [
        ("h200", "attention_f8", "s512"),
        ("h200", "gemm_bf16", "square1024"),
        ("h200", "conv2d_f32", "filter7_small"),
        ("h200", "layernorm", "square4096"),
        ("h100", "gemm_f16", "square1024"),
        ("h100", "attention_f16", "mission"),
    ] {
        let (mut ratios, ordered) = compared(gpu, kernel, problem);
        ratios.sort_by(f64::total_cmp);
        let median = ratios[ratios.len() / 2];
        assert!(ordered > 0.75, "{gpu} {kernel}: {ordered} of the pairs");
        assert!((0.8..1.2).contains(&median), "{gpu} {kernel}: {ratios:?}");
    }
}
