//! Worker side of a fleet: takes orders, runs them on a local bench, answers, and then acknowledges.

mod bench;
mod handle;
mod machine;
mod serve;
mod siblings;

use super::access::Access;
use super::link::{AGAIN, FleetError, Link, Wire, turned};
use super::names::{Names, word};
use super::presence;
use bench::Benches;
use machine::Machine;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tuner_core::panics::lock;
use tuner_core::provenance;
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{PROTOCOL, WorkerView};
use tuner_engine::job::WorkerResource;

/// Interval between checks for queues that a hub has not created yet.
const QUEUE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Sink for user messages, one line each.
pub type Say = Arc<dyn Fn(String) + Send + Sync>;

/// Settings of a worker.
pub struct WorkerSettings {
    /// The server.
    pub access: Access,
    /// The fleet.
    pub names: Names,
    /// Lent device.
    pub lent: WorkerResource,
    /// Number of parallel compilations.
    pub compilers: usize,
    /// Folder for the files of runs.
    pub folder: PathBuf,
    /// Sink for user messages.
    pub say: Say,
}

/// A running worker.
struct Worker {
    link: Link,
    machine: Machine,
    benches: Benches,
    record: Mutex<WorkerView>,
    joined: Instant,
    stop: watch::Receiver<bool>,
    /// Reason of a lost device: no more candidates can be judged here.
    broken: watch::Sender<Option<String>>,
    leaving: AtomicBool,
    /// Runs and tasks for which the GPU matched its siblings.
    compared: Mutex<HashSet<(String, usize)>>,
}

/// Lends this machine to a fleet until `stop` turns true; orders in flight are then returned.
///
/// # Errors
/// The server refuses, the fleet has another protocol version, or the device is lost.
pub async fn work(
    settings: WorkerSettings,
    mut stop: watch::Receiver<bool>,
) -> Result<(), FleetError> {
    let machine = Machine::new(settings.lent, settings.compilers, settings.folder)?;
    let say = Arc::clone(&settings.say);
    let connecting = async {
        let wire = Wire::connect(&settings.access, true, &|text| say(text)).await?;
        join(&wire, &settings.names, &settings.say).await
    };
    let link = tokio::select! {
        link = connecting => link?,
        () = turned(&mut stop) => return Ok(()),
    };
    let record = machine.record();
    (settings.say)(format!(
        "worker {} helps the fleet {} at {}: {}",
        record.name,
        settings.names.fleet(),
        settings.access.shown(),
        machine.describe()
    ));
    let worker = Arc::new(Worker {
        benches: Benches::default(),
        record: Mutex::new(record),
        machine,
        joined: Instant::now(),
        stop,
        broken: watch::channel(None).0,
        leaving: AtomicBool::new(false),
        compared: Mutex::default(),
        link,
    });
    worker.run().await
}

/// Waits until a hub has opened the fleet.
async fn join(wire: &Wire, names: &Names, say: &Say) -> Result<Link, FleetError> {
    let mut told = false;
    loop {
        if let Ok(hubs) = wire.context.get_key_value(names.hubs()).await {
            agrees(&hubs).await?;
        }
        match wire.find(names).await {
            Ok(link) => return Ok(link),
            Err(why) => {
                if !told {
                    told = true;
                    say(format!(
                        "no hub has opened the fleet {} yet ({why}); waiting for one: tuner run … \
                         --fleet URL",
                        names.fleet()
                    ));
                }
            }
        }
        tokio::time::sleep(QUEUE_CHECK_INTERVAL).await;
    }
}

/// Rejects a fleet whose hubs all have another protocol version.
async fn agrees(hubs: &async_nats::jetstream::kv::Store) -> Result<(), FleetError> {
    let Ok(hubs) = presence::hubs(hubs).await else {
        return Ok(());
    };
    match hubs.first() {
        Some(other) if hubs.iter().all(|hub| hub.protocol != PROTOCOL) => {
            Err(FleetError::Protocol {
                theirs: other.protocol,
                version: other.version.clone(),
            })
        }
        _ => Ok(()),
    }
}

