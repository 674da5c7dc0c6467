//! Turns: the next candidate for the device, for proof, and for reporting to the search.

use super::{Finished, Flight, Schedule, State};
use crate::evaluator::Order;
use crate::lanes::{Job, Proof, Ticket};
use crate::record::stats;
use tuner_core::objective::Objective;
use tuner_search::CompileStats;

/// Most free results in a row; further ones use up the limit.
const MOST_FREE_IN_A_ROW: u64 = 1000;

impl<W> Schedule<W> {
    /// Returns the prepared candidate that is next on the device.
    pub(in super::super) fn next_for_device(&mut self) -> Option<&mut Flight<W>> {
        let ticket = match self.order {
            Order::Fixed => self.fixed_or_early()?,
            Order::Arrival => self.choose(|flight| matches!(flight.state, State::Prepared(..)))?,
        };
        self.flight(ticket)
            .filter(|flight| matches!(flight.state, State::Prepared(..)))
    }

    /// With a fixed order, returns the candidate whose turn it is, or else the oldest prepared one
    /// if early judging is allowed.
    fn fixed_or_early(&mut self) -> Option<Ticket> {
        let turn = self.fixed_turn();
        let prepared = |flight: &&Flight<W>| {
            matches!(flight.state, State::Prepared(..)) && !self.is_parked(flight)
        };
        let mut ready = self.flights.iter().filter(prepared).map(|f| f.ticket);
        let waits = |f: &&Flight<W>| matches!(f.state, State::Preparing | State::Prepared(..));
        let judged = self.flights.len() - self.flights.iter().filter(waits).count();
        // At the limit the rest may never get a turn: judging it early would be wasted work.
        let enough = self.told + judged as u64 >= self.limit;
        if !self.early || enough || ready.clone().any(|ticket| Some(ticket) == turn) {
            return turn;
        }
        ready.next()
    }

    /// With a fixed order, returns the candidate whose turn it is: chosen among the due candidates once all
    /// of these are prepared. It depends only on the number of results, so thread timing has no effect.
    fn fixed_turn(&mut self) -> Option<Ticket> {
        if self.turn_of.is_none() {
            // If no flight is due yet, the earliest one counts as due: only its result could
            // advance the count.
            let first = self
                .flights
                .iter()
                .filter(|flight| !self.is_parked(flight))
                .map(|flight| flight.earliest_turn)
                .min()?;
            let earliest_turn = first.max(self.told);
            let due = |flight: &Flight<W>| flight.earliest_turn <= earliest_turn;
            let chosen = |flight: &Flight<W>| self.tasks[flight.task].strategy.chooses();
            // Waiting until all due candidates are prepared makes the choice a function of the
            // number of results. A strategy that never chooses takes the first one and need not
            // wait.
            let counts = |flight: &Flight<W>| due(flight) && !self.is_parked(flight);
            let mut awaited = self.flights.iter().filter(|f| counts(f) && chosen(f));
            if awaited.any(|flight| matches!(flight.state, State::Preparing)) {
                return None;
            }
            self.turn_of = self.choose(|flight| due(flight));
        }
        self.turn_of
    }

    /// Returns the search's choice among the candidates of one task that may be next. The chosen one
    /// has had its turn from then on.
    fn choose(&mut self, may: impl Fn(&Flight<W>) -> bool) -> Option<Ticket> {
        if self.stopped || self.launched >= self.limit {
            return None;
        }
        let may = |flight: &Flight<W>| may(flight) && !self.is_parked(flight);
        // The task of the oldest: turns follow the allocation of the proposals to tasks.
        let task = self.flights.iter().find(|flight| may(flight))?.task;
        let (tickets, ready) = self.ready(task, may);
        let place = self.tasks[task].strategy.choose(&ready);
        self.launched += 1;
        let ticket = tickets.get(place).or(tickets.first()).copied()?;
        if let Some(flight) = self.flight(ticket) {
            flight.had_turn = true;
        }
        Some(ticket)
    }

