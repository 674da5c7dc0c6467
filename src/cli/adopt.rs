//! `tuner adopt`: creates a template and a search space from a CUDA file.

mod programs;

use super::terminal::Ticker;
use super::{CliError, CommandResult, check, usage};
use crate::{atomic, exit};
use anyhow::Context as _;
use capture::Capture;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tuner_adopt::{AdoptError, Adopted, Settings, StatedLaunch};
use tuner_core::record::Verdict;
use tuner_core::target::ComputeTarget;
use tuner_device::{DeviceSelector, limits};
use tuner_kernel::catalog;
use tuner_kernel::compile::{Compiler, CompilerSettings};

/// Create a template and a search space from an existing CUDA file
///
/// Each kernel is extracted with its dependencies, or included if the file compiles unchanged. Its
/// arguments, launch, sizes and constants are read from the file; guesses are marked in the search
/// space.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner adopt src/softmax.cu && tuner check adopted/softmax_kernel.yaml --config default
  tuner adopt src/gemm.cu --kernel gemm_tiled -o tuning -I third_party/include
  tuner adopt src/gemm.cu --entry 'ns::gemm<float, 128, 8>'
  tuner adopt src/stencil.cu --define TILE=16,32 --define RADIUS=3
  tuner adopt scale.cuh --launch 'grid=(ceil_div(n, 256)) block=(256)' --size n=1000000
  tuner adopt app.cu --captured captured
  tuner adopt app.cu --run 'nvcc -lineinfo app.cu -o app && ./app {N}' --vary N=1024,4096

Exit codes: 0 done; 2 bad usage or input, or no kernel could be adopted: the message says what only
you can know, and what to type.")]
pub(crate) struct Args {
    /// CUDA file
    #[arg(value_name = "FILE.cu")]
    file: PathBuf,
    /// Adopt only this kernel; may be repeated [default: all kernels of the file]
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Output folder of the template and the search space
    #[arg(short, long, value_name = "DIR", default_value = "adopted")]
    output: PathBuf,
    /// Include folder; may be repeated
    #[arg(short = 'I', long, value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Instance of a kernel template in C++ syntax, if the file has no launch of it
    #[arg(long, value_name = "NAME<…>")]
    entry: Option<String>,
    /// Macro of your build with its value, or candidate values with the default first; may be
    /// repeated
    #[arg(long, value_name = "NAME=V1,V2,…", value_parser = definition)]
    define: Vec<(String, Vec<i64>)>,
    /// Launch of the kernel as expressions of its sizes, such as 'grid=(ceil_div(n, 256)) block=(256)',
    /// with shared=BYTES if it needs dynamic shared memory
    #[arg(long, value_name = "LAUNCH", conflicts_with_all = ["captured", "run"])]
    launch: Option<StatedLaunch>,
    /// Value of a size; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = size, conflicts_with_all = ["captured", "run"])]
    size: Vec<(String, i64)>,
    /// C++ standard that the file is compiled with, such as c++14 [default: c++17]
    #[arg(long, value_name = "STANDARD", value_parser = STANDARDS)]
    std: Option<String>,
    /// Use arguments, roles, sizes, launch, data and expected results of the launches in this
    /// capture of tuner exec --capture DIR; may be repeated for runs of other sizes
    /// or builds
    #[arg(long, value_name = "DIR")]
    captured: Vec<PathBuf>,
    /// Build and run the program with this command of sh on the virtual GPU, capture its launches
    /// and adopt its kernels. The command runs in a copy of the file's folder; {NAME} is replaced by
    /// a value of --vary
    #[arg(long, value_name = "COMMAND", conflicts_with = "captured")]
    run: Option<String>,
    /// Run the command of --run once for each of these values; if repeated, for all combinations
    #[arg(long, value_name = "NAME=V1,V2,…", value_parser = definition, requires = "run")]
    vary: Vec<(String, Vec<i64>)>,
    /// Device on which the command of --run runs the program: a virtual GPU, vgpu:NAME, or a GPU, cuda:N
    #[arg(
        long,
        value_name = "DEVICE",
        default_value = "vgpu:a100",
        requires = "run"
    )]
    device: DeviceSelector,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

