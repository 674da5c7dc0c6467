//! Deterministic scheduler: the order of candidates and of reported results. No threads, no
//! clock.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks and flights are numbered by the schedule itself"
)]

mod allocation;
mod best;
mod ends;
mod flight;
mod parking;
mod postponed;
mod turns;

use super::evaluator::{Judged, Order};
use super::lanes::Ticket;
use super::record::{judged, needed_no_compile, observation, record};
use super::window::Window;
use allocation::Account;
pub use allocation::Allocation;
pub(crate) use allocation::{CostUnit, FIRST_TRIALS};
use best::BestTime;
pub(super) use flight::{Finished, Flight, ReportedResult, State};
use postponed::PostponedProof;
pub(super) use postponed::Settled;
use std::collections::{HashMap, VecDeque};
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::objective::Objectives;
use tuner_core::record::{TaskKey, TrialRecord, Verdict};
use tuner_core::units::ContentHash;
use tuner_search::{CompileStats, Knowledge, Ready, Strategy};
use tuner_space::{Config, Space};
use tuner_store::StoredTask;

/// A configuration to try before the search's proposals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartPoint {
    /// The configuration.
    pub config: Config,
    /// `default` or `seed`.
    pub origin: &'static str,
}

/// One kernel and problem to tune on the run's device.
#[derive(Debug, Clone)]
pub struct Task {
    /// Kernel, problem, device.
    pub key: TaskKey,
    /// The search space.
    pub space: Space,
    /// Start points in order: the default configuration, then known good ones.
    pub start: Vec<StartPoint>,
    /// Prior knowledge of the search.
    pub knowledge: Knowledge,
    /// Weight of its gain when the budget is distributed.
    pub weight: f64,
    /// Estimate of the cost of a trial relative to other tasks, in any unit.
    pub work: f64,
}

struct TaskState {
    space: Space,
    strategy: Box<dyn Strategy>,
    origins: HashMap<Config, &'static str>,
    next_sequence: u64,
    /// Its cost and gain so far.
    account: Account,
    /// Results of the interrupted run, by configuration.
    memory: HashMap<Config, TrialRecord>,
    /// Candidates whose launch crashed the interrupted run: judged, but not stored as reported.
    lost: HashMap<Config, TrialRecord>,
    finished: bool,
    /// Its search needs a result before its next proposal.
    waits: bool,
    /// Further trials gain too little.
    converged: bool,
    /// The best time whose proof is not postponed.
    proven: Option<BestTime>,
    /// Trials whose proof is postponed.
    postponed_proofs: Vec<PostponedProof>,
}

pub(super) struct Schedule<W> {
    order: Order,
    window: Window,
    tasks: Vec<TaskState>,
    flights: VecDeque<Flight<W>>,
    next_ticket: Ticket,
    asked: u64,
    /// Candidates that may be requested before the next result.
    allowance: usize,
    /// Reported results.
    told: u64,
    /// Candidates that had their turn, reported or not.
    launched: u64,
    /// With a fixed order, the candidate whose turn it is.
    turn_of: Option<Ticket>,
    limit: u64,
    /// Free trials since the last that counted.
    free_in_a_row: u64,
    stopped: bool,
    /// Objectives in addition to the time: the search then optimizes the Pareto front.
    pub(super) objectives: Option<Objectives>,
    /// With a fixed order, candidates are judged before their turn if the device is free, which
    /// changes no result.
    pub(super) early: bool,
    /// Run each candidate whole before it becomes the best of its task.
    pub(super) proves: bool,
    /// Postpone proofs until every task had its first trials.
    pub(super) postpones_proofs: bool,
    /// Rule for the next task.
    pub(super) allocation: Allocation,
    /// Unit of the cost of a trial.
    pub(super) cost_unit: CostUnit,
    /// The device has a virtual clock; the duration of steps is ignored.
    pub(super) charges: bool,
    /// Cost above which a task's trial is postponed: its share of the budget.
    pub(super) share: Option<f64>,
    /// Candidates of postponed tasks wait for those of the others, and a trial that exceeds its task's
    /// share is stopped.
    pub(super) parks: bool,
    /// Stopped trials beyond those that were reported within their share.
    excess_stops: u32,
}

