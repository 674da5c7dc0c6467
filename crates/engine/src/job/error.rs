//! Reasons why a run cannot be set up or executed.

use crate::{BoxError, EngineError};
use tuner_device::worker::host::WorkerError;
use tuner_kernel::catalog::CatalogError;
use tuner_kernel::declarations::DeclarationError;
use tuner_space::Diagnostics;
use tuner_store::StoreError;

/// Reason why a run cannot be set up or executed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The user's mistake; complete, with position and fix.
    #[error("{0}")]
    Usage(String),
    /// A file of the request is invalid.
    #[error("{text}")]
    Input {
        /// The file.
        file: String,
        /// The complete reason. It may quote the file, and is for users of this machine only.
        text: String,
    },
    /// The GPU is absent, in use, or faulty; complete, with the fix.
    #[error("{0}")]
    Device(String),
    /// The results could not be stored; everything announced is stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tuner itself failed.
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

impl JobError {
    /// Returns the reason for clients over a network, without quotes from invalid files.
    #[must_use]
    pub fn without_excerpts(&self) -> String {
        match self {
            Self::Input { file, .. } => format!(
                "error: {file} cannot be read as what the request takes it for; the daemon's log has the \
                 reason"
            ),
            Self::Usage(text) | Self::Device(text) => text.trim_end().to_owned(),
            Self::Store(error) => error.to_string(),
            Self::Failed(error) => format!("{error:#}"),
        }
    }
}

impl From<Diagnostics> for JobError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Input {
            file: diagnostics.file().to_owned(),
            text: diagnostics.to_string(),
        }
    }
}

impl From<CatalogError> for JobError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Invalid(diagnostics) => (*diagnostics).into(),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl From<DeclarationError> for JobError {
    fn from(error: DeclarationError) -> Self {
        match error {
            DeclarationError::Compile(error) => Self::Failed(error.into()),
            wrong => Self::Usage(wrong.to_string()),
        }
    }
}

/// Converts the user's mistake.
pub(crate) fn usage(error: impl std::fmt::Display) -> JobError {
    JobError::Usage(format!("error: {error}"))
}

/// Converts a failure of a device or of its compiler.
pub(crate) fn device_error(error: BoxError) -> JobError {
    engine_error(EngineError::Device(error))
}

/// Converts a failure of an engine.
pub(crate) fn engine_error(error: EngineError) -> JobError {
    match error {
        EngineError::Store(error) => error.into(),
        EngineError::Fleet(error) => usage(error),
        EngineError::Device(error) => match error.downcast::<WorkerError>() {
            Ok(unusable) if matches!(*unusable, WorkerError::Unusable(_)) => {
                usage(format!("{unusable}; fix the space's `reference`"))
            }
            Ok(other) => JobError::Failed((*other).into()),
            Err(other) => JobError::Failed(EngineError::Device(other).into()),
        },
        other => JobError::Failed(other.into()),
    }
}