/// Adopts kernels, writes the files, and reports guesses.
///
/// # Errors
/// A file without such a kernel, no adoptable kernel, or existing files.
pub(crate) fn run(args: &Args) -> CommandResult {
    let captured = captures(args)?;
    let captures = &captured.all;
    // The virtual GPU that `check` uses by default; it judges the adopted kernel.
    let gpu = limits::by_name(limits::DEFAULT).context("no such virtual GPU")?;
    let target = ComputeTarget::of_device(gpu.cc).to_string();
    let settings = Settings {
        file: &args.file,
        include: &args.include,
        folder: &args.output,
        arch: &target,
        entry: args.entry.as_deref(),
        define: &args.define,
        captured: captures,
        launch: args.launch.as_ref(),
        sizes: &args.size,
        standard: args.std.as_deref(),
    };
    let mut names = match (&args.entry, args.kernel.as_slice()) {
        (Some(entry), given) => vec![named(entry, given)?],
        (None, []) => tuner_adopt::kernels(&settings)?,
        (None, given) => given.to_vec(),
    };
    let was_captured = |name: &String| {
        let mut all = captures.iter();
        all.any(|capture| capture.launches(name).next().is_some())
    };
    // Without named kernels, only those that ran are adopted; a named kernel must have run.
    if args.kernel.is_empty() && names.iter().any(was_captured) {
        names.retain(was_captured);
    }
    let compiler = Compiler::new(CompilerSettings::default())?;
    let mut written = Vec::new();
    let mut last = None;
    for name in &names {
        match tuner_adopt::adopt(&settings, name, &compiler) {
            Ok(adopted) => {
                let path = write(args, &adopted)?;
                // A capture has the sizes of the program's allocations; only guesses are enlarged.
                if captures.is_empty() {
                    fit(&adopted, Path::new(&path), &compiler)?;
                }
                written.push(path);
            }
            // The compiler itself does not work: the other kernels would fail with the same error.
            Err(failed @ AdoptError::Compile(_)) => Err(failed)?,
            Err(failed) => {
                if let Some(before) = last.replace(failed) {
                    say!("{before}");
                }
            }
        }
    }
    match (written.is_empty(), last) {
        (true, Some(failed)) => Err(failed)?,
        (false, Some(failed)) => say!("{failed}"),
        (_, None) => {}
    }
    say!("next: tuner check {} --config default", written.join(" "));
    Ok(exit::DONE)
}

/// Opens the named captures, or makes those of `--run`.
fn captures(args: &Args) -> Result<programs::Captures, CliError> {
    if let Some(command) = &args.run {
        return programs::capture(&args.file, command, &args.vary, &args.device);
    }
    let all = args.captured.iter().map(|folder| Capture::open(folder));
    let all: Result<Vec<Capture>, _> = all.collect();
    match all {
        Ok(all) => Ok(programs::Captures { all, work: None }),
        Err(error) => Err(usage(format!("--captured: {error}"))),
    }
}

/// Parses `NAME=V1,V2`.
fn definition(text: &str) -> Result<(String, Vec<i64>), String> {
    let wanted = || format!("write a name and whole numbers, such as TILE=16,32; found `{text}`");
    let (name, values) = text.split_once('=').ok_or_else(wanted)?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit());
    let values: Option<Vec<i64>> = values
        .split(',')
        .map(|value| value.trim().parse().ok())
        .collect();
    match values.filter(|_| is_name && !name.is_empty()) {
        Some(mut values) => {
            let mut seen = std::collections::BTreeSet::new();
            values.retain(|value| seen.insert(*value));
            Ok((name.to_owned(), values))
        }
        None => Err(wanted()),
    }
}

/// C++ standards of NVRTC.
const STANDARDS: [&str; 5] = ["c++03", "c++11", "c++14", "c++17", "c++20"];

/// Parses `NAME=VALUE`.
fn size(text: &str) -> Result<(String, i64), String> {
    match definition(text)? {
        (name, values) if values.len() == 1 && values.iter().all(|value| *value > 0) => {
            Ok((name, values.into_iter().sum()))
        }
        _ => Err(format!(
            "write a name and a whole number from 1 on, such as n=4096; found `{text}`"
        )),
    }
}

