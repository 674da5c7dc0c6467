//! How well predicted times order configurations, judged by recorded ones, and what a prediction
//! costs.
//!
//! For each Kernel Tuner cache file named (default: those of `../shared/recorded`) whose kernel has
//! a counterpart in `benches/prediction/`: `tuner predict` on some of its configurations, drawn
//! with a fixed seed, and Spearman's rank correlation with the recorded times, the place of the
//! true optimum in the predicted order, and the regret of taking the best of the first 1, first 10
//! and first 5 % of that order, beside the expected regret of as many random draws. What the
//! predictions cost stands on standard error; with `TUNER_CACHE` set to a new folder everything is
//! compiled in this run.
//!
//! `cargo bench --bench prediction -- [--configs N] [--seed N] [FILE.json.gz …]`; all
//! configurations with `--configs 0`.
//!
//! `cargo bench --bench prediction -- --survey FOLDER [FILE.json.gz …]` predicts what `--prior vgpu`
//! would of each file's space and writes it to `FOLDER/NAME.csv`, for `tuner replay --knowledge`. The
//! recorded times are not looked at. Those in `benches/prediction/predicted` were made so.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::HashMap;
use std::error::Error;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tuner_core::record::{ConfigValues, Verdict};
use tuner_core::units::{Micros, Seed};
use tuner_device::replay::Recording;
use tuner_search::{Observation, Survey};

/// Recorded files, the search space that stands for each, and the GPU.
const KNOWN: [(&str, &str, &str); 5] = [
    ("conv2d_A100", "convolution_2d", "a100"),
    ("convbat_RTX3090", "convolution_bat", "rtx3090"),
    ("kttconv_RTX2080Ti", "convolution_ktt", "rtx2080ti"),
    ("gemm_RTX2080Ti", "xgemm", "rtx2080ti"),
    ("dedispersion_A100", "dedispersion", "a100"),
];

/// Configurations a file, when not said otherwise.
const CONFIGS: usize = 150;

/// What the command line asks for.
struct Asked {
    configs: usize,
    seed: u64,
    files: Vec<PathBuf>,
    /// Where to write predictions that a search may use.
    survey: Option<PathBuf>,
}

fn asked() -> Result<Asked, Box<dyn Error>> {
    let mut asked = Asked {
        configs: CONFIGS,
        seed: 1,
        files: Vec::new(),
        survey: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Given by `cargo bench`.
            "--bench" => {}
            "--configs" => asked.configs = words.next().ok_or("--configs N")?.parse()?,
            "--seed" => asked.seed = words.next().ok_or("--seed N")?.parse()?,
            "--survey" => asked.survey = Some(words.next().ok_or("--survey FOLDER")?.into()),
            file => asked.files.push(PathBuf::from(file)),
        }
    }
    if asked.files.is_empty() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recorded");
        let all = KNOWN.map(|(name, ..)| folder.join(format!("{name}.json.gz")));
        asked.files.extend(all);
    }
    if asked.configs == 0 {
        asked.configs = usize::MAX;
    }
    Ok(asked)
}

/// Parameter names, and each configuration that ran: values as text, and milliseconds.
struct Recorded {
    names: Vec<String>,
    rows: Vec<(Vec<String>, f64)>,
}

fn read(file: &Path) -> Result<Recorded, Box<dyn Error>> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(file)?).read_to_string(&mut text)?;
    let json: serde_json::Value = serde_json::from_str(&text)?;
    let names = json["tune_params_keys"].as_array().ok_or("no parameters")?;
    let names: Vec<String> = names
        .iter()
        .filter_map(|n| Some(n.as_str()?.to_owned()))
        .collect();
    let cache = json["cache"].as_object().ok_or("no configurations")?;
    let mut rows = Vec::new();
    for row in cache.values() {
        let failed = row.get("__error__").is_some();
        if let Some(time) = row["time"].as_f64().filter(|_| !failed) {
            rows.push((names.iter().map(|n| row[n].to_string()).collect(), time));
        }
    }
    Ok(Recorded { names, rows })
}

