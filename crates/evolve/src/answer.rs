//! Reading of answers: strict, bounded, and without effects. An answer is data.

use crate::edits::{self, EditError};
use crate::includes::{self, IncludeError};
use crate::outcome::Outcome;
use crate::patch::{self, PatchError};
use crate::protocol::{MAX_ANSWER_BYTES, MAX_NOTE_CHARS, MAX_SOURCE_BYTES, MutationAnswer};
use crate::space_change::{self, SpaceError};
use serde_json::{Map, Value};
use tuner_core::escape;

/// Reason why an answer is not used. The text is reported to the mutator once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Nothing.
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
    let mut answer: MutationAnswer = serde_json::from_slice(bytes)
        .map_err(|error| AnswerError::NotJson(escape::line(&error.to_string())))?;
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

/// Applies an answer to its parent. `headers` has the names that the parent includes.
///
/// # Errors
/// Edits that do not apply, and a refused source.
pub fn apply(
    answer: &MutationAnswer,
    parent: &Code,
    headers: &[String],
) -> Result<Code, AnswerError> {
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
    check_source(&code.source)?;
    includes::check(&code.source, headers)?;
    if let Some(change) = &answer.space {
        space_change::apply(&mut code.space, change)?;
    }
    Ok(code)
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
