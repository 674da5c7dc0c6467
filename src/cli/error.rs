//! Errors of commands.

use std::fmt::Display;
use tuner_adopt::AdoptError;
use tuner_device::SelectorError;
use tuner_device::gpu::GpuError;
use tuner_device::gpu::helpers::HelpersError;
use tuner_device::worker::host::WorkerError;
use tuner_engine::job::JobError;
use tuner_fleet::FleetError;
use tuner_kernel::catalog::CatalogError;
use tuner_kernel::compile::{CompileError, NvrtcMissing};
use tuner_kernel::declarations::DeclarationError;
use tuner_report::export::ExportError;
use tuner_serve::ServeError;
use tuner_serve::client::ClientError;
use tuner_space::Diagnostics;
use tuner_store::StoreError;

/// Error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// User error: bad usage or a bad input file. Exit code 2. The text is complete, with location and fix,
    /// and is printed unchanged.
    #[error("{0}")]
    Usage(String),
    /// Failure of the tuner. Exit code 1.
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

/// Creates a user error.
pub(super) fn usage(text: impl Display) -> CliError {
    complete(format_args!("error: {text}"))
}

/// Creates a user error from a text that already starts with `error` and the location.
pub(super) fn complete(text: impl Display) -> CliError {
    CliError::Usage(text.to_string())
}

fn failed(error: impl Into<anyhow::Error>) -> CliError {
    CliError::Failed(error.into())
}

/// Creates a user error or a failure, depending on the error.
fn either<E: Display + Into<anyhow::Error>>(error: E, is_usage: fn(&E) -> bool) -> CliError {
    match is_usage(&error) {
        true => usage(error),
        false => failed(error),
    }
}

/// Conversions from the components' errors.
macro_rules! becomes {
    ($($error:ty => $made:expr),+ $(,)?) => {$(
        impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                let made: fn($error) -> Self = $made;
                made(error)
            }
        }
    )+};
}

becomes! {
    std::io::Error => failed,
    serde_json::Error => failed,
    NvrtcMissing => failed,
    CompileError => failed,
    WorkerError => failed,
    GpuError => failed,
    HelpersError => failed,
    SelectorError => usage,
    ExportError => usage,
    CatalogError => complete,
    Diagnostics => complete,
    DeclarationError => |error| JobError::from(error).into(),
    AdoptError => |error| match error {
        AdoptError::Compile(error) => error.into(),
        other => complete(other),
    },
    JobError => |error| match error {
        JobError::Usage(text) | JobError::Device(text) | JobError::Input { text, .. } => {
            Self::Usage(text)
        }
        JobError::Store(error) => error.into(),
        JobError::Failed(error) => Self::Failed(error),
    },
    StoreError => |error| either(error, StoreError::is_bad_input),
    FleetError => |error| either(error, FleetError::is_usage),
    ServeError => |error| either(error, ServeError::is_usage),
    // A request that the daemon rejects is a user error.
    ClientError => |error| either(error, |error| {
        matches!(error, ClientError::Refused { .. } | ClientError::Token { .. })
    }),
}