impl Worker {
    fn record(&self) -> MutexGuard<'_, WorkerView> {
        lock(&self.record)
    }

    fn compared(&self) -> MutexGuard<'_, HashSet<(String, usize)>> {
        lock(&self.compared)
    }

    /// Reports whether the worker shuts down.
    fn leaves(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    async fn run(self: Arc<Self>) -> Result<(), FleetError> {
        self.link
            .tell("worker", &format!("{} joins", self.record().name));
        let present = tokio::spawn(Arc::clone(&self).stay_present());
        let mut queues = tokio::task::JoinSet::new();
        if self.machine.class().is_some() {
            queues.spawn(Arc::clone(&self).serve_device());
        }
        if self.machine.compiles() {
            queues.spawn(Arc::clone(&self).serve_compiles());
        }
        let mut stop = self.stop.clone();
        let mut broken = self.broken.subscribe();
        let mut checked = tokio::time::interval(Duration::from_secs(5));
        let result = loop {
            tokio::select! {
                () = turned(&mut stop) => break Ok(()),
                why = broken.wait_for(Option::is_some) => {
                    let why = why.ok().and_then(|why| (*why).clone()).unwrap_or_default();
                    break Err(FleetError::Machine(why));
                }
                _ = checked.tick() => {
                    if let Err(error) = agrees(&self.link.hubs).await {
                        break Err(error);
                    }
                }
            }
        };
        self.leaving.store(true, Ordering::Relaxed);
        // Orders in flight are returned; an unreachable server is not awaited.
        let back = async { while queues.join_next().await.is_some() {} };
        if tokio::time::timeout(Duration::from_secs(5), back)
            .await
            .is_err()
        {
            tracing::warn!("orders in hand could not be given back; others get them later");
        }
        present.abort();
        let name = self.record().name.clone();
        let farewell = async {
            let _ = self.link.workers.purge(word(&name)).await;
            let _ = self.link.client.flush().await;
        };
        let _ = tokio::time::timeout(Duration::from_secs(2), farewell).await;
        result
    }

    /// Renews the presence record periodically.
    async fn stay_present(self: Arc<Self>) {
        let age = match self.link.workers.status().await {
            Ok(status) => status.max_age(),
            Err(_) => super::PRESENCE,
        };
        let pause = (age / 3).max(Duration::from_millis(100));
        loop {
            let record = {
                let mut record = self.record();
                record.up_s = self.joined.elapsed().as_secs_f64();
                record.state = match (self.leaves(), record.doing.is_empty()) {
                    (true, _) => "leaving",
                    (_, true) => "idle",
                    (_, false) => "working",
                }
                .to_owned();
                record.clone()
            };
            presence::write(&self.link.workers, &word(&record.name), &record).await;
            tokio::time::sleep(pause).await;
        }
    }

    /// Registers an activity for as long as the returned guard lives.
    fn doing(self: &Arc<Self>, what: String, on_device: bool) -> Doing {
        self.record().doing.push(what.clone());
        Doing {
            worker: Arc::clone(self),
            what,
            began: on_device.then(Instant::now),
        }
    }
}

/// A registered activity.
struct Doing {
    worker: Arc<Worker>,
    what: String,
    began: Option<Instant>,
}

impl Drop for Doing {
    fn drop(&mut self) {
        let mut record = self.worker.record();
        if let Some(place) = record.doing.iter().position(|what| *what == self.what) {
            record.doing.remove(place);
        }
        if let Some(began) = self.began {
            record.busy_s += began.elapsed().as_secs_f64();
        }
    }
}

/// Creates a unique worker name.
fn new_name() -> String {
    let chance = ContentHash::from_parts([
        provenance::host().as_bytes(),
        &std::process::id().to_le_bytes(),
        &jiff::Timestamp::now().as_nanosecond().to_le_bytes(),
    ]);
    let digits = chance.as_str().get(..4).unwrap_or_default();
    format!("{}-{}-{digits}", provenance::host(), std::process::id())
}

/// Waits before the next search for a queue.
async fn pause() {
    tokio::time::sleep(AGAIN / 2).await;
}
