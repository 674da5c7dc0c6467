//! Adoption of an existing CUDA file: derives a template and a search space.
//!
//! ```text
//! file ─ unit (items of it and its includes) ─ cut (what the kernel reaches) ─► template
//!      └ host (launches, sizes, buffers) ─ plan ─────────────────────────────► search space
//! ```
//!
//! The compiler decides which names are missing and the parameters' types. Guesses are marked in
//! the search space and reported.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod captured;
mod cut;
mod expr;
mod host;
mod kernel;
mod macros;
mod nearby;
mod plan;
mod sizes;
mod template;
mod tree;
mod types;
mod unit;
mod yaml;

pub use captured::DataFile;
pub use plan::StatedLaunch;
pub use template::relative;

use nearby::{beside, first, nearby, unreadable};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tuner_kernel::compile::{CompileError, Compiler};
use unit::{Kind, Unit};

/// Reason why a kernel was not adopted. The text contains the command to type.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The file cannot be read.
    #[error("error: cannot read {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// System error.
        why: String,
    },
    /// The file has no kernel, or not the requested one.
    #[error("error: {path} has no kernel {wanted}\nhelp: {known}")]
    NoKernel {
        /// The file.
        path: String,
        /// The requested kernel.
        wanted: String,
        /// The kernels of the file.
        known: String,
    },
    /// A parameter has a type that a search space cannot describe.
    #[error("error: {kernel}: {why}\nhelp: {help}")]
    Unsupported {
        /// The kernel.
        kernel: String,
        /// The type.
        why: String,
        /// Fix.
        help: String,
    },
    /// The compiler skips it.
    #[error(
        "error: {place}: `{kernel}` is not compiled: it is in a branch whose condition is false:\n\
         {condition}\nhelp: give the macros that your build defines: --define NAME=VALUE"
    )]
    NotCompiled {
        /// The kernel.
        kernel: String,
        /// File and line.
        place: String,
        /// The directives around it.
        condition: String,
    },
    /// The compiler rejects the template.
    #[error("error: {kernel} was cut out and does not compile:\n{log}\nhelp: {help}")]
    Refused {
        /// The kernel.
        kernel: String,
        /// First compiler messages.
        log: String,
        /// Fix.
        help: String,
    },
    /// A capture cannot be used.
    #[error("error: {text}")]
    Captured {
        /// The fault and its fix.
        text: String,
    },
    /// The compiler does not work.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Options of an adoption.
#[derive(Debug, Clone)]
pub struct Settings<'s> {
    /// The CUDA file.
    pub file: &'s Path,
    /// Include folders.
    pub include: &'s [PathBuf],
    /// Folder of the template and the search space.
    pub folder: &'s Path,
    /// Target architecture of trial compiles, such as `sm_90`.
    pub arch: &'s str,
    /// Instance of a template in C++ syntax, if the file has no launch of it.
    pub entry: Option<&'s str>,
    /// Macros of the project's build with their candidate values, the default first.
    pub define: &'s [(String, Vec<i64>)],
    /// Captured launches of the program; without any, only the source is read.
    pub captured: &'s [capture::Capture],
    /// The launch that replaces that of the file or a guess.
    pub launch: Option<&'s StatedLaunch>,
    /// Values of sizes.
    pub sizes: &'s [(String, i64)],
    /// C++ standard of compiles, such as `c++17`; the compiler's default without one.
    pub standard: Option<&'s str>,
}

impl Settings<'_> {
    /// Options of all compiles of the kernel.
    fn options(&self) -> impl Iterator<Item = String> {
        let standard = self.standard.map(|standard| format!("-std={standard}"));
        std::iter::once(template::DEVICE_DEFAULT.to_owned()).chain(standard)
    }
}

/// An adopted kernel.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// The kernel's name.
    pub kernel: String,
    /// The template's text.
    pub template: String,
    /// The search space's text.
    pub space: String,
    /// Guesses, each with the line that corrects it.
    pub notes: Vec<String>,
    /// Captured data that the search space names.
    pub files: Vec<DataFile>,
}

impl Adopted {
    /// Reports whether extents of buffers were guessed.
    #[must_use]
    pub fn guesses_extents(&self) -> bool {
        self.space.contains(sizes::GUESSED_EXTENT)
    }

    /// Scales guessed extents in the search space by a factor for each argument; `None` if one of these
    /// extents is not a guess.
    #[must_use]
    pub fn enlarged(&self, times: &BTreeMap<String, i64>) -> Option<String> {
        yaml::enlarged(&self.space, times)
    }
}

