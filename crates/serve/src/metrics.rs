//! `/metrics`, in Prometheus' text format.

use super::app::App;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use tuner_engine::fleet::{FleetView, WorkerView};
use tuner_store::StoreError;

/// The page: metric families in order.
#[derive(Default)]
struct Families(String);

impl Families {
    fn add(&mut self, name: &str, kind: &str, help: &str, samples: &[(String, f64)]) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.add(name, "gauge", help, &[(String::new(), value)]);
    }

    fn gauges(&mut self, name: &str, help: &str, samples: &[(String, f64)]) {
        self.add(name, "gauge", help, samples);
    }

    fn counters(&mut self, name: &str, help: &str, samples: &[(String, f64)]) {
        self.add(name, "counter", help, samples);
    }
}

/// Creates a sample with one label.
fn labelled(label: &str, value: &str, count: u64) -> (String, f64) {
    (format!("{{{label}=\"{value}\"}}"), count as f64)
}

/// Renders the page.
pub(super) async fn page(app: &App) -> Result<String, StoreError> {
    let mut page = Families::default();
    let version = labelled("version", env!("CARGO_PKG_VERSION"), 1);
    page.gauges("tuner_build_info", "Version of the tuner.", &[version]);
    let uptime = app.began.elapsed().as_secs_f64();
    let help = "Seconds since the daemon started.";
    page.gauge("tuner_uptime_seconds", help, uptime);
    let judged = app.live.verdicts().into_iter();
    let judged: Vec<_> = judged
        .map(|(verdict, count)| labelled("verdict", verdict, count))
        .collect();
    let help = "Candidates judged and stored since the start.";
    page.counters("tuner_candidates_total", help, &judged);
    let counts = app.read(async |store| store.queue_counts().await).await?;
    let queue: Vec<_> = counts
        .into_iter()
        .map(|(state, count)| labelled("state", &state, count))
        .collect();
    page.gauges("tuner_runs", "Runs of the queue by state.", &queue);
    let help = "Devices with an engine at work.";
    page.gauge("tuner_engines_busy", help, app.live.runs().len() as f64);
    let answers: Vec<_> = ["2xx", "4xx", "5xx", "other"]
        .into_iter()
        .zip(&app.answers)
        .map(|(class, count)| labelled("class", class, count.load(Ordering::Relaxed)))
        .collect();
    let help = "Answers by class of status.";
    page.counters("tuner_http_responses_total", help, &answers);
    let streams = app.streams.load(Ordering::Relaxed) as f64;
    page.gauge("tuner_event_streams", "Open event streams.", streams);
    let missed = app.missed.load(Ordering::Relaxed) as f64;
    let help = "Events that slow readers missed.";
    page.counters(
        "tuner_events_missed_total",
        help,
        &[(String::new(), missed)],
    );
    let present = app.conditions.present();
    let conditions = super::health::NAMES.map(|name| {
        let present = present.iter().any(|found| found.name == name);
        labelled("name", name, u64::from(present))
    });
    let help = "What keeps the daemon from its work; 1 where it is so.";
    page.gauges("tuner_condition", help, &conditions);
    if let Some(fleet) = &app.settings.fleet {
        fleet_families(&fleet.view(), &mut page);
    }
    let help = "Size of the database and its log.";
    page.gauge("tuner_database_bytes", help, app.store.bytes() as f64);
    if let Some(bytes) = resident_bytes() {
        let help = "Memory of the daemon, its workers not included.";
        page.gauge("process_resident_memory_bytes", help, bytes as f64);
    }
    Ok(page.0)
}

/// Adds the fleet's families.
fn fleet_families(fleet: &FleetView, page: &mut Families) {
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
    let by_worker = |value: fn(&WorkerView) -> f64| -> Vec<(String, f64)> {
        let workers = fleet.workers.iter();
        workers
            .map(|worker| (named(worker), value(worker)))
            .collect()
    };
    let connected = f64::from(u8::from(fleet.connected));
    let help = "Whether the fleet's NATS server answers.";
    page.gauge("tuner_fleet_connected", help, connected);
    let there = by_worker(|_| 1.0);
    page.gauges("tuner_fleet_workers", "Workers that are there.", &there);
    let judged = by_worker(|worker| worker.judged as f64);
    let help = "Candidates that a worker judged.";
    page.counters("tuner_fleet_judged_total", help, &judged);
    let compiled = by_worker(|worker| worker.compiled as f64);
    let help = "Candidates that a worker compiled.";
    page.counters("tuner_fleet_compiled_total", help, &compiled);
    let busy = by_worker(|worker| worker.busy_s);
    let help = "Seconds that a worker's device was at work.";
    page.counters("tuner_fleet_busy_seconds_total", help, &busy);
    let mut waiting = Vec::new();
    for queue in &fleet.queues {
        let label =
            |state: &str| format!("{{queue=\"{}\",state=\"{state}\"}}", escaped(&queue.name));
        waiting.push((label("waiting"), queue.waiting as f64));
        waiting.push((label("in_hand"), queue.in_hand as f64));
    }
    let help = "Orders of a queue by state.";
    page.gauges("tuner_fleet_orders", help, &waiting);
    let dropped = [
        ("malformed", fleet.malformed),
        ("duplicate", fleet.duplicates),
        ("false", fleet.refused),
    ];
    let dropped = dropped.map(|(why, count)| labelled("why", why, count));
    let help = "Messages that this hub dropped.";
    page.counters("tuner_fleet_dropped_total", help, &dropped);
}

/// Escapes a label value, such as a worker's name.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Reads the resident memory of this process (`/proc/self/statm`, second field, pages).
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
