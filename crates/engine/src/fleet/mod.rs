//! Judging on other machines: the engine's interface to a fleet, in types that can
//! cross a network, and the evaluator that uses it.
//!
//! ```text
//! hub:     search ─► FleetEvaluator ─ WorkOrder ─► Session ─►  …network…  ─► Bench: worker
//! hub:     store  ◄─ FleetEvaluator ◄─── Answer ◄─ Session ◄─  …network…  ◄─ Bench
//! ```
//!
//! The hub keeps the search, the store and provenance. A worker's [`Bench`](crate::job::Bench) is
//! built from an [`Assignment`] with the same kernels, compilers and device workers that a run on one
//! machine uses.

mod bundle;
mod evaluator;
mod siblings;
pub mod simulate;
mod wire;

pub use bundle::{BundleError, PackedFiles, pack, unpack};
pub use evaluator::{FleetEvaluator, FleetSource, FleetTask};
pub(crate) use siblings::reference_of;
pub use siblings::{
    ComparedGpu, SiblingTimes, Siblings, SiblingsRecord, TimeRange, kind_of, name_apart,
};
pub use wire::{
    Answer, AssignedTask, Assignment, Bundle, BundleFile, Compiled, Finalists, PROTOCOL, Step,
    WorkOrder,
};

use super::evaluator::BoxError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tuner_core::units::ContentHash;
use tuner_core::units::counted;
use tuner_device::DeviceFacts;
use tuner_store::RunId;
use utoipa::ToSchema;

/// The machines of a fleet, as the engine uses them.
pub trait Fleet: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the kinds of device that workers lend now, without recordings.
    fn offers(&self) -> Vec<Offer>;

    /// Opens a run's queues. The files are those that the assignment references by hash.
    ///
    /// # Errors
    /// The fleet cannot be used, or another hub owns this run.
    fn open(
        &self,
        run: &RunId,
        assignment: &Assignment,
        files: PackedFiles,
    ) -> Result<Arc<dyn Session>, BoxError>;

    /// Returns the state of the fleet for display.
    fn view(&self) -> FleetView;
}

/// One run's side of a fleet.
pub trait Session: Send + Sync + 'static {
    /// Sends one order and blocks until its answer arrives.
    ///
    /// # Errors
    /// The fleet failed, or no worker can carry out the order.
    fn ask(self: Arc<Self>, order: WorkOrder) -> Result<Answer, BoxError>;

    /// Notifies that the result of the order of that name is stored permanently.
    fn stored(&self, id: &ContentHash);

    /// Reports the best candidate of a task so far: GPUs that join later are compared with it.
    fn best(&self, task: usize, choices: &[u32], time: TimeRange);

    /// Returns the current capacity for this run.
    fn capacity(&self) -> Capacity;

    /// Ends the run: its queued orders are discarded. An unfinished run leaves its answers in place
    /// for its continuation. Returns lines for the user.
    fn close(&self, finished: bool) -> Vec<String>;
}

/// Capacity of a fleet for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Devices that judge its candidates.
    pub devices: usize,
    /// Concurrent compiles.
    pub compilers: usize,
}

/// A kind of device that workers lend.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Its name, limits and target.
    pub facts: DeviceFacts,
    /// Number of devices.
    pub devices: usize,
    /// NVRTC of its workers, `major.minor`.
    pub nvrtc: Option<String>,
}

/// State of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetView {
    /// Its name.
    pub fleet: String,
    /// The NATS server's address, without secrets.
    pub server: String,
    /// The server answers.
    pub connected: bool,
    /// Protocol of this program.
    pub protocol: u32,
    /// Workers, by name.
    pub workers: Vec<WorkerView>,
    /// Hubs, by run.
    pub hubs: Vec<HubView>,
    /// Work queues.
    pub queues: Vec<QueueView>,
    /// Results that wait for a hub to store them.
    pub results_waiting: u64,
    /// Bytes of cubins, templates and recordings in the object stores.
    pub object_bytes: u64,
    /// Malformed messages, dropped by this hub since it started.
    pub malformed: u64,
    /// Duplicate answers, dropped by this hub since it started.
    pub duplicates: u64,
    /// Answers that did not match their order, dropped by this hub since it started.
    pub refused: u64,
}

/// Self-description of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WorkerView {
    /// Protocol version.
    pub protocol: u32,
    /// Its name: host, process and random digits.
    pub name: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// The device selector (`cuda:0`); empty for a worker that only compiles.
    pub selector: String,
    /// The device's name in the store.
    pub device: String,
    /// The queue of its candidates; empty for a worker that only compiles.
    pub class: String,
    /// Compile target.
    pub arch: String,
    /// Driver version, on real devices.
    pub driver: Option<String>,
    /// NVRTC, `major.minor`.
    pub nvrtc: Option<String>,
    /// Concurrent compiles.
    pub compilers: usize,
    /// Processors.
    pub cores: usize,
    /// `idle`, `working` or `leaving`.
    pub state: String,
    /// Current work.
    pub doing: Vec<String>,
    /// Candidates judged.
    pub judged: u64,
    /// Candidates compiled.
    pub compiled: u64,
    /// Orders returned to the queue.
    pub returned: u64,
    /// Malformed messages.
    pub malformed: u64,
    /// Objects that did not match their hash.
    pub false_objects: u64,
    /// Seconds that its device was busy.
    pub busy_s: f64,
    /// Seconds since it joined.
    pub up_s: f64,
    /// Limits of the device, for spaces.
    pub facts: Option<DeviceFactsView>,
    /// Its group of equal GPUs; empty before the comparison with others.
    pub group: String,
}

/// [`DeviceFacts`] for a page. The API's document refers to a separate type by this name.
pub type DeviceFactsView = serde_json::Value;

impl WorkerView {
    /// Returns the share of time that its device was busy.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        if self.up_s > 0.0 {
            (self.busy_s / self.up_s).min(1.0)
        } else {
            0.0
        }
    }
}

/// A run on a fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct HubView {
    /// Protocol version of the hub.
    pub protocol: u32,
    /// The run.
    pub run: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// The queue that it fills.
    pub class: String,
    /// Orders without an answer.
    pub waiting: usize,
    /// Results stored.
    pub stored: u64,
    /// Unique to the process that owns the run.
    pub instance: String,
}

/// A work queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// Its name: `device.…` or `compile.…`.
    pub name: String,
    /// Orders not taken yet.
    pub waiting: u64,
    /// Orders held by workers.
    pub in_hand: u64,
    /// Orders delivered more than once.
    pub redelivered: u64,
}

/// Wait for the first worker that offers a device before the notice is repeated.
pub const OFFER_PATIENCE: Duration = Duration::from_secs(30);

/// Describes the offers of a fleet for a message about a name or selector.
#[must_use]
pub fn describe(offers: &[Offer]) -> String {
    let one = |offer: &Offer| {
        let nvrtc = offer.nvrtc.as_deref().unwrap_or("none");
        format!(
            "{} ({}, NVRTC {nvrtc})",
            offer.facts.name,
            counted(offer.devices, "worker")
        )
    };
    offers.iter().map(one).collect::<Vec<_>>().join(", ")
}
