//! Rendering of a source from a configuration and a template: a block of `#define`s, then the
//! template.

use super::options;
use super::resources::unsupported;
use super::template::{Header, Template, included_names};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use tuner_core::plan::PlanLaunch;
use tuner_core::target::ComputeTarget;
use tuner_core::units::ContentHash;
use tuner_core::value::Value;
use tuner_space::Bound;

/// One compilation unit: the complete input of NVRTC, which alone determines the outcome.
#[derive(Debug, Clone)]
pub struct Source {
    /// The parameter block, a `#line` directive, and the template's text.
    pub text: String,
    /// The template's path in diagnostics.
    pub name: String,
    /// The option vector without folders of headers.
    pub options: Vec<String>,
    /// Folders for `#include`, absolute.
    pub include_dirs: Vec<PathBuf>,
    /// Included files, passed from memory.
    pub headers: Vec<Header>,
    /// Hash of the template and its headers.
    pub template_hash: ContentHash,
    /// Target, such as `sm_90`.
    pub arch: String,
    /// The launches, to check that their kernels exist and to compute shared memory.
    pub launches: Vec<PlanLaunch>,
    defines: String,
}

impl Source {
    /// Returns the identity of the candidate: the macros, the template's content, the options, the
    /// compiler's version and the target. Paths are excluded, so that two checkouts agree.
    #[must_use]
    pub fn identity(&self, nvrtc_version: &str) -> ContentHash {
        let options = self.options.join("\n");
        let mut parts = vec![
            self.defines.as_bytes(),
            self.template_hash.as_str().as_bytes(),
            options.as_bytes(),
            nvrtc_version.as_bytes(),
            self.arch.as_bytes(),
        ];
        // The launches alone determine the template instances.
        parts.extend(self.expressions().map(str::as_bytes));
        ContentHash::from_parts(parts)
    }

    /// Moves library headers before the macros: a macro such as `N` must not change a library's
    /// declarations. `None` if no message of `log` is an error in a library file. Used only if the
    /// regular source does not compile, since a macro may be intended for a library.
    pub(super) fn libraries_first(&self, log: &str) -> Option<Self> {
        let own =
            |file: &str| file == self.name || self.headers.iter().any(|header| header.path == file);
        let blames_library = |line: &str| {
            let place = line.split_once("): error").map(|(place, _)| place);
            let file = place.and_then(|place| Some(place.rsplit_once('(')?.0));
            file.is_some_and(|file| file.starts_with('/') && !own(file))
        };
        if !log.lines().any(blames_library) {
            return None;
        }
        let mut includes = String::new();
        for (spelled, quoted) in included_names(&self.text) {
            if !quoted && !self.headers.iter().any(|header| header.spelled == spelled) {
                // Writing to a String cannot fail.
                let _ = writeln!(includes, "#include <{spelled}>");
            }
        }
        (!includes.is_empty()).then(|| Self {
            text: format!("{includes}{}", self.text),
            ..self.clone()
        })
    }

    /// Returns the names of the macros in the parameter block. A line of a value that looks like a
    /// definition is included.
    pub(super) fn macros(&self) -> impl Iterator<Item = &str> {
        let definitions = self
            .defines
            .lines()
            .filter_map(|line| line.strip_prefix("#define "));
        definitions.filter_map(|rest| rest.split([' ', '(']).next())
    }

    /// Returns the template's text, without the parameter block and the `#line` directive.
    pub(super) fn template_text(&self) -> &str {
        let rest = self.text.strip_prefix(&self.defines).unwrap_or(&self.text);
        rest.split_once('\n').map_or("", |(_, text)| text)
    }

    /// Returns the same source for the target with all features of the architecture, if the
    /// assembler refused an instruction for a portable target that the options do not name.
    pub(super) fn architecture_specific(&self, log: &str) -> Option<Self> {
        let target: ComputeTarget = self.arch.parse().ok()?;
        let specific = target.architecture_specific()?.to_string();
        // The first option is the tuner's own target, as `names_target` checks.
        let others = self.options.get(1..)?;
        (!self.names_target() && unsupported(log).is_some()).then(|| Self {
            options: std::iter::once(options::target_option(&specific))
                .chain(others.iter().cloned())
                .collect(),
            arch: specific,
            ..self.clone()
        })
    }

    /// Reports whether an option of the search space names the target: the tuner's own option would
    /// be the first.
    pub(super) fn names_target(&self) -> bool {
        self.options.first() != Some(&options::target_option(&self.arch))
    }

    /// Returns the launched kernels that are not plain identifiers, each once.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &str> {
        let entries = self.launches.iter().map(|launch| launch.entry.as_str());
        let named: BTreeSet<&str> = entries.filter(|entry| !is_identifier(entry)).collect();
        named.into_iter()
    }
}

/// Renders a source for one target (`sm_90`): `macros` are defined in order, `options` are the
/// search space's with parameters substituted. Pure.
#[must_use]
pub fn render(
    template: &Template,
    macros: &[(String, Value)],
    options: &[String],
    launches: &[PlanLaunch],
    arch: &str,
) -> Source {
    let defines = define_block(macros);
    let name = template.name.to_string();
    let line = format!("#line 1 {}\n", quoted(&name));
    Source {
        text: format!("{defines}{line}{}", template.text),
        options: options::compose(arch, options),
        include_dirs: template.include_dirs.to_vec(),
        headers: template.headers.to_vec(),
        template_hash: template.hash.clone(),
        arch: options::target(arch, options).to_owned(),
        launches: launches.to_vec(),
        name,
        defines,
    }
}

/// Renders a binding of [`KernelSpec::bind`](tuner_space::KernelSpec::bind).
#[must_use]
pub fn render_bound(template: &Template, bound: &Bound, arch: &str) -> Source {
    let (macros, options) = (&bound.macros, &bound.options);
    render(template, macros, options, &bound.launches, arch)
}

/// Formats one `#define NAME value` for each line. Booleans are 1 and 0, valid in `#if` and `if
/// constexpr`; text is verbatim.
fn define_block(macros: &[(String, Value)]) -> String {
    let mut block = String::new();
    for (name, value) in macros {
        // Writing to a String cannot fail.
        let _ = match value {
            Value::Bool(value) => writeln!(block, "#define {name} {}", u8::from(*value)),
            // A line break would end the macro; a continued line does not.
            Value::Text(text) => writeln!(block, "#define {name} {}", text.replace('\n', " \\\n")),
            Value::Int(_) | Value::Float(_) => writeln!(block, "#define {name} {value}"),
        };
    }
    block
}

fn is_identifier(entry: &str) -> bool {
    let letter = |c: char| c == '_' || c == '$' || c.is_ascii_alphanumeric();
    entry.chars().all(letter)
}

/// Formats a C string literal.
pub(super) fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
