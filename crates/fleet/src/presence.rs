//! Presence: workers and hubs rewrite a record periodically, and the bucket expires old records.

use async_nats::jetstream::kv;
use futures_util::TryStreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tuner_engine::fleet::{HubView, WorkerView};

/// Largest record read, bytes.
const RECORD_BYTES_MAX: usize = 64 << 10;

/// Writes a record.
pub(crate) async fn write<T: Serialize>(bucket: &kv::Store, key: &str, record: &T) -> bool {
    let Ok(bytes) = serde_json::to_vec(record) else {
        return false;
    };
    bucket.put(key, bytes.into()).await.is_ok()
}

/// Reads all valid records; missing fields of other versions have their defaults.
pub(crate) async fn read_all<T: DeserializeOwned>(bucket: &kv::Store) -> Result<Vec<T>, String> {
    let keys = bucket.keys().await.map_err(|error| error.to_string())?;
    let keys: Vec<String> = keys.try_collect().await.map_err(|e| e.to_string())?;
    let mut records = Vec::with_capacity(keys.len());
    for key in keys {
        // The record may have expired meanwhile.
        let Ok(Some(bytes)) = bucket.get(&key).await else {
            continue;
        };
        if bytes.len() > RECORD_BYTES_MAX {
            continue;
        }
        match serde_json::from_slice(&bytes) {
            Ok(record) => records.push(record),
            Err(error) => tracing::debug!(key, %error, "a record that is none"),
        }
    }
    Ok(records)
}

/// Returns the present workers by name.
pub(crate) async fn workers(bucket: &kv::Store) -> Result<Vec<WorkerView>, String> {
    let mut workers: Vec<WorkerView> = read_all(bucket).await?;
    workers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(workers)
}

/// Returns the present hubs by run.
pub(crate) async fn hubs(bucket: &kv::Store) -> Result<Vec<HubView>, String> {
    let mut hubs: Vec<HubView> = read_all(bucket).await?;
    hubs.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(hubs)
}
