//! KernelBench's `eval_results.json`: the samples of each problem in the form of
//! `KernelExecResult`.
//!
//! Times are in milliseconds, as returned by its timing code (a comment there says microseconds); `runtime`
//! is the mean, -1 if absent. Problems are named `kernel/problem/device`, samples by number in the order of
//! judging.

use super::{ExportError, object, samples_ms};
use serde_json::{Map, Value as Json, json};
use tuner_core::entry::{Entry, StoredTrial};
use tuner_core::escape;

/// Writes KernelBench's evaluation results (`eval_results.json`): one for each problem, with its
/// candidates as samples.
///
/// # Errors
/// Nothing to export.
pub fn kernelbench(problems: &[(Entry, Vec<StoredTrial>)]) -> Result<String, ExportError> {
    if problems.is_empty() {
        return Err(ExportError::Empty);
    }
    let mut document = Map::new();
    for (entry, judged) in problems {
        let row = &entry.best;
        let key = format!("{}/{}/{}", row.kernel, row.problem, row.device);
        let samples: Vec<Json> = judged
            .iter()
            .enumerate()
            .map(|(number, candidate)| sample(entry, number, candidate))
            .collect();
        document.insert(key, Json::Array(samples));
    }
    Ok(escape::json(&format!("{:#}\n", Json::Object(document))))
}

fn sample(entry: &Entry, number: usize, candidate: &StoredTrial) -> Json {
    let trial = &candidate.trial;
    let reference = entry
        .best
        .speedup_vs_default
        .map(|ratio| ratio * entry.best.search_time_us() / 1e3);
    let stats = trial
        .measurement
        .as_ref()
        .map(|time| stats(&samples_ms(trial), time.p50.as_millis(), &entry.best.device));
    json!({
        "sample_id": number,
        "compiled": trial.judgement.verdict.is_compiled(),
        "correctness": trial.judgement.is_ok(),
        "metadata": {
            "hardware": entry.best.device,
            "timing": entry.best.timing,
            "verdict": trial.judgement.verdict,
            "detail": trial.judgement.detail,
            "config": object(&trial.config),
            "max_error": trial.judgement.max_error,
            "compared": trial.judgement.compared,
            "judged_at": candidate.judged_at,
        },
        "runtime": stats.as_ref().map_or(json!(-1.0), |stats| stats["mean"].clone()),
        "runtime_stats": stats.unwrap_or_else(|| json!({})),
        // The default configuration replaces the reference implementation.
        "ref_runtime": reference.unwrap_or(-1.0),
        "ref_runtime_stats": {},
    })
}

/// Returns KernelBench's run statistics, with the median added.
fn stats(ms: &[f64], median: f64, device: &str) -> Json {
    let count = ms.len().max(1) as f64;
    let mean = if ms.is_empty() {
        median
    } else {
        ms.iter().sum::<f64>() / count
    };
    let variance = ms.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
    json!({
        "mean": mean,
        "std": variance.sqrt(),
        "min": ms.iter().copied().reduce(f64::min).unwrap_or(median),
        "max": ms.iter().copied().reduce(f64::max).unwrap_or(median),
        "median": median,
        "num_trials": ms.len(),
        "hardware": device,
    })
}
