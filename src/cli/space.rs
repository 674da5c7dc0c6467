//! `tuner space`: counts and samples a search space.

use super::output::{self, Format};
use super::{CliError, CommandResult, usage};
use crate::exit;
use anyhow::Context as _;
use rand::SeedableRng as _;
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tuner_core::files;
use tuner_core::record;
use tuner_core::record::ConfigValues;
use tuner_device::{DeviceSelector, gpu, limits};
use tuner_engine::job;
use tuner_kernel::catalog::{Catalog, shown};
use tuner_space::{BareSpace, BindError, DeviceLimits, Diagnostics, KernelSpec, Space};

/// Count the valid configurations of a search space, and sample them.
///
/// Reads search spaces of this project (YAML), JSON with `params` and `constraints`, T1 input
/// files, and Kernel Tuner cache files (`.json` or `.json.gz`).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tuner space search_spaces/gemm_f32.yaml\n  tuner space search_spaces/gemm_f32.yaml --device vgpu:a100 --sample 5 --seed 1 --format csv"
)]
pub(crate) struct Args {
    /// Search space file, or the name of a kernel.
    #[arg(value_name = "FILE")]
    file: String,
    /// Problem whose sizes the constraints see [default: the first].
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,
    /// Device whose limits the constraints see.
    #[arg(long, value_name = "DEVICE", default_value = "vgpu:h100")]
    device: String,
    /// Draw this many configurations uniformly.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    sample: u32,
    /// Random seed.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Result; counts are text because they may exceed the exact integer range of JSON parsers.
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

/// A space with its target.
struct SpaceForTarget {
    space: Space,
    /// Problem and device for which the space was built, if any.
    target: Option<(String, String)>,
    build_ms: f64,
    /// Errors in the file, if the space is empty.
    empty: Option<Diagnostics>,
}

/// Runs the command. An empty space is reported as an error in its file.
///
/// # Errors
/// A file that cannot be read or is invalid.
pub(crate) fn run(args: &Args) -> CommandResult {
    let built = build(args)?;
    let space = &built.space;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(args.seed);
    let samples = (0..args.sample)
        .map_while(|_| space.draw(&mut rng))
        .map(|config| Sample(space.values(&config)))
        .collect();
    let (problem, device) = built.target.unzip();
    let report = Report {
        name: space.name().to_owned(),
        problem,
        device,
        parameters: space.parameters().len(),
        cartesian: cartesian(space),
        valid: space.count().to_string(),
        build_ms: built.build_ms,
        bytes: space.bytes(),
        samples,
    };
    print(args.format, space, &report)?;
    for note in space.fault_notes() {
        say!("note: {note}");
    }
    match built.empty {
        Some(empty) => Err(empty.into()),
        None => Ok(exit::DONE),
    }
}

fn build(args: &Args) -> Result<SpaceForTarget, CliError> {
    let path = find(&args.file)?;
    let name = PathBuf::from(shown(&path));
    let text =
        read(&path).map_err(|error| Diagnostics::of_file(name.display().to_string(), error))?;
    let selector: DeviceSelector = args.device.parse()?;
    if BareSpace::recognises(&text) {
        return bare(args, &name, &text);
    }
    let spec = KernelSpec::parse(&text, &name)?;
    let Some((device, limits)) = limits_of(&selector)? else {
        refuse!(
            "the limits of {selector} are not known here; type --device vgpu:NAME (one of: {}) or cuda:N",
            limits::names()
        );
    };
    let problem = match (&args.problem, spec.problems.first()) {
        (Some(name), _) => name.clone(),
        (None, Some(problem)) => problem.name.clone(),
        (None, None) => String::new(),
    };
    let (space, build_ms) = timed(|| spec.space(&problem, &limits));
    let space = space.map_err(|error| match &error {
        BindError::Space(error) => spec.explain_refused(error).into(),
        other => usage(format!("{}: {other}", name.display())),
    })?;
    Ok(SpaceForTarget {
        empty: spec.explain_empty(&space, &problem, &device),
        target: Some((problem, device)),
        space,
        build_ms,
    })
}

fn bare(args: &Args, name: &Path, text: &str) -> Result<SpaceForTarget, CliError> {
    let bare = BareSpace::parse(text, name)?;
    if let Some(problem) = &args.problem {
        refuse!(
            "{} has no problems: leave `--problem {problem}` out",
            name.display()
        );
    }
    let (space, build_ms) = timed(|| bare.space());
    let space = space.map_err(|error| bare.explain_refused(&error))?;
    Ok(SpaceForTarget {
        empty: bare.explain_empty(&space),
        target: None,
        space,
        build_ms,
    })
}

/// Returns a result with its time in milliseconds.
fn timed<T>(build: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let built = build();
    (built, start.elapsed().as_secs_f64() * 1e3)
}

/// Returns the name and the limits of a GPU, virtual or real; `None` if the selector does not name a single
/// one.
pub(super) fn limits_of(
    selector: &DeviceSelector,
) -> Result<Option<(String, DeviceLimits)>, CliError> {
    let name = match selector {
        DeviceSelector::Vgpu(name) => name,
        DeviceSelector::Auto => limits::DEFAULT,
        DeviceSelector::Cuda(ordinal) => {
            let gpu = gpu::find(*ordinal).map_err(|error| job::absent(selector, &error))?;
            return Ok(Some((gpu.name.clone(), gpu.limits())));
        }
        DeviceSelector::CudaSeveral(_) | DeviceSelector::Replay(_) => return Ok(None),
    };
    // The selector is already validated.
    let limits = limits::by_name(name).context("no such virtual GPU")?;
    Ok(Some((format!("vgpu:{name}"), limits)))
}

/// Finds the file, else the file of the kernel of this name.
fn find(file: &str) -> Result<PathBuf, CliError> {
    let path = Path::new(file);
    if path.exists() || file.contains(['/', '.']) {
        return Ok(path.to_owned());
    }
    let here = std::env::current_dir().context("finding the working directory")?;
    Ok(Catalog::find(&here)?.file_of(file)?.to_owned())
}

/// Reads a file and unpacks gzip.
#[expect(
    clippy::indexing_slicing,
    reason = "the parser of JSON and YAML names a place in the text that it read"
)]
fn read(path: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => "no such file; check the path".to_owned(),
        ErrorKind::IsADirectory => "this is a folder: name a file in it".to_owned(),
        ErrorKind::PermissionDenied => {
            "cannot read the file, permission is denied: allow it with `chmod u+r`".to_owned()
        }
        _ => format!("cannot read the file: {error}"),
    };
    let yaml = path
        .extension()
        .is_some_and(|end| end == "yaml" || end == "yml");
    let max_bytes = if yaml {
        files::MAX_TEXT_BYTES
    } else {
        files::MAX_RECORDING_BYTES
    };
    let bytes = files::read(path, max_bytes).map_err(cannot)?;
    let unpacked = files::unpack(bytes, max_bytes).map_err(cannot)?;
    if let Some(error) = unpacked.damage {
        return Err(format!(
            "the gzip data is corrupt or cut short ({error}): fetch the file again"
        ));
    }
    let bytes = unpacked.bytes;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        format!("line {line} is not UTF-8 (byte {at} of the file); save the file as UTF-8")
    })?;
    // A byte order mark is not part of the text.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Returns the number of combinations, of any size, in decimal.
fn cartesian(space: &Space) -> String {
    const LIMB: u64 = 1_000_000_000;
    let mut limbs: Vec<u64> = vec![1];
    for parameter in space.parameters() {
        let mut carry = 0;
        for limb in &mut limbs {
            // A limb and a number of values are each below 2^32.
            let product = *limb * parameter.values.len() as u64 + carry;
            *limb = product % LIMB;
            carry = product / LIMB;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    let (first, rest) = limbs.split_last().unwrap_or((&0, &[]));
    let rest: String = rest.iter().rev().map(|limb| format!("{limb:09}")).collect();
    format!("{first}{rest}")
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
        Format::Json => output::json(report).context("writing JSON")?,
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

/// Formats the valid share of all combinations.
fn share(space: &Space) -> String {
    let sizes = space
        .parameters()
        .iter()
        .map(|parameter| parameter.values.len());
    let cartesian: f64 = sizes.map(|size| size as f64).product();
    format!("{:.4} %", 100.0 * space.count() as f64 / cartesian)
}
