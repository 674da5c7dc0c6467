//! Handling of workers that cannot carry an order out, and of untrusted workers.

use super::run::Run;
use crate::link::AGAIN;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tuner_core::panics::lock;
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{Answer, PROTOCOL, Step, WorkOrder};

/// Number of workers that may report an inability for one order before that is its verdict.
const UNABLE_WORKERS_MAX: usize = 3;
/// The same number of attempts if no other worker is present.
const UNABLE_ALONE_MAX: usize = 3;
/// Maximum attempts of one order, over all workers.
const UNABLE_TRIES_MAX: usize = 12;
/// Maximum number of remembered untrusted workers: anyone can invent names.
const SET_ASIDE_MAX: usize = 1000;
/// Maximum number of characters shown of a worker's name.
const NAME_CHARS: usize = 100;

/// Result of examining an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Examined {
    /// It is an answer to its order.
    Believed,
    /// It claims that the run's files make the order impossible everywhere. That may be true of one worker
    /// alone, so it does not end a run.
    BlamesFiles(String),
    /// It is false, and why.
    False(String),
}

/// Examines an answer to an order. Members of a fleet do not trust each other.
pub(super) fn examine(order: &WorkOrder, answer: &Answer) -> Examined {
    let is_of_step = match answer {
        Answer::Unusable(why) => return Examined::BlamesFiles(why.clone()),
        Answer::NotJudged(_) => {
            return Examined::False("it gave a verdict that only a hub gives".to_owned());
        }
        Answer::Compiled(_) => matches!(order.step, Step::Compile { .. }),
        Answer::FalseObject(_) => matches!(order.step, Step::Device(_) | Step::Prove { .. }),
        Answer::Final { times, .. } => match &order.step {
            Step::Final(finalists) => times.len() == finalists.configs.len(),
            _ => false,
        },
        Answer::Judged(_) => !matches!(order.step, Step::Final(_)),
    };
    if !answer.is_consistent() {
        let why = "it contradicts itself: a wrong result with a time, or an impossible one";
        return Examined::False(why.to_owned());
    }
    let candidate = answer.candidate();
    if !is_of_step || candidate.is_some_and(|candidate| *candidate != order.candidate) {
        let said = candidate.map_or("nothing", ContentHash::short);
        return Examined::False(format!(
            "it answered for another candidate ({said}) or another question"
        ));
    }
    Examined::Believed
}

/// A failed attempt of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inability {
    pub(super) worker: String,
    pub(super) why: String,
    /// The worker blames the run's files instead of itself.
    pub(super) blames_files: bool,
}

/// Workers that answered falsely, with the reason.
#[derive(Debug, Default)]
pub(super) struct SetAside(BTreeMap<String, String>);

impl SetAside {
    pub(super) fn contains(&self, worker: &str) -> bool {
        self.0.contains_key(worker)
    }

    /// Adds a worker; returns the message if it is new.
    fn add(&mut self, worker: &str, why: &str) -> Option<String> {
        if self.contains(worker) || self.0.len() >= SET_ASIDE_MAX {
            return None;
        }
        let name: String = worker.chars().take(NAME_CHARS).collect();
        let text = format!(
            "worker {name} is set aside, and its answers to this run are dropped: {why}; end it, and \
             start it again once it is in order"
        );
        self.0.insert(worker.to_owned(), text.clone());
        Some(text)
    }

    /// Iterates over the messages, for the end of the run.
    pub(super) fn messages(&self) -> impl Iterator<Item = &String> {
        self.0.values()
    }
}

/// Decides whether the failed attempts of an order are its verdict, which then contains the reasons.
/// `others` is the number of present workers that did not try.
pub(super) fn unable_verdict(tries: &[Inability], others: usize) -> Option<String> {
    let workers: BTreeSet<&str> = tries.iter().map(|one| &*one.worker).collect();
    let ends = workers.len() >= UNABLE_WORKERS_MAX
        || (others == 0 && tries.len() >= UNABLE_ALONE_MAX)
        || tries.len() >= UNABLE_TRIES_MAX;
    let reasons: Vec<String> = tries
        .iter()
        .map(|one| format!("{}: {}", one.worker, one.why))
        .collect();
    ends.then(|| format!("workers could not judge it: {}", reasons.join("; ")))
}

impl Run {
    /// Sets a worker aside. Its later answers are dropped, and their orders go to other workers.
    pub(super) fn set_aside(&self, worker: &str, why: &str) {
        let text = self.state().set_aside.add(worker, why);
        if let Some(text) = text {
            tracing::warn!("{text}");
            self.link.tell("set_aside", &text);
        }
    }

    /// Sets those workers aside that blamed the run's files for an order that another worker carried out.
    pub(super) fn refute(&self, tries: &[Inability], worker: &str) {
        for one in tries.iter().filter(|one| one.blames_files) {
            if one.worker != worker {
                let why = format!(
                    "it says that the run's files cannot be used ({}), and {worker} uses them",
                    one.why
                );
                self.set_aside(&one.worker, &why);
            }
        }
    }

    /// Returns the number of present workers that could take an order and did not try it.
    pub(super) fn count_others(&self, tries: &[Inability]) -> usize {
        let view = lock(&self.view);
        let state = self.state();
        let tried = |name: &str| tries.iter().any(|one| one.worker == name);
        let workers = view.workers.iter();
        let others = workers.filter(|worker| {
            worker.protocol == PROTOCOL
                && worker.state != "leaving"
                && (worker.class == self.class || worker.nvrtc == self.nvrtc)
                && !tried(&worker.name)
                && !state.set_aside.contains(&worker.name)
        });
        others.count()
    }

    /// Sends an order again after a pause, in which another worker may become free.
    pub(super) fn send_again_later(self: &Arc<Self>, id: &ContentHash, pause: Duration) {
        let (run, id) = (Arc::downgrade(self), id.clone());
        self.handle.spawn(async move {
            tokio::time::sleep(pause).await;
            if let Some(run) = run.upgrade() {
                run.send_again(&id);
            }
        });
    }
}

/// Pause before an order is sent again that a worker took which is set aside.
pub(super) const SET_ASIDE_PAUSE: Duration = AGAIN;

/// Pause before an order is sent again that its worker took before.
pub(super) const REPEATED_PAUSE: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;