impl<W> Schedule<W> {
    pub(super) fn new(
        order: Order,
        window: Window,
        limit: Option<u64>,
        tasks: &[Task],
        strategies: Vec<Box<dyn Strategy>>,
    ) -> Self {
        let tasks = tasks
            .iter()
            .zip(strategies)
            .map(|(task, strategy)| TaskState {
                space: task.space.clone(),
                strategy,
                origins: task
                    .start
                    .iter()
                    // The first of equal start points wins: `default` names a configuration that is
                    // also a seed.
                    .rev()
                    .map(|point| (point.config.clone(), point.origin))
                    .collect(),
                next_sequence: 0,
                account: Account::new(task.weight, task.work),
                memory: HashMap::new(),
                lost: HashMap::new(),
                finished: false,
                waits: false,
                converged: false,
                proven: None,
                postponed_proofs: Vec::new(),
            })
            .collect();
        Self {
            order,
            window,
            tasks,
            flights: VecDeque::new(),
            next_ticket: 0,
            asked: 0,
            allowance: window.compiling,
            told: 0,
            launched: 0,
            turn_of: None,
            limit: limit.unwrap_or(u64::MAX),
            free_in_a_row: 0,
            stopped: false,
            objectives: None,
            early: false,
            proves: false,
            postpones_proofs: false,
            allocation: Allocation::default(),
            cost_unit: CostUnit::default(),
            charges: false,
            share: None,
            parks: false,
            excess_stops: 0,
        }
    }

    /// Loads the stored results of an interrupted run's task. With a fixed order the search repeats
    /// the same steps, and stored results are used when it requests them: the resumed run ends as
    /// the uninterrupted one would have. Otherwise the search observes all of them, and they count;
    /// the results are returned for counting.
    pub(super) fn resume(&mut self, task: usize, stored: StoredTask) -> Vec<TrialRecord> {
        let state = &mut self.tasks[task];
        for trial in stored.never_came_back {
            // A launch that crashed the run once would do so again: its timeout is reported without a new
            // launch.
            if let Ok(config) = state.space.config_from_values(&trial.config) {
                state.lost.insert(config, trial);
            }
        }
        let mut known = Vec::new();
        for trial in stored.trials {
            state.next_sequence = state.next_sequence.max(trial.sequence + 1);
            let Ok(config) = state.space.config_from_values(&trial.config) else {
                continue;
            };
            // With a fixed order the search must repeat its own steps, so results wait until they
            // are requested. Otherwise their order carries no meaning.
            if self.order == Order::Fixed {
                state.memory.insert(config, trial);
            } else {
                let seen = observation(&trial, self.objectives);
                state.take_best(BestTime::from_trial(&trial));
                state.strategy.observe(&config, seen);
                state.account.asked += 1;
                let best = state.best().map(BestTime::us);
                state.account.add(None, best);
                (self.asked, self.told) = (self.asked + 1, self.told + 1);
                self.launched += 1;
                known.push(trial);
            }
        }
        known
            .iter()
            .for_each(|trial| self.count(needed_no_compile(trial)));
        known
    }

