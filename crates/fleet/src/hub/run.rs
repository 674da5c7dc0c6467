//! One run on a fleet: orders that wait for their answer, and answers that wait for their commit.

use super::post::{Outgoing, post};
use super::trust::{Examined, Inability, SetAside, examine};
use super::{Counters, Hub, HubSettings, count, receive, watch};
use crate::link::{FleetError, Link, results_consumer};
use crate::names::{Queue, class_of};
use crate::presence;
use async_nats::jetstream::Message;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tuner_core::panics::lock;
use tuner_core::provenance;
use tuner_core::units::ContentHash;
use tuner_engine::BoxError;
use tuner_engine::fleet::{
    Answer, Assignment, Capacity, FleetView, HubView, PROTOCOL, PackedFiles, Session, SiblingTimes,
    Siblings, Step, TimeRange, WorkOrder,
};

/// Compilers that one worker may have: what it says of itself starts threads here.
const COMPILERS_MAX: usize = 1024;

/// Devices and compilers of a fleet that a run uses at once.
const CAPACITY_MAX: usize = 4096;

/// A run on a fleet.
pub(super) struct Run {
    pub(super) link: Link,
    pub(super) handle: Handle,
    pub(super) settings: HubSettings,
    pub(super) counters: Arc<Counters>,
    pub(super) view: Arc<Mutex<FleetView>>,
    pub(super) name: String,
    pub(super) class: String,
    pub(super) nvrtc: Option<String>,
    device: Queue,
    pub(super) compile: Option<Queue>,
    /// Hash of the assignment.
    pub(super) assignment: ContentHash,
    /// Contents that workers fetch: files, and the assignment itself.
    objects: Vec<Vec<u8>>,
    state: Mutex<State>,
    /// Unique to this process and run.
    instance: String,
    /// Number of the first sending of an order: not that of a process before this one, whose orders
    /// may have been handed out and lost for reasons of their own.
    pub(super) first_attempt: u32,
    /// Orders that are to be sent.
    outgoing: mpsc::UnboundedSender<Outgoing>,
    /// Turns true when the run is over here.
    pub(super) ended: tokio::sync::watch::Sender<bool>,
}

/// What changes.
#[derive(Default)]
pub(super) struct State {
    /// Orders without an answer.
    pub(super) waiting: HashMap<ContentHash, Waiting>,
    /// Answers that are not stored yet, with the message to acknowledge then.
    pub(super) held: HashMap<ContentHash, Held>,
    /// Bytes of those among them that were not asked for by this process.
    pub(super) unasked_bytes: usize,
    /// Orders whose results are stored.
    pub(super) done: HashSet<ContentHash>,
    /// Results stored by this process.
    pub(super) stored: u64,
    /// Orders sent again.
    pub(super) sent_again: u64,
    /// GPUs that were compared with each other.
    siblings: Siblings,
    /// Seconds that devices waited for compilers, and compilers for devices.
    pub(super) devices_waited: f64,
    pub(super) compilers_waited: f64,
    /// What was said of GPUs in groups of their own.
    apart: Vec<String>,
    /// Workers that are not believed.
    pub(super) set_aside: SetAside,
}

/// An order without an answer.
pub(super) struct Waiting {
    pub(super) order: WorkOrder,
    pub(super) reply: oneshot::Sender<Answer>,
    pub(super) attempt: u32,
    /// Name of the message that it was last sent in.
    pub(super) sent_in: ContentHash,
    /// How often the server had been lost when it was sent.
    pub(super) losses: u64,
    /// Why workers could not.
    pub(super) unable: Vec<Inability>,
    pub(super) sent: Instant,
}

/// An answer that is not stored yet.
pub(super) struct Held {
    pub(super) answer: Answer,
    pub(super) receipt: Arc<Receipt>,
    /// Bytes that it takes where this process has not asked for it; else 0.
    pub(super) unasked_bytes: usize,
}

/// A message with answers, acknowledged once all of them are settled: stored, or of no use.
pub(super) struct Receipt {
    pub(super) message: Message,
    unsettled: AtomicUsize,
}

