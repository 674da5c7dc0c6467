//! Acknowledgement of a stored result.

use crate::error::StoreError;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Acknowledgement of a stored result: resolves after its transaction was committed.
#[derive(Debug)]
#[must_use = "a result is stored when this has resolved, not before"]
pub struct Ack {
    pub(super) path: Arc<Path>,
    pub(super) reply: oneshot::Receiver<Result<(), StoreError>>,
}

impl Ack {
    /// Waits on a thread that runs no async code.
    ///
    /// # Errors
    /// The result could not be stored.
    pub fn wait(self) -> Result<(), StoreError> {
        let path = self.path;
        self.reply
            .blocking_recv()
            .unwrap_or_else(|_| Err(closed(&path)))
    }
}

impl Future for Ack {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.reply)
            .poll(context)
            .map(|answer| answer.unwrap_or_else(|_| Err(closed(&self.path))))
    }
}

pub(super) fn closed(path: &Path) -> StoreError {
    StoreError::broken(path, "the store was closed before this was written")
}
