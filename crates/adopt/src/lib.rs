//! From a CUDA file as it lies in somebody's project to a template and a search space.
//!
//! ```text
//! file ─ unit (items of it and its includes) ─ cut (what the kernel reaches) ─► template
//!      └ host (launches, sizes, buffers) ─ plan ─────────────────────────────► search space
//! ```
//!
//! The compiler decides what is missing and what the parameters' types are; what is guessed is marked
//! in the search space and told.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod captured;
mod cut;
mod expr;
mod host;
mod kernel;
mod macros;
mod plan;
mod sizes;
mod template;
mod tree;
mod types;
mod unit;
mod yaml;

pub use captured::DataFile;
pub use template::relative;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tuner_core::files;
use tuner_kernel::catalog::shown;
use tuner_kernel::compile::{CompileError, Compiler};
use unit::{Kind, Unit};

/// Why a kernel was not adopted. The text says what to type.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The file cannot be read.
    #[error("error: cannot read {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// It has no kernel, or not this one.
    #[error("error: {path} has no kernel {wanted}\nhelp: {known}")]
    NoKernel {
        /// The file.
        path: String,
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// A parameter is of a kind that a search space cannot describe.
    #[error("error: {kernel}: {why}\nhelp: {help}")]
    Unsupported {
        /// The kernel.
        kernel: String,
        /// What it is.
        why: String,
        /// What to do.
        help: String,
    },
    /// The compiler skips it.
    #[error(
        "error: {place}: `{kernel}` is not compiled: it stands in a branch whose condition does not hold:\n\
         {condition}\nhelp: give the macros that your build defines: --define NAME=VALUE"
    )]
    NotCompiled {
        /// The kernel.
        kernel: String,
        /// File and line.
        place: String,
        /// The directives that lead to it.
        condition: String,
    },
    /// The compiler refuses what was cut out.
    #[error("error: {kernel} was cut out and does not compile:\n{log}\nhelp: {help}")]
    Refused {
        /// The kernel.
        kernel: String,
        /// Its first messages.
        log: String,
        /// What to do.
        help: String,
    },
    /// A capture cannot be used.
    #[error("error: {text}")]
    Captured {
        /// The fault, and what to do.
        text: String,
    },
    /// The compiler cannot work.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Files of a folder that are looked at for launches.
const MAX_NEARBY: usize = 200;
/// Files that are named where the one that was given has no kernel.
const FILES_SHOWN: usize = 6;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Settings<'s> {
    /// The CUDA file.
    pub file: &'s Path,
    /// Folders of headers.
    pub include: &'s [PathBuf],
    /// The folder that template and search space go to.
    pub folder: &'s Path,
    /// The target of trial compiles, such as `sm_90`.
    pub arch: &'s str,
    /// The instance of a template, as C++ names it, where the file does not say.
    pub entry: Option<&'s str>,
    /// Macros that the project's build gives, with the values that are proposed, the default first.
    pub define: &'s [(String, Vec<i64>)],
    /// Captured launches of the program; where there are none, the source says everything.
    pub captured: &'s [capture::Capture],
}

/// A kernel that was adopted.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// The kernel's name.
    pub kernel: String,
    /// The template's text.
    pub template: String,
    /// The search space's text.
    pub space: String,
    /// What was guessed, and what to write where it is wrong.
    pub notes: Vec<String>,
    /// Captured data that the search space names.
    pub files: Vec<DataFile>,
}

impl Adopted {
    /// Whether extents of buffers were guessed.
    #[must_use]
    pub fn guesses_extents(&self) -> bool {
        self.space.contains(sizes::GUESSED_EXTENT)
    }

    /// The search space's text with guessed extents so many times as large, by the arguments' names;
    /// `None` where one of them is no guess.
    #[must_use]
    pub fn enlarged(&self, times: &BTreeMap<String, i64>) -> Option<String> {
        yaml::enlarged(&self.space, times)
    }
}

