//! A run on a fleet: orders without an answer, and answers without a commit.

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

/// Maximum number of compilers of a worker: its announced number starts threads here.
const COMPILERS_MAX: usize = 1024;

/// Maximum number of devices and compilers of a fleet that a run uses at once.
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
    /// Objects for the workers: files and the assignment.
    objects: Vec<Vec<u8>>,
    state: Mutex<State>,
    /// Unique to this process and run.
    instance: String,
    /// Attempt number of first sendings. Differs from an earlier process's numbers: its orders may have
    /// been delivered and lost for unrelated reasons.
    pub(super) first_attempt: u32,
    /// Orders to send.
    outgoing: mpsc::UnboundedSender<Outgoing>,
    /// True once the run has ended on this hub.
    pub(super) ended: tokio::sync::watch::Sender<bool>,
}

/// Mutable state of a run.
#[derive(Default)]
pub(super) struct State {
    /// Orders without an answer.
    pub(super) waiting: HashMap<ContentHash, Waiting>,
    /// Uncommitted answers with the message to acknowledge after the commit.
    pub(super) held: HashMap<ContentHash, UncommittedAnswer>,
    /// Bytes of uncommitted answers that this process did not request.
    pub(super) unasked_bytes: usize,
    /// Orders with committed results.
    pub(super) done: HashSet<ContentHash>,
    /// Results committed by this process.
    pub(super) stored: u64,
    /// Orders sent again.
    pub(super) sent_again: u64,
    /// GPUs compared with each other.
    siblings: Siblings,
    /// Time that devices waited for compilers and compilers for devices, seconds.
    pub(super) devices_waited: f64,
    pub(super) compilers_waited: f64,
    /// Reported GPUs in separate groups.
    apart: Vec<String>,
    /// Workers that are not believed.
    pub(super) set_aside: SetAside,
}

/// An order without an answer.
pub(super) struct Waiting {
    pub(super) order: WorkOrder,
    pub(super) reply: oneshot::Sender<Answer>,
    pub(super) attempt: u32,
    /// Name of its last message.
    pub(super) sent_in: ContentHash,
    /// Number of lost connections at the time of sending.
    pub(super) losses: u64,
    /// Why workers could not.
    pub(super) unable: Vec<Inability>,
    pub(super) sent: Instant,
}

/// An uncommitted answer.
pub(super) struct UncommittedAnswer {
    pub(super) answer: Answer,
    pub(super) receipt: Arc<Receipt>,
    /// Bytes, if this process did not request it; else 0.
    pub(super) unasked_bytes: usize,
}

/// A message with answers, acknowledged once each is committed or discarded.
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

    /// Counts a settled answer; returns true for the last.
    fn settle(&self) -> bool {
        self.unsettled.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Run {
    /// Claims the run, publishes its files, and starts listening.
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
            assignment: ContentHash::from_parts([text.as_slice()]),
            objects: files.into_values().chain([text]).collect(),
            outgoing,
            state: Mutex::default(),
            instance,
            first_attempt: u32::try_from(now.as_millisecond().rem_euclid(1 << 31)).unwrap_or(0),
            ended: tokio::sync::watch::channel(false).0,
        });
        // Before any write for the run, which another hub may own.
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

    /// Creates missing queues.
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

    /// Returns the subject of a message with orders of this kind.
    pub(super) fn subject(&self, step: &Step, message: &ContentHash) -> String {
        let names = &self.link.names;
        names.order(self.queue(step), &self.name, message)
    }

    /// Sends an order for the first time or again.
    fn send(&self, order: WorkOrder, attempt: u32) {
        // The sender lives as long as the run.
        let _ = self.outgoing.send(Outgoing { order, attempt });
    }

    /// Sends an unanswered order again.
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

    /// Settles an answer; the last of a message acknowledges it in the background.
    pub(super) fn settle(&self, receipt: Arc<Receipt>) {
        if receipt.settle() {
            self.handle.spawn(async move {
                // A lost acknowledgement causes a redelivery, which is recognized.
                let _ = receipt.message.ack().await;
            });
        }
    }

    /// Compares a GPU with its siblings and reports the outcome.
    pub(super) fn assign_group(&self, worker: &str, times: SiblingTimes) {
        let apart = {
            let mut state = self.state();
            state.siblings.compare(worker, times).apart.clone()
        };
        if let Some(why) = apart {
            let text = format!(
                "the GPU of {worker} forms a separate group and receives no more candidates of this \
                 run: {why}"
            );
            tracing::warn!("{text}");
            self.link.tell("apart", &text);
            self.state().apart.push(text);
        }
        self.show_siblings();
    }

    /// Publishes the record that workers read before their first candidate, in the background.
    fn show_siblings(&self) {
        let record = self.state().siblings.record();
        let (bucket, key) = (self.link.compiled.clone(), siblings_key(&self.name));
        self.handle.spawn(async move {
            // A worker that is missing in the record reports its times again.
            presence::write(&bucket, &key, &record).await
        });
    }

    /// Returns the run's public record.
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

    /// Returns the run's key in the bucket of hubs.
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

    /// Removes orders of an earlier process; requested ones are sent again.
    async fn purge_orders(&self) {
        let (link, name) = (&self.link, &self.name);
        if let Ok(stream) = link.context.get_stream_no_info(link.names.work()).await {
            let _ = stream.purge().filter(link.names.orders_of(name)).await;
        }
    }

    /// Removes the data of a finished run.
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

/// Returns the key of the record of sibling GPUs.
pub(crate) fn siblings_key(run: &str) -> String {
    format!("siblings-{}", crate::names::word(run))
}

/// Reports whether an order's answer waits for a commit. Compiled code is stored as an object instead, and
/// a second judgement or proof of the same code is rare enough to be repeated.
pub(super) fn is_held(step: &Step) -> bool {
    match step {
        Step::Recorded => true,
        Step::Device(compiled) => compiled.again == 0,
        Step::Compile { .. } | Step::Prove { .. } | Step::Final(_) => false,
    }
}

/// The run ended before an order was answered.
#[derive(Debug, thiserror::Error)]
#[error("the run has ended")]
struct Ended;

/// The engine's session: the run, shared with its listening tasks.
impl Session for Run {
    fn ask(self: Arc<Self>, order: WorkOrder) -> Result<Answer, BoxError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(mut held) = state.held.remove(&order.id) {
                state.unasked_bytes -= std::mem::take(&mut held.unasked_bytes);
                // An answer from before this process started.
                // An answer of a hub is a verdict.
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
            // With a timeout, so that a dead server does not delay the end.
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
                "the NATS server does not answer; the run's remaining data expires there"
            );
        }
        lines
    }
}
