//! Objects named by the hash of their content.

use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::{Config, GetErrorKind, ObjectStore};
use futures_util::StreamExt as _;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tuner_core::units::ContentHash;

/// How long one object may take on its way.
const PATIENCE: Duration = Duration::from_secs(60);

/// Share of a full store that is freed for a new object.
const FREED: f64 = 0.25;

/// Why there is no object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    /// Nothing lies under that hash.
    #[error("there is no object {0}")]
    Missing(String),
    /// What lies there is something else.
    #[error("the object {0} is not what its hash says")]
    False(String),
    /// It is larger than what is read.
    #[error("the object {0} has {1} bytes, more than is read")]
    TooLarge(String, usize),
    /// The server.
    #[error("the object store: {0}")]
    Server(String),
}

impl ObjectError {
    /// Whether trying again later may help.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// One object store.
#[derive(Clone)]
pub(crate) struct Objects {
    store: ObjectStore,
    /// Whether old objects make room for new ones.
    evicts: bool,
}

impl Objects {
    /// Makes the store of that name where it is not there. `bytes_max` limits it.
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

    /// The store of that name, which must be there.
    pub(crate) async fn open(
        context: &Context,
        bucket: &str,
        evicts: bool,
    ) -> Result<Self, String> {
        let store = context.get_object_store(bucket).await;
        let store = store.map_err(|error| error.to_string())?;
        Ok(Self { store, evicts })
    }

    /// Stores a content, where it is not there already, and gives its hash.
    pub(crate) async fn put(&self, content: &[u8]) -> Result<ContentHash, ObjectError> {
        let hash = ContentHash::from_parts([content]);
        if self.has(&hash).await {
            return Ok(hash);
        }
        let first = self.put_as(&hash, content).await;
        if first.is_err() && self.evicts {
            self.evict().await;
            self.put_as(&hash, content).await?;
        } else {
            first?;
        }
        Ok(hash)
    }

    async fn put_as(&self, hash: &ContentHash, content: &[u8]) -> Result<(), ObjectError> {
        let mut reader = content;
        let stored = tokio::time::timeout(PATIENCE, self.store.put(hash.as_str(), &mut reader));
        match stored.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(ObjectError::Server(error.to_string())),
            Err(_) => Err(ObjectError::Server("no answer".to_owned())),
        }
    }

    /// Whether something lies under that hash.
    pub(crate) async fn has(&self, hash: &ContentHash) -> bool {
        let info = self.store.info(hash.as_str()).await;
        info.is_ok_and(|info| !info.deleted)
    }

    /// The content of that hash, and no other.
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
            // The client compares with the digest that was sent along; a false one ends the reading.
            match object.read_to_end(&mut content).await {
                Ok(_) => Ok(content),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    Err(ObjectError::False(named()))
                }
                Err(error) => Err(ObjectError::Server(error.to_string())),
            }
        };
        let content = tokio::time::timeout(PATIENCE, fetch).await;
        let content =
            content.unwrap_or_else(|_| Err(ObjectError::Server("no answer".to_owned())))?;
        if ContentHash::from_parts([content.as_slice()]) != *hash {
            return Err(ObjectError::False(named()));
        }
        Ok(content)
    }

    /// Removes an object that is not what it should be.
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
            if freed >= FREED * total as f64 {
                break;
            }
            if self.store.delete(&name).await.is_ok() {
                freed += size as f64;
            }
        }
    }
}