    /// Returns a candidate that may win and has deferred checks, or that is about to be the best
    /// and was not run whole: it is reported after these checks. With a fixed order it is
    /// the one whose turn it is, so that it is compared with the same best on every machine. A
    /// postponed proof of its task comes before it.
    pub(in super::super) fn next_to_prove(&mut self) -> Option<Proof> {
        // Whether a candidate may win depends on the best so far. Only the one whose turn it is
        // sees the same best on every machine.
        let turn = match self.order {
            Order::Fixed => Some(self.fixed_turn()?),
            Order::Arrival => None,
        };
        let judged = |flight: &&Flight<W>| {
            turn.is_none_or(|ticket| flight.ticket == ticket)
                && matches!(flight.state, State::Judged(_))
                && self.is_held(flight.task)
        };
        if let Some(task) = self.flights.iter().find(judged).map(|flight| flight.task) {
            return self.postponed_proof(task);
        }
        let proves = self.proves && !self.stopped && !self.postpones();
        let tasks = &self.tasks;
        // With a second objective a slow one may be on the front.
        let all = self.objectives.is_some();
        let place = self.flights.iter().position(|flight| {
            let task = &tasks[flight.task];
            turn.is_none_or(|ticket| flight.ticket == ticket)
                && matches!(&flight.state, State::Judged(Finished::New(judged))
                    if judged.put_off && (all || task.may_win(judged))
                        || proves && task.needs_proof(judged))
        })?;
        let limit = self.time_limit(self.flights.get(place)?.ticket);
        let flight = self.flights.get_mut(place)?;
        match std::mem::replace(&mut flight.state, State::Proving) {
            State::Judged(Finished::New(judged)) => {
                // Deferred checks come first: a whole run is expensive, and they may refute the
                // candidate.
                let whole = !judged.put_off;
                if whole {
                    flight.state = State::ProvingWhole(judged.clone());
                }
                Some(Proof {
                    job: Job {
                        limit,
                        ..flight.job()
                    },
                    judged,
                    whole,
                })
            }
            other => {
                flight.state = other;
                None
            }
        }
    }

    /// Returns a candidate of an earlier run that is judged again instead of reused, from then on in
    /// preparation. With a fixed order it is the one whose turn it is, as for proofs.
    pub(in super::super) fn next_to_rejudge(&mut self) -> Option<Job> {
        let turn = match self.order {
            Order::Fixed => Some(self.fixed_turn()?),
            Order::Arrival => None,
        };
        // Times of a real GPU depend on its state, so those that matter are measured again.
        let remeasures = self.order == Order::Arrival;
        let proves = self.proves;
        let tasks = &self.tasks;
        let stopped = self.stopped;
        let flight = self.flights.iter_mut().find(|flight| {
            !stopped
                && turn.is_none_or(|ticket| flight.ticket == ticket)
                && matches!(&flight.state, State::Judged(Finished::Known(known))
                    if tasks[flight.task].must_rejudge(known.trial(), remeasures, proves))
        })?;
        flight.state = State::Preparing;
        // It has had its turn, which lasts until it is judged.
        flight.resumed = true;
        Some(flight.job())
    }

    /// Takes the next result to report: with a fixed order that of the candidate whose turn it is,
    /// once judged. Otherwise, and after a stop, any.
    pub(in super::super) fn next_judged(&mut self) -> Option<(Flight<W>, Finished)> {
        // Reports in the order of turns make the search deterministic. After a stop nothing
        // follows, so the order is irrelevant.
        let turn = match self.order {
            Order::Fixed if !self.stopped => Some(self.fixed_turn()?),
            _ => None,
        };
        // One that did not reach the device, such as one that does not compile, has its turn now. At
        // the limit it must not keep those behind it that had theirs.
        let turns_left = self.order == Order::Fixed || self.launched < self.limit;
        let place = self.flights.iter().position(|flight| {
            turn.is_none_or(|ticket| flight.ticket == ticket)
                && matches!(flight.state, State::Judged(_))
                && !self.is_held(flight.task)
                && (flight.had_turn || turns_left)
        })?;
        if self.order == Order::Arrival && !self.flights[place].had_turn {
            self.launched += 1;
        }
        let mut flight = self.flights.remove(place)?;
        match std::mem::replace(&mut flight.state, State::Preparing) {
            State::Judged(finished) => Some((flight, finished)),
            _ => None,
        }
    }

    /// Counts a result towards the limit, unless its launch was refused before a compile: such a
    /// result is free, and one more may follow. A recorded one counts, whatever its reason.
    pub(super) fn count(&mut self, needed_no_compile: bool) {
        let free = needed_no_compile && !self.charges;
        self.free_in_a_row = if free { self.free_in_a_row + 1 } else { 0 };
        // A space whose every launch is refused must not be searched for ever.
        if free && self.free_in_a_row <= MOST_FREE_IN_A_ROW {
            self.limit = self.limit.saturating_add(1);
        }
    }

    /// Returns the known facts of a candidate before its turn, whether it is judged or not.
    pub(super) fn facts(&self, flight: &Flight<W>) -> Option<CompileStats> {
        let stored = match &flight.state {
            State::Judged(Finished::New(judged)) => judged.compilation.as_ref(),
            State::Judged(Finished::Stored(trial)) => trial.compilation.as_ref(),
            State::Judged(Finished::Known(known)) => known.trial().compilation.as_ref(),
            State::Prepared(..) | State::Preparing | State::OnDevice | State::Stopped => None,
            State::Proving | State::ProvingWhole(_) => None,
        };
        let facts = flight
            .facts
            .or_else(|| stored.map(|known| stats(known, None)))?;
        let registers = f64::from(facts.registers);
        let counts = self
            .objectives
            .is_some_and(|both| both.other == Objective::Registers);
        Some(CompileStats {
            other: counts.then_some(registers),
            ..facts
        })
    }
}
