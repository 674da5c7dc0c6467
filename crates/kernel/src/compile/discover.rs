//! Search for NVRTC and the CUDA headers on this machine. Only reads file names: `nvrtc` loads
//! the library.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A `libnvrtc` file, with the rule that found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The library.
    pub library: PathBuf,
    /// The rule that found it, for `tuner doctor`.
    pub origin: String,
}

/// Search environment, read once, so that tests can construct one.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `TUNER_NVRTC`: the library itself or a folder that contains it.
    pub explicit: Option<PathBuf>,
    /// `TUNER_CUDA_INCLUDE`: the folder with `cuda_fp16.h`.
    pub include: Option<PathBuf>,
    /// `CUDA_PATH`, then `CUDA_HOME`.
    pub toolkits: Vec<PathBuf>,
    /// The dynamic linker's search path.
    pub linker_path: Vec<PathBuf>,
    /// Parent of `cuda*` folders: `/usr/local`.
    pub local: PathBuf,
    /// `site-packages` folders: the environment that the executable is installed in, the active
    /// virtual environment, then the user's.
    pub site_packages: Vec<PathBuf>,
    /// `.cuda` folder of the project that the executable was built in.
    pub project: Option<PathBuf>,
    /// The user's folder, which `make nvrtc` fills: see `user_folder`.
    pub user: Option<PathBuf>,
}

/// Returns the path in an environment variable; `None` if it is unset or empty.
pub(super) fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Returns the path only if it is absolute: the XDG Base Directory Specification ignores others.
pub(crate) fn absolute_variable(name: &str) -> Option<PathBuf> {
    variable(name).filter(|path| path.is_absolute())
}

/// Returns the folder in which `make nvrtc` installs NVRTC, and in which a program outside of the project
/// finds it: `tuner/cuda` in the user's data folder (XDG Base Directory Specification). `None` if neither
/// `XDG_DATA_HOME` nor `HOME` is set.
#[must_use]
fn user_folder() -> Option<PathBuf> {
    let home = || Some(absolute_variable("HOME")?.join(".local/share"));
    let data = absolute_variable("XDG_DATA_HOME").or_else(home);
    data.map(|data| data.join("tuner/cuda"))
}

/// Returns the shell command that installs NVRTC from any folder.
#[must_use]
pub fn install_command() -> String {
    let folder = user_folder().unwrap_or_else(|| PathBuf::from(".cuda"));
    format!(
        "python3 -m pip install --target '{}' 'nvidia-cuda-nvrtc==13.0.*' \
         'nvidia-cuda-runtime==13.0.*'",
        folder.display()
    )
}

impl Surroundings {
    /// Reads the process's environment.
    #[must_use]
    pub fn from_env() -> Self {
        let toolkits = ["CUDA_PATH", "CUDA_HOME"].into_iter();
        Self {
            explicit: variable("TUNER_NVRTC"),
            include: variable("TUNER_CUDA_INCLUDE"),
            toolkits: toolkits.filter_map(variable).collect(),
            linker_path: linker_path(std::env::var_os("LD_LIBRARY_PATH")),
            local: PathBuf::from("/usr/local"),
            site_packages: site_packages(environment_roots()),
            project: std::env::current_exe()
                .ok()
                .and_then(|it| project_folder(&it)),
            user: user_folder(),
        }
    }

