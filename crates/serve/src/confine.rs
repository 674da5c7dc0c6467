//! Confinement of HTTP requests to the kernels, recordings and knowledge in the configured folders.
//! A path is checked as text before the file system is accessed, and again after links are
//! resolved. Contents of invalid files are never quoted to a client.

use super::problem::Problem;
use super::view::{Choices, KernelChoice};
use axum::http::StatusCode;
use serde::Deserialize;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use tuner_device::replay::Recording;
use tuner_device::{DeviceSelector, gpu};
use tuner_engine::format_duration;
use tuner_engine::job::{DEFAULT_BUDGET, JobError, Request};
use tuner_kernel::catalog::{Catalog, Kernel, installed_folder};

/// Client text that may name a file. Only this module can read it.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct ClientText(String);

impl From<&'static str> for ClientText {
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

/// Replaces names in a request by absolute paths.
///
/// # Errors
/// 422 with the reason.
pub(super) fn confine(
    request: Request<ClientText>,
    folders: &[PathBuf],
) -> Result<Request, Problem> {
    let refused = |error: JobError| {
        tracing::info!(%error, "a request is refused");
        refuse(error.without_excerpts())
    };
    let device = request.device.0;
    // Each field is named, so that a new one is not passed through by mistake.
    let mut confined = Request {
        device: match device.parse::<DeviceSelector>() {
            Ok(DeviceSelector::Replay(file)) => {
                let file = find_within(&file.to_string_lossy(), folders)?;
                DeviceSelector::Replay(file).to_string()
            }
            _ => device,
        },
        kernels: Vec::new(),
        arch: request.arch,
        problems: request.problems,
        budget: request.budget,
        evals: request.evals,
        until_converged: request.until_converged,
        objective: request.objective,
        strategy: request.strategy,
        prior: request.prior,
        seed: request.seed,
        jobs: request.jobs,
        no_baseline: request.no_baseline,
        knowledge: request
            .knowledge
            .iter()
            .map(|file| Ok(to_text(&find_within(&file.0, folders)?)))
            .collect::<Result<_, Problem>>()?,
        no_knowledge: request.no_knowledge,
        prove_budget: request.prove_budget,
        fresh: request.fresh,
        shapes: None,
        source: None,
        change: None,
        known_kernel: None,
        spaces_until: None,
        fresh_checks: None,
    };
    confined.check().map_err(refused)?;
    if matches!(confined.selector(), Ok(DeviceSelector::Replay(_))) {
        // With a recording, names are compared with its kernel and not resolved.
        confined.kernels = request.kernels.into_iter().map(|name| name.0).collect();
        return Ok(confined);
    }
    let files = if request.kernels.is_empty() {
        list_kernels(default_folders(folders))?
    } else {
        let find = |name: &ClientText| kernel(&name.0, folders);
        request.kernels.iter().map(find).collect::<Result<_, _>>()?
    };
    // Read here, so that the client gets the error; later it would only be the message of a failed run.
    for file in &files {
        // Requests are resolved in the daemon's own folder, like their runs.
        let kernel =
            Kernel::load_in(file, Path::new(".")).map_err(|error| refused(error.into()))?;
        if let Some(why) = kernel.spec.unranked() {
            return Err(refuse(why));
        }
        problems(&confined.problems, &kernel, files.len())?;
    }
    confined.kernels = files.iter().map(|file| to_text(file)).collect();
    Ok(confined)
}

/// Returns the kernels, problems and devices that a request may name. Unreadable files are omitted, and so
/// are JSON files that are not recordings.
pub(super) fn choices(folders: &[PathBuf]) -> Choices {
    let files = list_kernels(folders).unwrap_or_default();
    let kernels = files.iter().filter_map(|file| {
        let kernel = Kernel::load_in(file, Path::new(".")).ok()?;
        if kernel.spec.unranked().is_some() {
            return None;
        }
        let problems = kernel.spec.problems.iter().map(|p| p.name.clone());
        Some(KernelChoice {
            name: file.file_stem()?.to_string_lossy().into_owned(),
            problems: problems.collect(),
        })
    });
    let local = gpu::list().map_or(0, |gpus| gpus.len());
    let mut devices = vec!["auto".to_owned()];
    devices.extend((0..local).map(|number| format!("cuda:{number}")));
    devices.extend(
        vgpu::arch::list_gpus()
            .iter()
            .map(|arch| format!("vgpu:{}", arch.name)),
    );
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let recorded = entries.filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Only the content distinguishes a recording from another JSON file.
            let candidate = RECORDED.iter().any(|end| name.ends_with(end));
            (candidate && Recording::load(&entry.path()).is_ok()).then_some(name)
        });
        devices.extend(recorded.map(|name| format!("replay:{name}")));
    }
    Choices {
        kernels: kernels.collect(),
        devices,
        default_budget: format_duration(DEFAULT_BUDGET),
    }
}

