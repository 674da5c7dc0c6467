//! Simulation of a fleet of many GPUs on a virtual clock: recorded compile and run times, and the
//! engine's rules for candidates in flight. Measures the speed-up of the search with more GPUs.

use crate::evaluator::Order;
use crate::lanes::Ticket;
use crate::schedule::{Finished, Schedule, State};
use crate::window::Window;
use crate::{DEVICE_QUEUE, ReplayEvaluator};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use tuner_core::units::Micros;
use tuner_device::replay::Recording;
use tuner_search::{Strategy, UnknownStrategy};

/// Share of the optimum that counts as found.
pub const FOUND_SHARE: f64 = 0.95;

/// Compilers for each GPU: enough to keep it busy.
pub const COMPILERS_PER_GPU: usize = 4;

/// Evaluations after which a search has failed.
const EVALS_MAX: u64 = 5000;

/// Time of a fleet to reach [`FOUND_SHARE`] of a recording's optimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Time on the virtual clock, microseconds; `None` if it was not found.
    pub found_us: Option<u64>,
    /// Candidates judged until then.
    pub evals: u64,
    /// Share of time that the GPUs were busy.
    pub utilisation: f64,
}

/// A completed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Compile(Ticket),
    Judge(Ticket),
}

/// The machines, and the clock.
#[derive(Default)]
struct Machines {
    now_us: u64,
    events: BinaryHeap<Reverse<(u64, u64, Done)>>,
    serial: u64,
    compilers: usize,
    gpus: usize,
    to_compile: VecDeque<Ticket>,
    to_judge: VecDeque<Ticket>,
    busy_us: u64,
    /// Recorded compile and benchmark time of candidates in flight.
    costs: HashMap<Ticket, (u64, u64)>,
}

impl Machines {
    fn new(gpus: usize) -> Self {
        Self {
            compilers: gpus * COMPILERS_PER_GPU,
            gpus,
            ..Self::default()
        }
    }

    /// Returns the result of a search that ends now.
    fn ended(&self, gpus: usize, found_us: Option<u64>, evals: u64) -> Search {
        let whole = self.now_us.max(1) as f64 * gpus as f64;
        Search {
            found_us,
            evals,
            utilisation: (self.busy_us as f64 / whole).min(1.0),
        }
    }

    fn schedule(&mut self, after_us: u64, done: Done) {
        // Simultaneous events are processed in the order of scheduling, so that a simulation is
        // reproducible.
        self.serial += 1;
        let event = (self.now_us.saturating_add(after_us), self.serial, done);
        self.events.push(Reverse(event));
    }

    /// Assigns work to idle machines.
    fn start(&mut self) {
        while self.compilers > 0
            && let Some(ticket) = self.to_compile.pop_front()
        {
            self.compilers -= 1;
            let (compile_us, _) = self.costs.get(&ticket).copied().unwrap_or_default();
            self.schedule(compile_us, Done::Compile(ticket));
        }
        while self.gpus > 0
            && let Some(ticket) = self.to_judge.pop_front()
        {
            self.gpus -= 1;
            let (_, judge_us) = self.costs.get(&ticket).copied().unwrap_or_default();
            self.busy_us += judge_us;
            self.schedule(judge_us, Done::Judge(ticket));
        }
    }

    /// Returns the next completed step.
    fn next(&mut self) -> Option<Done> {
        let Reverse((at, _, done)) = self.events.pop()?;
        self.now_us = at;
        match done {
            Done::Compile(_) => self.compilers += 1,
            Done::Judge(_) => self.gpus += 1,
        }
        Some(done)
    }
}

/// Simulates one search with `gpus` GPUs.
///
/// # Errors
/// An unknown strategy.
pub fn simulate(
    recording: &Recording,
    strategy: &str,
    seed: u64,
    gpus: usize,
) -> Result<Search, UnknownStrategy> {
    let seed = tuner_core::units::Seed(seed);
    let search = tuner_search::strategy(strategy, &recording.space, seed, &[])?;
    Ok(run(recording, search, gpus.max(1)))
}

fn run(recording: &Recording, search: Box<dyn Strategy>, gpus: usize) -> Search {
    let task = ReplayEvaluator::searched(recording);
    let mut machines = Machines::new(gpus);
    // The window that `pipeline::window` returns for a fleet: the simulation must search like a run.
    let window = Window::pool(machines.compilers + DEVICE_QUEUE + gpus - 1);
    let limit = Some(EVALS_MAX);
    let mut schedule: Schedule<()> =
        Schedule::new(Order::Arrival, window, limit, &[task], vec![search]);
    let goal = recording.optimum().map(|best| best.get() / FOUND_SHARE);
    let mut evals = 0;
    loop {
        while let Some(flight) = schedule.ask() {
            let recorded = recording.lookup(&flight.config);
            let cost = (recorded.compile_us, recorded.benchmark_us);
            machines.costs.insert(flight.ticket, cost);
            machines.to_compile.push_back(flight.ticket);
        }
        while schedule.on_device() < gpus - 1 + DEVICE_QUEUE {
            let Some(flight) = schedule.next_for_device() else {
                break;
            };
            flight.state = State::OnDevice;
            machines.to_judge.push_back(flight.ticket);
        }
        machines.start();
        let Some(done) = machines.next() else {
            return machines.ended(gpus, None, evals);
        };
        match done {
            Done::Compile(ticket) => {
                if let Some(flight) = schedule.flight(ticket) {
                    let candidate = ReplayEvaluator::identity(recording, &flight.config);
                    schedule.prepared(ticket, State::Prepared(candidate, ()), None);
                }
            }
            Done::Judge(ticket) => {
                machines.costs.remove(&ticket);
                let Some(flight) = schedule.flight(ticket) else {
                    continue;
                };
                let recorded = recording.lookup(&flight.config);
                let found = recorded.time().map(Micros::get);
                let candidate = ReplayEvaluator::identity(recording, &flight.config);
                let judged = ReplayEvaluator::judge(candidate, &recorded, recording.timing);
                flight.state = State::Judged(Finished::New(Box::new(judged)));
                while let Some((flight, finished)) = schedule.next_judged() {
                    schedule.tell(flight, finished);
                    evals += 1;
                }
                if found.zip(goal).is_some_and(|(time, goal)| time <= goal) {
                    return machines.ended(gpus, Some(machines.now_us), evals);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
