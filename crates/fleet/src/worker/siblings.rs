//! Comparison of a GPU with its siblings before its first candidate of a task; the hub decides whether it
//! is in the group.

use super::Worker;
use super::handle::blocking;
use crate::hub::siblings_key;
use crate::message::{AnswerMessage, OrderMessage, OrderOutcome, Outcome, encode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{PROTOCOL, SiblingTimes, SiblingsRecord, WorkOrder, name_apart};
use tuner_engine::job::{Bench, LendError};
use tuner_space::Config;

/// Timeout of the hub's decision.
const DECISION_TIMEOUT: Duration = Duration::from_secs(30);

/// Polling interval of the decision.
const DECISION_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of polls after which the times are sent again.
const POLLS_PER_SEND: u64 = 50;

impl Worker {
    /// Reports whether the GPU is in a different group than the run's. It then only takes candidates of its
    /// own group.
    pub(super) async fn is_apart(
        &self,
        bench: &Arc<Bench>,
        message: &OrderMessage,
        order: &WorkOrder,
    ) -> Result<bool, LendError> {
        let task = (message.run.clone(), order.task);
        if !self.machine.is_gpu() || self.compared().contains(&task) {
            return Ok(false);
        }
        let record = self.siblings(&message.run).await;
        let best = record.incumbents.get(&order.task).cloned();
        let (bench, place) = (Arc::clone(bench), order.task);
        let comparing = move || bench.compare(place, best.map(Config::new).as_ref());
        if let Some(times) = blocking(comparing).await?
            && let Some(why) = self.placed(message, &times).await?
        {
            self.leave_siblings(&why);
            return Ok(true);
        }
        self.compared().insert(task);
        Ok(false)
    }

    /// Returns the hub's reason for a separate group, if any.
    async fn placed(
        &self,
        message: &OrderMessage,
        times: &SiblingTimes,
    ) -> Result<Option<String>, LendError> {
        let name = self.record().name.clone();
        let began = Instant::now();
        let mut polls = 0;
        while began.elapsed() < DECISION_TIMEOUT {
            if polls % POLLS_PER_SEND == 0 {
                self.send_times(message, times, polls / POLLS_PER_SEND)
                    .await?;
            }
            polls += 1;
            tokio::time::sleep(DECISION_POLL_INTERVAL).await;
            let record = self.siblings(&message.run).await;
            let mut all = record.placed.into_iter();
            if let Some(placed) = all.find(|one| one.worker == name && one.task == times.task) {
                return Ok(placed.apart);
            }
        }
        Err(LendError::Here(
            "the hub does not say whether its GPU is like the others".to_owned(),
        ))
    }

    async fn send_times(
        &self,
        message: &OrderMessage,
        times: &SiblingTimes,
        number: u64,
    ) -> Result<(), LendError> {
        let worker = self.record().name.clone();
        let id = ContentHash::from_parts([worker.as_bytes(), &times.task.to_le_bytes()[..]]);
        let subject = self.link.names.result(&message.run, &id);
        let name = format!("{}.{id}.{number}.compared", message.run);
        let answer = AnswerMessage {
            protocol: PROTOCOL,
            worker,
            attempt: message.attempt,
            answers: vec![OrderOutcome {
                id,
                outcome: Outcome::Compared(times.clone()),
            }],
        };
        let payload = encode(&answer).map_err(|error| LendError::Here(error.to_string()))?;
        self.link.publish(&subject, &name, payload.into()).await;
        Ok(())
    }

    /// Reads the hub's record of a run; empty if none was written yet.
    async fn siblings(&self, run: &str) -> SiblingsRecord {
        let found = self.link.compiled.get(siblings_key(run)).await;
        let bytes = found.ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Moves the GPU to a separate class with its own queue and leaderboard.
    fn leave_siblings(&self, why: &str) {
        let (host, name) = {
            let mut record = self.record();
            let name = name_apart(&record.device, &record.host, &record.selector);
            record.class = self.machine.class_apart(&name);
            if let Some(facts) = &mut record.facts {
                facts["name"] = name.clone().into();
            }
            record.device.clone_from(&name);
            record.group.clone_from(&name);
            (record.name.clone(), name)
        };
        tracing::warn!("this GPU is in a separate group, `{name}`: {why}");
        self.link.tell("apart", &format!("{host}: {why}"));
    }
}
