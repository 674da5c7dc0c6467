//! C++ launcher: the header with the kernel's source or machine code, the choice by device and sizes, and
//! the launches.

mod code;
mod launches;
mod maps;
mod write;

use super::cexpr::MAX_EXACT;
use super::header::most_trusted;
use super::lookup;
use super::names::{LAUNCHER, identifier, is_identifier, members};
use super::plan::{Condition, EntryCode, Plan};
use super::rules::Context;
use super::{ExportError, PackageFiles};
use code::{LauncherCode, launcher_code};
use std::fmt::Write as _;
use tuner_core::entry::Entry;
use tuner_core::escape::CComment;
use tuner_core::plan::Role;
use tuner_core::value::Value;
use tuner_space::{Argument, KernelSpec};

/// The kernel in the form that the launcher embeds.
pub struct LauncherSource<'a> {
    /// The search space.
    pub spec: &'a KernelSpec,
    /// The template's path in diagnostics.
    pub name: &'a str,
    /// The template's text.
    pub text: &'a str,
    /// Included files: the name in the directive and the text.
    pub headers: Vec<(String, String)>,
    /// Reports whether the template mentions a macro.
    pub mentions: &'a dyn Fn(&str) -> bool,
    /// Launch only shapes of checked classes, unless the macro of that name is defined otherwise.
    pub checked_only: bool,
}

/// Code of an entry, compiled ahead for the entry's own sizes.
pub struct LauncherImage {
    /// Number of the entry.
    pub entry: usize,
    /// Target, such as `sm_90a`.
    pub arch: String,
    /// PTX text rather than machine code.
    pub is_ptx: bool,
    /// The code.
    pub bytes: Vec<u8>,
    /// Name of each launch's kernel in the code; empty for a launch of [`Launcher::kernels`] without one.
    pub symbols: Vec<String>,
}

/// Reason why a kernel has no launcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// No header.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The space uses a feature that a launcher cannot pass.
    #[error("a launcher cannot pass {0}: export the header alone (without --launcher)")]
    Unsupported(String),
}

/// Returns the entries of a launcher, in its order.
#[must_use]
pub fn launcher_entries(entries: &[Entry]) -> Vec<Entry> {
    most_trusted(entries)
}

/// A launcher before its code is compiled ahead.
pub struct Launcher<'a> {
    plan: Plan<'a>,
    source: &'a LauncherSource<'a>,
    /// The default configuration.
    fallback: Entry,
    fallback_code: EntryCode,
    /// The code of each entry and of the default configuration.
    codes: Vec<LauncherCode>,
    arguments: Vec<Parameter<'a>>,
    /// Prefix of the launcher's names, `gemm_f16`.
    prefix: String,
    upper: String,
}

impl<'a> Launcher<'a> {
    /// Creates a launcher for entries of [`launcher_entries`].
    ///
    /// # Errors
    /// Nothing to export, a name that is invalid in C, or a kernel that a launcher cannot call.
    pub fn new(
        kernel: &'a str,
        entries: &'a [Entry],
        source: &'a LauncherSource<'a>,
    ) -> Result<Self, LauncherError> {
        check(source.spec)?;
        let reserved: Vec<&str> = LAUNCHER.split_whitespace().collect();
        let mut plan = Plan::new(kernel, entries, &reserved)?;
        for entry in entries {
            // Launches are paired by their position in the list.
            if entry.definition.launches.len() != source.spec.launches.len() {
                let what = "launches that differ from the search space's; tune again".to_owned();
                return Err(LauncherError::Unsupported(what));
            }
        }
        let fallback = default_entry(entries, source.spec).ok_or(ExportError::Empty)?;
        let product = plan.bounded.then_some(MAX_EXACT);
        let fallback_code = Context::new(&plan, &fallback, product).fold();
        let configurations = entries.iter().zip(&plan.codes);
        let configurations = configurations.chain([(&fallback, &fallback_code)]);
        let codes: Vec<LauncherCode> = configurations
            .map(|(entry, code)| launcher_code(&plan, source, entry, &code.launches))
            .collect();
        let prefix = identifier(kernel).to_ascii_lowercase();
        let upper = prefix.to_ascii_uppercase();
        for (code, launcher) in plan.codes.iter_mut().zip(&codes) {
            code.helpers.extend(&launcher.helpers);
            code.conditions.push(Condition {
                text: format!("(!{upper}_CHECKED_ONLY || ({}))", launcher.covered),
                source: CComment::new("the gate has checked shapes of this class"),
            });
        }
        let mut fallback_code = fallback_code;
        // Helpers are written once for all entries, so that each entry can use the default's.
        if let Some(code) = plan.codes.first_mut() {
            code.helpers.append(&mut fallback_code.helpers);
            code.helpers.extend(
                codes
                    .last()
                    .map(|code| code.helpers.clone())
                    .into_iter()
                    .flatten(),
            );
        }
        if let Some(code) = codes.last() {
            // Macros that C cannot compute exist only for the own sizes.
            fallback_code.conditions.push(Condition {
                text: code.defined.clone(),
                source: CComment::new("the macros are known"),
            });
        }
        let arguments = arguments(&plan, source.spec);
        arguments.iter().try_for_each(check_size)?;
        Ok(Self {
            arguments,
            plan,
            source,
            fallback,
            fallback_code,
            codes,
            prefix,
            upper,
        })
    }

