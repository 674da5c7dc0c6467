//! Positions of constraints, arguments and launches, for errors that depend on the whole space or
//! on the kernel's source.

use super::check::Checker;
use crate::{
    BareSpace, BindError, Constraint, Diagnostic, Diagnostics, KernelSpec, Space, SpaceError,
};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuner_core::target::ComputeTarget;

/// The source text of a space.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    file: String,
    text: Arc<str>,
    /// Source bytes of every constraint.
    rules: Vec<Range<usize>>,
    places: Places,
}

/// Source bytes of items that are compared with the kernel's source.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Positions by argument.
    pub arguments: Vec<ArgumentPlace>,
    /// Position of the name, by variable.
    pub variables: Vec<Range<usize>>,
    /// Position of the entry name, by launch.
    pub launches: Vec<Range<usize>>,
    /// Entry name of the reference kernel.
    pub reference: Option<Range<usize>>,
    /// File name of the template.
    pub source: Option<Range<usize>>,
    /// File name of the reference kernel.
    pub reference_source: Option<Range<usize>>,
    /// Positions of the compiler options, in order.
    pub options: Vec<Range<usize>>,
    /// Files of data that arguments and variables are filled with.
    pub data: Vec<(PathBuf, Range<usize>)>,
    /// Files and folders that are named by absolute paths.
    pub absolute: Vec<PathBuf>,
    /// Weight of `metric`.
    pub weight: Option<Range<usize>>,
    /// Expressions of derived values, arguments, launches and so on, in the order of the file's
    /// sections.
    pub expressions: Vec<Range<usize>>,
}

/// Source bytes of an argument's values.
#[derive(Debug, Clone)]
pub struct ArgumentPlace {
    /// The type.
    pub ty: Range<usize>,
    /// The role.
    pub role: Range<usize>,
}

impl Origin {
    /// Collects the positions of a checked file.
    pub(super) fn new(file: &Path, checker: &Checker<'_>) -> Self {
        Self {
            file: file.display().to_string(),
            text: checker.source.into(),
            rules: checker.rules.clone(),
            places: checker.places.clone(),
        }
    }

    fn diagnostics(&self, message: String, rule: Option<usize>, help: &str) -> Diagnostics {
        let at = rule.and_then(|rule| self.rules.get(rule).cloned());
        let help = (!help.is_empty()).then(|| help.to_owned());
        let item = Diagnostic { message, help, at };
        Diagnostics::new(&*self.file, &self.text, vec![item])
    }

    fn empty(&self, space: &Space, what: &str) -> Option<Diagnostics> {
        let reason = space.empty_reason()?;
        Some(self.diagnostics(
            format!("{what} has no valid configuration: {reason}"),
            space.empty_rule(),
            "loosen this constraint, or give its parameters other values",
        ))
    }

    fn refused(&self, error: &SpaceError, constraints: &[Constraint]) -> Diagnostics {
        let rule = match error {
            SpaceError::TooCoupled { rule, .. } => {
                let mut all = constraints.iter();
                all.position(|each| each.rule.text() == rule)
            }
            _ => None,
        };
        self.diagnostics(error.to_string(), rule, "")
    }
}

impl KernelSpec {
    /// Explains an empty space at the responsible constraint; `None` for a space with
    /// configurations. `device` is the device's name, for the message.
    #[must_use]
    pub fn explain_empty(&self, space: &Space, problem: &str, device: &str) -> Option<Diagnostics> {
        let what = format!("problem `{problem}` on {device}");
        self.origin.empty(space, &what)
    }

    /// Explains a failed construction of the space at the responsible constraint.
    #[must_use]
    pub fn explain_refused(&self, error: &SpaceError) -> Diagnostics {
        self.origin.refused(error, &self.constraints)
    }

