//! Where constraints, arguments and launches of a file stand, for messages about what only the
//! space as a whole or the kernel's source can tell.

use super::check::Checker;
use crate::{
    BareSpace, BindError, Constraint, Diagnostic, Diagnostics, KernelSpec, Space, SpaceError,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The text a space was read from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    file: String,
    text: Arc<str>,
    /// The bytes of every constraint.
    rules: Vec<Range<usize>>,
    places: Places,
}

/// The bytes of what is compared with the kernel's source.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// By argument.
    pub arguments: Vec<ArgumentPlace>,
    /// The name, by variable.
    pub variables: Vec<Range<usize>>,
    /// The entry's name, by launch.
    pub launches: Vec<Range<usize>>,
    /// The entry's name of the reference kernel.
    pub reference: Option<Range<usize>>,
    /// The template's file name.
    pub source: Option<Range<usize>>,
    /// The file name of the reference kernel.
    pub reference_source: Option<Range<usize>>,
    /// Expressions of derived values, arguments, launches and so on, in the order of the file's
    /// sections.
    pub expressions: Vec<Range<usize>>,
}

/// The bytes of an argument's values.
#[derive(Debug, Clone)]
pub struct ArgumentPlace {
    /// Of its type.
    pub ty: Range<usize>,
    /// Of its role.
    pub role: Range<usize>,
}

impl Origin {
    /// Of a file that was read and checked.
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
    /// Why a space of this kernel is empty, shown at the constraint to blame; `None` when it is
    /// not. `device` is the device's name, for the message.
    #[must_use]
    pub fn explain_empty(&self, space: &Space, problem: &str, device: &str) -> Option<Diagnostics> {
        let what = format!("problem `{problem}` on {device}");
        self.origin.empty(space, &what)
    }

    /// Why a space of this kernel cannot be built, shown at the constraint to blame.
    #[must_use]
    pub fn explain_refused(&self, error: &SpaceError) -> Diagnostics {
        self.origin.refused(error, &self.constraints)
    }

    /// Why a configuration cannot be bound on a problem, shown at the expression to blame.
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
                    "change `{text}`, the sizes of `{problem}`, or rule such configurations out by \
                     a constraint"
                )),
                self.expression(what, text),
            ),
            BindError::Expression { what, error } => (
                format!("{what}: {}", error.message),
                error.help.clone(),
                self.expression(what, &error.text),
            ),
            BindError::Space(error) => return self.explain_refused(error),
            other => (other.to_string(), None, None),
        };
        self.faults(vec![Diagnostic { message, help, at }])
    }

    /// The bytes of an expression: of those with this text the first behind the name in backticks
    /// of `what`.
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

    /// Where its arguments and launches stand.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.origin.places
    }

    /// Problems of its file that show only beside the kernel's source.
    #[must_use]
    pub fn faults(&self, items: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics::new(&*self.origin.file, &self.origin.text, items)
    }
}

impl BareSpace {
    /// Why the space is empty, shown at the constraint to blame; `None` when it is not.
    #[must_use]
    pub fn explain_empty(&self, space: &Space) -> Option<Diagnostics> {
        self.origin.empty(space, &format!("`{}`", self.name))
    }

    /// Why the space cannot be built, shown at the constraint to blame.
    #[must_use]
    pub fn explain_refused(&self, error: &SpaceError) -> Diagnostics {
        self.origin.refused(error, &self.constraints)
    }
}
