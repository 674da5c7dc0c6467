//! Strict and bounded parsing of answers, without side effects: an answer is data.

use crate::edits::{self, EditError};
use crate::includes::{self, Context, IncludeError};
use crate::outcome::Outcome;
use crate::patch::{self, PatchError};
use crate::protocol::{
    MAX_ANSWER_BYTES, MAX_COST, MAX_NOTE_CHARS, MAX_SOURCE_BYTES, MAX_TOKENS, MutationAnswer,
};
use crate::space_change::{self, SpaceError};
use serde_json::{Map, Value};
use tuner_core::escape;

/// Reason why an answer is not used. The text is reported to the mutator once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Empty answer.
    #[error("the answer is empty")]
    Empty,
    /// Too large.
    #[error("the answer has more than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
    /// Not JSON, or not of the protocol.
    #[error("the answer is not of the protocol: {0}")]
    NotJson(String),
    /// Answer for another request.
    #[error("the answer is for request `{got}`, not for `{wanted}`")]
    OtherRequest {
        /// Identity in the answer.
        got: String,
        /// Identity of the request.
        wanted: String,
    },
    /// None or several of `source`, `blocks`, `diff`.
    #[error("give exactly one of `source`, `blocks` and `diff` ({0} are given), or only `space`")]
    Forms(usize),
    /// Blocks that do not apply.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A diff that does not apply.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// A change of the space that does not apply.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A source that is too large or has null bytes.
    #[error("the new source {0}")]
    Source(&'static str),
    /// A refused header.
    #[error(transparent)]
    Include(#[from] IncludeError),
    /// A cost that cannot be.
    #[error("`usage` has more than {MAX_TOKENS} tokens, or a cost outside of 0 to {MAX_COST}")]
    Usage,
    /// A changed kernel that cannot be read.
    #[error("the changed kernel is wrong: {0}")]
    Kernel(String),
    /// A search space without a configuration of a timed problem.
    #[error("the changed search space has no valid configuration for the problem `{0}`: {1}")]
    EmptySpace(String, String),
    /// A search space that excludes sizes of the check problems.
    #[error(
        "the changed search space has no valid configuration for sizes that the parent's allows; checks use \
         smaller and ragged sizes, and the kernel must compute them too"
    )]
    ExcludedSizes,
}

impl AnswerError {
    /// Returns the outcome of the change.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Include(_) => Outcome::Refused,
            _ => Outcome::Malformed,
        }
    }
}

/// Code of a parent that answers are applied to.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    /// CUDA source.
    pub source: String,
    /// Document of the search space.
    pub space: Map<String, Value>,
}

/// Changed code.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// Source and search space.
    pub code: Code,
    /// Remarks on parts of the search space that the change made obsolete.
    pub notes: Vec<String>,
}

/// Headers of a kernel and files of its `#line` directives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// Names that the template includes.
    pub names: Vec<String>,
    /// Texts of the headers that are delivered with the kernel.
    pub texts: Vec<String>,
}

/// Reads an answer to the request `id`.
///
/// # Errors
/// The first defect.
pub fn read(bytes: &[u8], id: &str) -> Result<MutationAnswer, AnswerError> {
    if bytes.len() > MAX_ANSWER_BYTES {
        return Err(AnswerError::TooLarge);
    }
    if bytes.trim_ascii().is_empty() {
        return Err(AnswerError::Empty);
    }
    let not_json = |error: String| AnswerError::NotJson(escape::line(&error));
    let mut answer: MutationAnswer =
        serde_json::from_slice(bytes).map_err(|error| not_json(error.to_string()))?;
    // A derived type also accepts a list of all fields in order.
    let shape: Value =
        serde_json::from_slice(bytes).map_err(|error| not_json(error.to_string()))?;
    if let Some(name) = not_an_object(&shape) {
        return Err(not_json(format!("{name} is not a JSON object")));
    }
    if answer.usage.is_some_and(|usage| !usage.is_plausible()) {
        return Err(AnswerError::Usage);
    }
    // A late answer to an earlier request would be applied to another parent.
    if answer.id != id {
        let shown: String = answer.id.chars().take(40).collect();
        return Err(AnswerError::OtherRequest {
            got: escape::line(&shown),
            wanted: id.to_owned(),
        });
    }
    answer.note = answer.note.chars().take(MAX_NOTE_CHARS).collect();
    Ok(answer)
}

/// Returns the part of an answer that must be an object and is not.
fn not_an_object(answer: &Value) -> Option<&'static str> {
    let is_list = |path: &str| answer.pointer(path).is_some_and(Value::is_array);
    let constraints = answer.pointer("/space/add_constraints");
    let constraints = constraints.and_then(Value::as_array);
    if !answer.is_object() {
        return Some("the answer");
    }
    if is_list("/space") {
        return Some("`space`");
    }
    if is_list("/usage") {
        return Some("`usage`");
    }
    let is_wrong = constraints.is_some_and(|all| !all.iter().all(Value::is_object));
    is_wrong.then_some("a constraint of `add_constraints`")
}

/// Applies an answer to its parent.
///
/// # Errors
/// Edits that do not apply, and a refused source.
pub fn apply(
    answer: &MutationAnswer,
    parent: &Code,
    headers: &Headers,
) -> Result<Applied, AnswerError> {
    let forms = [&answer.source, &answer.blocks, &answer.diff];
    let given = forms.iter().filter(|form| form.is_some()).count();
    if given > 1 || (given == 0 && answer.space.is_none()) {
        return Err(AnswerError::Forms(given));
    }
    let mut code = parent.clone();
    if let Some(source) = &answer.source {
        code.source.clone_from(source);
    } else if let Some(blocks) = &answer.blocks {
        code.source = edits::apply(&parent.source, blocks)?;
    } else if let Some(diff) = &answer.diff {
        code.source = patch::apply(&parent.source, diff)?;
    }
    let mut notes = Vec::new();
    if let Some(change) = &answer.space {
        notes = space_change::apply(&mut code.space, change)?;
    }
    check_source(&code.source)?;
    let context = Context {
        headers: headers.names.clone(),
        header_texts: headers.texts.clone(),
        line_files: includes::line_files(&parent.source),
        macros: space_change::macros(&code.space),
    };
    includes::check(&code.source, &context)?;
    Ok(Applied { code, notes })
}

fn check_source(source: &str) -> Result<(), AnswerError> {
    if source.trim().is_empty() {
        return Err(AnswerError::Source("is empty"));
    }
    if source.len() > MAX_SOURCE_BYTES {
        return Err(AnswerError::Source("has more than 1 MiB"));
    }
    if source.contains('\0') {
        return Err(AnswerError::Source("has a null byte"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
