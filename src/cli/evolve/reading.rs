//! Parsing of a mutator's answer: its edits, the changed kernel, and the sizes that it must compute.

use super::checks;
use super::mutator::Reply;
use super::options::Options;
use tuner_core::escape;
use tuner_engine::job::ChangedCode;
use tuner_evolve::answer::{self, AnswerError, Code};
use tuner_evolve::protocol::{MutationAnswer, MutationRequest, Usage};
use tuner_evolve::space_change;
use tuner_kernel::catalog::CatalogError;

/// Maximum length of a quoted line of a changed search space, characters.
const MAX_EXCERPT_CHARS: usize = 80;

/// Parsed answer.
pub(super) struct Read {
    pub(super) note: String,
    pub(super) usage: Usage,
    pub(super) change: Result<Change, AnswerError>,
}

/// Change of an answer.
pub(super) struct Change {
    pub(super) code: ChangedCode,
    /// Remarks on files that the change no longer uses.
    pub(super) notes: Vec<String>,
}

/// Reads an answer to a request and applies it to the parent's code.
pub(super) fn read(
    options: &Options,
    reply: &Reply,
    request: &MutationRequest,
    parent: &ChangedCode,
) -> Read {
    match answer::read(&reply.bytes, &request.id) {
        Ok(answer) => Read {
            // An answer may misstate its cost, while the transport has counted it.
            usage: reply.usage.or(answer.usage).unwrap_or_default(),
            change: change(options, &answer, request.round, parent),
            note: answer.note,
        },
        Err(error) => Read {
            note: String::new(),
            usage: reply.usage.unwrap_or_default(),
            change: Err(error),
        },
    }
}

fn change(
    options: &Options,
    answer: &MutationAnswer,
    round: u32,
    parent: &ChangedCode,
) -> Result<Change, AnswerError> {
    let before = Code {
        source: parent.source.clone(),
        space: space_change::document(&parent.space)?,
    };
    let applied = answer::apply(answer, &before, &options.headers)?;
    let code = ChangedCode {
        source: applied.code.source,
        space: serde_json::to_string_pretty(&applied.code.space).unwrap_or_default(),
    };
    let kernel = options.parsed.with_code(&code.source, &code.space);
    let kernel = kernel.map_err(|error| AnswerError::Kernel(defect(&error, &code.space)))?;
    checks::require_valid(options, &kernel, &checks::draw(options, &code, round))?;
    Ok(Change {
        code,
        notes: applied.notes,
    })
}

/// Formats the defects of a changed kernel. Line numbers of its search space are useless to the mutator,
/// which wrote only the changes: each line is quoted instead.
fn defect(error: &CatalogError, space: &str) -> String {
    let CatalogError::Invalid(all) = error else {
        return error.to_string();
    };
    let texts = all.items().iter().take(3).map(|item| {
        let text = item.at.clone().and_then(|at| space.get(at));
        let text = text.unwrap_or_default().trim();
        let shown: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
        let place = match shown.is_empty() {
            true => "the search space".to_owned(),
            false => format!("the search space at `{}`", escape::line(&shown)),
        };
        let help = item.help.as_ref().map(|help| format!(" ({help})"));
        format!("{place}: {}{}", item.message, help.unwrap_or_default())
    });
    texts.collect::<Vec<String>>().join("; ")
}
