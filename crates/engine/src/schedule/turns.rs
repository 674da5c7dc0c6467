//! Turns: the next candidate for the device, for proof, and for reporting to the search.

use super::{Finished, Flight, Schedule, State};
use crate::evaluator::Order;
use crate::lanes::{Proof, Ticket};

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
        let prepared = |flight: &&Flight<W>| matches!(flight.state, State::Prepared(..));
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

    /// With a fixed order, returns the candidate whose turn it is. It depends only on the number of
    /// results: chosen among the due candidates once all of these are prepared, so that threads
    /// change nothing.
    fn fixed_turn(&mut self) -> Option<Ticket> {
        if self.turn_of.is_none() {
            // If no flight is due yet, the earliest one counts as due: only its result could
            // advance the count.
            let first = self
                .flights
                .iter()
                .map(|flight| flight.earliest_turn)
                .min()?;
            let earliest_turn = first.max(self.told);
            let due = |flight: &Flight<W>| flight.earliest_turn <= earliest_turn;
            let chosen = |flight: &Flight<W>| self.tasks[flight.task].strategy.chooses();
            // Waiting until all due candidates are prepared makes the choice a function of the
            // number of results. A strategy that never chooses takes the first one and need not
            // wait.
            let mut awaited = self.flights.iter().filter(|f| due(f) && chosen(f));
            if awaited.any(|flight| matches!(flight.state, State::Preparing)) {
                return None;
            }
            self.turn_of = self.choose(|flight| due(flight));
        }
        self.turn_of
    }

    /// Returns the search's choice among the candidates that may be next, of the task with the
    /// fewest turns. The chosen one has had its turn from then on.
    fn choose(&mut self, may: impl Fn(&Flight<W>) -> bool) -> Option<Ticket> {
        if self.stopped || self.launched >= self.limit {
            return None;
        }
        let open = self.flights.iter().filter(|flight| may(flight));
        let task = open
            // The fewest turns first, so that tasks share the device evenly; ties by index, for the
            // same order on every machine.
            .map(|flight| (self.tasks[flight.task].launched, flight.task))
            .min()?
            .1;
        let (tickets, ready) = self.ready(task, &may);
        let place = self.tasks[task].strategy.choose(&ready);
        self.count_turn(task);
        let ticket = tickets.get(place).or(tickets.first()).copied()?;
        if let Some(flight) = self.flight(ticket) {
            flight.had_turn = true;
        }
        Some(ticket)
    }

    fn count_turn(&mut self, task: usize) {
        self.tasks[task].launched += 1;
        self.launched += 1;
    }

    /// Returns a candidate that may win and has deferred checks, or that is about to be the best
    /// and was not run whole: it is not reported before these are judged. With a fixed order it is
    /// the one whose turn it is, so that it is compared with the same best on every machine.
    pub(in super::super) fn next_to_prove(&mut self) -> Option<Proof> {
        // Whether a candidate may win depends on the best so far. Only the one whose turn it is
        // sees the same best on every machine.
        let turn = match self.order {
            Order::Fixed => Some(self.fixed_turn()?),
            Order::Arrival => None,
        };
        let tasks = &self.tasks;
        // With a second objective a slow one may be on the front.
        let all = self.objectives.is_some();
        let proves = self.proves && !self.stopped;
        let flight = self.flights.iter_mut().find(|flight| {
            let task = &tasks[flight.task];
            turn.is_none_or(|ticket| flight.ticket == ticket)
                && matches!(&flight.state, State::Judged(Finished::New(judged))
                    if judged.put_off && (all || task.may_win(judged))
                        || proves && task.needs_proof(judged))
        })?;
        match std::mem::replace(&mut flight.state, State::Proving) {
            State::Judged(Finished::New(judged)) => {
                // Deferred checks come first: a whole run is expensive, and they may refute the
                // candidate.
                let whole = !judged.put_off;
                if whole {
                    flight.state = State::ProvingWhole(judged.clone());
                }
                Some(Proof {
                    job: flight.job(),
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

    /// Takes the next result to report: with a fixed order that of the candidate whose turn it is,
    /// once judged. Otherwise, and after a stop, any.
    pub(in super::super) fn next_judged(&mut self) -> Option<(Flight<W>, Finished)> {
        let judged = |flight: &Flight<W>| matches!(flight.state, State::Judged(_));
        // Reports in the order of turns make the search deterministic. After a stop nothing
        // follows, so the order is irrelevant.
        let place = if self.order == Order::Fixed && !self.stopped {
            let ticket = self.fixed_turn()?;
            let its = |flight: &Flight<W>| flight.ticket == ticket && judged(flight);
            self.flights.iter().position(its)
        } else {
            self.flights.iter().position(judged)
        }?;
        // One that did not reach the device, such as one that does not compile, has its turn now.
        if self.order == Order::Arrival && !self.flights[place].had_turn {
            if self.launched >= self.limit {
                return None;
            }
            self.count_turn(self.flights[place].task);
        }
        let mut flight = self.flights.remove(place)?;
        match std::mem::replace(&mut flight.state, State::Preparing) {
            State::Judged(finished) => Some((flight, finished)),
            _ => None,
        }
    }
}