/// The names of all kernels in a file, in its order; those of its project's headers where it has none.
///
/// # Errors
/// The file cannot be read, or has none.
pub fn kernels(settings: &Settings<'_>) -> Result<Vec<String>, AdoptError> {
    if settings.file.is_dir() {
        let files = beside(settings.file, |text| text.contains("__global__"));
        let inside = files
            .iter()
            .filter(|path| path.parent() == settings.file.canonicalize().ok().as_deref());
        return Err(AdoptError::Unreadable {
            path: settings.file.display().to_string(),
            why: match first(inside).as_str() {
                "" => "it is a folder, and no CUDA file in it has a kernel\nhelp: name a file"
                    .to_owned(),
                files => format!("it is a folder\nhelp: name a file: {files}"),
            },
        });
    }
    let unit = Unit::read(settings.file, settings.include)?;
    let of = |own: bool| {
        let mut names: Vec<String> = Vec::new();
        for item in unit.items.iter().filter(|item| item.kind == Kind::Kernel) {
            if let Some(name) = item.names.last()
                && (item.file == 0) == own
                && has_body(&unit, item)
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        names
    };
    let mut names = of(true);
    if names.is_empty() {
        // A file that includes its kernels.
        names = of(false);
    }
    if names.is_empty() {
        let beside = beside(settings.file, |text| text.contains("__global__"));
        let known = match first(beside.iter()).as_str() {
            "" => "a kernel is a `__global__` function; name the file that has it".to_owned(),
            files => {
                format!("a kernel is a `__global__` function; beside it these have some: {files}")
            }
        };
        return Err(AdoptError::NoKernel {
            path: settings.file.display().to_string(),
            wanted: "at all".to_owned(),
            known,
        });
    }
    Ok(names)
}

/// The first of some files, as messages name them.
fn first<'f>(files: impl Iterator<Item = &'f PathBuf>) -> String {
    let first: Vec<String> = files.take(FILES_SHOWN).map(|path| shown(path)).collect();
    first.join(", ")
}

fn has_body(unit: &Unit, item: &unit::Item) -> bool {
    kernel::node_of(unit, item).is_some_and(|(_, node)| tree::body(node).is_some())
}

/// Adopts one kernel of a file.
///
/// # Errors
/// As [`AdoptError`].
pub fn adopt(
    settings: &Settings<'_>,
    name: &str,
    compiler: &Compiler,
) -> Result<Adopted, AdoptError> {
    let mut skipped = None;
    for number in 0.. {
        match adopt_one(settings, (name, number), compiler) {
            Err(failed @ AdoptError::NotCompiled { .. }) => {
                skipped.get_or_insert(failed);
            }
            // There are no more of the name.
            Err(AdoptError::NoKernel { .. }) if number > 0 => break,
            other => return other,
        }
    }
    Err(skipped.unwrap_or_else(|| AdoptError::NoKernel {
        path: settings.file.display().to_string(),
        wanted: format!("`{name}`"),
        known: "its declaration cannot be read as a function".to_owned(),
    }))
}

/// Adopts the kernel of that name and number: branches of conditional compilation may each have one.
fn adopt_one(
    settings: &Settings<'_>,
    (name, number): (&str, usize),
    compiler: &Compiler,
) -> Result<Adopted, AdoptError> {
    let unit = Unit::read(settings.file, settings.include)?;
    let Some(item) = position(&unit, name, number) else {
        let known = kernels(settings)?;
        return Err(AdoptError::NoKernel {
            path: settings.file.display().to_string(),
            wanted: format!("`{name}`"),
            known: format!("it has {}: --kernel NAME", known.join(", ")),
        });
    };
    if let Some(mut observed) = captured::select(settings, &unit, item, name)? {
        let (unit, item) = launching(settings, unit, item, (name, 0));
        return match adopt_captured(settings, (&unit, item), &observed, compiler) {
            // Launches of one run: the largest alone says what it was.
            Err(error @ AdoptError::Unsupported { .. })
                if settings.captured.len() == 1 && observed.launches.len() > 1 =>
            {
                observed.keep_largest(&error);
                adopt_captured(settings, (&unit, item), &observed, compiler)
            }
            other => other,
        };
    }
    let (unit, item) = launching(settings, unit, item, (name, number));
    let Some(mut plan) = plan::Plan::of(&unit, item, settings) else {
        return Err(AdoptError::NoKernel {
            path: settings.file.display().to_string(),
            wanted: format!("`{name}`"),
            known: "its declaration cannot be read as a function".to_owned(),
        });
    };
    let made = template::make(settings, &unit, item, &plan, compiler)?;
    plan.finish(&unit, item, &made)?;
    let settings = &Settings {
        include: &made.include,
        ..*settings
    };
    let space = yaml::write(settings, &unit, item, &plan);
    let mut notes = plan.notes;
    notes.extend(made.notes);
    Ok(Adopted {
        kernel: name.to_owned(),
        template: made.text,
        space,
        notes,
        files: Vec::new(),
    })
}

