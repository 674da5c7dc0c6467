//! Handling of a message with orders, from its receipt to the acknowledgement.

use super::Worker;
use super::bench::Use;
use crate::DELIVERIES_MAX;
use crate::link::{AGAIN, turned};
use crate::message::{
    AnswerMessage, Malformed, OrderMessage, OrderOutcome, Outcome, encode, name_of, read,
    write_or_wait,
};
use crate::names::is_run;
use async_nats::jetstream::{AckKind, Message};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;
use tuner_core::units::ContentHash;
use tuner_engine::Work;
use tuner_engine::fleet::{Answer, Compiled, Finalists, PROTOCOL, Step, WorkOrder};
use tuner_engine::job::{Bench, LendError};
use tuner_engine::threads::run_blocking;
use tuner_space::Config;

/// Largest compiled code, bytes, packed and unpacked.
const WORK_BYTES_MAX: usize = 256 << 20;

impl Worker {
    /// Carries out the orders of a message, answers, and acknowledges. Sends progress messages to
    /// the server meanwhile.
    pub(super) async fn handle(self: &Arc<Self>, message: Message, progress: Duration) {
        let deliveries = message.info().map_or(1, |info| info.delivered);
        let orders = match read::<OrderMessage>(&self.link, &message.payload).await {
            Ok(orders) if is_run(&orders.run) && !orders.orders.is_empty() => orders,
            Err(Malformed::Object(error)) if error.passes() => {
                let _ = message.ack_with(AckKind::Nak(Some(AGAIN))).await;
                return;
            }
            Ok(orders) => return self.drop_malformed(&message, &orders.run).await,
            Err(error) => return self.drop_malformed(&message, &error).await,
        };
        let all = |outcome: Outcome| orders.orders.iter().map(|_| outcome.clone()).collect();
        let handed_out = u32::try_from(deliveries).unwrap_or(u32::MAX);
        // The order may have crashed its earlier workers: this one does not try it.
        let outcomes: Vec<Outcome> = if handed_out > DELIVERIES_MAX {
            all(Outcome::Lost(DELIVERIES_MAX))
        } else {
            let working = self.carry_out_all(&orders);
            tokio::pin!(working);
            let mut ticks = tokio::time::interval(progress);
            // The first tick fires immediately.
            ticks.tick().await;
            let mut stop = self.stop.clone();
            loop {
                tokio::select! {
                    outcomes = &mut working => break outcomes,
                    _ = ticks.tick() => {
                        let _ = message.ack_with(AckKind::Progress).await;
                    }
                    () = turned(&mut stop) => break all(Outcome::Leaving),
                }
            }
        };
        self.answer(&orders, outcomes, &message).await;
    }

