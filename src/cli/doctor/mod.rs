//! `tuner doctor`: installed and missing components, with the command that fixes each.

mod device;
mod gpu;

use super::output::{self, Column, Format};
use super::results::{block_on, db_parser};
use super::{CliError, CommandResult};
use crate::exit;
use anyhow::Context as _;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tuner_core::plan::PlanLaunch;
use tuner_core::private;
use tuner_core::units::counted;
use tuner_device::DeviceSelector;
use tuner_kernel::compile::{
    Compiler, CompilerSettings, DiskCache, Isolation, Nvrtc, Surroundings, Template,
    install_command, render,
};
use tuner_store as store;
use tuner_store::{Store, StoreError};

/// Show what is installed, what is missing, and how to get it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tuner doctor\n  tuner doctor --device cuda:0\n  tuner doctor --format json"
)]
pub(crate) struct Args {
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Database of results.
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,
    /// Examine one GPU for a minute instead: rates, launch overhead, clock under load, power limit,
    /// MIG, ECC, other processes and host speed. Exits with code 4 if a check fails
    #[arg(long, value_name = "cuda:N")]
    device: Option<DeviceSelector>,
}

/// Status of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// Present and working.
    Ok,
    /// Missing, and not needed now.
    Absent,
    /// Missing or broken, and needed.
    Missing,
    /// Examined GPU: usable, but timing may be degraded.
    Warn,
    /// Examined GPU: cannot be timed in this state.
    Fail,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    status: Status,
    detail: String,
    /// The command or step that fixes it; null if none is needed.
    fix: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self {
            check,
            status: Status::Ok,
            detail: detail.into(),
            fix: None,
        }
    }

    fn absent(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            check,
            status: Status::Absent,
            detail: detail.into(),
            fix: Some(fix.into()),
        }
    }

    fn missing(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::absent(check, detail, fix).but(Status::Missing)
    }

    fn warn(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::absent(check, detail, fix).but(Status::Warn)
    }

    fn fail(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::absent(check, detail, fix).but(Status::Fail)
    }

    fn but(self, status: Status) -> Self {
        Self { status, ..self }
    }
}

/// Examines and prints. A missing component is a result, not a failure; an examined GPU may fail.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(args: &Args) -> CommandResult {
    if let Some(selector) = &args.device {
        let findings = device::findings(selector)?;
        let failed = findings.iter().any(|found| found.status == Status::Fail);
        print(&findings, args.format)?;
        return Ok(if failed { exit::NOT_OK } else { exit::DONE });
    }
    let mut findings = nvrtc();
    findings.extend(gpu::findings());
    findings.extend([
        program("git", "projects of kernels are kept with it"),
        program("python3", "baseline commands may need it"),
        database(&args.db)?,
        cache(),
    ]);
    print(&findings, args.format)?;
    Ok(exit::DONE)
}

fn print(findings: &[Finding], format: Format) -> anyhow::Result<()> {
    let text = output::values(format, &COLUMNS, findings).context("cannot make JSON")?;
    output::print(&text).context("cannot write to standard output")?;
    Ok(())
}

const COLUMNS: [Column<Finding>; 4] = [
    ("check", |finding| finding.check.to_owned()),
    ("status", |finding| {
        let status = match finding.status {
            Status::Ok => "ok",
            Status::Absent => "absent",
            Status::Missing => "MISSING",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        };
        status.to_owned()
    }),
    ("detail", |finding| finding.detail.clone()),
    ("fix", |finding| output::or("", finding.fix.as_ref())),
];

fn nvrtc() -> Vec<Finding> {
    let nvrtc = match Nvrtc::find(&Surroundings::from_env()) {
        Ok(nvrtc) => nvrtc,
        Err(missing) => {
            let tried = missing.tried.join("; ");
            return vec![Finding::missing(
                "nvrtc",
                format!("not found: {tried}"),
                install_command(),
            )];
        }
    };
    let archs = nvrtc.architectures();
    let range = match (archs.first(), archs.last()) {
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "targets unknown".to_owned(),
    };
    vec![
        Finding::ok(
            "nvrtc",
            format!(
                "{} at {} ({}), {range}",
                nvrtc.version(),
                nvrtc.library.display(),
                nvrtc.origin
            ),
        ),
        match &nvrtc.builtins {
            Some(path) => Finding::ok("nvrtc built-ins", path.display().to_string()),
            None => Finding::missing(
                "nvrtc built-ins",
                format!("no libnvrtc-builtins next to {}", nvrtc.library.display()),
                install_command(),
            ),
        },
        headers(&nvrtc),
        trial_compile(),
    ]
}

