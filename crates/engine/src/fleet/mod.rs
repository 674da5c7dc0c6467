//! Candidates that are judged on other machines: what the engine asks of a fleet, in types that can
//! cross a network, and the evaluator that asks it.
//!
//! ```text
//! hub:     search ─► FleetEvaluator ─ WorkOrder ─► Session ─►  …network…  ─► Bench: worker
//! hub:     store  ◄─ FleetEvaluator ◄─── Answer ◄─ Session ◄─  …network…  ◄─ Bench
//! ```
//!
//! The hub keeps the search, the store and provenance. A worker's [`Bench`](crate::job::Bench) is
//! made from an [`Assignment`] with the same kernels, compilers and device workers that a run on one
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
    Placed, SiblingTimes, Siblings, SiblingsRecord, TimeRange, kind_of, name_apart,
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

/// The machines that help, as the engine sees them.
pub trait Fleet: std::fmt::Debug + Send + Sync + 'static {
    /// The kinds of device that are lent now, apart from recordings.
    fn offers(&self) -> Vec<Offer>;

    /// Opens a run's queues. The files are those that the assignment names by their hashes.
    ///
    /// # Errors
    /// The fleet cannot be used, or another hub carries this run out.
    fn open(
        &self,
        run: &RunId,
        assignment: &Assignment,
        files: PackedFiles,
    ) -> Result<Arc<dyn Session>, BoxError>;

    /// The fleet as people see it.
    fn view(&self) -> FleetView;
}

/// One run's side of a fleet.
pub trait Session: Send + Sync + 'static {
    /// Has one order carried out; blocks until its answer is there.
    ///
    /// # Errors
    /// The fleet cannot go on, or the order cannot be carried out anywhere.
    fn ask(self: Arc<Self>, order: WorkOrder) -> Result<Answer, BoxError>;

    /// The result of the order of that name is stored for good.
    fn stored(&self, id: &ContentHash);

    /// A candidate of a task is the best so far: what GPUs that join later are compared on.
    fn best(&self, task: usize, choices: &[u32], time: TimeRange);

    /// How much works for this run now.
    fn capacity(&self) -> Capacity;

    /// The run is over: what is still queued for it is of no use. An unfinished one leaves its
    /// answers where they are, for the time when it goes on. Gives lines for the user.
    fn close(&self, finished: bool) -> Vec<String>;
}

/// Machines at work for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Devices that judge its candidates.
    pub devices: usize,
    /// Candidates compiled at once.
    pub compilers: usize,
}

/// A kind of device that workers lend.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Its name, limits and target.
    pub facts: DeviceFacts,
    /// How many there are.
    pub devices: usize,
    /// NVRTC of its workers, `major.minor`.
    pub nvrtc: Option<String>,
}

/// A fleet at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetView {
    /// Its name.
    pub fleet: String,
    /// The NATS server's address, without secrets.
    pub server: String,
    /// Whether the server answers.
    pub connected: bool,
    /// Protocol that this program speaks.
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
    /// Messages that were no messages, dropped by this hub since it started.
    pub malformed: u64,
    /// Answers that came a second time, dropped by this hub since it started.
    pub duplicates: u64,
    /// Answers that were not what was asked for, dropped by this hub since it started.
    pub refused: u64,
}

/// A worker as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WorkerView {
    /// Protocol that it speaks.
    pub protocol: u32,
    /// Its name: host, process and a few digits of chance.
    pub name: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// The device as it was asked for (`cuda:0`); empty for a worker that only compiles.
    pub selector: String,
    /// The device's name in the store.
    pub device: String,
    /// The queue that it takes candidates from; empty for a worker that only compiles.
    pub class: String,
    /// Compile target.
    pub arch: String,
    /// Driver version, on real devices.
    pub driver: Option<String>,
    /// NVRTC, `major.minor`.
    pub nvrtc: Option<String>,
    /// Candidates that it compiles at once.
    pub compilers: usize,
    /// Processors.
    pub cores: usize,
    /// `idle`, `working` or `leaving`.
    pub state: String,
    /// What it works on.
    pub doing: Vec<String>,
    /// Candidates judged.
    pub judged: u64,
    /// Candidates compiled.
    pub compiled: u64,
    /// Orders that it gave back.
    pub returned: u64,
    /// Messages that were no messages.
    pub malformed: u64,
    /// Objects that were not what their hash says.
    pub false_objects: u64,
    /// Seconds that its device was at work.
    pub busy_s: f64,
    /// Seconds since it joined.
    pub up_s: f64,
    /// Limits of the device, for spaces.
    pub facts: Option<DeviceFactsView>,
    /// Group of equal GPUs that it belongs to; empty before it was compared with others.
    pub group: String,
}

/// [`DeviceFacts`] for a page. By this name the API's document refers to a type of its own.
pub type DeviceFactsView = serde_json::Value;

impl WorkerView {
    /// Share of its time that its device was at work.
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
    /// Protocol that the hub speaks.
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
    /// Unique to the process that holds the run.
    pub instance: String,
}

/// A work queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// Its name: `device.…` or `compile.…`.
    pub name: String,
    /// Orders that nobody has taken.
    pub waiting: u64,
    /// Orders that workers have in hand.
    pub in_hand: u64,
    /// Orders that were handed out more than once.
    pub redelivered: u64,
}

/// How long a run waits for the first worker that offers a device, before it says so again.
pub const OFFER_PATIENCE: Duration = Duration::from_secs(30);

/// The words of a fleet that a name or selector asks for.
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