    /// Returns the next candidate to start; `None` while the window is full or no request remains.
    pub(super) fn ask(&mut self) -> Option<&mut Flight<W>> {
        // With a fixed order a few more than will be judged, so that there is a choice for the last
        // ones too.
        let spare = match self.order {
            Order::Fixed => self.window.latency(),
            Order::Arrival => u64::MAX,
        };
        let done = self.stopped || self.launched >= self.limit;
        if done || self.allowance == 0 || self.asked >= self.limit.saturating_add(spare) {
            return None;
        }
        let full = match self.order {
            Order::Fixed => self.active() >= self.window.most,
            Order::Arrival => self.preparing() >= self.window.compiling || !self.make_room(),
        };
        if full {
            return None;
        }
        loop {
            let next = self.next_task();
            if self.others_come_first(next) {
                return None;
            }
            if self.resume_parked(next) {
                self.allowance -= 1;
                return match self.take_stopped() {
                    Some(ticket) => self.flight(ticket),
                    None => self.ask(),
                };
            }
            let task = next?;
            let resumed = self.is_last(task);
            let state = &mut self.tasks[task];
            let Some(proposal) = state.strategy.ask() else {
                state.finished = state.strategy.exhausted();
                state.waits = !state.finished;
                continue;
            };
            state.account.asked += 1;
            let origin = state.origins.get(&proposal.config).copied();
            // A stored result passes through flight and turn like a new one, so that the window and
            // the search see the same sequence as in the first run.
            let progress = if let Some(trial) = state.memory.remove(&proposal.config) {
                State::Judged(Finished::Stored(Box::new(trial)))
            } else if let Some(trial) = state.lost.remove(&proposal.config) {
                State::Judged(Finished::New(Box::new(judged(trial))))
            } else {
                State::Preparing
            };
            self.asked += 1;
            self.allowance -= 1;
            self.next_ticket += 1;
            let earliest_turn = self.window.earliest_turn(self.told, self.active());
            self.flights.push_back(Flight {
                earliest_turn,
                had_turn: false,
                resumed,
                ticket: self.next_ticket,
                task,
                proposal: proposal.id,
                config: proposal.config,
                origin: origin.unwrap_or(proposal.origin),
                state: progress,
                facts: None,
                spent: None,
            });
            return self.flights.back_mut();
        }
    }

    fn preparing(&self) -> usize {
        let preparing = |flight: &&Flight<W>| matches!(flight.state, State::Preparing);
        self.flights.iter().filter(preparing).count()
    }

    /// Reports whether one more candidate fits, after the search dropped a compiled one if
    /// necessary.
    fn make_room(&mut self) -> bool {
        if self.active() < self.window.most {
            return true;
        }
        let Some(task) = self.next_task() else {
            return false;
        };
        let (tickets, ready) =
            self.ready(task, |flight| matches!(flight.state, State::Prepared(..)));
        let given_up = self.tasks[task].strategy.withdraw(&ready);
        let Some(ticket) = given_up.and_then(|place| tickets.get(place)) else {
            return false;
        };
        self.flights.retain(|flight| flight.ticket != *ticket);
        true
    }

    /// Returns candidates of a task, as reported to the search.
    fn ready(&self, task: usize, may: impl Fn(&Flight<W>) -> bool) -> (Vec<Ticket>, Vec<Ready>) {
        self.flights
            .iter()
            .filter(|flight| flight.task == task && may(flight))
            .map(|flight| {
                let (id, facts) = (flight.proposal, self.facts(flight));
                (flight.ticket, Ready { id, facts })
            })
            .unzip()
    }

    /// Returns the candidate of a ticket, unless it was dropped.
    pub(super) fn flight(&mut self, ticket: Ticket) -> Option<&mut Flight<W>> {
        self.flights
            .iter_mut()
            .find(|flight| flight.ticket == ticket)
    }

    /// Returns the record stored before a launch that may never return.
    pub(super) fn announcement(
        &self,
        ticket: Ticket,
        candidate: ContentHash,
    ) -> Option<TrialRecord<Measured>> {
        let flight = self.flights.iter().find(|flight| flight.ticket == ticket)?;
        let state = &self.tasks[flight.task];
        // If the launch crashes the machine, only this record remains.
        let unknown = Judged::without_device(candidate, Judgement::new(Verdict::Timeout, ""));
        let values = state.space.values(&flight.config);
        Some(record(unknown, state.next_sequence, values, flight.origin))
    }

