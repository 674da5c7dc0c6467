//! Catalog of `search_spaces/` and `templates/`: finds, reads and parses them.

mod changed;
mod confine;
mod files;
pub(crate) mod kernel;
mod spaces;

pub use confine::check_laid_out;
use files::{Macros, load_template};
pub use files::{absolute, included, shown};
pub use kernel::Kernel;
pub use spaces::{Catalog, installed_folder};

use crate::declarations;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use tuner_core::data::DataFile;
use tuner_core::units::ContentHash;
use tuner_core::value::Value;
use tuner_space::{Diagnostic, Diagnostics, KernelSpec, Reference, suggest};

/// Name of the folder of search spaces.
const SPACES: &str = "search_spaces";

/// A named kernel or file is missing or wrong. The text is complete for the user.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A file cannot be read.
    #[error("error: cannot read the {what} {path}: {why}")]
    Unreadable {
        /// Kind of file.
        what: &'static str,
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// The data of an argument cannot be read.
    #[error("error: cannot read the data of `{argument}`: {why}")]
    Data {
        /// The argument.
        argument: String,
        /// The file and the reason.
        why: String,
    },
    /// Two files are included by the same name.
    #[error(
        "error: `#include \"{spelled}\"` means {first} in one place and {second} in another; \
         rename one of them"
    )]
    AmbiguousInclude {
        /// The name in the directive.
        spelled: String,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// A file outside the folders that a template may include from.
    #[error(
        "error: {including} includes \"{spelled}\", which is {found}: outside the template's folder and \
         the folders of the search space's `compile`\n\
         help: write `compile: {{ include: [FOLDER] }}` with the folder of that file, or copy it beside \
         the template"
    )]
    OutsideInclude {
        /// The file with the directive.
        including: String,
        /// The name in the directive.
        spelled: String,
        /// The file, links followed.
        found: String,
    },
    /// A search space is wrong, or its template overrides it.
    #[error("{0}")]
    Invalid(Box<Diagnostics>),
    /// Unknown kernel.
    #[error("error: there is no kernel `{name}`{}\n{}", near_text(.near), known_text(.known))]
    UnknownKernel {
        /// The typed name.
        name: String,
        /// The nearest name.
        near: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// No folder of search spaces.
    #[error(
        "error: there is no folder `search_spaces` in {0} or above it\n\
         help: go to the project, name a FILE.yaml, or type `tuner new NAME` to begin one"
    )]
    NoFolder(String),
    /// A CUDA file in place of a search space.
    #[error(
        "error: {0} is a CUDA file, not a search space; name the FILE.yaml that describes it, or \
         type `tuner adopt {0}` to make one"
    )]
    Cuda(String),
    /// The name of a file of this folder, without its extension.
    #[error(
        "error: there is no kernel `{0}` in a folder `search_spaces`, but a file {0}.yaml here\n\
         help: type {0}.yaml"
    )]
    Beside(String),
    /// Two files claim the same kernel.
    #[error("error: {first} and {second} are both of kernel `{kernel}`; name the file")]
    TwoFiles {
        /// The kernel.
        kernel: String,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
}

impl From<Diagnostics> for CatalogError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Invalid(Box::new(diagnostics))
    }
}

/// Formats the suggestion of the nearest known name.
pub fn near_text(near: &Option<impl std::fmt::Display>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

fn known_text(known: &[String]) -> String {
    if known.is_empty() {
        return "help: the folder search_spaces has no *.yaml file".to_owned();
    }
    format!("help: the known kernels are {}", known.join(", "))
}

/// Sets the hash of every data file's content, which identifies the file from then on.
fn hash_data(spec: &mut KernelSpec) -> Result<(), CatalogError> {
    let problems = spec.problems.iter().chain(&spec.check_problems);
    let problems: Vec<String> = problems.map(|problem| problem.name.clone()).collect();
    let mut hashes = BTreeMap::new();
    for (name, file) in spec.data_files_mut() {
        let hashed = |file: &DataFile| {
            file.hashed().map_err(|why| CatalogError::Data {
                argument: name.to_owned(),
                why,
            })
        };
        if !file.is_of_problem() {
            *file = hashed(file)?;
            continue;
        }
        let mut all = Vec::new();
        for problem in &problems {
            let own = hashed(&file.of_problem(problem))?;
            all.extend(own.hash.clone());
            hashes.extend(own.hash.map(|hash| (own.path.to_string(), hash)));
        }
        let all = all.iter().map(|hash| hash.as_str().as_bytes());
        file.hash = Some(ContentHash::from_parts(all));
    }
    spec.data_hashes = hashes;
    Ok(())
}

impl Kernel {
    /// Reads a search space and its template.
    ///
    /// # Errors
    /// A missing, unreadable or wrong file.
    pub fn load(path: &Path) -> Result<Self, CatalogError> {
        Self::load_from(path, None)
    }

    /// Reads a search space like [`load`](Self::load). Its files may be anywhere in `work`, the user's
    /// working folder, if the space is in it; a home or the root is not accepted.
    ///
    /// # Errors
    /// A missing, unreadable or wrong file.
    pub fn load_in(path: &Path, work: &Path) -> Result<Self, CatalogError> {
        Self::load_from(path, Some(work))
    }

    fn load_from(path: &Path, work: Option<&Path>) -> Result<Self, CatalogError> {
        let mut spec = parsed(path)?;
        // Before any of them is read: messages quote their contents.
        confine::check_files(&spec, work)?;
        hash_data(&mut spec)?;
        let places = spec.places();
        let macros = text_values(&spec);
        let template = load_template(&spec.source, &spec.include, &macros)
            .map_err(|error| at_name(error, &spec, &spec.source, places.source.clone()))?;
        let reference = match &spec.reference {
            Reference::Oracle(_) | Reference::None | Reference::Values { .. } => None,
            Reference::Kernel { source, .. } => {
                let read = load_template(source, &spec.include, &macros);
                let at = places.reference_source.clone();
                Some(read.map_err(|error| at_name(error, &spec, source, at))?)
            }
        };
        declarations::variables(&spec, &template)?;
        for text in std::iter::once(&template).chain(&reference) {
            declarations::overrides(&spec, text)?;
        }
        Ok(Self {
            path: path.to_owned(),
            spec,
            template,
            reference,
        })
    }
}

/// Returns the replacement texts of each parameter in the template.
fn text_values(spec: &KernelSpec) -> Macros {
    let texts = |value: &Value| match value {
        Value::Text(text) => Some(text.to_string()),
        _ => None,
    };
    let parameters = spec.parameters.iter();
    parameters
        .map(|one| {
            (
                one.name.clone(),
                one.values.iter().filter_map(texts).collect(),
            )
        })
        .collect()
}

/// Reports an unreadable template at its position in the search space.
fn at_name(
    error: CatalogError,
    spec: &KernelSpec,
    source: &Path,
    at: Option<Range<usize>>,
) -> CatalogError {
    match error {
        CatalogError::Unreadable { what, path, why } if path == shown(source) => {
            let wanted = source.file_name().unwrap_or_default().to_string_lossy();
            let names = neighbours(source, is_cuda);
            let near = suggest(&wanted, names.iter().map(String::as_str));
            let item = Diagnostic {
                message: format!("cannot read the {what} {path}: {why}"),
                help: Some(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "name a CUDA file, relative to this file".to_owned(),
                }),
                at,
            };
            spec.faults(vec![item]).into()
        }
        other => other,
    }
}

