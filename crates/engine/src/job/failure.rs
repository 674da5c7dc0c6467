//! Failures as what they mean for the asker.

use super::{JobError, usage};
use crate::{BoxError, EngineError};
use tuner_store::StoreError;

/// A failure of the store, as what it means for the asker.
pub(super) fn store_error(error: StoreError) -> JobError {
    if error.is_bad_input() {
        usage(error)
    } else {
        JobError::Store(error)
    }
}

/// The failure of a device or of the compiler before it, as one of the job that it works for.
pub(crate) fn device_error(error: BoxError) -> JobError {
    engine_error(EngineError::Device(error))
}

/// The failure of an engine as one of the job that it ran for.
pub(crate) fn engine_error(error: EngineError) -> JobError {
    use tuner_device::worker::host::WorkerError;
    match error {
        EngineError::Store(error) => store_error(error),
        EngineError::Fleet(error) => usage(error),
        EngineError::Device(error) => match error.downcast::<WorkerError>() {
            Ok(unusable) if matches!(*unusable, WorkerError::Unusable(_)) => {
                usage(format!("{unusable}; mend the space's `reference`"))
            }
            Ok(other) => JobError::Failed((*other).into()),
            Err(other) => JobError::Failed(EngineError::Device(other).into()),
        },
        other => JobError::Failed(other.into()),
    }
}