    async fn carry_out_all(self: &Arc<Self>, message: &OrderMessage) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(message.orders.len());
        for order in &message.orders {
            outcomes.push(self.carry_out(message, order).await);
        }
        outcomes
    }

    async fn drop_malformed(&self, message: &Message, why: &(dyn std::fmt::Display + Sync)) {
        self.record().malformed += 1;
        tracing::warn!("a message among the orders is dropped: {why}");
        self.link.tell("malformed", &why.to_string());
        let _ = message.ack_with(AckKind::Term).await;
    }

    async fn answer(&self, orders: &OrderMessage, outcomes: Vec<Outcome>, message: &Message) {
        let back = |outcome: &&Outcome| matches!(outcome, Outcome::Leaving | Outcome::Unable(_));
        let returned = outcomes.iter().filter(back).count() as u64;
        let worker = {
            let mut record = self.record();
            record.returned += returned;
            record.name.clone()
        };
        let attempt = orders.attempt;
        let of = |(order, outcome): (&WorkOrder, Outcome)| OrderOutcome {
            id: order.id.clone(),
            outcome,
        };
        let answer = AnswerMessage {
            protocol: PROTOCOL,
            worker,
            attempt,
            answers: orders.orders.iter().zip(outcomes).map(of).collect(),
        };
        let id = name_of(orders.orders.iter());
        let subject = self.link.names.result(&orders.run, &id);
        // The server discards a second answer to the same attempt within its window.
        let name = format!("{}.{id}.{attempt}.a", orders.run);
        let payload = write_or_wait(&self.link, &answer, "an answer").await;
        self.link.publish(&subject, &name, payload).await;
        // Only now: until the server has the answer, a lost worker must not cost the order.
        let _ = message.ack().await;
    }

    /// Carries out an order.
    async fn carry_out(self: &Arc<Self>, message: &OrderMessage, order: &WorkOrder) -> Outcome {
        let used = match order.step {
            Step::Compile { .. } => Use::Compile,
            Step::Recorded | Step::Device(_) | Step::Prove { .. } | Step::Final(_) => Use::Device,
        };
        if let Step::Final(finalists) = &order.step
            && finalists.not.contains(&self.record().name)
        {
            // Returned for another worker, which receives it sooner.
            tokio::time::sleep(AGAIN / 4).await;
            return Outcome::Leaving;
        }
        let what = match order.step {
            Step::Compile { .. } => "compiles",
            Step::Recorded | Step::Device(_) => "judges",
            Step::Prove { .. } => "proves",
            Step::Final(_) => "times the best with",
        };
        let note = format!("{what} {} of {}", order.candidate.short(), message.run);
        let _doing = self.doing(note, used == Use::Device);
        let bench = self
            .benches
            .get(&self.link, &self.machine, &message.assignment, used)
            .await;
        let answer = match bench {
            Ok(bench) => match &order.step {
                Step::Recorded => recorded(&bench, order),
                Step::Compile { again } => self.compile(bench, message, order, *again).await,
                Step::Device(compiled) => match self.is_apart(&bench, message, order).await {
                    Ok(true) => return Outcome::Leaving,
                    Ok(false) => self.judge(bench, order, compiled, None).await,
                    Err(error) => Err(error),
                },
                Step::Prove { compiled, limit } => {
                    self.judge(bench, order, compiled, Some(*limit)).await
                }
                Step::Final(finalists) => self.finale(bench, order, finalists).await,
            },
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => {
                let mut record = self.record();
                match used {
                    Use::Compile => record.compiled += 1,
                    Use::Device => record.judged += 1,
                }
                Outcome::Answer(answer)
            }
            Err(LendError::Unusable(why)) => Outcome::Answer(Answer::Unusable(why)),
            Err(LendError::Here(why)) => Outcome::Unable(why),
            Err(LendError::DeviceLost(why)) => {
                self.broken.send_replace(Some(why.clone()));
                Outcome::Unable(why)
            }
        }
    }

    /// Compiles, or returns code that any worker compiled before.
    async fn compile(
        &self,
        bench: Arc<Bench>,
        message: &OrderMessage,
        order: &WorkOrder,
        again: u32,
    ) -> Result<Answer, LendError> {
        let key = compiled_key(&message.assignment, order);
        if again == 0
            && let Ok(Some(bytes)) = self.link.compiled.get(&key).await
            && let Ok(known) = serde_json::from_slice::<Compiled>(&bytes)
            // Any worker may have written the entry, and its object may have been evicted.
            && known.candidate == order.candidate
            && self.link.cubins.has(&known.object).await
        {
            return Ok(Answer::Compiled(Box::new(known)));
        }
        let (task, config) = (order.task, Config::new(order.choices.clone()));
        let (work, predicted) = match blocking(move || bench.compile(task, &config)).await? {
            Ok(compiled) => compiled,
            Err(judged) => return Ok(Answer::Judged(Box::new(judged))),
        };
        let packed = pack(&work)?;
        let stored = self.link.cubins.put(&packed).await;
        let object = stored.map_err(|error| LendError::Here(error.to_string()))?;
        let compiled = Compiled {
            candidate: work.candidate,
            compilation: work.compilation,
            same: work.same,
            object,
            again,
            predicted,
        };
        if let Ok(text) = serde_json::to_vec(&compiled) {
            // Without the entry the next worker compiles again.
            let _ = self.link.compiled.put(&key, text.into()).await;
        }
        Ok(Answer::Compiled(Box::new(compiled)))
    }

    /// Fetches compiled code, verifies its hash, and runs it: to judge it, or to prove it with at
    /// most `proof_limit` lane instructions.
    async fn judge(
        &self,
        bench: Arc<Bench>,
        order: &WorkOrder,
        compiled: &Compiled,
        proof_limit: Option<u64>,
    ) -> Result<Answer, LendError> {
        let fetched = self.link.cubins.get(&compiled.object, WORK_BYTES_MAX).await;
        let packed = match fetched {
            Ok(packed) => packed,
            Err(error) if error.passes() => return Err(LendError::Here(error.to_string())),
            Err(error) => return Ok(self.false_object(&compiled.object, &error).await),
        };
        let work = match unpack(&packed) {
            Ok(work) if work.candidate == order.candidate => work,
            Ok(_) => {
                let why = "it is the code of another candidate";
                return Ok(self.false_object(&compiled.object, &why).await);
            }
            Err(why) => return Ok(self.false_object(&compiled.object, &why).await),
        };
        let (task, config) = (order.task, Config::new(order.choices.clone()));
        let judged = blocking(move || match proof_limit {
            Some(limit) => bench.prove(task, &config, work, limit),
            None => bench.run(task, &config, work),
        })
        .await?;
        Ok(Answer::Judged(Box::new(judged)))
    }

    /// Runs the final comparison of a task's best candidates.
    async fn finale(
        &self,
        bench: Arc<Bench>,
        order: &WorkOrder,
        finalists: &Finalists,
    ) -> Result<Answer, LendError> {
        let configs: Vec<Config> = finalists.configs.iter().cloned().map(Config::new).collect();
        let (task, seed) = (order.task, finalists.seed);
        let times = blocking(move || bench.finale(task, &configs, seed)).await?;
        let worker = self.record().name.clone();
        Ok(Answer::Final { worker, times })
    }

    async fn false_object(
        &self,
        object: &ContentHash,
        why: &(dyn std::fmt::Display + Sync),
    ) -> Answer {
        self.record().false_objects += 1;
        let why = format!("the code {} is refused: {why}", object.short());
        tracing::warn!("{why}");
        self.link.tell("false_object", &why);
        // `put` would find the existing name and keep the false content.
        self.link.cubins.remove(object).await;
        Answer::FalseObject(why)
    }
}

