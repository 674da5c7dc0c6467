//! T4 results, schema 1.0.0 (Kernel Tuner's `file_utils.py`, `get_t4_results`).

use super::kernel_tuner::mean_ms;
use super::{ExportError, costs_ms, object, samples_ms};
use serde_json::{Value as Json, json};
use tuner_core::entry::{Entry, StoredTrial};
use tuner_core::escape;

/// Writes T4 results, version 1.0.0.
///
/// # Errors
/// Nothing to export.
pub fn t4(entry: &Entry, judged: &[StoredTrial]) -> Result<String, ExportError> {
    if judged.is_empty() {
        return Err(ExportError::Empty);
    }
    let results: Vec<Json> = judged.iter().map(result).collect();
    let document = json!({
        "results": results,
        "schema_version": "1.0.0",
        "metadata": {
            "timeunit": "milliseconds",
            "kernel_name": entry.best.kernel,
            "device_name": entry.best.device,
            "problem": entry.best.problem,
            "timing": entry.best.timing,
            "tuner_version": env!("CARGO_PKG_VERSION"),
        },
    });
    Ok(escape::json(&format!("{document:#}\n")))
}

fn result(candidate: &StoredTrial) -> Json {
    let trial = &candidate.trial;
    let [compile_ms, benchmark_ms] = costs_ms(trial);
    let measurements: Vec<Json> = mean_ms(trial)
        .map(|ms| json!({"name": "time", "value": ms, "unit": "ms"}))
        .into_iter()
        .collect();
    let invalidity = trial.judgement.verdict.facts().t4;
    json!({
        "timestamp": candidate.judged_at,
        "configuration": object(&trial.config),
        "times": {
            // Names as in the reference writer; the schema's differ and allow more.
            "compilation": compile_ms,
            "benchmark": benchmark_ms,
            "framework": 0.0,
            "search_algorithm": 0.0,
            "validation": 0.0,
            "runtimes": samples_ms(trial),
        },
        "invalidity": invalidity,
        "correctness": u8::from(invalidity == "correct"),
        // The schema allows more keys; a sample is not a whole run.
        "compared": trial.judgement.compared,
        "measurements": measurements,
        "objectives": ["time"],
    })
}