    /// Returns every NVRTC found, in order of preference: only `TUNER_NVRTC` if it is set, else
    /// `CUDA_PATH`/`CUDA_HOME`, the linker's path, `/usr/local/cuda*`, a Python environment, the
    /// `.cuda` of the executable's project, and the user's folder.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        if let Some(explicit) = &self.explicit {
            if explicit.is_file() {
                found.push(Candidate {
                    library: explicit.clone(),
                    origin: "TUNER_NVRTC".into(),
                });
            } else {
                self.add_roots(&mut found, "TUNER_NVRTC", std::slice::from_ref(explicit));
            }
            return found;
        }
        self.add_roots(&mut found, "CUDA_PATH or CUDA_HOME", &self.toolkits);
        add_folders(&mut found, "system library path", &self.linker_path);
        self.add_roots(
            &mut found,
            "/usr/local/cuda*",
            &numbered_toolkits(&self.local),
        );
        self.add_roots(&mut found, "Python environment", &self.site_packages);
        let project = self.project.as_slice();
        self.add_roots(&mut found, "project folder .cuda", project);
        let trusted = |one: &Candidate| {
            !project.iter().any(|it| one.library.starts_with(it)) || is_trusted(&one.library)
        };
        found.retain(trusted);
        self.add_roots(&mut found, "the user's folder", self.user.as_slice());
        found
    }

    /// Returns the searched locations, for the message if nothing was found.
    #[must_use]
    pub fn searched(&self) -> Vec<String> {
        let list = |paths: &[PathBuf]| {
            let shown: Vec<_> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            if shown.is_empty() {
                "none".to_owned()
            } else {
                shown.join(", ")
            }
        };
        if let Some(explicit) = &self.explicit {
            return vec![format!("TUNER_NVRTC: {}", explicit.display())];
        }
        vec![
            "TUNER_NVRTC: not set".to_owned(),
            format!("CUDA_PATH, CUDA_HOME: {}", list(&self.toolkits)),
            format!("system library path: {}", list(&self.linker_path)),
            format!("{}/cuda*/lib64", self.local.display()),
            format!("Python environments: {}", list(&self.site_packages)),
            format!("project folder .cuda: {}", list(self.project.as_slice())),
            format!("the user's folder: {}", list(self.user.as_slice())),
        ]
    }

    /// Returns the folder of the headers that belong to a library (`cuda_fp16.h` and others).
    #[must_use]
    pub(crate) fn headers_for(&self, library: &Path) -> Option<PathBuf> {
        let mut folders: Vec<PathBuf> = self.include.iter().cloned().collect();
        if let Some(root) = library.parent().and_then(Path::parent) {
            // A toolkit and the 13.x wheels: <root>/{lib,lib64}, <root>/include.
            folders.push(root.join("include"));
            // The 12.x wheels: nvidia/cuda_nvrtc/lib, nvidia/cuda_runtime/include.
            folders.extend(
                root.parent()
                    .map(|nvidia| nvidia.join("cuda_runtime/include")),
            );
        }
        for toolkit in &self.toolkits {
            folders.push(toolkit.join("include"));
        }
        folders
            .into_iter()
            .find(|folder| folder.join("cuda_fp16.h").is_file())
    }

    /// Adds libraries below roots: a toolkit, a `site-packages`, or similar.
    fn add_roots(&self, found: &mut Vec<Candidate>, origin: &str, roots: &[PathBuf]) {
        for root in roots {
            let mut folders: Vec<PathBuf> = [
                "",
                "lib64",
                "lib",
                "targets/x86_64-linux/lib",
                "targets/sbsa-linux/lib",
            ]
            .map(|folder| root.join(folder))
            .into();
            // nvidia/cu13/lib of the 13.x wheels, nvidia/cuda_nvrtc/lib of the 12.x ones.
            folders.extend(sorted_children(&root.join("nvidia")).map(|wheel| wheel.join("lib")));
            add_folders(found, origin, &folders);
        }
    }
}

/// Returns the folder of the CCCL headers (`cuda/`, `cub/`) that belongs to a folder of CUDA
/// headers: a separate folder from 13.0 on, and in the wheels.
#[must_use]
pub(super) fn libraries_beside(include: &Path) -> Option<PathBuf> {
    let wheels = include.parent().and_then(Path::parent);
    let folders = [
        Some(include.join("cccl")),
        wheels.map(|nvidia| nvidia.join("cuda_cccl/include")),
    ];
    let is_one = |folder: &PathBuf| folder.join("cuda/std/type_traits").is_file();
    folders.into_iter().flatten().find(is_one)
}

/// Returns the `libnvrtc-builtins` that belongs to a library: in the same folder, of the same major
/// version.
#[must_use]
pub(super) fn builtins_of(library: &Path) -> Option<PathBuf> {
    let major = version_of(library, "libnvrtc.so").first().copied();
    let mut found: Vec<PathBuf> = sorted_children(library.parent()?)
        .filter(|path| file_name(path).starts_with("libnvrtc-builtins.so"))
        .collect();
    found.sort_by_key(|path| {
        let version = version_of(path, "libnvrtc-builtins.so");
        (
            major.is_some() && version.first().copied() == major,
            version,
        )
    });
    found.pop()
}

/// Adds the best library of each folder.
fn add_folders(found: &mut Vec<Candidate>, origin: &str, folders: &[PathBuf]) {
    for folder in folders {
        let best = sorted_children(folder)
            .filter(|path| {
                let name = file_name(path);
                name == "libnvrtc.so" || name.starts_with("libnvrtc.so.")
            })
            .max_by_key(|path| version_of(path, "libnvrtc.so"));
        if let Some(library) = best
            && !found.iter().any(|seen| seen.library == library)
        {
            found.push(Candidate {
                library,
                origin: origin.to_owned(),
            });
        }
    }
}

