//! Postponed proofs.
//!
//! In a run with a budget no candidate is run whole before every task had its first trials. Until
//! then a candidate that would be run whole is stored without a proof, and its search does not
//! observe it. The proof follows before the next result of that task, or at the end of the run.

use super::best::{BestTime, lacks_proof, without_postponement};
use super::{FIRST_TRIALS, Flight, Schedule, TaskState};
use crate::evaluator::Judged;
use crate::lanes::{Job, Proof, Ticket};
use crate::record::observation;
use tuner_core::judgement::Judgement;
use tuner_core::objective::Objectives;
use tuner_core::record::{ConfigValues, Measurement, TrialRecord};
use tuner_core::units::ContentHash;
use tuner_search::Observation;
use tuner_space::Config;

/// A trial whose proof is postponed.
pub(super) struct PostponedProof {
    pub(super) proposal: u64,
    pub(super) config: Config,
    pub(super) candidate: ContentHash,
    pub(super) judgement: Judgement,
    /// Its rank without the proof.
    pub(super) time: BestTime,
    /// The search's observation if the candidate is correct.
    pub(super) observation: Observation,
    /// Ticket of its proof in progress.
    pub(super) proof: Option<Ticket>,
}

/// A completed postponed proof.
pub(in super::super) struct Settled {
    pub(in super::super) task: usize,
    pub(in super::super) config: Config,
    /// The judgement with the result of the proof.
    pub(in super::super) judgement: Judgement,
}

impl TaskState {
    /// Returns the sequence number of the next stored trial and its parameters.
    pub(super) fn number_trial<W>(&mut self, flight: &Flight<W>) -> (u64, ConfigValues) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        (sequence, self.space.values(&flight.config))
    }

    /// Reports a trial to the search, or stores it as one with a postponed proof.
    pub(super) fn observe<W, T: AsRef<Measurement>>(
        &mut self,
        flight: &Flight<W>,
        trial: &TrialRecord<T>,
        objectives: Option<Objectives>,
        postponed: bool,
    ) {
        let observation = observation(trial, objectives);
        match BestTime::from_trial(trial) {
            Some(time) if postponed => self.postponed_proofs.push(PostponedProof {
                proposal: flight.proposal,
                config: flight.config.clone(),
                candidate: trial.candidate_hash.clone(),
                judgement: without_postponement(&trial.judgement),
                time,
                observation,
                proof: None,
            }),
            time => {
                self.take_best(time);
                self.strategy.tell(flight.proposal, observation);
            }
        }
    }

    /// Returns the best time reported so far, a postponed proof's included.
    pub(super) fn best(&self) -> Option<BestTime> {
        let postponed = self.postponed_proofs.iter().map(|proof| proof.time);
        let times = self.proven.into_iter().chain(postponed);
        times.reduce(|best, time| if time < best { time } else { best })
    }

    /// Reports whether a stored trial waits for a proof that the run did not reach.
    pub(super) fn awaits_proof(&self, stored: &TrialRecord) -> bool {
        let time = BestTime::from_trial(stored);
        lacks_proof(&stored.judgement) && time.is_some_and(|time| self.would_win(time))
    }

    /// Reports whether a time would be the best if its proof succeeded.
    pub(super) fn would_win(&self, time: BestTime) -> bool {
        self.best().is_none_or(|best| time.proven() < best)
    }

    /// Takes the fastest postponed proof of the task, unless one is in progress.
    fn next_postponed(&mut self, ticket: Ticket) -> Option<&PostponedProof> {
        if self
            .postponed_proofs
            .iter()
            .any(|proof| proof.proof.is_some())
        {
            return None;
        }
        let fastest =
            |a: &&mut PostponedProof, b: &&mut PostponedProof| a.time.us().total_cmp(&b.time.us());
        let next = self.postponed_proofs.iter_mut().min_by(fastest)?;
        next.proof = Some(ticket);
        Some(next)
    }

    /// Ends a postponed proof: the search observes the result, and the results that can no longer become
    /// the best.
    fn settle_postponed(&mut self, place: usize, judgement: &Judgement) -> Config {
        let postponed = self.postponed_proofs.remove(place);
        if judgement.is_ok() {
            self.take_best(Some(postponed.time.compared(judgement.compared)));
            self.strategy
                .tell(postponed.proposal, postponed.observation);
        } else {
            let failed = Observation::Failed(judgement.verdict);
            self.strategy.tell(postponed.proposal, failed);
            self.account.withdraw(self.best().map(BestTime::us));
        }
        let proven = self.proven;
        let slower = |postponed: &mut PostponedProof| {
            proven.is_some_and(|best| postponed.time.proven() >= best)
        };
        for postponed in self.postponed_proofs.extract_if(.., slower) {
            self.strategy
                .tell(postponed.proposal, postponed.observation);
        }
        postponed.config
    }
}

impl<W> Schedule<W> {
    /// Reports whether proofs are postponed: a task has not had its first trials.
    pub(super) fn postpones(&self) -> bool {
        let budget = self.budget();
        let waiting = |task: &TaskState| {
            let account = &task.account;
            // All of a small space may be requested before the first result.
            let no_more = task.finished || task.converged || task.waits;
            let first = match no_more {
                true => account.asked.min(FIRST_TRIALS),
                false => FIRST_TRIALS,
            };
            let has_turn = !account.postponed || task.is_brief(budget);
            has_turn && account.reported() < first
        };
        self.postpones_proofs && self.tasks.iter().any(waiting)
    }

    /// Reports whether a result of a task waits for a postponed proof.
    pub(super) fn is_held(&self, task: usize) -> bool {
        !self.stopped && !self.tasks[task].postponed_proofs.is_empty() && !self.postpones()
    }

    /// Starts the next postponed proof of a task.
    pub(super) fn postponed_proof(&mut self, task: usize) -> Option<Proof> {
        let ticket = self.next_ticket + 1;
        let postponed = self.tasks[task].next_postponed(ticket)?;
        let proof = Proof {
            job: Job {
                ticket,
                task,
                config: postponed.config.clone(),
                limit: None,
            },
            judged: Box::new(Judged::without_device(
                postponed.candidate.clone(),
                postponed.judgement.clone(),
            )),
            whole: true,
        };
        self.next_ticket = ticket;
        Some(proof)
    }

    /// Returns a postponed proof to run at the end of the run.
    pub(in super::super) fn last_proof(&mut self) -> Option<Proof> {
        (0..self.tasks.len()).find_map(|task| self.postponed_proof(task))
    }

    /// Reports whether a proof is still postponed.
    pub(in super::super) fn has_postponed_proofs(&self) -> bool {
        self.tasks
            .iter()
            .any(|task| !task.postponed_proofs.is_empty())
    }

    /// Takes the result of a postponed proof; `None` if the ticket is not of one.
    pub(in super::super) fn settle_proof(
        &mut self,
        ticket: Ticket,
        judged: &Judged,
    ) -> Option<Settled> {
        let its = |state: &TaskState| {
            let is_its = |postponed: &PostponedProof| postponed.proof == Some(ticket);
            state.postponed_proofs.iter().position(is_its)
        };
        let tasks = self.tasks.iter().enumerate();
        let (task, place) = tasks
            .filter_map(|(at, state)| Some((at, its(state)?)))
            .next()?;
        let judgement = judged.found.judgement.clone();
        let config = self.tasks[task].settle_postponed(place, &judgement);
        self.clear_waits();
        Some(Settled {
            task,
            config,
            judgement,
        })
    }
}