impl Receipt {
    pub(super) fn new(message: Message, answers: usize) -> Arc<Self> {
        Arc::new(Self {
            message,
            unsettled: AtomicUsize::new(answers),
        })
    }

    /// One answer less; whether it was the last.
    fn settle(&self) -> bool {
        self.unsettled.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Run {
    /// Claims the run, sends its files, and begins to listen.
    pub(super) async fn begin(
        hub: &Hub,
        name: &str,
        assignment: &Assignment,
        files: PackedFiles,
    ) -> Result<Arc<Self>, FleetError> {
        let class = class_of(assignment);
        let compile = assignment
            .nvrtc
            .as_deref()
            .map(|nvrtc| Queue::compile(&assignment.device.arch, nvrtc));
        let text = serde_json::to_vec(assignment).map_err(FleetError::defect)?;
        let now = jiff::Timestamp::now();
        let instance = format!(
            "{}-{}-{}",
            provenance::host(),
            std::process::id(),
            now.as_nanosecond()
        );
        let (outgoing, orders) = mpsc::unbounded_channel();
        let run = Arc::new(Self {
            link: hub.link.clone(),
            handle: Handle::current(),
            settings: hub.settings.clone(),
            counters: Arc::clone(&hub.counters),
            view: Arc::clone(&hub.view),
            name: name.to_owned(),
            device: Queue::device(&class),
            class,
            nvrtc: assignment.nvrtc.clone(),
            compile,
            assignment: ContentHash::of([text.as_slice()]),
            objects: files.into_values().chain([text]).collect(),
            outgoing,
            state: Mutex::default(),
            instance,
            first_attempt: u32::try_from(now.as_millisecond().rem_euclid(1 << 31)).unwrap_or(0),
            ended: tokio::sync::watch::channel(false).0,
        });
        watch::claim(&run).await?;
        run.send_objects().await?;
        run.make_queues().await?;
        run.purge_orders().await;
        let consumer = run.link.make_results(&run.name).await?;
        let handle = run.handle.clone();
        handle.spawn(post(Arc::clone(&run), orders));
        handle.spawn(receive::receive(Arc::clone(&run), consumer));
        handle.spawn(watch::watch(Arc::downgrade(&run)));
        let text = format!("run {} begins on {}", run.name, provenance::host());
        run.link.tell("hub", &text);
        Ok(run)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Makes the queues where they are missing.
    pub(super) async fn make_queues(&self) -> Result<(), FleetError> {
        let wait = self.settings.ack_wait;
        self.link.make_queue(&self.device, wait).await?;
        if let Some(compile) = &self.compile {
            self.link.make_queue(compile, wait).await?;
        }
        Ok(())
    }

    pub(super) async fn send_objects(&self) -> Result<(), FleetError> {
        for content in &self.objects {
            self.link.files.put(content).await?;
        }
        Ok(())
    }

    fn queue(&self, step: &Step) -> &Queue {
        match (step, &self.compile) {
            (Step::Compile { .. }, Some(compile)) => compile,
            _ => &self.device,
        }
    }

    /// The subject of a message with orders of this kind.
    pub(super) fn subject(&self, step: &Step, message: &ContentHash) -> String {
        let names = &self.link.names;
        names.order(self.queue(step), &self.name, message)
    }

    /// Sends an order, for the first time or again.
    fn send(&self, order: WorkOrder, attempt: u32) {
        // The one who sends is there as long as the run is.
        let _ = self.outgoing.send(Outgoing { order, attempt });
    }

    /// Sends an order again that has no answer yet.
    pub(super) fn send_again(&self, id: &ContentHash) {
        let losses = self.link.losses();
        let again = {
            let mut state = self.state();
            state.sent_again += 1;
            state.waiting.get_mut(id).map(|waiting| {
                waiting.attempt = waiting.attempt.wrapping_add(1);
                waiting.losses = losses;
                waiting.sent = Instant::now();
                (waiting.order.clone(), waiting.attempt)
            })
        };
        if let Some((order, attempt)) = again {
            self.send(order, attempt);
        }
    }

    /// One answer of a message is settled: the last one acknowledges it, in the background.
    pub(super) fn settle(&self, receipt: Arc<Receipt>) {
        if receipt.settle() {
            self.handle.spawn(async move {
                // One that is lost makes the answers come again, and that is known.
                let _ = receipt.message.ack().await;
            });
        }
    }

    /// Compares a GPU with its siblings, and tells whoever is concerned.
    pub(super) fn place(&self, worker: &str, times: SiblingTimes) {
        let apart = {
            let mut state = self.state();
            state.siblings.place(worker, times).apart.clone()
        };
        if let Some(why) = apart {
            let text = format!(
                "the GPU of {worker} forms a group of its own and takes no more candidates of this \
                 run: {why}"
            );
            tracing::warn!("{text}");
            self.link.tell("apart", &text);
            self.state().apart.push(text);
        }
        self.show_siblings();
    }

    /// Writes down what workers read before their first candidate, in the background.
    fn show_siblings(&self) {
        let record = self.state().siblings.record();
        let (bucket, key) = (self.link.compiled.clone(), siblings_key(&self.name));
        self.handle.spawn(async move {
            // A worker that does not find itself in it says again what it found.
            presence::write(&bucket, &key, &record).await
        });
    }

    /// The run as others see it.
    pub(super) fn describe(&self) -> HubView {
        let state = self.state();
        HubView {
            protocol: PROTOCOL,
            run: self.name.clone(),
            host: provenance::host().to_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            class: self.class.clone(),
            waiting: state.waiting.len(),
            stored: state.stored,
            instance: self.instance.clone(),
        }
    }

    /// The key of the run among the hubs.
    pub(super) fn key(&self) -> String {
        format!("run-{}", crate::names::word(&self.name))
    }

    fn story(&self) -> Vec<String> {
        let state = self.state();
        let mut lines: Vec<String> = Vec::new();
        let messages = state.apart.iter().chain(state.set_aside.messages());
        lines.extend(messages.map(|text| format!("fleet: {text}")));
        let seconds = |s: f64| format!("{s:.1} s");
        if self.compile.is_some() {
            lines.push(format!(
                "fleet: devices waited {} for compilers, compilers {} for devices",
                seconds(state.devices_waited),
                seconds(state.compilers_waited)
            ));
        }
        let counters = &self.counters;
        let read = |counter: &std::sync::atomic::AtomicU64| {
            counter.load(std::sync::atomic::Ordering::Relaxed)
        };
        let dropped = [
            (state.sent_again, "orders sent again"),
            (read(&counters.duplicates), "second answers dropped"),
            (read(&counters.refused), "false answers dropped"),
            (read(&counters.malformed), "messages that were none dropped"),
        ];
        let dropped = dropped.iter().filter(|(count, _)| *count > 0);
        let dropped: Vec<String> = dropped.map(|(n, what)| format!("{n} {what}")).collect();
        if !dropped.is_empty() {
            lines.push(format!("fleet: {}", dropped.join(", ")));
        }
        lines
    }

    /// Removes the orders of a process before this one; what is asked for is sent anew.
    async fn purge_orders(&self) {
        let (link, name) = (&self.link, &self.name);
        if let Ok(stream) = link.context.get_stream_no_info(link.names.work()).await {
            let _ = stream.purge().filter(link.names.orders_of(name)).await;
        }
    }

    /// Removes what is left of a run that is over.
    async fn clear(&self) {
        let (link, name) = (&self.link, &self.name);
        let streams = [
            (link.names.work(), link.names.orders_of(name)),
            (link.names.results(), link.names.results_of(name)),
        ];
        for (stream, subjects) in streams {
            if let Ok(stream) = link.context.get_stream_no_info(&stream).await {
                let _ = stream.purge().filter(subjects).await;
            }
        }
        let consumer = results_consumer(name);
        let _ = link
            .context
            .delete_consumer_from_stream(&consumer, link.names.results())
            .await;
    }
}

/// Where workers read who of them may share a run.
pub(crate) fn siblings_key(run: &str) -> String {
    format!("siblings-{}", crate::names::word(run))
}

/// Whether an order's answer waits for a commit. What was compiled is kept as an object, and code that
/// was compiled again is rare enough to be judged again, as proofs are.
pub(super) fn is_held(step: &Step) -> bool {
    match step {
        Step::Recorded => true,
        Step::Device(compiled) => compiled.again == 0,
        Step::Compile { .. } | Step::Prove { .. } | Step::Final(_) => false,
    }
}

/// The run ended while an order waited.
#[derive(Debug, thiserror::Error)]
#[error("the run has ended")]
struct Ended;

/// The session of an engine: the run, shared with the tasks that listen for it.
impl Session for Run {
    fn ask(self: Arc<Self>, order: WorkOrder) -> Result<Answer, BoxError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(mut held) = state.held.remove(&order.id) {
                state.unasked_bytes -= std::mem::take(&mut held.unasked_bytes);
                // An answer from before this process began.
                // One of a hub is a verdict.
                let is_verdict = matches!(held.answer, Answer::NotJudged(_));
                if is_verdict || examine(&order, &held.answer) == Examined::Believed {
                    let answer = held.answer.clone();
                    state.held.insert(order.id, held);
                    return Ok(answer);
                }
                count(&self.counters.refused);
                self.settle(held.receipt);
            }
            let waiting = Waiting {
                order: order.clone(),
                reply,
                attempt: self.first_attempt,
                sent_in: order.id.clone(),
                losses: self.link.losses(),
                unable: Vec::new(),
                sent: Instant::now(),
            };
            state.waiting.insert(order.id.clone(), waiting);
        }
        self.send(order, self.first_attempt);
        answer.blocking_recv().map_err(|_| Ended.into())
    }

    fn stored(&self, id: &ContentHash) {
        let held = {
            let mut state = self.state();
            state.done.insert(id.clone());
            state.stored += 1;
            let held = state.held.remove(id);
            state.unasked_bytes -= held.as_ref().map_or(0, |held| held.unasked_bytes);
            held
        };
        if let Some(held) = held {
            self.settle(held.receipt);
        }
    }

    fn best(&self, task: usize, choices: &[u32], time: TimeRange) {
        self.state().siblings.best(task, choices.to_vec(), time);
        self.show_siblings();
    }

    fn capacity(&self) -> Capacity {
        let view = lock(&self.view);
        let state = self.state();
        let ours = view.workers.iter().filter(|worker| {
            worker.protocol == PROTOCOL
                && worker.state != "leaving"
                && !state.set_aside.contains(&worker.name)
        });
        let mut capacity = Capacity::default();
        for worker in ours {
            capacity.devices += usize::from(worker.class == self.class);
            if self.nvrtc.is_some() && worker.nvrtc == self.nvrtc {
                capacity.compilers += worker.compilers.min(COMPILERS_MAX);
            }
        }
        capacity.devices = capacity.devices.min(CAPACITY_MAX);
        capacity.compilers = capacity.compilers.min(CAPACITY_MAX);
        capacity
    }

    fn close(&self, finished: bool) -> Vec<String> {
        self.ended.send_replace(true);
        let lines = self.story();
        {
            let mut state = self.state();
            state.waiting.clear();
            state.held.clear();
        }
        let work = async {
            if finished {
                self.clear().await;
            }
            // Kept for so long at most that a dead server does not hold up the end.
            let hubs = &self.link.hubs;
            let _ = hubs.purge(self.key()).await;
            let _ = self.link.client.flush().await;
        };
        let limit = Duration::from_secs(10);
        let ended = self
            .handle
            .block_on(async { tokio::time::timeout(limit, work).await });
        if ended.is_err() {
            tracing::warn!(
                "the NATS server does not answer; what is left of the run expires there"
            );
        }
        lines
    }
}
