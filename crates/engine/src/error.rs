//! Reasons why a run fails.

use super::evaluator::BoxError;
use tuner_search::UnknownStrategy;
use tuner_store::StoreError;

/// Failure of the tuner itself. Everything finished before is stored.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Results cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The strategy does not exist.
    #[error(transparent)]
    Strategy(#[from] UnknownStrategy),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(BoxError),
    /// The fleet refuses the run, or cannot be used.
    #[error("the fleet cannot carry the run out: {0}")]
    Fleet(BoxError),
    /// A defect of the tuner.
    #[error("the tuner panicked while it judged a candidate: {0}; please report this")]
    Panicked(String),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}; lower --jobs or raise the limit on processes")]
    Threads(#[from] std::io::Error),
}
