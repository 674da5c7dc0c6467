//! The expression language: Python's expressions over parameters, derived values, problem sizes
//! and device limits, parsed once and evaluated as straight-line code over slots.
//!
//! The grammar below is complete; no interpreter is involved. Whole numbers are exact to 127 bits; beyond
//! that, and for division by zero, evaluation returns a [`Fault`].

mod lexer;
mod number;
mod op;
mod ops;
mod parser;
mod program;
mod terms;
mod val;

pub use op::Op;
pub(crate) use ops::FUNCTIONS;
pub use parser::{Expr, Node};
pub use val::{Fault, Val};

pub use program::Program;
pub(crate) use program::Splits;
pub(crate) use terms::Symbol;
pub use terms::{Bits, Kind, Scope, Term, TermId, Terms};

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// An error of an expression, with its position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprError {
    /// The expression.
    pub text: Arc<str>,
    /// The wrong bytes of `text`.
    pub at: Range<usize>,
    /// Description of the error.
    pub message: String,
    /// Suggested replacement.
    pub help: Option<String>,
}

impl ExprError {
    pub(crate) fn new(text: &str, at: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            at,
            message: message.into(),
            help: None,
        }
    }

    /// Creates an error for the whole text.
    pub(crate) fn whole(text: &str, message: impl Into<String>) -> Self {
        Self::new(text, 0..text.len(), message)
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.at.start).unwrap_or(&self.text);
        let marked = self.text.get(self.at.clone()).unwrap_or("");
        // A long expression is cut around the error.
        let skipped = before.chars().count().saturating_sub(60);
        let shown: String = self.text.chars().skip(skipped).take(120).collect();
        writeln!(f, "{}", self.message)?;
        writeln!(f, "  {}", shown.replace(['\n', '\t'], " "))?;
        write!(
            f,
            "  {}{}",
            " ".repeat(before.chars().count() - skipped),
            "^".repeat(marked.chars().count().clamp(1, 60))
        )?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ExprError {}

/// Reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// Invalid for all values: an unknown name, or text where a number is required.
    #[error(transparent)]
    Expression(#[from] ExprError),
    /// No value for these values.
    #[error("{0}")]
    Fault(Fault),
    /// The result is a list, or a whole number beyond 64 bits.
    #[error("the result is not a number, boolean or text that fits in 64 bits")]
    NoValue,
}

impl Expr {
    /// Evaluates with these names defined.
    ///
    /// # Errors
    /// See [`EvaluateError`].
    pub fn evaluate(
        &self,
        names: &[(String, tuner_core::value::Value)],
    ) -> Result<tuner_core::value::Value, EvaluateError> {
        let names = names
            .iter()
            .map(|(name, value)| (&**name, Val::from(value)));
        match self.value(names)? {
            Val::Fault(fault) => Err(EvaluateError::Fault(fault)),
            value => value.to_value().ok_or(EvaluateError::NoValue),
        }
    }

    /// Evaluates with these names defined, to an internal value.
    pub(crate) fn value<'n>(
        &self,
        names: impl IntoIterator<Item = (&'n str, Val)>,
    ) -> Result<Val, ExprError> {
        let mut scope = Scope::default();
        for (name, value) in names {
            scope.insert(name, Symbol::Const(value));
        }
        let mut terms = Terms::default();
        let root = terms.lower(self, &scope)?;
        // Without parameters every term is a constant.
        Ok(terms.constant(root).cloned().unwrap_or(Val::Unset))
    }
}

/// Returns the known name nearest to a mistyped one; `None` if none is near.
#[must_use]
pub fn suggest<'n>(typed: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // A single letter is one edit away from all others, so short names need a small limit.
    let limit = match typed.chars().count() {
        0 | 1 => 0,
        length => 1 + length / 4,
    };
    // Edits are insertion, deletion, replacement, and the swap of two neighbours.
    let edits = |name: &str| strsim::osa_distance(&typed.to_lowercase(), &name.to_lowercase());
    known
        .map(|name| (edits(name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Suggests a replacement for a mistyped name: the nearest known name, or all of them after
/// `these`, such as `the sizes are`.
#[must_use]
pub fn nearest_or_all(typed: &str, known: &[&str], these: &str) -> String {
    match suggest(typed, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{these} {}", known.join(", ")),
    }
}
