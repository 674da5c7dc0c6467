//! Folders that may contain the files of a search space. A project may be untrusted, and the contents of
//! templates and data are quoted in messages, compiled, and sent to workers.

use super::files::{absolute, shown};
use super::{CatalogError, SPACES, parsed};
use crate::compile::absolute_variable;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tuner_core::data::DataFile;
use tuner_space::{Diagnostic, KernelSpec, Reference};

/// Checks that the template, the reference and the data of a search space are in its folder, in its
/// project, or in a folder of `compile: { include: […] }`. `work` is the user's working folder: it is the
/// project of the search spaces in it, unless it is a home or the root.
///
/// # Errors
/// The first file outside, at its line and column.
pub(super) fn check_files(spec: &KernelSpec, work: Option<&Path>) -> Result<(), CatalogError> {
    let include = spec.include.iter().map(PathBuf::as_path);
    let work = work.and_then(|folder| project_of(folder, &spec.path));
    let roots: Vec<PathBuf> = own_folders(&spec.path)
        .iter()
        .chain(&work)
        .map(PathBuf::as_path)
        .chain(include)
        .map(real)
        .collect();
    let help =
        "copy the file into the project, or name its folder: `compile: { include: [FOLDER] }`";
    check_named(spec, &roots, help)
}

/// Checks that all paths of a search space from another machine are in the folder in which it was unpacked,
/// including folders of headers.
///
/// # Errors
/// The search space is wrong, or names another path.
pub fn check_laid_out(space: &Path, folder: &Path) -> Result<(), CatalogError> {
    let spec = parsed(space)?;
    let roots = [real(folder)];
    let help = "name files relative to the search space";
    check_named(&spec, &roots, help)?;
    match spec.include.iter().find(|it| !is_inside(it, &roots)) {
        Some(include) => Err(outside(&spec, "folder of headers", include, None, help)),
        None => Ok(()),
    }
}

fn check_named(spec: &KernelSpec, roots: &[PathBuf], help: &str) -> Result<(), CatalogError> {
    let places = spec.places();
    let template = ("template", spec.source.as_path(), places.source.as_ref());
    let reference = match &spec.reference {
        Reference::Kernel { source, .. } => {
            let at = places.reference_source.as_ref();
            Some(("reference", source.as_path(), at))
        }
        Reference::Oracle(_) | Reference::None | Reference::Values { .. } => None,
    };
    let data: Vec<(PathBuf, &Range<usize>)> = places
        .data
        .iter()
        .flat_map(|(path, at)| each_problem(spec, path).map(move |path| (path, at)))
        .collect();
    let data = data
        .iter()
        .map(|(path, at)| ("data", path.as_path(), Some(*at)));
    let mut named = [template].into_iter().chain(reference).chain(data);
    match named.find(|(_, path, _)| !is_inside(path, roots)) {
        Some((what, path, at)) => Err(outside(spec, what, path, at, help)),
        None => Ok(()),
    }
}

/// Lists the files of a path: one for each problem if the path contains `{problem}`.
fn each_problem<'s>(spec: &'s KernelSpec, path: &Path) -> impl Iterator<Item = PathBuf> + use<'s> {
    let file = DataFile::new(path);
    let problems = spec.problems.iter().chain(&spec.check_problems);
    let names = problems.map(|problem| problem.name.as_str());
    // A path without `{problem}` is equal for every name.
    let names = if file.is_of_problem() {
        names.take(usize::MAX)
    } else {
        names.take(1)
    };
    names.map(move |name| PathBuf::from(&*file.of_problem(name).path))
}

fn outside(
    spec: &KernelSpec,
    what: &str,
    path: &Path,
    at: Option<&Range<usize>>,
    help: &str,
) -> CatalogError {
    let item = Diagnostic {
        message: format!("the {what} {} is outside the project", shown(path)),
        help: Some(help.to_owned()),
        at: at.cloned(),
    };
    spec.faults(vec![item]).into()
}

/// Returns the folder of a search space, and that of its project: the nearest parent that contains a folder
/// `search_spaces` with the space, or a repository.
fn own_folders(space: &Path) -> Vec<PathBuf> {
    let space = absolute(space);
    let folder = space.parent().unwrap_or(Path::new("/"));
    let mut folders = folder.ancestors();
    let project = folders.find_map(|folder| {
        if folder.ends_with(SPACES) {
            return folder.parent();
        }
        folder.join(".git").exists().then_some(folder)
    });
    let folders = [Some(folder), project].into_iter().flatten();
    folders.map(Path::to_owned).collect()
}

/// Returns the working folder if it is a project that contains the search space. A home is not a project:
/// it contains all files of its user, including keys.
fn project_of(work: &Path, space: &Path) -> Option<PathBuf> {
    let folder = real(work);
    let is_home = absolute_variable("HOME").is_some_and(|home| real(&home).starts_with(&folder));
    (!is_home && folder.parent().is_some() && real(space).starts_with(&folder)).then_some(folder)
}

fn is_inside(path: &Path, roots: &[PathBuf]) -> bool {
    let path = real(path);
    roots.iter().any(|root| path.starts_with(root))
}

/// Returns the path with links resolved; for a file that does not exist, with those of its nearest existing
/// parent.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let full = absolute(path);
    let mut missing = PathBuf::new();
    for folder in full.ancestors() {
        if let Ok(real) = folder.canonicalize() {
            return if missing.as_os_str().is_empty() {
                real
            } else {
                real.join(missing)
            };
        }
        let name = folder.file_name().unwrap_or_default();
        missing = if missing.as_os_str().is_empty() {
            PathBuf::from(name)
        } else {
            Path::new(name).join(missing)
        };
    }
    full
}

#[cfg(test)]
mod tests;
