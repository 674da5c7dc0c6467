//! Objects named by the hash of their content.

use async_nats::jetstream::object_store::{Config, GetErrorKind, ObjectStore};
use async_nats::jetstream::{Context, ErrorCode};
use futures_util::StreamExt as _;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tuner_core::units::ContentHash;

/// Timeout of one object's transfer.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(60);

/// Share of a full store that is freed for a new object.
const FREED_SHARE: f64 = 0.25;

/// Reason for a missing object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    /// No object has this hash.
    #[error("no object {0}")]
    Missing(String),
    /// The stored content has another hash.
    #[error("the object {0} is not what its hash says")]
    False(String),
    /// Larger than the limit.
    #[error("the object {0} has {1} bytes, more than is read")]
    TooLarge(String, usize),
    /// Server error.
    #[error("the object store: {0}")]
    Server(String),
}

impl ObjectError {
    /// Reports whether a later retry may succeed.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// An object store.
#[derive(Clone)]
pub(crate) struct Objects {
    store: ObjectStore,
    /// Removes old objects to store new ones.
    evicts: bool,
}

impl Objects {
    /// Creates the store if it is missing. `bytes_max` limits it.
    pub(crate) async fn make(
        context: &Context,
        bucket: &str,
        bytes_max: Option<u64>,
        age_max: Duration,
    ) -> Result<(), String> {
        if context.get_object_store(bucket).await.is_ok() {
            return Ok(());
        }
        let config = Config {
            bucket: bucket.to_owned(),
            max_bytes: bytes_max
                .and_then(|bytes| i64::try_from(bytes).ok())
                .unwrap_or(-1),
            max_age: age_max,
            ..Config::default()
        };
        let made = context.create_object_store(config).await;
        made.map(drop).map_err(|error| error.to_string())
    }

    /// Opens an existing store.
    pub(crate) async fn open(
        context: &Context,
        bucket: &str,
        evicts: bool,
    ) -> Result<Self, String> {
        let store = context.get_object_store(bucket).await;
        let store = store.map_err(|error| error.to_string())?;
        Ok(Self { store, evicts })
    }

    /// Stores content unless it is present, and returns its hash.
    pub(crate) async fn put(&self, content: &[u8]) -> Result<ContentHash, ObjectError> {
        let hash = ContentHash::from_parts([content]);
        if self.has(&hash).await {
            return Ok(hash);
        }
        match self.put_as(&hash, content).await {
            Err(error) if self.evicts && is_full(&error) => {
                self.evict().await;
                self.put_as(&hash, content).await?;
            }
            first => first?,
        }
        Ok(hash)
    }

    async fn put_as(&self, hash: &ContentHash, content: &[u8]) -> Result<(), ObjectError> {
        let mut reader = content;
        let stored =
            tokio::time::timeout(TRANSFER_TIMEOUT, self.store.put(hash.as_str(), &mut reader));
        match stored.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(ObjectError::Server(error.to_string())),
            Err(_) => Err(ObjectError::Server("no answer".to_owned())),
        }
    }

    /// Reports whether an object of this hash exists.
    pub(crate) async fn has(&self, hash: &ContentHash) -> bool {
        let info = self.store.info(hash.as_str()).await;
        info.is_ok_and(|info| !info.deleted)
    }

    /// Returns the content of this hash after verification.
    pub(crate) async fn get(
        &self,
        hash: &ContentHash,
        bytes_max: usize,
    ) -> Result<Vec<u8>, ObjectError> {
        let named = || hash.short().to_owned();
        let fetch = async {
            let mut object = self.store.get(hash.as_str()).await.map_err(|error| {
                if error.kind() == GetErrorKind::NotFound {
                    ObjectError::Missing(named())
                } else {
                    ObjectError::Server(error.to_string())
                }
            })?;
            let size = object.info().size;
            if size > bytes_max {
                return Err(ObjectError::TooLarge(named(), size));
            }
            let mut content = Vec::with_capacity(size);
            // The client compares the sender's digest; a mismatch ends the read.
            match object.read_to_end(&mut content).await {
                Ok(_) => Ok(content),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    Err(ObjectError::False(named()))
                }
                Err(error) => Err(ObjectError::Server(error.to_string())),
            }
        };
        let content = tokio::time::timeout(TRANSFER_TIMEOUT, fetch).await;
        let content =
            content.unwrap_or_else(|_| Err(ObjectError::Server("no answer".to_owned())))?;
        // The client's digest is claimed by the sender; the order specifies this hash.
        if ContentHash::from_parts([content.as_slice()]) != *hash {
            return Err(ObjectError::False(named()));
        }
        Ok(content)
    }

    /// Removes an object with wrong content.
    pub(crate) async fn remove(&self, hash: &ContentHash) {
        if let Err(error) = self.store.delete(hash.as_str()).await {
            tracing::debug!(%error, "an object cannot be removed");
        }
    }

    /// Removes the oldest objects, a quarter of all bytes.
    async fn evict(&self) {
        let Ok(mut list) = self.store.list().await else {
            return;
        };
        let mut objects = Vec::new();
        while let Some(Ok(info)) = list.next().await {
            objects.push((info.modified, info.name, info.size));
        }
        objects.sort();
        let total: usize = objects.iter().map(|(_, _, size)| size).sum();
        let mut freed = 0.0;
        for (_, name, size) in objects {
            if freed >= FREED_SHARE * total as f64 {
                break;
            }
            if self.store.delete(&name).await.is_ok() {
                freed += size as f64;
            }
        }
    }
}

/// Reports whether a store rejected an object because the store or the server is at its limit. The client
/// only passes on the text of the server's error, which contains its number.
fn is_full(error: &ObjectError) -> bool {
    const CODES: [ErrorCode; 5] = [
        ErrorCode::STREAM_STORE_FAILED,
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::MEMORY_RESOURCES_EXCEEDED,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
    ];
    let ObjectError::Server(text) = error else {
        return false;
    };
    let mut codes = CODES.iter();
    codes.any(|code| text.contains(&format!("error code {})", code.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_store_makes_room() {
        let server = |text: &str| ObjectError::Server(text.to_owned());
        let full = "failed publishing object chunks: failed getting chunk ack: publish failed: \
                    maximum bytes exceeded (code 503, error code 10077)";
        assert!(is_full(&server(full)));
        let account =
            "publish failed: resource limits exceeded for account (code 400, error code 10002)";
        assert!(is_full(&server(account)));
        for other in [
            "no answer",
            "failed publishing object chunks: failed chunk publish: broken pipe",
            "publish failed: timed out: didn't receive ack in time",
            "publish failed: wrong last sequence (code 400, error code 10071)",
        ] {
            assert!(!is_full(&server(other)), "{other}");
        }
        assert!(!is_full(&ObjectError::Missing("x".to_owned())));
    }
}
