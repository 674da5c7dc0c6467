//! `/metrics`, in Prometheus' text format.

use super::app::App;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use tuner_engine::fleet::{FleetView, WorkerView};
use tuner_store::StoreError;

/// The page.
pub(super) async fn page(app: &App) -> Result<String, StoreError> {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let plain = |value: f64| vec![(String::new(), value)];
    let label =
        |name: &str, value: &str, count: u64| (format!("{{{name}=\"{value}\"}}"), count as f64);
    family(
        "tuner_build_info",
        "gauge",
        "Version of the tuner.",
        &[label("version", env!("CARGO_PKG_VERSION"), 1)],
    );
    let uptime = app.began.elapsed().as_secs_f64();
    family(
        "tuner_uptime_seconds",
        "gauge",
        "Seconds since the daemon started.",
        &plain(uptime),
    );
    let judged: Vec<_> = app
        .live
        .verdicts()
        .into_iter()
        .map(|(verdict, count)| label("verdict", verdict, count))
        .collect();
    family(
        "tuner_candidates_total",
        "counter",
        "Candidates judged and stored since the start.",
        &judged,
    );
    let counts = app.read(async |store| store.queue_counts().await).await?;
    let queue: Vec<_> = counts
        .into_iter()
        .map(|(state, count)| label("state", &state, count))
        .collect();
    family("tuner_runs", "gauge", "Runs of the queue by state.", &queue);
    family(
        "tuner_engines_busy",
        "gauge",
        "Devices with an engine at work.",
        &plain(app.live.all().len() as f64),
    );
    let answers: Vec<_> = ["2xx", "4xx", "5xx", "other"]
        .into_iter()
        .zip(&app.answers)
        .map(|(class, count)| label("class", class, count.load(Ordering::Relaxed)))
        .collect();
    family(
        "tuner_http_responses_total",
        "counter",
        "Answers by class of status.",
        &answers,
    );
    let streams = app.streams.load(Ordering::Relaxed) as f64;
    family(
        "tuner_event_streams",
        "gauge",
        "Open event streams.",
        &plain(streams),
    );
    let missed = app.missed.load(Ordering::Relaxed) as f64;
    family(
        "tuner_events_missed_total",
        "counter",
        "Events that slow readers missed.",
        &plain(missed),
    );
    let present = app.conditions.present();
    let conditions: Vec<_> = super::health::NAMES
        .into_iter()
        .map(|name| {
            let present = present.iter().any(|found| found.name == name);
            label("name", name, u64::from(present))
        })
        .collect();
    family(
        "tuner_condition",
        "gauge",
        "What keeps the daemon from its work; 1 where it is so.",
        &conditions,
    );
    if let Some(fleet) = &app.fleet {
        fleet_families(&fleet.view(), &mut family);
    }
    family(
        "tuner_database_bytes",
        "gauge",
        "Size of the database and its log.",
        &plain(app.store.bytes() as f64),
    );
    if let Some(bytes) = resident_bytes() {
        family(
            "process_resident_memory_bytes",
            "gauge",
            "Memory of the daemon, its workers not included.",
            &plain(bytes as f64),
        );
    }
    Ok(text)
}

/// What a family is made from: name, kind, help, and values by labels.
type Family<'a> = dyn FnMut(&str, &str, &str, &[(String, f64)]) + 'a;

/// The fleet, where there is one.
fn fleet_families(fleet: &FleetView, family: &mut Family<'_>) {
    let named = |worker: &WorkerView| {
        let device = if worker.device.is_empty() {
            "none"
        } else {
            &worker.device
        };
        format!(
            "{{worker=\"{}\",device=\"{}\",version=\"{}\"}}",
            escaped(&worker.name),
            escaped(device),
            escaped(&worker.version)
        )
    };
    let by_worker = |value: &dyn Fn(&WorkerView) -> f64| -> Vec<(String, f64)> {
        let workers = fleet.workers.iter();
        workers
            .map(|worker| (named(worker), value(worker)))
            .collect()
    };
    let connected = vec![(String::new(), f64::from(u8::from(fleet.connected)))];
    family(
        "tuner_fleet_connected",
        "gauge",
        "Whether the fleet's NATS server answers.",
        &connected,
    );
    family(
        "tuner_fleet_workers",
        "gauge",
        "Workers that are there.",
        &by_worker(&|_| 1.0),
    );
    family(
        "tuner_fleet_judged_total",
        "counter",
        "Candidates that a worker judged.",
        &by_worker(&|worker| worker.judged as f64),
    );
    family(
        "tuner_fleet_compiled_total",
        "counter",
        "Candidates that a worker compiled.",
        &by_worker(&|worker| worker.compiled as f64),
    );
    family(
        "tuner_fleet_busy_seconds_total",
        "counter",
        "Seconds that a worker's device was at work.",
        &by_worker(&|worker| worker.busy_s),
    );
    let mut waiting = Vec::new();
    for queue in &fleet.queues {
        let label =
            |state: &str| format!("{{queue=\"{}\",state=\"{state}\"}}", escaped(&queue.name));
        waiting.push((label("waiting"), queue.waiting as f64));
        waiting.push((label("in_hand"), queue.in_hand as f64));
    }
    family(
        "tuner_fleet_orders",
        "gauge",
        "Orders of a queue by state.",
        &waiting,
    );
    let dropped = [
        ("malformed", fleet.malformed),
        ("duplicate", fleet.duplicates),
        ("false", fleet.refused),
    ];
    let dropped: Vec<_> = dropped
        .iter()
        .map(|(why, count)| (format!("{{why=\"{why}\"}}"), *count as f64))
        .collect();
    family(
        "tuner_fleet_dropped_total",
        "counter",
        "Messages that this hub dropped.",
        &dropped,
    );
}

/// A label's value: whatever a worker says its name is.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Resident memory of this process (`/proc/self/statm`, second field, pages).
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
