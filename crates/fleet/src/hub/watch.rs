//! Background checks of a run: its presence record, lost queues, lost orders, and waiting times.

use super::run::Run;
use crate::link::FleetError;
use crate::presence;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tuner_core::provenance;
use tuner_engine::fleet::{HubView, Session as _, Step};

/// Sampling interval of waiting times.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Number of silent periods after which an order is searched for.
const SILENT_PERIODS: u32 = 3;

/// Maximum number of orders searched for at a time.
const LOOKED_FOR: usize = 64;

/// Time without a worker before a warning.
const NO_WORKER_DELAY: Duration = Duration::from_secs(10);

/// Claims the run. A claim of another live process is an error.
pub(super) async fn claim(run: &Run) -> Result<(), FleetError> {
    let (hubs, key) = (&run.link.hubs, run.key());
    // The record of a dead hub expires within `presence`.
    let limit = run.settings.presence + Duration::from_secs(2);
    let began = Instant::now();
    let mut first: Option<u64> = None;
    loop {
        let entry = hubs.entry(&key).await.map_err(FleetError::server)?;
        let live = entry
            .filter(|entry| matches!(entry.operation, async_nats::jetstream::kv::Operation::Put));
        let Some(entry) = live else {
            let record = serde_json::to_vec(&run.describe()).map_err(FleetError::defect)?;
            match hubs.create(&key, record.into()).await {
                Ok(_) => return Ok(()),
                // Another process was faster; its claim is checked next.
                Err(error) => tracing::debug!(%error, "the run is claimed by another hub"),
            }
            tokio::time::sleep(SAMPLE_INTERVAL).await;
            continue;
        };
        let holder: HubView = serde_json::from_slice(&entry.value).unwrap_or_default();
        let here = holder.host == provenance::host();
        // On the same machine a dead process is detected immediately and its record need not expire.
        if here && !std::path::Path::new(&format!("/proc/{}", holder.pid)).exists() {
            let record = serde_json::to_vec(&run.describe()).map_err(FleetError::defect)?;
            if hubs
                // With the revision: if two processes replace the dead hub, one of them succeeds.
                .update(&key, record.into(), entry.revision)
                .await
                .is_ok()
            {
                return Ok(());
            }
            continue;
        }
        let renewed = first.is_some_and(|revision| revision != entry.revision);
        first.get_or_insert(entry.revision);
        if renewed || here || began.elapsed() > limit {
            return Err(FleetError::RunClaimed {
                run: run.name.clone(),
                host: holder.host,
                pid: holder.pid,
            });
        }
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
}

/// Watches the run until it ends.
pub(super) async fn watch(run: Weak<Run>) {
    let mut said = Instant::now();
    let mut looked = Instant::now();
    let mut alone_since = Some(Instant::now());
    loop {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        let Some(run) = run.upgrade() else { return };
        if *run.ended.borrow() {
            return;
        }
        note_waits(&run);
        alone(&run, &mut alone_since);
        if said.elapsed() >= run.settings.presence / 3 {
            said = Instant::now();
            presence::write(&run.link.hubs, &run.key(), &run.describe()).await;
        }
        if looked.elapsed() >= run.settings.ack_wait {
            looked = Instant::now();
            look_after(&run).await;
        }
    }
}

/// Accumulates waiting times.
fn note_waits(run: &Run) {
    if run.compile.is_none() {
        return;
    }
    let capacity = run.capacity();
    let mut state = run.state();
    let compiling = state
        .waiting
        .values()
        .filter(|waiting| matches!(waiting.order.step, Step::Compile { .. }))
        .count();
    let judging = state.waiting.len() - compiling;
    let seconds = SAMPLE_INTERVAL.as_secs_f64();
    if compiling > 0 && judging < capacity.devices {
        state.devices_waited += seconds * (capacity.devices - judging) as f64;
    }
    if judging >= capacity.devices.max(1) && compiling < capacity.compilers {
        state.compilers_waited += seconds * (capacity.compilers - compiling) as f64;
    }
}

/// Warns if orders wait and no worker is present.
fn alone(run: &Run, since: &mut Option<Instant>) {
    let waits = !run.state().waiting.is_empty();
    if !waits || run.capacity().devices > 0 {
        *since = None;
        return;
    }
    let began = *since.get_or_insert_with(Instant::now);
    if began.elapsed() >= NO_WORKER_DELAY {
        tracing::warn!(
            "no worker of the fleet takes candidates for {}; waiting (start one: tuner worker \
             --fleet URL)",
            run.class
        );
        // Warns again after a minute.
        *since = Some(Instant::now() + Duration::from_secs(50));
    }
}

/// Recreates queues that a server lost and sends lost orders again.
async fn look_after(run: &Arc<Run>) {
    if run.link.mend().await.is_err() || run.make_queues().await.is_err() {
        return;
    }
    if !run.link.files.has(&run.assignment).await {
        let _ = run.send_objects().await;
    }
    let silent = run.settings.ack_wait * SILENT_PERIODS;
    let orders: Vec<_> = {
        let state = run.state();
        let old = state.waiting.values().filter(|w| w.sent.elapsed() > silent);
        let old = old.take(LOOKED_FOR);
        old.map(|w| (w.order.clone(), w.sent_in.clone())).collect()
    };
    let (link, name) = (&run.link, &run.name);
    let Ok(work) = link.context.get_stream_no_info(link.names.work()).await else {
        return;
    };
    let Ok(results) = link.context.get_stream_no_info(link.names.results()).await else {
        return;
    };
    for (order, message) in orders {
        let result = link.names.result(name, &message);
        let queued = run.subject(&order.step, &message);
        let queued = work.direct_get_last_for_subject(queued).await;
        let answered = results.direct_get_last_for_subject(result).await;
        let is_nowhere = |error: &async_nats::jetstream::stream::DirectGetError| {
            error.kind() == async_nats::jetstream::stream::DirectGetErrorKind::NotFound
        };
        let nowhere =
            queued.as_ref().is_err_and(is_nowhere) && answered.as_ref().is_err_and(is_nowhere);
        if nowhere {
            run.send_again(&order.id);
        } else if let Some(waiting) = run.state().waiting.get_mut(&order.id) {
            waiting.sent = Instant::now();
        }
    }
}