/// Returns the kernel of an instance.
fn named(entry: &str, given: &[String]) -> Result<String, CliError> {
    let path = entry.split(['<', '(']).next().unwrap_or(entry).trim();
    let name = path.rsplit("::").next().unwrap_or(path);
    match given {
        [] => Ok(name.to_owned()),
        [only] if only == name => Ok(name.to_owned()),
        _ => Err(usage(format!(
            "--entry {entry} is an instance of {name} alone\nhelp: leave --kernel out, or type \
             --kernel {name}"
        ))),
    }
}

/// Returns the first file that writing the kernel into the folder would replace.
fn in_the_way(folder: &Path, adopted: &Adopted) -> Option<PathBuf> {
    let own = ["cu", "yaml"].map(|end| format!("{}.{end}", adopted.kernel));
    let data = adopted.files.iter().map(|file| file.path.as_str());
    let mut all = own.iter().map(String::as_str).chain(data);
    all.find_map(|name| Some(folder.join(name)).filter(|path| path.exists()))
}

/// Writes a kernel's files and reports open questions; returns the path of the search space.
fn write(args: &Args, adopted: &Adopted) -> Result<String, CliError> {
    let folder = &args.output;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let template = folder.join(format!("{}.cu", adopted.kernel));
    let space = folder.join(format!("{}.yaml", adopted.kernel));
    // All paths are checked before the first write, so that an error leaves the old files unchanged.
    if let Some(path) = in_the_way(folder, adopted).filter(|_| !args.force) {
        return Err(usage(format!(
            "{} is there already\nhelp: --force replaces it, -o DIR writes elsewhere",
            catalog::shown(&path)
        )));
    }
    for file in &adopted.files {
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot make the folder {}", parent.display()))?;
        atomic::write(&path, &file.bytes)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    put(&template, &adopted.template)?;
    put(&space, &adopted.space)?;
    let shown = catalog::shown(&space);
    say!("wrote {shown} and {}", catalog::shown(&template));
    for note in &adopted.notes {
        say!("note: {shown}: {note}");
    }
    Ok(shown)
}

fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    atomic::write(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// Maximum number of runs for fitting a kernel's guessed extents.
const MAX_RUNS: usize = 8;
/// Maximum factor of a guessed extent: a wild index does not determine an extent.
const MAX_TIMES: i64 = 64;

/// Enlarges guessed extents to the kernel's accesses on the small problem. An unbounded access or
/// another error leaves the guess, and `check` reports it.
fn fit(adopted: &Adopted, space: &Path, compiler: &Compiler) -> Result<(), CliError> {
    if !adopted.guesses_extents() {
        return Ok(());
    }
    let _ticker = Ticker::start();
    let mut times: BTreeMap<String, i64> = BTreeMap::new();
    for _ in 0..MAX_RUNS {
        // `check` reports other errors of the file.
        let Ok(found) = check::glance(space, compiler) else {
            break;
        };
        if found.verdict != Verdict::OutOfBounds {
            return Ok(());
        }
        let Some((name, more)) = beyond(&found.detail) else {
            break;
        };
        let all = times.entry(name).or_insert(1);
        *all *= more;
        if *all > MAX_TIMES {
            break;
        }
        match adopted.enlarged(&times) {
            Some(text) => put(space, &text)?,
            None => break,
        }
    }
    // The file has the extents of a failed attempt: `check` gets the first guess.
    if !times.is_empty() {
        put(space, &adopted.space)?;
    }
    Ok(())
}

/// Returns the buffer of an access out of bounds and the factor, a power of two, that would contain
/// it.
fn beyond(detail: &str) -> Option<(String, i64)> {
    let (_, rest) = detail.split_once(" at byte ")?;
    let (at, rest) = rest.split_once(" of `")?;
    let (name, rest) = rest.split_once("`, which has ")?;
    let has: i64 = rest.split(' ').next()?.parse().ok()?;
    let at: i64 = at.parse().ok()?;
    let times = (at + 1).checked_div(has)?.max(1) as u64 + 1;
    let times = i64::try_from(times.next_power_of_two()).ok()?;
    (at >= has && times <= MAX_TIMES).then(|| (name.to_owned(), times))
}

#[cfg(test)]
mod tests;