fn headers(nvrtc: &Nvrtc) -> Finding {
    let Some(folder) = &nvrtc.include else {
        return Finding::absent(
            "cuda headers",
            "no cuda_fp16.h; templates without headers compile",
            format!(
                "{}, or set TUNER_CUDA_INCLUDE to the folder with cuda_fp16.h",
                install_command()
            ),
        );
    };
    let version = header_version(folder);
    let detail = format!(
        "{} at {}",
        version.as_deref().unwrap_or("unknown version"),
        folder.display()
    );
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    match version.as_deref().and_then(major) {
        Some(found) if major(&nvrtc.version()).as_ref() != Some(&found) => Finding::missing(
            "cuda headers",
            format!("{detail}, but NVRTC is {}", nvrtc.version()),
            "set TUNER_CUDA_INCLUDE to headers of NVRTC's own version",
        ),
        _ => Finding::ok("cuda headers", detail),
    }
}

/// Returns `CUDA_VERSION` of `cuda.h` as `major.minor`.
fn header_version(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("cuda.h")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("#define CUDA_VERSION "))?;
    let number: u32 = line.trim().parse().ok()?;
    // cuda.h: 1000 * major + 10 * minor.
    Some(format!("{}.{}", number / 1000, number % 1000 / 10))
}

/// Compiles a kernel in a worker process, as a run does.
fn trial_compile() -> Finding {
    let settings = CompilerSettings {
        jobs: 1,
        // A cached image would hide a compiler that no longer works.
        cache: None,
        ..CompilerSettings::default()
    };
    debug_assert!(matches!(settings.isolation, Isolation::Workers { .. }));
    let template = Template::new(
        "doctor.cu",
        "extern \"C\" __global__ void doctor(float* x) { x[threadIdx.x] = 1; }\n",
        Vec::new(),
        Vec::new(),
    );
    let launch = PlanLaunch::new("doctor", [1; 3], [1; 3], Vec::new());
    let source = render(&template, &[], &[], &[launch], "sm_80");
    let outcome = Compiler::new(settings)
        .map_err(|error| error.to_string())
        .and_then(|compiler| compiler.compile(&source).map_err(|error| error.to_string()));
    let fix = format!(
        "{}, or set TUNER_NVRTC to another library",
        install_command()
    );
    match outcome {
        Ok(Ok(image)) => {
            let ms = image.facts.compile_us / 1000;
            Finding::ok("trial compile", format!("a kernel for sm_80 in {ms} ms"))
        }
        Ok(Err(failed)) => Finding::missing("trial compile", failed.detail, fix),
        Err(detail) => Finding::missing("trial compile", detail, fix),
    }
}

/// Reports whether a program runs, with its version.
fn program(name: &'static str, purpose: &str) -> Finding {
    let output = Command::new(name)
        .arg("--version")
        // A program that waits for input would block the command.
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout);
            Finding::ok(name, version.lines().next().unwrap_or_default().trim())
        }
        _ => {
            let fix = format!("apt-get install {name}");
            Finding::absent(name, format!("does not run; {purpose}"), fix)
        }
    }
}

fn database(path: &Path) -> Result<Finding, CliError> {
    if !path.exists() {
        let detail = format!("{} does not exist yet", path.display());
        return Ok(Finding::absent(
            "database",
            detail,
            "the first `tuner run` makes it",
        ));
    }
    let kernels = async || -> Result<_, StoreError> {
        let store = Store::open_read(path).await?;
        let kernels = store.kernels().await?;
        store.close().await?;
        Ok(kernels)
    };
    // A database that cannot be read is a row of the report, not a failure of the command.
    Ok(match block_on(async { Ok(kernels().await) })? {
        Ok(kernels) => {
            let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
            Finding::ok(
                "database",
                format!(
                    "{} ({} KiB, results of {})",
                    path.display(),
                    bytes >> 10,
                    counted(kernels.len(), "kernel")
                ),
            )
        }
        Err(error) => Finding::missing("database", error.to_string(), "see the message"),
    })
}

fn cache() -> Finding {
    let Some(folder) = DiskCache::default_folder() else {
        return Finding::absent(
            "compile cache",
            "no folder: neither TUNER_CACHE nor HOME is set",
            "set TUNER_CACHE to a writable folder",
        );
    };
    let probe = folder.join(format!(".doctor-{}", std::process::id()));
    let created = private::create_folder(&folder, &[]);
    let writable = created.and_then(|_| private::write_file(&probe, &[b"probe"]));
    let _ = std::fs::remove_file(&probe);
    match writable {
        Ok(()) => Finding::ok("compile cache", folder.display().to_string()),
        Err(error) => Finding::missing(
            "compile cache",
            format!("{}: {error}", folder.display()),
            "set TUNER_CACHE to a writable folder of your own",
        ),
    }
}
