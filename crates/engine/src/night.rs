//! Distribution of a budget over recorded spaces, in recorded time: the schedule of a run without a
//! database.

use super::WINDOW;
use super::evaluator::Order;
use super::replay::ReplayEvaluator;
use super::schedule::{Allocation, CostUnit, Finished, Schedule, State, Task};
use super::window::Window;
use tuner_core::units::{Micros, Seed};
use tuner_device::replay::Recording;
use tuner_search::{self as search, StrategyName, UnknownStrategy};

/// Result of one task of a night.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NightTask {
    /// Trials.
    pub trials: u64,
    /// Recorded time spent, seconds.
    pub spent_s: f64,
    /// Fastest recorded time, microseconds; `None` if no candidate passed.
    pub best_us: Option<f64>,
}

/// Tunes all recordings, each as a task, within a budget of recorded time.
///
/// # Errors
/// An unknown strategy.
pub fn simulate(
    recordings: &[Recording],
    allocation: Allocation,
    budget_s: f64,
    seed: Seed,
) -> Result<Vec<NightTask>, UnknownStrategy> {
    let tasks: Vec<Task> = recordings.iter().map(ReplayEvaluator::searched).collect();
    let strategies = tasks.iter().map(|task| {
        let strategy = StrategyName::default();
        search::strategy(strategy.name(), &task.space, seed, &[])
    });
    let strategies = strategies.collect::<Result<Vec<_>, _>>()?;
    let window = Window::one_per_result(WINDOW);
    let mut schedule: Schedule<()> = Schedule::new(Order::Fixed, window, None, &tasks, strategies);
    schedule.allocation = allocation;
    schedule.cost_unit = CostUnit::Seconds;
    schedule.charges = true;
    schedule.share = Some(budget_s / tasks.len().max(1) as f64);
    let mut results = vec![NightTask::default(); tasks.len()];
    let mut clock = 0.0;
    loop {
        while let Some(flight) = schedule.ask() {
            let Some(recording) = recordings.get(flight.task) else {
                continue;
            };
            let recorded = recording.lookup(&flight.config);
            let candidate = ReplayEvaluator::identity(recording, &flight.config);
            let judged = ReplayEvaluator::judge(candidate, &recorded, recording.timing);
            flight.state = State::Judged(Finished::New(Box::new(judged)));
        }
        let Some((flight, finished)) = schedule.next_judged() else {
            return Ok(results);
        };
        if let (Some(result), Finished::New(judged)) = (results.get_mut(flight.task), &finished) {
            let seconds = judged.charged_us as f64 * 1e-6;
            clock += seconds;
            // As in a run on a charged clock, a trial that exceeds the budget does not count.
            if clock > budget_s {
                return Ok(results);
            }
            result.trials += 1;
            result.spent_s += seconds;
            let time = judged.predicted().map(Micros::get);
            result.best_us = result.best_us.into_iter().chain(time).reduce(f64::min);
        }
        schedule.tell(flight, finished);
    }
}
