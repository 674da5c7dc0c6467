//! Kernel Tuner's cache file (`util.py`: `process_cache`, `store_cache`, `close_cache`).
//!
//! Its reader works on text, so three properties are required: `cache` is the last key, every entry
//! is on a separate line, and the file ends in `}`, newline, `}`.

use super::{ExportError, costs_ms, object, python, samples_ms};
use serde_json::{Map, Value as Json, json};
use tuner_core::entry::{Entry, StoredTrial};
use tuner_core::escape;
use tuner_core::record::TrialRecord;

/// Writes a closed Kernel Tuner cache file, which Kernel Tuner can simulate from and resume.
///
/// # Errors
/// Nothing to export.
pub fn kernel_tuner(entry: &Entry, judged: &[StoredTrial]) -> Result<String, ExportError> {
    if judged.is_empty() {
        return Err(ExportError::Empty);
    }
    let names: Vec<&str> = entry
        .definition
        .parameters
        .iter()
        .map(|p| p.name.as_str())
        .collect();
    let mut values = Map::new();
    for parameter in &entry.definition.parameters {
        values.insert(parameter.name.clone(), json!(parameter.values));
    }
    let row = &entry.best;
    let head = [
        ("device_name", json!(row.device)),
        ("kernel_name", json!(row.kernel)),
        ("problem_size", problem_size(entry)),
        ("tune_params_keys", json!(names)),
        ("tune_params", Json::Object(values)),
        ("objective", json!(["time"])),
        ("tuner", provenance(entry)),
    ];
    let mut text = String::from("{\n");
    for (key, value) in head {
        text.push_str(&format!("{}: {value},\n", json!(key)));
    }
    text.push_str("\"cache\": {");
    let lines: Vec<String> = judged
        .iter()
        .map(|candidate| {
            let key: Vec<String> = candidate
                .trial
                .config
                .iter()
                .map(|(_, value)| python::text(value))
                .collect();
            format!("\n{}: {}", json!(key.join(",")), line(candidate))
        })
        .collect();
    text.push_str(&lines.join(","));
    text.push_str("}\n}");
    Ok(escape::json(&text))
}

/// Returns one size as a number, several as a list; text (never `callable`) if the sizes are unknown.
fn problem_size(entry: &Entry) -> Json {
    let numbers: Vec<i64> = entry.sizes.iter().filter_map(|(_, v)| v.as_i64()).collect();
    match numbers.as_slice() {
        [] => json!(entry.best.problem),
        [one] => json!(one),
        several => json!(several),
    }
}

/// Returns provenance keys: unknown keys before `cache` survive Kernel Tuner's resume.
fn provenance(entry: &Entry) -> Json {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "problem": entry.best.problem,
        "timing": entry.best.timing,
        "driver": entry.driver,
        "commit": entry.best.commit,
        "dirty": entry.best.dirty,
        "template_hash": entry.best.template_hash,
    })
}

/// Returns one entry, all times in milliseconds.
fn line(candidate: &StoredTrial) -> Json {
    let trial = &candidate.trial;
    let mut line = object(&trial.config);
    match &trial.measurement {
        Some(_) => {
            line.insert("time".to_owned(), json!(mean_ms(trial)));
            line.insert("times".to_owned(), json!(samples_ms(trial)));
            // Candidates are compared in different ways; Kernel Tuner preserves unknown keys.
            line.insert("compared".to_owned(), json!(trial.judgement.compared));
        }
        None => {
            let verdict = trial.judgement.verdict;
            line.insert("__error__".to_owned(), json!(verdict.facts().kernel_tuner));
            line.insert("verdict".to_owned(), json!(verdict));
        }
    }
    let [compile_ms, benchmark_ms] = costs_ms(trial);
    line.insert("compile_time".to_owned(), json!(compile_ms));
    line.insert("verification_time".to_owned(), json!(0.0));
    line.insert("benchmark_time".to_owned(), json!(benchmark_ms));
    line.insert("strategy_time".to_owned(), json!(0.0));
    line.insert("framework_time".to_owned(), json!(0.0));
    // Kernel Tuner writes Python's `str()` of a time: a space, and an offset in numbers.
    let timestamp = candidate.judged_at.replace('T', " ").replace('Z', "+00:00");
    line.insert("timestamp".to_owned(), json!(timestamp));
    Json::Object(line)
}

/// Returns Kernel Tuner's objective, the mean of the samples; for a single sample, the time itself.
pub(super) fn mean_ms(trial: &TrialRecord) -> Option<f64> {
    let time = trial.measurement.as_ref()?;
    Some(if time.samples.len() > 1 {
        time.samples.iter().sum::<f64>() / time.samples.len() as f64 / 1e3
    } else {
        time.p50.as_millis()
    })
}
