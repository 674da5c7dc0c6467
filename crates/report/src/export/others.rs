//! Kernel Launcher's wisdom file and Triton's autotuner cache.

use super::ExportError;
use serde_json::{Map, Value as Json, json};
use tuner_core::entry::{Entry, StoredTrial};
use tuner_core::escape;
use tuner_core::record::{Compared, ConfigValues};
use tuner_core::value::Value;

/// Writes a Kernel Launcher wisdom file (`wisdom.cpp`): one header line, then one line for each
/// device and problem.
///
/// # Errors
/// Nothing to export.
pub fn wisdom(kernel: &str, entries: &[Entry]) -> Result<String, ExportError> {
    let first = entries.first().ok_or(ExportError::Empty)?;
    let names: Vec<&str> = first.best.config.iter().map(|(n, _)| n.as_str()).collect();
    let head = json!({
        "tunable_parameters": names,
        "version": "1.0",
        "objective": "time",
        "key": kernel,
    });
    let mut text = format!("{head}\n");
    for entry in entries {
        let row = &entry.best;
        let config: Vec<&Value> = row.config.iter().map(|(_, value)| value).collect();
        let sizes: Vec<i64> = entry.sizes.iter().filter_map(|(_, v)| v.as_i64()).collect();
        let line = json!({
            "config": config,
            "problem_size": sizes,
            "time": row.time_us_p50 / 1e3,
            "environment": {
                "device_name": row.device,
                "cuda_driver_version": entry.driver.as_deref().unwrap_or(""),
                "date": row.measured_at,
                "git": row.commit.as_deref().unwrap_or(""),
                "problem": row.problem,
                "timing": row.timing,
                "compared": row.compared,
            },
        });
        text.push_str(&format!("{line}\n"));
    }
    Ok(escape::json(&text))
}

/// Writes `<fn>.autotune.json` (Triton, `autotuner.py`, `check_disk_cache`): each configuration
/// with its median, 20th and 80th percentile in milliseconds, fastest first.
///
/// # Errors
/// Nothing to export.
pub fn triton(entry: &Entry, judged: &[StoredTrial]) -> Result<String, ExportError> {
    let mut timed: Vec<(&ConfigValues, [f64; 3], Option<Compared>)> = judged
        .iter()
        .filter_map(|candidate| {
            let time = candidate.trial.measurement.as_ref()?;
            let mut samples = time.samples.clone();
            samples.sort_by(f64::total_cmp);
            let at = |share: f64| {
                let index = (share * samples.len().saturating_sub(1) as f64).round() as usize;
                samples.get(index).copied().unwrap_or(time.p50.get()) / 1e3
            };
            Some((
                &candidate.trial.config,
                [time.p50.as_millis(), at(0.2), at(0.8)],
                candidate.trial.judgement.compared,
            ))
        })
        .collect();
    if timed.is_empty() {
        return Err(ExportError::Empty);
    }
    // Ties have a defined order, so that exports are reproducible.
    timed.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]).then_with(|| a.0.cmp(b.0)));
    let configs: Vec<Json> = timed
        .iter()
        .map(|(config, timings, _)| json!([triton_config(config), timings]))
        .collect();
    let compared: Vec<_> = timed.iter().map(|(_, _, compared)| compared).collect();
    let key: Vec<&Value> = entry.sizes.iter().map(|(_, value)| value).collect();
    // Triton reads only `configs_timings`; `compared` has an item for each of them.
    let document = json!({
        "key": key,
        "configs_timings": configs,
        "timing": entry.best.timing,
        "compared": compared,
    });
    Ok(escape::json(&format!("{document}\n")))
}

/// Returns a configuration in Triton's form: warps and stages are Triton's settings and are removed
/// from the keyword arguments.
fn triton_config(config: &ConfigValues) -> Json {
    // Triton's defaults, if the space has no such parameter.
    let (mut warps, mut stages) = (json!(4), json!(3));
    let mut arguments = Map::new();
    for (name, value) in config {
        match name.to_ascii_lowercase().as_str() {
            "num_warps" | "warps" => warps = json!(value),
            "num_stages" | "stages" => stages = json!(value),
            _ => {
                arguments.insert(name.clone(), json!(value));
            }
        }
    }
    json!({
        "kwargs": arguments,
        "num_warps": warps,
        "num_ctas": 1,
        "num_stages": stages,
        "maxnreg": null,
        "pre_hook": null,
        "ir_override": null,
    })
}