fn recorded(bench: &Bench, order: &WorkOrder) -> Result<Answer, LendError> {
    let config = Config::new(order.choices.clone());
    let judged = bench.recorded_result(order.task, &config)?;
    Ok(Answer::Judged(Box::new(judged)))
}

/// Returns the key of a candidate's compiled object.
fn compiled_key(assignment: &ContentHash, order: &WorkOrder) -> String {
    let choices: Vec<u8> = order.choices.iter().flat_map(|c| c.to_le_bytes()).collect();
    let key = ContentHash::from_parts([
        assignment.as_str().as_bytes(),
        &order.task.to_le_bytes()[..],
        &choices,
        order.candidate.as_str().as_bytes(),
    ]);
    key.to_string()
}

/// Runs a blocking function on a separate thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LendError> + Send + 'static,
) -> Result<T, LendError> {
    let done = run_blocking("candidate", work).await;
    done.unwrap_or_else(|error| Err(LendError::Here(format!("the worker: {error}"))))
}

fn pack(work: &Work) -> Result<Vec<u8>, LendError> {
    let failed = |error: &dyn std::fmt::Display| LendError::Here(error.to_string());
    let text = encode(work).map_err(|error| failed(&error))?;
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&text).map_err(|error| failed(&error))?;
    packer.finish().map_err(|error| failed(&error))
}

fn unpack(packed: &[u8]) -> Result<Work, String> {
    let mut text = Vec::new();
    let limit = WORK_BYTES_MAX as u64;
    let mut reader = GzDecoder::new(packed).take(limit);
    reader
        .read_to_end(&mut text)
        .map_err(|error| error.to_string())?;
    rmp_serde::from_slice(&text).map_err(|error| error.to_string())
}
