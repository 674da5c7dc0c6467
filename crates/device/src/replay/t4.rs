//! T4 results, the exchange format of auto-tuning tools (schema 1.0.0).
//!
//! Accepts variants of different writers: `compilation` and `benchmark` or, as in the schema,
//! `compilation_time` and `benchmark_time`. `correctness` is ignored: Kernel Tuner writes 1 even
//! for a failed compilation.

use super::outcome;
use super::table::{Row, Source, Table, Top, timing_of};
use serde::Deserialize;
use serde_json::value::RawValue;
use tuner_core::record::{ConfigValues, Verdict, config_as_object};
use tuner_core::recorded::{Outcome, Recorded};
use tuner_core::value::Value;
use tuner_space::Diagnostics;

#[derive(Debug, Deserialize)]
struct TopMetadata {
    timeunit: Option<String>,
    kernel_name: Option<String>,
    device_name: Option<String>,
    problem_size: Option<serde_json::Value>,
    timing: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct ResultRow {
    #[serde(with = "config_as_object")]
    configuration: ConfigValues,
    #[serde(default)]
    times: Times,
    #[serde(default)]
    invalidity: Option<String>,
    #[serde(default)]
    measurements: Vec<MeasurementRow>,
    #[serde(default)]
    objectives: Vec<String>,
}

impl ResultRow {
    fn verdict(&self) -> Verdict {
        let invalidity = self.invalidity.as_deref();
        invalidity.map_or(Verdict::Ok, Verdict::from_t4)
    }
}

#[derive(Debug, Default, Deserialize)]
struct Times {
    #[serde(alias = "compilation_time")]
    compilation: Option<f64>,
    #[serde(alias = "benchmark_time")]
    benchmark: Option<f64>,
    #[serde(default)]
    runtimes: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct MeasurementRow {
    name: String,
    value: serde_json::Value,
    unit: Option<String>,
}

pub(super) fn read<'a>(
    source: &Source<'a>,
    top: &Top<'a>,
    results: &'a RawValue,
) -> Result<Table, Diagnostics> {
    let metadata: Option<TopMetadata> = source.optional(top.metadata)?;
    let unit = metadata.as_ref().and_then(|meta| meta.timeunit.as_deref());
    let us_per_unit = micros_per(unit.unwrap_or("milliseconds")).ok_or_else(|| {
        source.text.error(
            top.metadata.map_or(0, |raw| source.start(raw.get())),
            format!("`{}` is not a unit of time", unit.unwrap_or_default()),
            "write seconds, milliseconds, microseconds or nanoseconds",
        )
    })?;
    let raw_rows: Vec<&'a RawValue> = source.parse(results)?;
    let mut names: Vec<String> = Vec::new();
    let mut rows = Vec::with_capacity(raw_rows.len());
    for raw in raw_rows {
        let result: ResultRow = source.parse(raw)?;
        if names.is_empty() {
            names = result
                .configuration
                .iter()
                .map(|(name, _)| name.clone())
                .collect();
        }
        // Excluded by a constraint: not in the space.
        if result.verdict() != Verdict::Rejected {
            rows.push(row(source, raw, result, &names, us_per_unit)?);
        }
    }
    let stem = || source.text.stem();
    let timing = metadata.as_ref().and_then(|meta| meta.timing.as_ref());
    let timing = timing_of(timing);
    let (kernel, device, size) = metadata.map_or((None, None, None), |meta| {
        (meta.kernel_name, meta.device_name, meta.problem_size)
    });
    let (problem, sizes) = super::kernel_tuner::problem(size);
    Ok(Table {
        timing,
        kernel: kernel.unwrap_or_else(stem),
        device: device.unwrap_or_else(stem),
        problem,
        sizes,
        parameters: names.into_iter().map(|name| (name, Vec::new())).collect(),
        constraints: Table::constraints(source, top)?,
        rows,
    })
}

fn row(
    source: &Source<'_>,
    raw: &RawValue,
    result: ResultRow,
    names: &[String],
    us_per_unit: f64,
) -> Result<Row, Diagnostics> {
    let offset = source.start(raw.get());
    let value_of = |name: &String| {
        result
            .configuration
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let values: Option<Vec<Value>> = names.iter().map(value_of).collect();
    let values = values
        .filter(|values| values.len() == result.configuration.len())
        .ok_or_else(|| {
            source.text.error(
                offset,
                "this result's `configuration` has other parameters than the first one's",
                format!("every configuration needs exactly {}", names.join(", ")),
            )
        })?;
    // The launches alone are a lower bound of the benchmark's time.
    let benchmark = result
        .times
        .benchmark
        .unwrap_or_else(|| result.times.runtimes.iter().sum());
    Ok(Row {
        values,
        offset,
        recorded: Recorded {
            compile_us: outcome::micros(result.times.compilation, us_per_unit),
            benchmark_us: outcome::micros(Some(benchmark), us_per_unit),
            outcome: judge(&result, us_per_unit),
        },
    })
}

fn judge(result: &ResultRow, us_per_unit: f64) -> Outcome {
    let verdict = result.verdict();
    if verdict != Verdict::Ok {
        let text = result.invalidity.as_deref().unwrap_or_default();
        return outcome::failed(verdict, &format!("recorded as {text}"));
    }
    let objective = result.objectives.first().map_or("time", String::as_str);
    let measured = ["time", objective]
        .into_iter()
        .find_map(|name| result.measurements.iter().find(|row| row.name == name));
    let mean_ms = measured.and_then(|row| {
        let number = row
            .value
            .as_f64()
            .or_else(|| row.value.as_str()?.parse().ok())?;
        let unit = row.unit.as_deref().and_then(micros_per).unwrap_or(1e3);
        Some(number * unit / 1e3)
    });
    let samples_ms: Vec<f64> = result
        .times
        .runtimes
        .iter()
        .map(|time| time * us_per_unit / 1e3)
        .collect();
    outcome::timed(mean_ms, &samples_ms)
}

/// Returns the microseconds per unit of time.
fn micros_per(unit: &str) -> Option<f64> {
    match unit {
        "seconds" | "second" | "s" => Some(1e6),
        "milliseconds" | "millisecond" | "ms" => Some(1e3),
        "microseconds" | "microsecond" | "us" | "µs" => Some(1.0),
        "nanoseconds" | "nanosecond" | "ns" => Some(1e-3),
        _ => None,
    }
}
