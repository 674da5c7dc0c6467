//! The end of a schedule.

use super::{Finished, Schedule, State};
use crate::evaluator::Order;

impl<W> Schedule<W> {
    /// Stops: candidates that are neither judged nor on the device are dropped, and with a fixed
    /// order those whose turn had not come. With `outlives`, those on the device are dropped too:
    /// their results can be fetched later. A candidate in a whole run is reported without its
    /// proof, unless the run continues later.
    pub(in super::super) fn stop(&mut self, outlives: bool, goes_on: bool) {
        self.stopped = true;
        let (fixed, turn_of) = (self.order == Order::Fixed, self.turn_of);
        for flight in &mut self.flights {
            match std::mem::replace(&mut flight.state, State::Preparing) {
                State::ProvingWhole(judged) if !goes_on => {
                    // The candidate passed and has a time; only its proof is missing, which the
                    // record states.
                    let unproven = Box::new(judged.out_of_budget());
                    flight.state = State::Judged(Finished::New(unproven));
                }
                other => flight.state = other,
            }
        }
        self.flights.retain(|flight| {
            let judged = matches!(flight.state, State::Judged(_));
            let in_work = matches!(flight.state, State::OnDevice | State::Proving);
            let done = judged || (!outlives && in_work);
            // A resumed run with a fixed order repeats the sequence of reports: one without a turn
            // must not be stored out of order.
            done && (!fixed || turn_of == Some(flight.ticket))
        });
    }

    /// Drops every candidate in flight.
    pub(in super::super) fn abandon(&mut self) {
        self.stop(true, false);
        self.flights.clear();
    }

    /// Reports whether nothing is in flight.
    pub(in super::super) fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }

    /// Reports whether the limit of judged configurations is reached.
    pub(in super::super) fn reached_limit(&self) -> bool {
        self.told >= self.limit
    }
}