/// The configurations in a random order that depends on the seed alone.
fn shuffle<T>(rows: &mut [T], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for i in (1..rows.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        rows.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

/// Ranks with ties at their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let same = order[start..]
            .iter()
            .take_while(|i| values[**i] == values[order[start]]);
        let end = start + same.count();
        for i in &order[start..end] {
            ranks[*i] = (start + end - 1) as f64 / 2.0;
        }
        start = end;
    }
    ranks
}

fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// Mean of the best of `k` draws without replacement from ascending times.
fn best_of_random(sorted: &[f64], k: usize) -> f64 {
    // The i-th is the best with probability C(n-1-i, k-1) / C(n, k), step by step.
    let n = sorted.len();
    let (mut chance, mut mean) = (k as f64 / n as f64, 0.0);
    for (i, time) in sorted.iter().enumerate().take(n - k + 1) {
        mean += chance * time;
        chance *= (n - k - i) as f64 / (n - 1 - i).max(1) as f64;
    }
    mean
}

/// The name of a recording, with the kernel and the GPU that stand for it; `None`, and a line that
/// says why, where there is nothing to predict.
fn known(file: &Path) -> Option<(&str, &'static str, &'static str)> {
    let name = file.file_name().and_then(|n| n.to_str());
    let name = name.unwrap_or_default().trim_end_matches(".json.gz");
    let Some((_, kernel, gpu)) = KNOWN.iter().find(|(known, ..)| *known == name) else {
        println!("{name}: skipped, there is no kernel for it in benches/prediction");
        return None;
    };
    if !file.exists() {
        println!("{name}: skipped, {} is not here", file.display());
        return None;
    }
    Some((name, kernel, gpu))
}

/// Rows of predictions by the values of their configurations.
type Predictions = HashMap<Vec<String>, serde_json::Value>;

/// What `tuner predict` says of these rows of values, each with the names as keys of `config`, and
/// its last line on standard error.
fn predicted(
    (name, kernel, gpu): (&str, &str, &str),
    names: &[String],
    rows: &[Vec<String>],
) -> Result<(Predictions, String), Box<dyn Error>> {
    let mut csv = names.join(",");
    for values in rows {
        csv.push('\n');
        csv.push_str(&values.join(","));
    }
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.csv"));
    std::fs::write(&input, csv)?;
    let yaml =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("benches/prediction/{kernel}.yaml"));
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .arg("predict")
        .arg(&yaml)
        .args(["--device", &format!("vgpu:{gpu}")])
        .args(["--format", "json", "--configs"])
        .arg(&input)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(said.into());
    }
    // Rows whose time is not reliable come last: found by their configuration.
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout)?;
    let config = |row: &serde_json::Value| -> Vec<String> {
        let names = names.iter();
        names.map(|name| row["config"][name].to_string()).collect()
    };
    let found = rows.into_iter().map(|row| (config(&row), row)).collect();
    Ok((found, said.lines().last().unwrap_or_default().to_owned()))
}

/// Writes predictions of the space of a recording.
fn survey(file: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let Some(known) = known(file) else {
        return Ok(());
    };
    let recording = Recording::load(file).map_err(|error| error.to_string())?;
    let space = &recording.space;
    let names: Vec<String> = space.parameters().iter().map(|p| p.name.clone()).collect();
    let text = |values: &ConfigValues| -> Vec<String> {
        let each = values.iter().map(|(_, value)| value.to_string());
        each.collect()
    };
    let mut survey = Survey::new(space, Seed(1), &[]);
    let mut csv = format!("{},predicted_us\n", names.join(","));
    loop {
        let round = survey.round();
        if round.is_empty() {
            break;
        }
        let rows: Vec<_> = round.iter().map(|c| text(&space.values(c))).collect();
        let (found, _) = predicted(known, &names, &rows)?;
        let told = rows.iter().map(|values| match found.get(values) {
            None => Observation::Failed(Verdict::CompileFailed),
            Some(row) => {
                let time = row["time_us"].as_f64().and_then(Micros::new);
                let time = time.filter(|_| row["reliability"] == "ok");
                time.map_or(Observation::Unknown, Observation::exactly)
            }
        });
        let told: Vec<Observation> = told.collect();
        for (values, told) in rows.iter().zip(&told) {
            let time = match told {
                Observation::Time { time, .. } => format!("{:.2}", time.get()),
                Observation::Failed(_) => String::new(),
                Observation::Unknown => continue,
            };
            csv.push_str(&format!("{},{time}\n", values.join(",")));
        }
        survey.tell(told);
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(format!("{}.csv", known.0)), csv)?;
    Ok(())
}