    /// Returns the number of candidates on the device.
    pub(super) fn on_device(&self) -> usize {
        self.flights
            .iter()
            .filter(|flight| matches!(flight.state, State::OnDevice))
            .count()
    }

    /// Reports to the search, and builds the stored record.
    pub(super) fn tell(&mut self, flight: Flight<W>, finished: Finished) -> ReportedResult {
        let charged_us = match &finished {
            Finished::New(judged) => judged.charged_us,
            Finished::Stored(trial) => trial.charged_us,
            Finished::Known(known) => known.trial().charged_us,
        };
        let charged = self.charges.then_some(charged_us as f64 * 1e-6);
        self.count(finished.needed_no_compile());
        let seconds = charged.or(flight.spent);
        let task = flight.task;
        let (postpones, both) = (self.postpones(), self.objectives);
        let state = &mut self.tasks[task];
        let told = match finished {
            Finished::Stored(trial) => {
                let postponed = self.proves && state.awaits_proof(&trial);
                state.observe(&flight, &trial, both, postponed);
                ReportedResult::Stored(trial)
            }
            Finished::New(judged) => {
                let postponed = postpones && state.needs_proof(&judged);
                let judged = if postponed {
                    judged.out_of_budget()
                } else {
                    *judged
                };
                let (sequence, config) = state.number_trial(&flight);
                let trial = record(judged.unproven(), sequence, config, flight.origin);
                state.observe(&flight, &trial, both, postponed);
                ReportedResult::New(Box::new(trial))
            }
            Finished::Known(known) => {
                let (sequence, config) = state.number_trial(&flight);
                let known = known.placed(sequence, config, flight.origin);
                state.observe(&flight, known.trial(), both, false);
                ReportedResult::Known(Box::new(known))
            }
        };
        self.settle(task, seconds);
        self.told += 1;
        // The next turn is chosen after this result.
        self.turn_of = None;
        self.allowance = (self.allowance + self.window.per_result).min(self.window.compiling);
        told
    }

    /// Returns the number of reported results.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Updates the knowledge of a task's search.
    pub(super) fn know(&mut self, task: usize, knowledge: &Knowledge) {
        self.tasks[task].strategy.know(knowledge);
    }

    /// Returns the value of each source of each task's knowledge.
    pub(super) fn source_correlations(&self) -> Vec<Vec<f64>> {
        self.tasks
            .iter()
            .map(|task| task.strategy.source_correlations())
            .collect()
    }

    /// Returns the remaining gain of further trials of a task, as a share of its best time.
    pub(super) fn remaining_gain(&self, task: usize) -> Option<f64> {
        self.tasks[task].strategy.remaining_gain()
    }

    /// Stops requests for tasks whose remaining gain is at most this share. Reports whether all
    /// tasks have converged.
    pub(super) fn converge(&mut self, share: f64) -> bool {
        for task in &mut self.tasks {
            task.converged |= task
                .strategy
                .remaining_gain()
                .is_some_and(|left| left <= share);
        }
        self.tasks
            .iter()
            .all(|task| task.converged || task.finished)
            && self.tasks.iter().any(|task| task.converged)
    }

    /// Changes the window of candidates in flight.
    pub(super) fn resize(&mut self, window: Window) {
        if window != self.window {
            // New compilers get work immediately; after a loss the surplus drains through reports.
            self.allowance += window.compiling.saturating_sub(self.window.compiling);
            self.window = window;
        }
    }

    /// Records that a candidate is prepared.
    pub(super) fn prepared(
        &mut self,
        ticket: Ticket,
        state: State<W>,
        facts: Option<CompileStats>,
    ) {
        if let Some(flight) = self.flight(ticket) {
            (flight.state, flight.facts) = (state, facts);
        }
    }
}
