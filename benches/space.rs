//! Build time, memory and draw rate of search spaces: `cargo bench --bench space`.
//!
//! Reads the JSON spaces of the folder named by `TUNER_SPACES` (default `../shared/spaces`; none
//! are needed) and adds a synthetic space of more than 10^15 valid configurations.
#![expect(
    clippy::expect_used,
    reason = "a benchmark that cannot go on should end"
)]
#![expect(clippy::print_stdout, reason = "a benchmark's result is its output")]

use rand::SeedableRng as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tuner_core::value::Value;
use tuner_space::{Constraint, Environment, Expr, Parameter, Space};

/// Builds of every space; the median is printed.
const RUNS: usize = 21;

fn main() {
    let folder = std::env::var_os("TUNER_SPACES")
        .map_or_else(|| PathBuf::from("../shared/spaces"), PathBuf::from);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| {
            entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect()
        })
        .unwrap_or_default();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    println!(
        "{:<18} {:>26} {:>26} {:>10} {:>10} {:>12}",
        "space", "cartesian", "valid", "build ms", "KiB", "draws/s"
    );
    for file in files {
        let (name, parameters, constraints) = read(&file);
        report(&name, &parameters, &constraints);
    }
    let (parameters, constraints) = synthetic();
    report("synthetic", &parameters, &constraints);
    if let Some(peak) = peak_memory() {
        println!("peak memory of this process: {peak}");
    }
}

/// The most memory this process has held so far, where the system tells.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}

fn report(name: &str, parameters: &[Parameter], constraints: &[Constraint]) {
    let environment = Environment::default();
    let mut times = Vec::new();
    let mut built = None;
    for _ in 0..RUNS {
        let start = Instant::now();
        let space = Space::build(name, parameters.to_vec(), constraints, &environment);
        times.push(start.elapsed().as_secs_f64() * 1e3);
        built = Some(space.expect("the benchmark's spaces build"));
    }
    times.sort_by(f64::total_cmp);
    let Some(space) = built else { return };
    println!(
        "{:<18} {:>26} {:>26} {:>10.3} {:>10.1} {:>12.0}",
        name,
        space.cartesian(),
        space.count(),
        times[times.len() / 2],
        space.bytes() as f64 / 1024.0,
        draws_per_second(&space)
    );
}

fn draws_per_second(space: &Space) -> f64 {
    const DRAWS: u32 = 300_000;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let start = Instant::now();
    for _ in 0..DRAWS {
        std::hint::black_box(space.draw(&mut rng));
    }
    f64::from(DRAWS) / start.elapsed().as_secs_f64()
}

/// 14 parameters of up to 32 values under divisibility and product limits.
fn synthetic() -> (Vec<Parameter>, Vec<Constraint>) {
    let mut parameters = Vec::new();
    for at in 0..14 {
        let values: Vec<Value> = (1..=32).map(Value::Int).collect();
        parameters.push(Parameter::new(format!("P{at}"), values));
    }
    let rules = [
        "P0 * P1 * P2 * P3 <= 4096",
        "P4 + P5 + P6 + P7 + P8 <= 100",
        "P3 % P9 == 0 or P9 > 16",
        "(P10 * P11 + P12) % 2 == 0",
        "P12 * P13 >= P8",
    ];
    let constraint = |rule: &&str| Constraint {
        rule: Expr::parse(rule).expect("the rule parses"),
        why: None,
    };
    (parameters, rules.iter().map(constraint).collect())
}

fn read(file: &Path) -> (String, Vec<Parameter>, Vec<Constraint>) {
    let text = std::fs::read_to_string(file).expect("the file is readable");
    let json: serde_json::Value = serde_json::from_str(&text).expect("the file is JSON");
    let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
    let parameters = list("params");
    let parameters = parameters.iter().map(|each| {
        let values: Vec<Value> =
            serde_json::from_value(each["values"].clone()).expect("values are scalars");
        Parameter::new(each["name"].as_str().unwrap_or_default(), values)
    });
    let constraints = list("constraints");
    let constraints = constraints.iter().map(|each| Constraint {
        rule: Expr::parse(each.as_str().unwrap_or_default()).expect("the rule parses"),
        why: None,
    });
    (
        json["name"].as_str().unwrap_or_default().to_owned(),
        parameters.collect(),
        constraints.collect(),
    )
}