fn study(file: &Path, asked: &Asked) -> Result<(), Box<dyn Error>> {
    let Some(known) = known(file) else {
        return Ok(());
    };
    let name = known.0;
    let mut recorded = read(file)?;
    shuffle(&mut recorded.rows, asked.seed);
    recorded.rows.truncate(asked.configs);
    let rows: Vec<_> = recorded.rows.iter().map(|(row, _)| row.clone()).collect();
    let (found, cost) = predicted(known, &recorded.names, &rows)?;
    let mut pairs = Pairs::default();
    for (values, time) in &recorded.rows {
        let row = found.get(values);
        // A configuration that no longer compiles or fits has no time to compare.
        let Some((row, us)) = row.and_then(|row| Some((row, row["time_us"].as_f64()?))) else {
            continue;
        };
        let bound = |end: usize| row["interval_us"][end].as_f64().unwrap_or(f64::NAN);
        pairs.real.push(*time);
        pairs.predicted.push(us);
        pairs.within += usize::from((bound(0)..=bound(1)).contains(&(time * 1e3)));
        pairs.doubtful += usize::from(row["reliability"] != "ok");
    }
    report(name, &pairs);
    eprintln!("{name}: {cost}");
    Ok(())
}

/// What was recorded and what was predicted, side by side.
#[derive(Default)]
struct Pairs {
    /// Milliseconds.
    real: Vec<f64>,
    /// Microseconds.
    predicted: Vec<f64>,
    /// Recorded times within the predicted interval.
    within: usize,
    /// Predictions called not reliable.
    doubtful: usize,
}

fn report(name: &str, pairs: &Pairs) {
    let Pairs {
        real, predicted, ..
    } = pairs;
    let n = real.len();
    if n < 20 {
        println!("{name}: only {n} configurations have a predicted time");
        return;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| predicted[*a].total_cmp(&predicted[*b]));
    let mut sorted = real.clone();
    sorted.sort_by(f64::total_cmp);
    let best = sorted[0];
    let regret = |k: usize| {
        let found = order
            .iter()
            .take(k)
            .map(|i| real[*i])
            .fold(f64::INFINITY, f64::min);
        format!(
            "{:.1} % (random {:.1} %)",
            (found / best - 1.0) * 100.0,
            (best_of_random(&sorted, k) / best - 1.0) * 100.0
        )
    };
    let place = order
        .iter()
        .position(|i| real[*i] == best)
        .map_or(0, |p| p + 1);
    let logs: Vec<f64> = predicted
        .iter()
        .zip(real)
        .map(|(p, r)| (p / 1e3 / r).ln())
        .collect();
    let mean = logs.iter().sum::<f64>() / n as f64;
    let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / n as f64;
    println!(
        "| {name} | {n} | {:.3} | {place} | {} | {} | {} | {:.2}, {:.2} | {:.0} % | {} |",
        spearman(real, predicted),
        regret(1),
        regret(10),
        regret((n / 20).max(1)),
        mean.exp(),
        variance.sqrt(),
        100.0 * pairs.within as f64 / n as f64,
        pairs.doubtful,
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = asked()?;
    if let Some(folder) = &asked.survey {
        for file in &asked.files {
            survey(file, folder)?;
        }
        return Ok(());
    }
    println!(
        "| space | configurations | Spearman's ρ | place of the optimum | regret of the first | of \
         the first 10 | of the first 5 % | predicted / recorded (geometric mean, s.d. of ln) | \
         within the interval | doubtful |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for file in &asked.files {
        study(file, &asked)?;
    }
    Ok(())
}