/// Suffixes of files that may be recordings.
const RECORDED: [&str; 2] = [".json", ".json.gz"];

fn to_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn refuse(detail: impl Into<String>) -> Problem {
    let detail: String = detail.into();
    let detail = detail.trim_start_matches("error: ").trim_end();
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Validates the problems: a single kernel must have all of them; with several kernels the engine checks
/// that at least one has each of them.
fn problems(asked: &[String], kernel: &Kernel, kernels: usize) -> Result<(), Problem> {
    let known = |name: &String| kernel.spec.problems.iter().any(|p| p.name == *name);
    match asked.iter().find(|name| !known(name)) {
        Some(name) if kernels == 1 => {
            let names: Vec<&str> = kernel.spec.problems.iter().map(|p| &*p.name).collect();
            Err(refuse(format!(
                "kernel `{}` has no timed problem `{name}`; choose from: {}",
                kernel.spec.kernel,
                names.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the folders for requests without kernel names: those installed with the program only if there
/// are no others.
fn default_folders(folders: &[PathBuf]) -> &[PathBuf] {
    match folders.split_last() {
        Some((last, own)) if !own.is_empty() && is_installed(last) => own,
        _ => folders,
    }
}

fn is_installed(folder: &Path) -> bool {
    installed_folder().is_some_and(|installed| {
        let real = installed.canonicalize();
        real.is_ok_and(|real| real == *folder)
    })
}

/// Lists every kernel of the folders. Of files with the same name the first one is listed.
fn list_kernels(folders: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let catalog = Catalog::of_folder(folder).map_err(|error| refuse(error.to_string()))?;
        let stem = |file: &Path| file.file_stem().map(OsStr::to_owned);
        let earlier: HashSet<_> = files.iter().map(|file| stem(file)).collect();
        let others = catalog
            .main_files()
            .filter(|file| !earlier.contains(&stem(file)));
        files.extend(others.map(Path::to_owned));
    }
    if files.is_empty() {
        return Err(refuse(
            "the daemon has no kernels: start it with --kernels DIR, or in a project with a \
             search_spaces folder",
        ));
    }
    Ok(files)
}

fn kernel(name: &str, folders: &[PathBuf]) -> Result<PathBuf, Problem> {
    let is_path = name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml");
    if is_path {
        return find_within(name, folders);
    }
    let mut last = None;
    for folder in folders {
        match Catalog::of_folder(folder) {
            Ok(catalog) => match catalog.file_of(name) {
                Ok(file) => return find_within(&file.to_string_lossy(), folders),
                Err(error) => last = Some(error.to_string()),
            },
            // A folder without kernels does not exclude that another folder has the name.
            Err(error) => last = last.or(Some(error.to_string())),
        }
    }
    Err(refuse(last.unwrap_or_else(|| {
        "the daemon has no kernels: start it with --kernels DIR".to_owned()
    })))
}

/// Resolves a file inside one of the folders.
fn find_within(name: &str, folders: &[PathBuf]) -> Result<PathBuf, Problem> {
    let outside = || {
        let shown: String = name.chars().take(200).collect();
        refuse(format!(
            "`{shown}` is not in the folders whose files requests may name; start the daemon with \
             --kernels DIR to add its folder"
        ))
    };
    if name.contains('\0') {
        return Err(outside());
    }
    for folder in folders {
        let Some(path) = plain(&folder.join(name)) else {
            continue;
        };
        if !path.starts_with(folder) || path == *folder {
            continue;
        }
        let Ok(real) = path.canonicalize() else {
            continue;
        };
        if real.is_file() && folders.iter().any(|folder| real.starts_with(folder)) {
            return Ok(real);
        }
    }
    Err(outside())
}

/// Normalizes `.` and `..` as text; `None` if the path leaves its root.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            part => plain.push(part),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests;
