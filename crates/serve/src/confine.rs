//! What a request over HTTP may name: kernels and recordings in the configured folders, and nothing
//! else. A path is judged by its text before the file system is asked about it, and again after
//! links are followed.

use super::problem::Problem;
use axum::http::StatusCode;
use std::path::{Component, Path, PathBuf};
use tuner_device::DeviceSelector;
use tuner_engine::job::{JobError, Request};
use tuner_kernel::catalog::{Catalog, Kernel};

/// The request with absolute paths in place of names, or why it is refused.
///
/// # Errors
/// 422 with the reason.
pub(super) fn confine(request: &Request, folders: &[PathBuf]) -> Result<Request, Problem> {
    let mut confined = request.clone();
    let refused = |error: JobError| refuse(error.to_string());
    let selector = request.selector().map_err(refused)?;
    request.limits().map_err(refused)?;
    request.strategy().map_err(refused)?;
    if let DeviceSelector::Replay(file) = &selector {
        let file = within(&file.to_string_lossy(), folders)?;
        confined.device = format!("replay:{}", file.display());
        return Ok(confined);
    }
    let files = if request.kernels.is_empty() {
        all(folders)?
    } else {
        let find = |name: &String| kernel(name, folders);
        request.kernels.iter().map(find).collect::<Result<_, _>>()?
    };
    for file in &files {
        let kernel = Kernel::load(file).map_err(|error| refuse(error.to_string()))?;
        if let Some(why) = kernel.spec.unranked() {
            return Err(refuse(why));
        }
        problems(request, &kernel)?;
    }
    let text = |file: &PathBuf| file.to_string_lossy().into_owned();
    confined.kernels = files.iter().map(text).collect();
    Ok(confined)
}

fn refuse(detail: impl Into<String>) -> Problem {
    let detail: String = detail.into();
    let detail = detail.trim_start_matches("error: ").trim_end();
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// A single kernel must know the problems; of several, one of them must, which the engine sees.
fn problems(request: &Request, kernel: &Kernel) -> Result<(), Problem> {
    let known = |name: &String| kernel.spec.problems.iter().any(|p| p.name == *name);
    match request.problems.iter().find(|name| !known(name)) {
        Some(name) if request.kernels.len() == 1 => {
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

/// Every kernel of the folders.
fn all(folders: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let mut files = Vec::new();
    for folder in folders {
        let catalog = Catalog::of_folder(folder).map_err(|error| refuse(error.to_string()))?;
        files.extend(catalog.main_files().map(Path::to_owned));
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
        return within(name, folders);
    }
    let mut last = None;
    for folder in folders {
        let catalog = Catalog::of_folder(folder).map_err(|error| refuse(error.to_string()))?;
        match catalog.file_of(name) {
            Ok(file) => return within(&file.to_string_lossy(), folders),
            Err(error) => last = Some(error.to_string()),
        }
    }
    Err(refuse(last.unwrap_or_else(|| {
        "the daemon has no kernels: start it with --kernels DIR".to_owned()
    })))
}

/// The file, if it lies in one of the folders.
fn within(name: &str, folders: &[PathBuf]) -> Result<PathBuf, Problem> {
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

/// The path without `.` and `..`, by its text alone; `None` where it climbs over its root.
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
