//! The schedule of a run, by its plan and device.

use super::Plan;
use crate::evaluator::{Clock, Evaluator, Order};
use crate::schedule::{CostUnit, Schedule};
use crate::window::Window;
use crate::{DEVICE_QUEUE, WINDOW};
use tuner_search as evolve;
use tuner_search::UnknownStrategy;
use tuner_space::Config;

/// Creates the schedule of a plan.
pub(super) fn schedule<E: Evaluator>(
    evaluator: &E,
    plan: &Plan,
) -> Result<Schedule<E::Work>, UnknownStrategy> {
    let strategies = plan
        .tasks
        .iter()
        .map(|task| {
            let points: Vec<Config> = task
                .start
                .iter()
                .map(|point| point.config.clone())
                .collect();
            let (space, known, start) = (&task.space, &task.knowledge, &plan.start);
            evolve::with_knowledge(&start.strategy, space, start.seed, &points, known)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let order = evaluator.order();
    let window = window(evaluator, plan.jobs);
    let mut schedule = Schedule::new(order, window, plan.limits.evals, &plan.tasks, strategies);
    schedule.objectives = plan.objectives;
    schedule.early = evaluator.judges_early();
    schedule.proves = evaluator.proof_limit().is_some();
    // Without a budget every proof is made, so that none needs to wait.
    schedule.postpones_proofs = schedule.proves && plan.share().is_some();
    schedule.charges = evaluator.clock() == Clock::Charged;
    // Where the number of trials limits a run of fixed order, the time of steps must change nothing.
    schedule.cost_unit = match (order, plan.limits.evals) {
        (Order::Fixed, Some(_)) if !schedule.charges => CostUnit::Trials,
        _ => CostUnit::Seconds,
    };
    schedule.share = plan.share();
    // Such a run depends on time anyway.
    let by_time = evaluator.clock() == Clock::Wall && plan.limits.evals.is_none();
    schedule.parks = by_time && schedule.share.is_some();
    Ok(schedule)
}

/// Returns the window for the evaluator's current capacity.
pub(super) fn window<E: Evaluator>(evaluator: &E, jobs: usize) -> Window {
    match evaluator.order() {
        Order::Fixed => Window::one_per_result(WINDOW),
        Order::Arrival => {
            Window::pool(evaluator.jobs(jobs) + DEVICE_QUEUE + evaluator.devices() - 1)
        }
    }
}