    /// Returns the macros of an entry for its own sizes, with their values.
    #[must_use]
    pub fn own_macros(&self, entry: usize) -> Vec<(String, String)> {
        let code = self.codes.get(entry);
        code.map(LauncherCode::own_macros).unwrap_or_default()
    }

    /// Returns the kernels of a configuration, one per launch; `None` for a launch that is never performed,
    /// whose kernel the template may lack.
    #[must_use]
    pub fn kernels(&self, index: usize) -> Vec<Option<&str>> {
        let code = self.plan.codes.get(index).unwrap_or(&self.fallback_code);
        let launches = self.source.spec.launches.iter().zip(&code.launches);
        launches
            .map(|(launch, code)| code.happens.then_some(launch.entry.as_str()))
            .collect()
    }

    /// Returns NVRTC's options of a configuration: those of the search space, parameters substituted.
    #[must_use]
    pub fn options(&self, index: usize) -> Vec<String> {
        let entry = self.plan.entries.get(index).unwrap_or(&self.fallback);
        let substituted = |option: &String| {
            let values = entry.best.config.iter();
            values.fold(option.clone(), |option, (name, value)| {
                let value = match value {
                    Value::Bool(value) => u8::from(*value).to_string(),
                    value => value.to_string(),
                };
                option.replace(&format!("{{{name}}}"), &value)
            })
        };
        let own = &self.source.spec.options;
        let named = own
            .iter()
            .any(|one| one.starts_with("-std") || one.starts_with("--std"));
        // A standard in the options of the search space must stay the only one.
        let standard = (!named).then(|| "--std=c++17".to_owned());
        standard
            .into_iter()
            .chain(own.iter().map(substituted))
            .collect()
    }

    /// Writes the launcher with code that was compiled ahead.
    #[must_use]
    pub fn text(&self, images: &[LauncherImage]) -> String {
        let upper = &self.upper;
        let mut text = self.opening();
        text.push_str(&self.plan.text());
        self.interface(&mut text);
        let _ = writeln!(
            text,
            "\n#if defined({upper}_IMPLEMENTATION) && defined(__cplusplus)"
        );
        text.push_str(&self.runtime());
        let count = self.plan.entries.len();
        self.plan
            .functions(&mut text, count, &self.fallback, &self.fallback_code);
        self.implementation(&mut text, images);
        let _ = writeln!(
            text,
            "#endif /* {upper}_IMPLEMENTATION */\n#endif /* {upper}_LAUNCHER_H */"
        );
        text
    }
}

/// Writes the folder of a launcher: the header, and a CMake target that a project adds by
/// `add_subdirectory`.
#[must_use]
pub fn launcher_folder(kernel: &str, header: String) -> PackageFiles {
    let target = format!("{}_launch", identifier(kernel).to_ascii_lowercase());
    let cmake = format!(
        "# Written by tuner {}: do not edit.\n\
         cmake_minimum_required(VERSION 3.18)\n\
         add_library({target} INTERFACE)\n\
         target_include_directories({target} INTERFACE ${{CMAKE_CURRENT_LIST_DIR}})\n\
         target_compile_features({target} INTERFACE cxx_std_17)\n\
         find_path(CUDA_HEADERS cuda.h HINTS ${{CUDAToolkit_INCLUDE_DIRS}} /usr/local/cuda/include REQUIRED)\n\
         target_include_directories({target} SYSTEM INTERFACE ${{CUDA_HEADERS}})\n\
         target_link_libraries({target} INTERFACE ${{CMAKE_DL_LIBS}})\n",
        env!("CARGO_PKG_VERSION")
    );
    let header = (format!("{target}.h"), header.into_bytes());
    vec![header, ("CMakeLists.txt".to_owned(), cmake.into_bytes())]
}

