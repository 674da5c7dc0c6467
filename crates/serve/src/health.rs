//! Health conditions by name, each with its start.

use super::app::App;
use super::view::Health;
use std::time::Duration;
use tuner_core::panics::lock;
use tuner_kernel::compile::Surroundings;
use tuner_store::MAX_QUEUED_RUNS;

/// Maximum time of a write before the database counts as locked.
const WRITE_TIMEOUT: Duration = Duration::from_millis(1500);
/// Interval between periodic examinations.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Names of conditions in `/healthz` and `/metrics`.
pub(super) const NAMES: [&str; 5] = [
    "database_locked",
    "database_not_writable",
    "queue_full",
    "compiler_missing",
    "device_failing",
];

/// Checks the daemon: a test write, the queue, the compiler and the devices.
pub(super) async fn examine(app: &App) -> Health {
    let mut found = Vec::new();
    let status = match tokio::time::timeout(WRITE_TIMEOUT, app.store.ping()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => {
            found.push(("database_not_writable", error.to_string()));
            Some("failing")
        }
        Err(_) => {
            let detail = format!(
                "no write came through for {} s: another process keeps the database locked (a \
                 backup, an open transaction), or disk or processors are overloaded",
                WRITE_TIMEOUT.as_secs_f64()
            );
            found.push(("database_locked", detail));
            Some("waiting")
        }
    };
    let counts = app.read(async |store| store.queue_counts().await).await;
    let queued = counts.unwrap_or_default().get("queued").copied();
    if queued.unwrap_or_default() >= MAX_QUEUED_RUNS {
        let detail = format!("{MAX_QUEUED_RUNS} runs wait; more are refused");
        found.push(("queue_full", detail));
    }
    if Surroundings::from_env().candidates().is_empty() {
        let detail = "no NVRTC is found, so only recordings can be tuned; `tuner doctor` says \
            where it was looked for";
        found.push(("compiler_missing", detail.to_owned()));
    }
    let failing: Vec<String> = lock(&app.conditions.devices)
        .iter()
        .map(|(device, reason)| format!("{device}: {reason}"))
        .collect();
    if !failing.is_empty() {
        found.push(("device_failing", failing.join("; ")));
    }
    let conditions = app.conditions.update(&found);
    let degraded = if conditions.is_empty() {
        "ok"
    } else {
        "degraded"
    };
    Health {
        status: status.unwrap_or(degraded).to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instance: app.instance.clone(),
        uptime_s: app.began.elapsed().as_secs_f64(),
        conditions,
    }
}

/// Checks the daemon periodically until it ends, so that `since` is correct without requests.
pub(super) async fn watch(app: std::sync::Arc<App>) {
    let mut ending = app.ending.clone();
    loop {
        examine(&app).await;
        tokio::select! {
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            () = tuner_engine::turned(&mut ending) => return,
        }
    }
}