/// Lists the kernels of a file in its order; those of its project's headers if it has none.
///
/// # Errors
/// The file cannot be read, or there are no kernels.
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
        // A file that only includes its kernels.
        names = of(false);
    }
    if names.is_empty()
        && let Some(known) = unreadable(&unit)
    {
        return Err(AdoptError::NoKernel {
            path: settings.file.display().to_string(),
            wanted: "that can be read".to_owned(),
            known,
        });
    }
    if names.is_empty() {
        let beside = beside(settings.file, |text| text.contains("__global__"));
        let known = match first(beside.iter()).as_str() {
            "" => "a kernel is a `__global__` function; name the file that has it".to_owned(),
            files => {
                format!("a kernel is a `__global__` function; these files have some: {files}")
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

fn has_body(unit: &Unit, item: &unit::Item) -> bool {
    unit::node_of(unit, item).is_some_and(|(_, node)| tree::body(node).is_some())
}

/// Adopts one kernel of a file.
///
/// # Errors
/// Returns an [`AdoptError`].
pub fn adopt(
    settings: &Settings<'_>,
    name: &str,
    compiler: &Compiler,
) -> Result<Adopted, AdoptError> {
    let mut skipped = None;
    for number in 0.. {
        match adopt_one(settings, name, number, compiler) {
            Err(failed @ AdoptError::NotCompiled { .. }) => {
                skipped.get_or_insert(failed);
            }
            // There is no further kernel of this name.
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

/// Adopts the kernel of this name and number: each branch of conditional compilation may have one.
fn adopt_one(
    settings: &Settings<'_>,
    name: &str,
    number: usize,
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
        let (unit, item) = launching(settings, unit, item, name, 0);
        let item = plan::with_signature(&unit, item, name, &observed.signature);
        // The signature has selected the overload, which the template has alone.
        let settings = &Settings {
            entry: settings.entry.filter(|entry| !entry.ends_with(')')),
            ..*settings
        };
        return match adopt_captured(settings, &unit, item, &observed, compiler) {
            // Launches of one run: the largest alone describes it.
            Err(error @ AdoptError::Unsupported { .. })
                if settings.captured.len() == 1 && observed.launches.len() > 1 =>
            {
                observed.keep_largest(&error);
                adopt_captured(settings, &unit, item, &observed, compiler)
            }
            other => other,
        };
    }
    let own = unit.file(0).path.clone();
    let (unit, item) = launching(settings, unit, item, name, number);
    let item = plan::launched(&unit, item, name);
    let Some(mut plan) = plan::Plan::read(&unit, item, settings) else {
        return Err(AdoptError::NoKernel {
            path: settings.file.display().to_string(),
            wanted: format!("`{name}`"),
            known: "its declaration cannot be read as a function".to_owned(),
        });
    };
    let fields = plan.state(&unit, settings)?;
    let made = template::make(settings, &unit, item, &plan, compiler)?;
    plan.finish(&unit, item, &made)?;
    plan.check_fields(&fields)?;
    plan.ask_for_launch(&unit, settings);
    if unit.file(0).path != own && settings.launch.is_none() {
        plan.launch_of = Some(unit.file(0).shown.clone());
    }
    let settings = &Settings {
        include: &made.include,
        ..*settings
    };
    let space = yaml::write(settings, &unit, item, &plan);
    let mut notes = plan.notes;
    notes.extend(plan.launch_of.map(|file| {
        format!(
            "the launch is that of {file}, which includes the file; state another one by --launch where your \
             program differs"
        )
    }));
    notes.extend(made.notes);
    Ok(Adopted {
        kernel: name.to_owned(),
        template: made.text,
        space,
        notes,
        files: Vec::new(),
    })
}

/// Decides the launch of a kernel from its captured launches and the best matching launch of the source.
fn decide<'c>(
    settings: &Settings<'_>,
    unit: &Unit,
    item: usize,
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
    for number in 0..host::Host::new(unit).launches(name).len().max(1) {
        let selection = plan::LaunchSelection {
            number: Some(number),
            used: observed.variables(),
        };
        // The source's arguments are tried first: as parameters they can vary, while the instance's are
        // numbers.
        for by_instance in [false, true] {
            let settings = &Settings {
                entry: match by_instance {
                    true => Some(observed.instance.as_str()),
                    false => settings.entry,
                },
                ..*settings
            };
            let mut plan =
                plan::Plan::read_launch(unit, item, settings, &selection).ok_or_else(unreadable)?;
            if !by_instance && !captured::is_instance(&plan, &observed.instance) {
                continue;
            }
            let mut facts = captured::Facts::collect(&mut plan, observed);
            if let Err(error) = facts.decide(&mut plan, unit, item) {
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

/// Adopts a kernel with its captured launches.
fn adopt_captured(
    settings: &Settings<'_>,
    unit: &Unit,
    item: usize,
    observed: &captured::Observed<'_>,
    compiler: &Compiler,
) -> Result<Adopted, AdoptError> {
    let (mut plan, facts) = decide(settings, unit, item, observed)?;
    let made = template::make(settings, unit, item, &plan, compiler)?;
    // `finish` replaces extents by guesses if the source's sizes do not determine them, but the captures
    // did.
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
    let space = captured::write(settings, unit, item, &plan, &data, observed);
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

/// Finds the definition of a kernel by its index among those with the name.
fn position(unit: &Unit, name: &str, number: usize) -> Option<usize> {
    let of_name = |item: &unit::Item| {
        item.kind == Kind::Kernel && item.names.last().is_some_and(|known| known == name)
    };
    let items = unit.items.iter().enumerate();
    let mut all = items.filter(|(_, item)| of_name(item) && has_body(unit, item));
    Some(all.nth(number)?.0)
}

/// Reads a nearby file that launches the kernel and includes its file, if the file itself has no launch.
fn launching(
    settings: &Settings<'_>,
    unit: Unit,
    item: usize,
    name: &str,
    number: usize,
) -> (Unit, usize) {
    if !host::Host::new(&unit).launches(name).is_empty() {
        return (unit, item);
    }
    let source = |unit: &Unit, item: usize| {
        let item = unit.items.get(item)?;
        unit.file(item.file).path.canonicalize().ok()
    };
    let own = source(&unit, item);
    for file in nearby(settings.file, name) {
        // A kernel of that name that the other file defines itself is a different one.
        if let Ok(other) = Unit::read(&file, settings.include)
            && let Some(at) = position(&other, name, number)
            && source(&other, at) == own
            && !host::Host::new(&other).launches(name).is_empty()
        {
            return (other, at);
        }
    }
    (unit, item)
}

#[cfg(test)]
mod tests;