/// Loads the named kernels or files; without arguments, every kernel of the project.
///
/// # Errors
/// The first missing or wrong one.
pub fn resolve(arguments: &[String], start: &Path) -> Result<Vec<Kernel>, CatalogError> {
    if arguments.is_empty() {
        let catalog = Catalog::find(start)?;
        let files = catalog.main_files();
        return files.map(|file| Kernel::load_in(file, start)).collect();
    }
    arguments
        .iter()
        .map(|argument| {
            if is_cuda(argument) {
                return Err(CatalogError::Cuda(argument.clone()));
            }
            if is_file_name(argument) {
                return Kernel::load_in(Path::new(argument), start);
            }
            let beside = start.join(format!("{argument}.yaml"));
            let catalog = Catalog::find(start);
            match catalog.and_then(|all| all.file_of(argument).map(Path::to_owned)) {
                Ok(file) => Kernel::load_in(&file, start),
                Err(_) if beside.is_file() => Err(CatalogError::Beside(argument.clone())),
                Err(error) => Err(error),
            }
        })
        .collect()
}

/// Returns the kernel name of a command's argument. It is the name in a search space's file, or in a file
/// of the project around `start`. Otherwise it is the argument itself, which may be a kernel that only has
/// stored results.
///
/// # Errors
/// A named file that is unreadable or invalid.
pub fn kernel_of(argument: &str, start: &Path) -> Result<String, CatalogError> {
    if is_cuda(argument) {
        return Err(CatalogError::Cuda(argument.to_owned()));
    }
    if is_yaml(argument) {
        return Ok(parsed(Path::new(argument))?.kernel);
    }
    let catalog = Catalog::find(start).ok();
    let file = catalog.as_ref().and_then(|all| all.file_by_stem(argument));
    // A broken file must not hide its stored results.
    let known = file.and_then(|file| parsed(file).ok());
    Ok(known.map_or_else(|| argument.to_owned(), |spec| spec.kernel))
}

fn parsed(path: &Path) -> Result<KernelSpec, CatalogError> {
    let text = files::read_text(path, "search space").map_err(|error| match error {
        CatalogError::Unreadable {
            what,
            path: name,
            why,
        } if !path.exists() => {
            let there = neighbours(path, is_yaml);
            let wanted = path.file_name().unwrap_or_default().to_string_lossy();
            let near = suggest(&wanted, there.iter().map(String::as_str));
            let why = format!("{why}{}", near_text(&near));
            CatalogError::Unreadable {
                what,
                path: name,
                why,
            }
        }
        other => other,
    })?;
    Ok(KernelSpec::parse(&text, Path::new(&shown(path)))?)
}

/// Returns similar file names in a file's folder.
fn neighbours(file: &Path, may: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let there = std::fs::read_dir(folder.unwrap_or(Path::new(".")));
    let names = there.into_iter().flatten();
    names
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| may(name))
        .collect()
}

fn is_cuda(name: &str) -> bool {
    [".cu", ".cuh", ".cpp", ".ptx"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn is_yaml(argument: &str) -> bool {
    stem_of(Path::new(argument)).is_some()
}

/// Reports whether an argument names a file rather than a kernel.
fn is_file_name(argument: &str) -> bool {
    argument.contains('/') || is_yaml(argument)
}

/// Returns the name of a YAML file without its extension.
fn stem_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".yaml")
        .or_else(|| name.strip_suffix(".yml"))
        .map(str::to_owned)
}
