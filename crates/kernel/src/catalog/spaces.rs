//! The search spaces of a project and of the installation, by name.

use super::files::{read_text, shown};
use super::{CatalogError, SPACES, stem_of};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tuner_space::{KernelSpec, suggest};

/// The search spaces of a project, and those installed with the program.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// Files by stem, in order.
    files: BTreeMap<String, PathBuf>,
    /// Installed files by stem, without kernels and variants that have the name of a project file.
    shipped: BTreeMap<String, PathBuf>,
}

impl Catalog {
    /// Returns the catalog of the nearest `search_spaces` folder, from `start` upwards, with the search
    /// spaces that are installed with the program.
    ///
    /// # Errors
    /// An absent or unreadable folder.
    pub fn find(start: &Path) -> Result<Self, CatalogError> {
        let installed = installed_folder();
        let Some(own) = Self::folder(start) else {
            let folder =
                installed.ok_or_else(|| CatalogError::NoFolder(start.display().to_string()))?;
            return Self::of_folder(&folder);
        };
        let mut catalog = Self::of_folder(&own)?;
        // An unreadable installation must not hide the project's kernels.
        if let Some(Ok(mut installed)) = installed.map(|folder| Self::of_folder(&folder)) {
            let own: BTreeSet<&str> = catalog.files.keys().map(|stem| kernel_part(stem)).collect();
            installed
                .files
                .retain(|stem, _| !own.contains(kernel_part(stem)));
            catalog.shipped = installed.files;
        }
        Ok(catalog)
    }

    /// Returns the nearest `search_spaces` folder, from `start` upwards.
    #[must_use]
    pub fn folder(start: &Path) -> Option<PathBuf> {
        start
            .ancestors()
            .map(|folder| folder.join(SPACES))
            .find(|folder| folder.is_dir())
    }

    /// Returns the catalog of this folder.
    ///
    /// # Errors
    /// An unreadable folder.
    pub fn of_folder(folder: &Path) -> Result<Self, CatalogError> {
        let entries = std::fs::read_dir(folder).map_err(|error| CatalogError::Unreadable {
            what: "folder",
            path: shown(folder),
            why: error.to_string(),
        })?;
        let files = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter_map(|path| Some((stem_of(&path)?, path)))
            // `_skeleton.yaml` is a template for copying.
            .filter(|(stem, _)| !stem.starts_with('_'))
            .collect();
        Ok(Self {
            files,
            shipped: BTreeMap::new(),
        })
    }

    /// Returns the stems of all files, `gemm_f32` and `gemm_f32.quick`, the project's first.
    pub fn stems(&self) -> impl Iterator<Item = &str> {
        let all = self.files.keys().chain(self.shipped.keys());
        all.map(String::as_str)
    }

    /// Returns the default files if no kernel is named: one for each kernel of the project, or without a
    /// project, of the installation. Variants (a second dot in the name, as in `gemm_f32.quick.yaml`) are
    /// omitted.
    pub fn main_files(&self) -> impl Iterator<Item = &Path> {
        main_of(&self.files)
    }

    /// Returns the file of a stem: the project's, else the installed one.
    pub(super) fn file_by_stem(&self, stem: &str) -> Option<&Path> {
        let file = self.files.get(stem).or_else(|| self.shipped.get(stem));
        file.map(PathBuf::as_path)
    }

    /// Returns the file of a kernel: by its stem, else by its `kernel` key; the project's, else the
    /// installed one.
    ///
    /// # Errors
    /// No such file, or more than one.
    pub fn file_of(&self, name: &str) -> Result<&Path, CatalogError> {
        for files in [&self.files, &self.shipped] {
            if let Some(path) = find_kernel(files, name)? {
                return Ok(path);
            }
        }
        Err(CatalogError::UnknownKernel {
            name: name.to_owned(),
            near: suggest(name, self.stems()).map(str::to_owned),
            known: self.stems().map(str::to_owned).collect(),
        })
    }
}

/// Returns the kernel's part of a stem: `gemm_f32` of `gemm_f32.quick`.
fn kernel_part(stem: &str) -> &str {
    stem.split('.').next().unwrap_or(stem)
}

fn main_of(files: &BTreeMap<String, PathBuf>) -> impl Iterator<Item = &Path> {
    let main = files.iter().filter(|(stem, _)| !stem.contains('.'));
    main.map(|(_, path)| path.as_path())
}

/// Returns the file of a kernel: by its stem, else by its `kernel` key.
fn find_kernel<'f>(
    files: &'f BTreeMap<String, PathBuf>,
    name: &str,
) -> Result<Option<&'f Path>, CatalogError> {
    if let Some(path) = files.get(name) {
        return Ok(Some(path));
    }
    let mut found: Option<&Path> = None;
    for path in main_of(files) {
        // A broken file must not hide the others: it is reported when it is requested.
        let Ok(text) = read_text(path, "search space") else {
            continue;
        };
        let spec = KernelSpec::parse(&text, path);
        if !spec.is_ok_and(|spec| spec.kernel == name) {
            continue;
        }
        if let Some(first) = found {
            return Err(CatalogError::TwoFiles {
                kernel: name.to_owned(),
                first: shown(first),
                second: shown(path),
            });
        }
        found = Some(path);
    }
    Ok(found)
}

/// Returns the folder of search spaces in `share/tuner` next to the program's `bin`, where a wheel installs
/// them.
#[must_use]
pub fn installed_folder() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let root = executable.parent()?.parent()?;
    let folder = root.join("share/tuner").join(SPACES);
    folder.is_dir().then_some(folder)
}