/// Decides the launch of a kernel by its captured launches, and by that launch of the source which they
/// agree with best.
fn decide<'c>(
    settings: &Settings<'_>,
    (unit, item): (&Unit, usize),
    observed: &captured::Observed<'c>,
) -> Result<(plan::Plan, captured::Facts<'c>), AdoptError> {
    let name = observed.kernel.as_str();
    let unreadable = || AdoptError::NoKernel {
        path: settings.file.display().to_string(),
        wanted: format!("`{name}`"),
        known: "its declaration cannot be read as a function".to_owned(),
    };
    let mut best: Option<(plan::Plan, captured::Facts<'_>)> = None;
    let mut failed = None;
    let used = observed.variables();
    for number in 0..host::Host::new(unit).launches(name).len().max(1) {
        for by_instance in [false, true] {
            let settings = &Settings {
                entry: match by_instance {
                    true => Some(observed.instance.as_str()),
                    false => settings.entry,
                },
                ..*settings
            };
            let at = (Some(number), &used);
            let mut plan =
                plan::Plan::of_launch(unit, item, settings, at).ok_or_else(unreadable)?;
            if !by_instance && !captured::is_instance(&plan, &observed.instance) {
                continue;
            }
            let mut facts = captured::Facts::of(&mut plan, observed);
            if let Err(error) = facts.decide(&mut plan, (unit, item)) {
                failed.get_or_insert(error);
                break;
            }
            let better = |(_, known): &(_, captured::Facts<'_>)| facts.explained > known.explained;
            if best.as_ref().is_none_or(better) {
                best = Some((plan, facts));
            }
            break;
        }
    }
    best.ok_or_else(|| failed.unwrap_or_else(unreadable))
}

/// Adopts a kernel by its captured launches.
fn adopt_captured(
    settings: &Settings<'_>,
    (unit, item): (&Unit, usize),
    observed: &captured::Observed<'_>,
    compiler: &Compiler,
) -> Result<Adopted, AdoptError> {
    let (mut plan, facts) = decide(settings, (unit, item), observed)?;
    let made = template::make(settings, unit, item, &plan, compiler)?;
    let launch = (plan.grid.clone(), plan.block.clone(), plan.shared.clone());
    plan.finish(unit, item, &made)?;
    (plan.grid, plan.block, plan.shared) = launch;
    plan.guessed_launch.clear();
    let parameters = made.parameters.iter().flatten();
    let sizes: Vec<Option<u64>> = parameters
        .map(|it| Some(it.bytes).filter(|bytes| *bytes > 0))
        .collect();
    let data = captured::describe(&mut plan, &facts, observed, &sizes)?;
    let settings = &Settings {
        include: &made.include,
        ..*settings
    };
    let space = captured::write(settings, (unit, item), &plan, (&data, observed));
    let mut notes = observed.notes.clone();
    notes.extend(plan.notes);
    notes.extend(made.notes);
    Ok(Adopted {
        kernel: observed.kernel.clone(),
        template: made.text,
        space,
        notes,
        files: data.files,
    })
}

/// The item of a kernel that has a body, by its number among those of the name.
fn position(unit: &Unit, name: &str, number: usize) -> Option<usize> {
    let of_name = |item: &unit::Item| {
        item.kind == Kind::Kernel && item.names.last().is_some_and(|known| known == name)
    };
    let items = unit.items.iter().enumerate();
    let mut all = items.filter(|(_, item)| of_name(item) && has_body(unit, item));
    Some(all.nth(number)?.0)
}

/// The unit of a file nearby that launches the kernel and includes its file, where the file itself
/// does not launch it.
fn launching(
    settings: &Settings<'_>,
    unit: Unit,
    item: usize,
    (name, number): (&str, usize),
) -> (Unit, usize) {
    if !host::Host::new(&unit).launches(name).is_empty() {
        return (unit, item);
    }
    for file in nearby(settings.file, name) {
        if let Ok(other) = Unit::read(&file, settings.include)
            && let Some(at) = position(&other, name, number)
            && !host::Host::new(&other).launches(name).is_empty()
        {
            return (other, at);
        }
    }
    (unit, item)
}

/// CUDA files beside a file and in the folder above that launch something of this name.
fn nearby(file: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = beside(file, |text| text.contains("<<<") && text.contains(name));
    found.retain(|path| path.extension().is_some_and(|extension| extension != "h"));
    found
}

/// CUDA files and headers in a file's folder, or in the folder itself, and in the one above, by what
/// is in them.
fn beside(file: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folders = real.ancestors().skip(usize::from(!real.is_dir())).take(2);
    let mut found = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        paths.retain(|path| {
            let extension = path.extension().and_then(std::ffi::OsStr::to_str);
            *path != real && matches!(extension, Some("cu" | "cuh" | "cuda" | "h"))
        });
        for path in paths.into_iter().take(MAX_NEARBY) {
            let text = files::read(&path, files::MAX_TEXT_BYTES).unwrap_or_default();
            if wanted(&String::from_utf8_lossy(&text)) {
                found.push(path);
            }
        }
    }
    found
}