    /// Explains why a configuration cannot be bound on a problem, at the responsible expression.
    #[must_use]
    pub fn explain_unbound(&self, error: &BindError, problem: &str) -> Diagnostics {
        let (message, help, at) = match error {
            BindError::Value {
                what,
                value,
                text,
                wanted,
            } => (
                format!("{what} is {value} on problem `{problem}`, but must be {wanted}"),
                Some(format!(
                    "{}change `{text}`, the sizes of `{problem}`, or rule such configurations out \
                     by a constraint",
                    division_help(value, text)
                )),
                self.expression(what, text),
            ),
            BindError::Expression { what, error } => (
                format!("{what}: {}", error.message),
                error.help.clone(),
                self.expression(what, &error.text),
            ),
            BindError::Space(error) => return self.explain_refused(error),
            BindError::TensorMap { name, limit } => {
                let number = self.arguments.iter().position(|known| known.name == *name);
                let place = number.and_then(|number| self.origin.places.arguments.get(number));
                (
                    format!("the tensor map `{name}` on problem `{problem}`: {limit}"),
                    Some(
                        "its innermost dimension is 0; change it, or rule such configurations out \
                         by a constraint"
                            .to_owned(),
                    ),
                    place.map(|place| place.ty.clone()),
                )
            }
            other => (other.to_string(), None, None),
        };
        self.faults(vec![Diagnostic { message, help, at }])
    }

    /// Returns the compile target on a device. `arch` is the device's portable target or that of `--arch`;
    /// only a target among the space's own options takes precedence over it.
    #[must_use]
    pub fn target(&self, arch: &str) -> String {
        match arch.parse::<ComputeTarget>() {
            Ok(target) => target.with_features(self.arch_features).to_string(),
            Err(_) => arch.to_owned(),
        }
    }

    /// Explains why code of this target does not run on a GPU of that compute capability, at the option
    /// that names the target; `None` if it runs.
    #[must_use]
    pub fn explain_target(&self, target: &str, cc: u32) -> Option<Diagnostics> {
        let why = target.parse::<ComputeTarget>().ok()?.refusal(cc)?;
        let mut named = self.options.iter().zip(&self.origin.places.options);
        let is_target =
            |option: &str| option.starts_with("-arch") || option.starts_with("--gpu-arch");
        let at = named.find(|(option, _)| is_target(option));
        Some(self.faults(vec![Diagnostic {
            message: format!("no kernel image for this device: {why}"),
            help: Some(
                "choose a GPU of that compute capability with --device, or leave the option out: \
                 `arch_features` then follows the device"
                    .to_owned(),
            ),
            at: at.map(|(_, at)| at.clone()),
        }]))
    }

    /// Returns the bytes of an expression: the first one with this text after the name in backticks in
    /// `what`.
    fn expression(&self, what: &str, text: &str) -> Option<Range<usize>> {
        let source = &self.origin.text;
        let name = what.split('`').nth(1).unwrap_or_default();
        let named = source.match_indices(name).find(|(at, _)| {
            let before = source[..*at].trim_end_matches(['"', '\'']).trim_end();
            before.ends_with("name:") || before.ends_with("entry:")
        });
        let from = named.map_or(0, |(at, _)| at);
        let same = |at: &&Range<usize>| {
            let written = source.get((*at).clone()).unwrap_or_default();
            written.trim_matches(['"', '\'']) == text
        };
        let all = &self.origin.places.expressions;
        let behind = all.iter().filter(|at| at.start >= from).find(same);
        behind.or_else(|| all.iter().find(same)).cloned()
    }

    /// Returns the source text.
    pub(super) fn source_text(&self) -> &str {
        &self.origin.text
    }

    /// Returns the positions of arguments and launches.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.origin.places
    }

    /// Wraps errors that are found only in comparison with the kernel's source.
    #[must_use]
    pub fn faults(&self, items: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics::new(&*self.origin.file, &self.origin.text, items)
    }
}

impl BareSpace {
    /// Explains an empty space at the responsible constraint; `None` for a space with
    /// configurations.
    #[must_use]
    pub fn explain_empty(&self, space: &Space) -> Option<Diagnostics> {
        self.origin.empty(space, &format!("`{}`", self.name))
    }

    /// Explains a failed construction of the space at the responsible constraint.
    #[must_use]
    pub fn explain_refused(&self, error: &SpaceError) -> Diagnostics {
        self.origin.refused(error, &self.constraints)
    }
}

/// Explains a `/` with a fractional result, which C++ rounds for whole numbers.
fn division_help(value: &str, text: &str) -> &'static str {
    let fraction = value.parse::<f64>().is_ok_and(|value| value.fract() != 0.0);
    if fraction && text.contains('/') {
        "`/` does not round: write `ceil_div(a, b)` to round up, `a // b` to round down; or "
    } else {
        ""
    }
}
