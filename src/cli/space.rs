//! `tuner space`: how large a search space is, and samples of it.

use super::output::{self, Format};
use super::{CliError, CommandResult};
use crate::device::limits;
use crate::record::ConfigValues;
use crate::space::{BareSpace, Diagnostics, KernelSpec, Space};
use crate::{exit, record};
use anyhow::Context as _;
use rand::SeedableRng as _;
use serde::Serialize;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Counts the valid configurations of a search space exactly, and draws some.
///
/// Reads search spaces of this project (YAML), JSON with `params` and `constraints`, T1 input
/// files, and Kernel Tuner cache files (`.json` or `.json.gz`).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tuner space search_spaces/gemm_f32.yaml\n  tuner space search_spaces/gemm_f32.yaml --device vgpu:a100 --sample 5 --seed 1 --format csv"
)]
pub struct Args {
    /// The file, or the name of a kernel in `search_spaces`.
    #[arg(value_name = "FILE")]
    file: String,
    /// The problem whose sizes the constraints see; the first when left out.
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,
    /// The device whose limits the constraints see.
    #[arg(long, value_name = "DEVICE", default_value = "vgpu:h100")]
    device: String,
    /// Draws this many configurations, each valid one equally likely every time.
    #[arg(long, value_name = "N", default_value_t = 0)]
    sample: usize,
    /// Seed of the draws.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// How to print the result.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// The result; counts are text because they may exceed what JSON readers hold exactly.
#[derive(Debug, Serialize)]
struct Report {
    name: String,
    problem: Option<String>,
    device: Option<String>,
    parameters: usize,
    cartesian: String,
    valid: String,
    build_ms: f64,
    bytes: u64,
    samples: Vec<Sample>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Sample(#[serde(with = "record::config_as_object")] ConfigValues);

/// A space with what it was built for.
struct Built {
    space: Space,
    problem: Option<String>,
    build_ms: f64,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read or is wrong.
pub fn run(args: &Args) -> CommandResult {
    let built = build(args)?;
    let space = &built.space;
    if let Some(reason) = space.empty_reason() {
        eprintln!("warning: the space is empty: {reason}; loosen it or add values");
    }
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(args.seed);
    let samples = (0..args.sample)
        .map_while(|_| space.draw(&mut rng))
        .map(|config| Sample(space.values(&config)))
        .collect();
    let report = Report {
        name: space.name().to_owned(),
        device: built.problem.as_ref().map(|_| args.device.clone()),
        problem: built.problem,
        parameters: space.parameters().len(),
        cartesian: space.cartesian().to_string(),
        valid: space.count().to_string(),
        build_ms: built.build_ms,
        bytes: space.bytes(),
        samples,
    };
    print(args.format, space, &report)?;
    Ok(exit::DONE)
}

fn build(args: &Args) -> Result<Built, CliError> {
    let path = find(&args.file);
    let shown = path.display().to_string();
    let text = read(&path).map_err(|error| usage(&Diagnostics::of_file(&shown, error)))?;
    if BareSpace::recognises(&text) {
        if let Some(problem) = &args.problem {
            return Err(CliError::Usage(format!(
                "error: {shown} has no problems: leave `--problem {problem}` out"
            )));
        }
        let bare = BareSpace::parse(&text, &path).map_err(|error| usage(&error))?;
        return timed(None, || bare.space()).map_err(|error| wrong(&shown, &error));
    }
    let spec = KernelSpec::parse(&text, &path).map_err(|error| usage(&error))?;
    let name = args.device.strip_prefix("vgpu:");
    let name = if args.device == "auto" {
        Some(limits::DEFAULT)
    } else {
        name
    };
    let Some(limits) = name.and_then(limits::by_name) else {
        return Err(CliError::Usage(format!(
            "error: unknown device `{}`: type `--device vgpu:NAME` with one of {}",
            args.device,
            limits::names()
        )));
    };
    let problem = match (&args.problem, spec.problems.first()) {
        (Some(name), _) => name.clone(),
        (None, Some(problem)) => problem.name.clone(),
        (None, None) => String::new(),
    };
    timed(Some(problem.clone()), || spec.space(&problem, &limits))
        .map_err(|error| wrong(&shown, &error))
}

fn timed<E>(problem: Option<String>, build: impl FnOnce() -> Result<Space, E>) -> Result<Built, E> {
    let start = Instant::now();
    let space = build()?;
    Ok(Built {
        space,
        problem,
        build_ms: start.elapsed().as_secs_f64() * 1e3,
    })
}

fn usage(error: &Diagnostics) -> CliError {
    CliError::Usage(error.to_string())
}

fn wrong(file: &str, error: &dyn std::fmt::Display) -> CliError {
    CliError::Usage(format!("{file}: error: {error}"))
}

/// The file itself, else the file of the kernel of that name.
fn find(file: &str) -> PathBuf {
    let path = Path::new(file);
    let named = Path::new("search_spaces").join(format!("{file}.yaml"));
    if !path.exists() && !file.contains('/') && named.exists() {
        named
    } else {
        path.to_owned()
    }
}

/// The text of a file, unpacked where it is gzipped.
fn read(path: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot read the file: {error}");
    let bytes = std::fs::read(path).map_err(cannot)?;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut unpacked)
            .map_err(|error| format!("the gzip data is corrupt or cut short: {error}"))?;
        unpacked
    } else {
        bytes
    };
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("the file is no UTF-8 text (byte {at}): save it as UTF-8")
    })
}

fn print(format: Format, space: &Space, report: &Report) -> Result<(), CliError> {
    let headings: Vec<&str> = space
        .parameters()
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    let samples: Vec<Vec<String>> = report
        .samples
        .iter()
        .map(|sample| {
            sample
                .0
                .iter()
                .map(|(_, value)| value.to_string())
                .collect()
        })
        .collect();
    let summary = [
        report.name.clone(),
        report.cartesian.clone(),
        report.valid.clone(),
        share(space),
        format!("{:.3}", report.build_ms),
        report.bytes.to_string(),
    ];
    let titles = ["name", "cartesian", "valid", "share", "build_ms", "bytes"];
    let text = match format {
        Format::Json => serde_json::to_string_pretty(report).context("writing JSON")?,
        Format::Csv | Format::Md if !samples.is_empty() => {
            output::rows(format, &headings, &samples)
        }
        _ => {
            let mut text = output::rows(format, &titles, &[summary.to_vec()]);
            if !samples.is_empty() {
                text.push('\n');
                text.push_str(&output::rows(format, &headings, &samples));
            }
            text
        }
    };
    output::print(&text).context("writing to standard output")?;
    Ok(())
}

/// The valid part of all combinations.
fn share(space: &Space) -> String {
    format!(
        "{:.4} %",
        100.0 * space.count() as f64 / space.cartesian() as f64
    )
}
