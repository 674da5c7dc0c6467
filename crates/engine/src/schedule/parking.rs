//! Parked candidates: those of postponed tasks, and those whose judgement was stopped.
//!
//! In a run of several tasks with a budget, a trial that takes longer than its task's share is stopped.
//! It begins anew after the candidates of the other tasks, without a limit. The other candidates of a
//! postponed task wait as long, so that they take no place in the window.

use super::{Flight, Schedule, State};
use crate::lanes::Ticket;
use std::time::Duration;

/// Part of a budget that a trial may take if the share of its task is smaller. Chosen so that a short
/// budget over many tasks has results of some.
const LEAST_SHARE: f64 = 0.1;
/// Maximum time by that rule, seconds.
const LEAST_SECONDS: f64 = 10.0;

/// Stopped trials, beyond those reported within their share, after which the limit doubles: where most trials
/// are stopped, on a busy machine, a run would end without results.
const STOPS_PER_DOUBLING: u32 = 3;

impl<W> Schedule<W> {
    /// Reports whether a candidate waits until those of other tasks are done.
    pub(super) fn is_parked(&self, flight: &Flight<W>) -> bool {
        if !self.parks || flight.resumed {
            return false;
        }
        match flight.state {
            State::Stopped => true,
            State::Preparing | State::Prepared(..) => self.is_last(flight.task),
            State::OnDevice | State::Proving | State::ProvingWhole(_) | State::Judged(_) => false,
        }
    }

    /// Reports whether a task is postponed behind all others.
    pub(super) fn is_last(&self, task: usize) -> bool {
        let state = &self.tasks[task];
        state.account.postponed && !state.is_brief(self.budget())
    }

    /// Returns the number of candidates that are not parked.
    pub(super) fn active(&self) -> usize {
        let flights = self.flights.iter();
        flights.filter(|flight| !self.is_parked(flight)).count()
    }

    /// Lets the search request a candidate for each one that was parked since there were `before`
    /// active ones.
    pub(super) fn replace_parked(&mut self, before: usize) {
        let parked = before.saturating_sub(self.active());
        self.allowance = (self.allowance + parked).min(self.window.compiling);
    }

    /// Reports whether active candidates come before further ones of `next`, the task for the next
    /// proposal.
    pub(super) fn others_come_first(&self, next: Option<usize>) -> bool {
        let comes_first = |flight: &Flight<W>| {
            let is_first =
                Some(flight.task) == next && self.tasks[flight.task].account.reported() == 0;
            // The results of a task are compared with its first one, the default.
            (is_first || !self.is_last(flight.task)) && !self.is_parked(flight)
        };
        self.parks
            && next.is_none_or(|task| self.is_last(task))
            && self.flights.iter().any(comes_first)
    }

    /// Continues with a parked candidate if no others come first; `next` is the task for the next
    /// proposal. Reports whether there is one.
    pub(super) fn resume_parked(&mut self, next: Option<usize>) -> bool {
        if next.is_some_and(|task| !self.is_last(task)) {
            return false;
        }
        let place = self.flights.iter().position(|flight| {
            next.is_none_or(|task| flight.task == task) && self.is_parked(flight)
        });
        let flight = place.and_then(|place| self.flights.get_mut(place));
        flight.map(|flight| flight.resumed = true).is_some()
    }

    /// Returns a stopped candidate that continues, from then on in preparation.
    pub(super) fn take_stopped(&mut self) -> Option<Ticket> {
        let mut flights = self.flights.iter_mut();
        let flight =
            flights.find(|flight| flight.resumed && matches!(flight.state, State::Stopped))?;
        flight.state = State::Preparing;
        Some(flight.ticket)
    }

    /// Returns the time that the judgement of a candidate may take; `None`: any.
    pub(in super::super) fn time_limit(&self, ticket: Ticket) -> Option<Duration> {
        let flight = self.flights.iter().find(|flight| flight.ticket == ticket)?;
        let (share, budget) = self.share.zip(self.budget())?;
        if !self.parks || flight.resumed || self.tasks[flight.task].account.postponed {
            return None;
        }
        let doublings = f64::from(self.excess_stops / STOPS_PER_DOUBLING);
        let limit = share.max((LEAST_SHARE * budget).min(LEAST_SECONDS)) * doublings.exp2();
        let left = (limit - flight.spent.unwrap_or(0.0)).max(0.0);
        Duration::try_from_secs_f64(left).ok()
    }

    /// Parks a candidate whose judgement was stopped at its limit.
    pub(in super::super) fn park_stopped(&mut self, ticket: Ticket) {
        let before = self.active();
        if self.stopped {
            // Nothing is begun anew.
            self.flights.retain(|flight| flight.ticket != ticket);
            return;
        }
        let Some(flight) = self.flight(ticket) else {
            return;
        };
        flight.state = State::Stopped;
        let (task, seconds) = (flight.task, flight.spent.take());
        self.excess_stops += 1;
        let share = self.share;
        self.tasks[task].account.add_stopped(seconds, share);
        // The turn of a parked candidate would never end.
        self.turn_of = None;
        self.replace_parked(before);
    }
}