impl Launcher<'_> {
    /// Returns a format of all sizes, and its values.
    fn size_texts(&self) -> (String, String) {
        let (mut format, mut values) = (String::new(), String::new());
        for size in &self.plan.sizes {
            let letter = match lookup::size_type(size) {
                "double" => "%g",
                "const char *" => "%s",
                _ => "%lld",
            };
            let _ = write!(format, " {} {letter}", size.name);
            let _ = write!(values, ", {}", size.member);
        }
        (format, values)
    }
}

/// Rejects features that a launcher cannot pass.
pub(super) fn check(spec: &KernelSpec) -> Result<(), LauncherError> {
    let unsupported = |what: String| Err(LauncherError::Unsupported(what));
    if let Some(variable) = spec.variables.first() {
        return unsupported(format!("the variable `{}` of the template", variable.name));
    }
    for argument in &spec.arguments {
        if !is_identifier(&argument.name) {
            return Err(ExportError::NotAName(argument.name.clone()).into());
        }
        let composed = argument.record.is_some() || !argument.pieces.is_empty();
        let composed = composed && !argument.is_tensor_map();
        if composed || (argument.role == Role::Scalar && argument.lanes > 1) {
            return unsupported(format!("the composed argument `{}`", argument.name));
        }
    }
    let named = |option: &&String| {
        let names = option.split('{').skip(1);
        let mut names = names.filter_map(|part| part.split_once('}'));
        names.any(|(name, _)| spec.parameters.iter().all(|known| known.name != name))
    };
    if let Some(option) = spec.options.iter().find(named) {
        return unsupported(format!("the option `{option}`, which depends on the sizes"));
    }
    let target =
        |option: &&String| option.starts_with("-arch") || option.starts_with("--gpu-architecture");
    // The launcher compiles for the device that it finds.
    match spec.options.iter().find(target) {
        Some(option) => unsupported(format!("the option `{option}`")),
        None => Ok(()),
    }
}

/// Rejects a size of a type without C numbers: a cast would use the size as its bits.
fn check_size(parameter: &Parameter<'_>) -> Result<(), LauncherError> {
    let Parameter { argument, size, .. } = parameter;
    let is_narrow = argument.ty.is_float() && argument.ty.size() < size_of::<f32>();
    if *size && is_narrow {
        let (name, ty) = (&argument.name, argument.ty);
        return Err(LauncherError::Unsupported(format!(
            "the size `{name}` as the `{ty}` that the kernel takes"
        )));
    }
    Ok(())
}

/// Returns the default configuration as an entry.
fn default_entry(entries: &[Entry], spec: &KernelSpec) -> Option<Entry> {
    let mut entry = entries.first()?.clone();
    for (name, value) in &mut entry.best.config {
        let parameter = spec.parameters.iter().find(|known| known.name == *name)?;
        *value = parameter.values.get(parameter.default as usize)?.clone();
    }
    Some(entry)
}

/// An argument of the launch function.
struct Parameter<'a> {
    argument: &'a Argument,
    /// C name.
    name: String,
    /// It is a size of the problem.
    size: bool,
}

fn arguments<'a>(plan: &Plan<'_>, spec: &'a KernelSpec) -> Vec<Parameter<'a>> {
    let size = |name: &str| plan.sizes.iter().find(|column| *column.name == *name);
    let taken: Vec<&str> = plan
        .sizes
        .iter()
        .map(|column| column.member.as_str())
        .chain(LAUNCHER.split_whitespace())
        .collect();
    let all: Vec<&str> = spec
        .arguments
        .iter()
        .map(|argument| argument.name.as_str())
        .collect();
    let names = members(&all, &taken);
    spec.arguments
        .iter()
        .zip(names)
        .map(|(argument, name)| match size(&argument.name) {
            Some(column) if argument.role == Role::Scalar => Parameter {
                argument,
                name: column.member.clone(),
                size: true,
            },
            _ => Parameter {
                argument,
                // A name in lower case is kept if it is free.
                name: match taken.contains(&argument.name.as_str()) || !is_plain(&argument.name) {
                    true => name,
                    false => argument.name.clone(),
                },
                size: false,
            },
        })
        .collect()
}

/// Reports whether a name equals its member name.
fn is_plain(name: &str) -> bool {
    members(&[&name.to_ascii_uppercase()], &[])
        .first()
        .is_some_and(|member| member == name)
}

#[cfg(test)]
mod tests;