/// Parses the numbers after `stem` in a file name: `libnvrtc.so.13.0.88` is `[13, 0, 88]`.
fn version_of(path: &Path, stem: &str) -> Vec<u32> {
    let name = file_name(path);
    let numbers = name.strip_prefix(stem).unwrap_or_default();
    numbers
        .split('.')
        .filter_map(|number| number.parse().ok())
        .collect()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns the entries of a folder in name order; empty if it cannot be read.
fn sorted_children(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries: BTreeSet<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    entries.into_iter()
}

/// Returns `cuda`, then `cuda-*` with the newest first.
fn numbered_toolkits(local: &Path) -> Vec<PathBuf> {
    let mut numbered: Vec<PathBuf> = sorted_children(local)
        .filter(|path| file_name(path).starts_with("cuda-"))
        .collect();
    numbered.sort_by_key(|path| std::cmp::Reverse(version_of(path, "cuda-")));
    let mut toolkits = vec![local.join("cuda")];
    toolkits.append(&mut numbered);
    toolkits.retain(|path| path.is_dir());
    toolkits
}

/// Returns `LD_LIBRARY_PATH`, the folders of `/etc/ld.so.conf`, and the linker's defaults.
fn linker_path(variable: Option<OsString>) -> Vec<PathBuf> {
    // An empty or relative entry would be a folder of any project that the user is in.
    let mut folders: Vec<PathBuf> = variable.iter().flat_map(std::env::split_paths).collect();
    folders.retain(|folder| folder.is_absolute());
    let fragments = sorted_children(Path::new("/etc/ld.so.conf.d"));
    for file in std::iter::once(PathBuf::from("/etc/ld.so.conf")).chain(fragments) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        folders.extend(
            text.lines()
                .map(str::trim)
                .filter(|line| line.starts_with('/'))
                .map(PathBuf::from),
        );
    }
    folders.extend(
        [
            "/lib/x86_64-linux-gnu",
            "/usr/lib/x86_64-linux-gnu",
            "/lib/aarch64-linux-gnu",
            "/lib64",
        ]
        .map(PathBuf::from),
    );
    folders.extend(["/usr/lib64", "/usr/lib", "/usr/local/lib"].map(PathBuf::from));
    let mut seen = BTreeSet::new();
    folders.retain(|folder| {
        // `/lib` is a link to `/usr/lib` on most systems: search it once.
        let real = folder.canonicalize();
        real.is_ok_and(|real| real.is_dir() && seen.insert(real))
    });
    folders
}

/// Returns the roots of Python environments: that of the executable, the active ones, then the user's.
fn environment_roots() -> Vec<PathBuf> {
    let own = std::env::current_exe().ok();
    let own = own.and_then(|executable| environment_of(&executable));
    let home = variable("HOME").map(|home| home.join(".local"));
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].map(variable);
    own.into_iter()
        .chain(active.into_iter().flatten())
        .chain(home)
        .collect()
}

/// Returns the Python environment of an executable: `ROOT/bin/tuner`, as installed by a wheel, also by `pip
/// install --target ROOT`. `None` if another user can write there.
fn environment_of(executable: &Path) -> Option<PathBuf> {
    let folder = executable.parent().filter(|it| file_name(it) == "bin")?;
    let root = folder.parent()?;
    let packages = ["lib", "nvidia"].map(|name| root.join(name));
    let mut packages = packages.iter().filter(|folder| folder.exists()).peekable();
    let is_environment = packages.peek().is_some() && packages.all(|folder| is_trusted(folder));
    is_environment.then(|| root.to_owned())
}

/// Returns the `site-packages` of environments, in their order. A folder of `pip install --target` is
/// itself one.
fn site_packages(roots: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for root in roots {
        let mut pythons: Vec<PathBuf> = sorted_children(&root.join("lib"))
            .filter(|path| file_name(path).starts_with("python"))
            .collect();
        pythons.sort_by_key(|path| std::cmp::Reverse(version_of(path, "python")));
        found.extend(
            pythons
                .into_iter()
                .map(|python| python.join("site-packages")),
        );
        if root.join("nvidia").is_dir() {
            found.push(root);
        }
    }
    found.retain(|folder| folder.is_dir());
    found
}

/// Returns the `.cuda` above the executable. The one of the working directory is ignored: changing into a
/// foreign project must not execute its code.
fn project_folder(executable: &Path) -> Option<PathBuf> {
    let mut folders = executable.ancestors().skip(1);
    folders.find_map(|folder| {
        let cuda = folder.join(".cuda");
        cuda.is_dir().then_some(cuda)
    })
}

/// Reports whether a library and all its parent folders are owned by this user or root, and are not
/// writable by others: an executable may be in a world-writable folder such as `/tmp`.
fn is_trusted(library: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let trusts = |path: &Path| {
        let Ok(facts) = std::fs::metadata(path) else {
            return false;
        };
        // Most systems give each user a private group of the same number.
        let group = facts.mode() & 0o020 == 0 || facts.gid() == facts.uid();
        // In a sticky folder users can only replace their own entries.
        let everybody = facts.mode() & 0o002 == 0 || (facts.is_dir() && facts.mode() & 0o1000 != 0);
        (facts.uid() == user || facts.uid() == 0) && group && everybody
    };
    let real = library.canonicalize();
    real.is_ok_and(|real| real.ancestors().all(trusts))
}

#[cfg(test)]
mod tests;
