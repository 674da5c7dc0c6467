//! Workers that cannot carry an order out, and workers that are not believed.

use super::run::Run;
use crate::link::AGAIN;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tuner_core::panics::lock;
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{Answer, PROTOCOL, Step, WorkOrder};

/// Workers that may say of one order that they cannot, before that is its verdict.
const UNABLE_WORKERS_MAX: usize = 3;
/// The same number of tries where no other worker is present.
const UNABLE_ALONE_MAX: usize = 3;
/// Tries of one order, whoever made them.
const UNABLE_TRIES_MAX: usize = 12;
/// Workers that are remembered as set aside: names are free to whoever invents them.
const SET_ASIDE_MAX: usize = 1000;
/// Characters of a worker's name that are shown.
const NAME_CHARS: usize = 100;

/// What an answer is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Examined {
    /// It is an answer to its order.
    Believed,
    /// It says that nobody can carry the order out, through the run's files. That may be true of one
    /// worker alone, which does not end a run.
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

/// A try of an order that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inability {
    pub(super) worker: String,
    pub(super) why: String,
    /// The worker blames the run's files, and not itself.
    pub(super) blames_files: bool,
}

/// Workers that answered falsely, with the reason.
#[derive(Debug, Default)]
pub(super) struct SetAside(BTreeMap<String, String>);

impl SetAside {
    pub(super) fn contains(&self, worker: &str) -> bool {
        self.0.contains_key(worker)
    }

    /// Adds a worker. Returns the message, the first time.
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

    /// The messages, for the end of the run.
    pub(super) fn messages(&self) -> impl Iterator<Item = &String> {
        self.0.values()
    }
}

/// Decides whether the tries of an order are its verdict, which then names the reasons. `others` is
/// the number of workers present that did not try.
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
    /// Sets a worker aside. What it answers from now on is dropped, and goes to another one.
    pub(super) fn set_aside(&self, worker: &str, why: &str) {
        let text = self.state().set_aside.add(worker, why);
        if let Some(text) = text {
            tracing::warn!("{text}");
            self.link.tell("set_aside", &text);
        }
    }

    /// Sets those aside who blamed the run's files for an order that another worker carried out.
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

    /// Number of workers present that could take an order and did not try it.
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

/// Pause before an order goes out again that a worker which is set aside took.
pub(super) const SET_ASIDE_PAUSE: Duration = AGAIN;

/// Pause before an order goes out again whose worker took it before.
pub(super) const REPEATED_PAUSE: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;
