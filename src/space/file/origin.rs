//! Where the constraints of a file stand, for messages about the space as a whole.

use super::super::{BareSpace, Diagnostic, Diagnostics, KernelSpec, Space, SpaceError};
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
}

impl Origin {
    pub(super) fn new(file: &Path, text: &str, rules: Vec<Range<usize>>) -> Self {
        Self {
            file: file.display().to_string(),
            text: text.into(),
            rules,
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

    fn refused(&self, error: &SpaceError, rule: Option<usize>) -> Diagnostics {
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
        let mut texts = self.constraints.iter().map(|each| each.rule.text());
        let rule = error.rule(&mut texts);
        self.origin.refused(error, rule)
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
        let mut texts = self.constraints.iter().map(|each| each.rule.text());
        let rule = error.rule(&mut texts);
        self.origin.refused(error, rule)
    }
}

impl SpaceError {
    /// The position of the constraint to blame among these.
    fn rule<'t>(&self, texts: &mut impl Iterator<Item = &'t str>) -> Option<usize> {
        match self {
            Self::TooCoupled { rule, .. } => texts.position(|text| text == rule),
            _ => None,
        }
    }
}
