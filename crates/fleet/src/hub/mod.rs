//! Hub side of a fleet: a connection shared by all runs of a process.

mod post;
mod receive;
mod run;
mod trust;
mod watch;

use super::access::Access;
use super::link::{FleetError, Limits, Link, Wire};
use super::names::Names;
use super::presence;
use super::view;
use run::Run;
pub(crate) use run::siblings_key;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use tuner_core::panics::lock;
use tuner_engine::BoxError;
use tuner_engine::fleet::{
    Assignment, Fleet, FleetView, Offer, PROTOCOL, PackedFiles, Session, WorkerView,
};
use tuner_engine::threads::start_runtime;
use tuner_store::RunId;

/// Interval between checks for present workers.
const WORKER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Settings of a hub.
#[derive(Debug, Clone)]
pub struct HubSettings {
    /// The server.
    pub access: Access,
    /// The fleet.
    pub names: Names,
    /// Acknowledgement deadline: an order without a progress message for this long goes to another
    /// worker.
    pub ack_wait: Duration,
    /// Age at which a worker's or hub's record expires.
    pub presence: Duration,
    /// Maximum bytes of compiled code on the server.
    pub cubin_bytes: u64,
}

/// Messages that this hub has discarded since its start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) malformed: AtomicU64,
    pub(crate) duplicates: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// Increments a counter.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Hub connection of a fleet, shared by the runs of a process.
pub struct Hub {
    link: Link,
    settings: HubSettings,
    runtime: Option<Runtime>,
    counters: Arc<Counters>,
    view: Arc<Mutex<FleetView>>,
}

impl Hub {
    /// Connects and creates the fleet's streams and buckets. Blocks; retries while the server does not
    /// answer, and reports that through `say`.
    ///
    /// # Errors
    /// The server refuses the connection or has no JetStream.
    pub fn connect(
        settings: HubSettings,
        say: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Arc<Self>, FleetError> {
        let runtime =
            start_runtime("fleet", 2).map_err(|error| FleetError::Machine(error.to_string()))?;
        let limits = Limits {
            presence: settings.presence,
            cubin_bytes: settings.cubin_bytes,
        };
        let server = settings.access.shown();
        let (link, first) = runtime.block_on(async {
            let wire = Wire::connect(&settings.access, true, say).await?;
            let link = wire.create(&settings.names, limits, &server).await?;
            let first = view::read(&link, &server).await;
            Ok::<_, FleetError>((link, first))
        })?;
        for worker in of_other_versions(&first.workers) {
            say(worker);
        }
        let view = Arc::new(Mutex::new(first));
        // A weak reference, so that the task ends when the hub is dropped.
        let (looking, kept) = (link.clone(), Arc::downgrade(&view));
        runtime.spawn(async move {
            while let Some(place) = kept.upgrade() {
                let now = view::read(&looking, &server).await;
                *lock(&place) = now;
                drop(place);
                tokio::time::sleep(WORKER_CHECK_INTERVAL).await;
            }
        });
        Ok(Arc::new(Self {
            link,
            settings,
            runtime: Some(runtime),
            counters: Arc::default(),
            view,
        }))
    }

    fn handle(&self) -> Result<tokio::runtime::Handle, FleetError> {
        let runtime = self.runtime.as_ref();
        let runtime = runtime.ok_or_else(|| FleetError::defect("the fleet has ended"))?;
        Ok(runtime.handle().clone())
    }
}

/// Describes workers of other versions.
fn of_other_versions(workers: &[WorkerView]) -> Vec<String> {
    let other = workers.iter().filter(|worker| worker.protocol != PROTOCOL);
    let said = other.map(|worker| {
        format!(
            "note: worker {} (tuner {}) speaks protocol {} and is left out; this hub speaks \
             protocol {PROTOCOL}",
            worker.name, worker.version, worker.protocol
        )
    });
    said.collect()
}

impl Fleet for Hub {
    fn offers(&self) -> Vec<Offer> {
        let read = async { presence::workers(&self.link.workers).await };
        let workers = match self.handle() {
            Ok(handle) => handle.block_on(read).unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let mut offers: Vec<Offer> = Vec::new();
        for worker in workers.iter().filter(|worker| worker.protocol == PROTOCOL) {
            let facts = worker.facts.clone().map(serde_json::from_value);
            let Some(Ok(facts)) = facts else { continue };
            let same = |offer: &&mut Offer| offer.facts == facts && offer.nvrtc == worker.nvrtc;
            match offers.iter_mut().find(same) {
                Some(offer) => offer.devices += 1,
                None => offers.push(Offer {
                    facts,
                    devices: 1,
                    nvrtc: worker.nvrtc.clone(),
                }),
            }
        }
        offers
    }

    fn open(
        &self,
        run: &RunId,
        assignment: &Assignment,
        files: PackedFiles,
    ) -> Result<Arc<dyn Session>, BoxError> {
        let handle = self.handle()?;
        let run = handle.block_on(Run::begin(self, run.as_str(), assignment, files))?;
        Ok(run)
    }

    fn view(&self) -> FleetView {
        let mut view = lock(&self.view).clone();
        view.malformed = self.counters.malformed.load(Ordering::Relaxed);
        view.duplicates = self.counters.duplicates.load(Ordering::Relaxed);
        view.refused = self.counters.refused.load(Ordering::Relaxed);
        view.connected = self.link.is_connected();
        view
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("fleet", &self.settings.names.fleet())
            .finish_non_exhaustive()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // May be dropped on a thread that must not block.
            runtime.shutdown_background();
        }
    }
}
