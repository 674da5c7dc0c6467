//! Queues: orders are pulled only if there is capacity, so a slow worker never hoards them.

use super::{QUEUE_CHECK_INTERVAL, Worker, pause};
use crate::link::turned;
use crate::names::Queue;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{Consumer, pull};
use futures_util::{StreamExt as _, TryStreamExt as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tuner_engine::job::WorkerResource;

/// Number of messages in flight for a worker with a recording: each takes microseconds, less than a round
/// trip to the server.
const RECORDED_IN_HAND: usize = 8;

/// Maximum wait of a pull request.
const EXPIRES_MAX: Duration = Duration::from_secs(5);

/// Progress messages per acknowledgement deadline.
const PROGRESS_PER_DEADLINE: u32 = 3;

/// Timing derived from a queue's settings.
#[derive(Clone, Copy)]
struct Pace {
    /// Expiry of a pull request. Shorter than the acknowledgement deadline, so that a stopped worker does
    /// not receive the same order again.
    expires: Duration,
    progress: Duration,
}

impl Pace {
    fn from_consumer(consumer: &Consumer<pull::Config>) -> Self {
        let wait = consumer.cached_info().config.ack_wait;
        let wait = wait.max(Duration::from_millis(300));
        Self {
            expires: (wait / 2).min(EXPIRES_MAX),
            progress: wait / PROGRESS_PER_DEADLINE,
        }
    }
}

impl Worker {
    async fn consumer(&self, name: &str) -> Option<Consumer<pull::Config>> {
        let stream = self.link.names.work();
        let found = self.link.context.get_consumer_from_stream(name, stream);
        found.await.ok()
    }

    /// Reports whether the worker is shutting down.
    fn ends(&self) -> bool {
        self.leaves() || *self.stop.borrow() || self.broken.borrow().is_some()
    }

    /// Takes candidates for the device until the worker shuts down.
    pub(super) async fn serve_device(self: Arc<Self>) {
        let fast = matches!(self.machine.lent, WorkerResource::Recording(_));
        while !self.ends() {
            let class = self.record().class.clone();
            let name = Queue::device(&class).consumer();
            let Some(consumer) = self.consumer(&name).await else {
                // The hub has not started yet.
                pause().await;
                continue;
            };
            let pace = Pace::from_consumer(&consumer);
            if fast {
                self.serve_recorded(&consumer, pace).await;
            } else {
                self.serve_one_by_one(&consumer, &class, pace).await;
            }
        }
    }

    /// Keeps several orders in flight.
    async fn serve_recorded(self: &Arc<Self>, consumer: &Consumer<pull::Config>, pace: Pace) {
        let messages = consumer
            .stream()
            .max_messages_per_batch(RECORDED_IN_HAND)
            .expires(pace.expires)
            .heartbeat(pace.expires / 2)
            .messages()
            .await;
        let Ok(mut messages) = messages else {
            return pause().await;
        };
        let room = Arc::new(Semaphore::new(RECORDED_IN_HAND));
        let mut stop = self.stop.clone();
        loop {
            let message = tokio::select! {
                message = messages.next() => message,
                () = turned(&mut stop) => break,
            };
            let Some(Ok(message)) = message else { break };
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
                break;
            };
            let worker = Arc::clone(self);
            tokio::spawn(async move {
                worker.handle(message, pace.progress).await;
                drop(permit);
            });
        }
        // Orders in flight are answered before the worker ends.
        let _ = room.acquire_many(RECORDED_IN_HAND as u32).await;
    }

    /// Keeps one order in flight and prefetches none, as long as the device has this class.
    async fn serve_one_by_one(
        self: &Arc<Self>,
        consumer: &Consumer<pull::Config>,
        class: &str,
        pace: Pace,
    ) {
        while !self.ends() && self.record().class == class {
            match self.next(consumer, pace.expires).await {
                Ok(Some(message)) => self.handle(message, pace.progress).await,
                Ok(None) => {}
                Err(()) => return pause().await,
            }
        }
    }

    /// Returns the next order, or `None` after the timeout.
    async fn next(
        &self,
        consumer: &Consumer<pull::Config>,
        expires: Duration,
    ) -> Result<Option<Message>, ()> {
        let batch = consumer.batch().max_messages(1).expires(expires).messages();
        let mut batch = batch.await.map_err(drop)?;
        let mut stop = self.stop.clone();
        let next = tokio::select! {
            next = tokio::time::timeout(expires * 2, batch.next()) => next,
            () = turned(&mut stop) => return Ok(None),
        };
        match next {
            Ok(Some(Ok(message))) => Ok(Some(message)),
            Ok(None) => Ok(None),
            Ok(Some(Err(_))) | Err(_) => Err(()),
        }
    }

    /// Serves all queues of this machine's compiler until the worker ends.
    pub(super) async fn serve_compiles(self: Arc<Self>) {
        let room = Arc::new(Semaphore::new(self.machine.compilers));
        let mut serving = tokio::task::JoinSet::new();
        let mut known: Vec<String> = Vec::new();
        while !self.ends() {
            for name in self.compile_queues().await {
                if !known.contains(&name) {
                    known.push(name.clone());
                    let (worker, room) = (Arc::clone(&self), Arc::clone(&room));
                    serving.spawn(worker.serve_compile(name, room));
                }
            }
            tokio::time::sleep(QUEUE_CHECK_INTERVAL).await;
        }
        while serving.join_next().await.is_some() {}
    }

    /// Returns the consumers of compatible compile queues.
    async fn compile_queues(&self) -> Vec<String> {
        let names = &self.link.names;
        let Ok(stream) = self.link.context.get_stream(names.work()).await else {
            return Vec::new();
        };
        let all: Result<Vec<String>, _> = stream.consumer_names().try_collect().await;
        let end = format!("-{}", self.machine.compile_suffix());
        let ours = |name: &String| name.starts_with("compile_") && name.ends_with(&end);
        all.unwrap_or_default().into_iter().filter(ours).collect()
    }

    /// Serves a compile queue with concurrent orders up to the capacity.
    async fn serve_compile(self: Arc<Self>, name: String, room: Arc<Semaphore>) {
        let mut handling = tokio::task::JoinSet::new();
        while !self.ends() {
            let Some(consumer) = self.consumer(&name).await else {
                pause().await;
                continue;
            };
            let pace = Pace::from_consumer(&consumer);
            while !self.ends() {
                while handling.try_join_next().is_some() {}
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
                    return;
                };
                // Short, so that other queues of this machine are also served.
                match self
                    .next(&consumer, pace.expires.min(QUEUE_CHECK_INTERVAL))
                    .await
                {
                    Ok(Some(message)) => {
                        let worker = Arc::clone(&self);
                        handling.spawn(async move {
                            worker.handle(message, pace.progress).await;
                            drop(permit);
                        });
                    }
                    Ok(None) => drop(permit),
                    Err(()) => break,
                }
            }
        }
        while handling.join_next().await.is_some() {}
    }
}
