//! Who is there: workers and hubs write a record of themselves again and again, and the bucket forgets
//! those that stop.

use async_nats::jetstream::kv;
use futures_util::TryStreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tuner_engine::fleet::{HubView, WorkerView};

/// Longest record that is read, bytes.
const RECORD_BYTES_MAX: usize = 64 << 10;

/// Writes a record.
pub(crate) async fn write<T: Serialize>(bucket: &kv::Store, key: &str, record: &T) -> bool {
    let Ok(bytes) = serde_json::to_vec(record) else {
        return false;
    };
    bucket.put(key, bytes.into()).await.is_ok()
}

/// All records that can be read; those of other versions have what they have.
pub(crate) async fn all<T: DeserializeOwned>(bucket: &kv::Store) -> Result<Vec<T>, String> {
    let keys = bucket.keys().await.map_err(|error| error.to_string())?;
    let keys: Vec<String> = keys.try_collect().await.map_err(|e| e.to_string())?;
    let mut records = Vec::with_capacity(keys.len());
    for key in keys {
        // One that is gone since is gone.
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

/// The workers that are there, by name.
pub(crate) async fn workers(bucket: &kv::Store) -> Result<Vec<WorkerView>, String> {
    let mut workers: Vec<WorkerView> = all(bucket).await?;
    workers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(workers)
}

/// The hubs that are there, by run.
pub(crate) async fn hubs(bucket: &kv::Store) -> Result<Vec<HubView>, String> {
    let mut hubs: Vec<HubView> = all(bucket).await?;
    hubs.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(hubs)
}
