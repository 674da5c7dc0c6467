//! Mutators: a command, the scripted transformations, an HTTP endpoint, a folder.

use std::time::{Duration, Instant};
use tuner_evolve::protocol::{MAX_ANSWER_BYTES, MutationRequest, Usage};
use tuner_evolve::scripted;
use tuner_process::{AnswerLimits, NoAnswer, Program, ask, start_error};

/// Answer as received.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) bytes: Vec<u8>,
    /// Cost that the mutator's transport reported.
    pub(super) usage: Option<Usage>,
}

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum MutatorError {
    /// No answer to this request; later requests may be answered.
    #[error("{why}")]
    NoAnswer {
        /// The reason.
        why: String,
        /// Cost of the unusable response.
        usage: Usage,
    },
    /// No further request will be answered: the evolution ends.
    #[error("{0}")]
    Exhausted(String),
    /// The user stopped the evolution.
    #[error("stopped")]
    Stopped,
}

impl MutatorError {
    /// Creates the error of a request without cost.
    pub(super) fn no_answer(why: impl Into<String>) -> Self {
        Self::NoAnswer {
            why: why.into(),
            usage: Usage::default(),
        }
    }
}

/// Source of changes.
pub(super) trait Mutator: Send {
    /// Answers a request within the time limit.
    ///
    /// # Errors
    /// See [`MutatorError`]; none of them makes the tuner fail.
    fn propose(
        &mut self,
        request: &MutationRequest,
        within: Duration,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Reply, MutatorError>;
}

/// Transformations of source text, executed in this process.
pub(super) struct Scripted;

impl Mutator for Scripted {
    fn propose(
        &mut self,
        request: &MutationRequest,
        _: Duration,
        _: &(dyn Fn() -> bool + Sync),
    ) -> Result<Reply, MutatorError> {
        match scripted::answer(request) {
            Some(answer) => Ok(Reply {
                bytes: serde_json::to_vec(&answer).unwrap_or_default(),
                usage: None,
            }),
            None => Err(MutatorError::no_answer(
                "no transformation applies to this parent that was not tried on it",
            )),
        }
    }
}

/// The user's command, run by the shell once for each request.
pub(super) struct CommandMutator {
    pub(super) command: String,
}

impl Mutator for CommandMutator {
    fn propose(
        &mut self,
        request: &MutationRequest,
        within: Duration,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Reply, MutatorError> {
        let program = Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), self.command.clone().into()],
            ..Program::default()
        };
        let mut question = serde_json::to_vec(request).unwrap_or_default();
        // A mutator that reads by lines, such as a shell's `read`, waits for the newline.
        question.push(b'\n');
        let limits = AnswerLimits {
            within,
            output_bytes: MAX_ANSWER_BYTES,
        };
        match ask(&program, question, limits, &|| stopped()) {
            Ok(bytes) => Ok(Reply { bytes, usage: None }),
            Err(NoAnswer::Stopped) => Err(MutatorError::Stopped),
            Err(NoAnswer::Host(error)) => {
                Err(MutatorError::no_answer(start_error(&program.path, &error)))
            }
            Err(other) => Err(MutatorError::no_answer(format!(
                "`{}`: {other}",
                self.command
            ))),
        }
    }
}

/// Sleeps in short steps until `ready`, the deadline or a stop.
pub(super) fn wait_until<T>(
    within: Duration,
    stopped: &(dyn Fn() -> bool + Sync),
    mut ready: impl FnMut() -> Option<T>,
) -> Result<Option<T>, MutatorError> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = ready() {
            return Ok(Some(found));
        }
        if stopped() {
            return Err(MutatorError::Stopped);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}
