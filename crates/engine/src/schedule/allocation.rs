//! Allocation of trials to tasks by expected gain per cost.
//!
//! Every task first gets its default and a few more trials, the cheap tasks first. After that the
//! next trial goes to the task with the largest expected gain per cost, weighted by the user. The
//! gain is the decrease of the logarithm of the best time. It is estimated by the search's model and
//! by the gains so far, as in the task scheduler of Ansor (Zheng et al., OSDI 2020, section 6): the
//! model describes the space, and the history shows how accurate the model is.

use super::best::BestTime;
use super::{Schedule, TaskState};

/// Trials of a task before gains are compared: the default and two more.
pub(crate) const FIRST_TRIALS: u64 = 3;
/// Additional gain that a task's history predicts beyond the observed gains, spread over as many further
/// trials as the task had.
const PRIOR_GAIN: f64 = 0.1;
/// Trials over which a task without any passing candidate halves its expected gain.
const HOPELESS_TRIALS: f64 = 10.0;

/// Share of the budget that the missing first trials of a postponed task may take before other tasks
/// continue. Chosen so that saving a few seconds does not leave a task with its default only.
const FIRST_TRIALS_SHARE: f64 = 0.05;

/// Rule for the next task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allocation {
    /// Largest expected gain per cost.
    #[default]
    ExpectedGain,
    /// The same cost for all tasks.
    EqualShares,
    /// The same number of trials for all tasks.
    RoundRobin,
}

/// Unit of the cost of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CostUnit {
    /// One unit per trial: a run limited by trials, on a device of fixed order.
    #[default]
    Trials,
    /// Seconds on the device's clock.
    Seconds,
}

/// Cost and gain of a task so far.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Weight of its gain.
    pub(super) weight: f64,
    /// Estimate of the cost of a trial relative to other tasks, before the first one.
    pub(super) work: f64,
    /// Proposals requested, in flight ones included.
    pub(super) asked: u64,
    /// Cost of the reported trials whose cost is known.
    cost: f64,
    /// Number of these trials.
    costed: u64,
    /// Time of the trials that this run made, in seconds, whatever the unit of the cost.
    seconds: f64,
    /// Number of these trials.
    timed: u64,
    /// Logarithm of the best time after each reported trial; infinite before the first.
    history: Vec<f64>,
    /// A single trial exceeds the task's share of the budget.
    pub(super) postponed: bool,
    /// The user was notified that it is postponed.
    pub(super) announced: bool,
    /// A trial was stopped and none was reported since: its cost is a lower bound.
    stopped: bool,
}

impl Account {
    /// Creates the account of a task without trials.
    pub(super) fn new(weight: f64, work: f64) -> Self {
        Self {
            weight,
            work,
            ..Self::default()
        }
    }

    /// Adds a trial that was stopped after this time. The task is postponed unless its trials take less
    /// on average.
    pub(super) fn add_stopped(&mut self, seconds: Option<f64>, share: Option<f64>) {
        self.cost += seconds.unwrap_or(0.0);
        self.costed += 1;
        self.add_time(seconds);
        self.stopped = true;
        let mean = self.cost_of_trial();
        self.postponed = self.reported() == 0 || mean >= share;
    }

    /// Adds a reported trial. `cost`: `None` if another run has paid it.
    pub(super) fn add(&mut self, cost: Option<f64>, best_us: Option<f64>) {
        if let Some(cost) = cost {
            self.cost += cost;
            self.costed += 1;
            self.stopped = false;
        }
        self.history.push(best_us.map_or(f64::INFINITY, f64::ln));
    }

    /// Adds the time of a trial, unless another run has made it.
    fn add_time(&mut self, seconds: Option<f64>) {
        if let Some(seconds) = seconds {
            self.seconds += seconds;
            self.timed += 1;
        }
    }

    /// Returns the mean time of a trial, seconds; `None` if none is known.
    fn seconds_of_trial(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.seconds / self.timed as f64)
    }

    /// Returns the number of reported trials.
    pub(super) fn reported(&self) -> u64 {
        self.history.len() as u64
    }

    /// Removes the gain of a trial that was found wrong later: no earlier best is faster than this.
    pub(super) fn withdraw(&mut self, best_us: Option<f64>) {
        let log = best_us.map_or(f64::INFINITY, f64::ln);
        for best in &mut self.history {
            *best = best.max(log);
        }
    }

    /// Returns the mean cost of a reported trial; `None` if none is known.
    pub(super) fn cost_of_trial(&self) -> Option<f64> {
        (self.costed > 0).then(|| self.cost / self.costed as f64)
    }

    /// Returns the gain of the next trial by the history: that of its last half and a prior, per
    /// trial.
    fn gain_by_history(&self) -> f64 {
        let trials = self.history.len();
        let after = self.asked as f64 - trials as f64 / 2.0 + 1.0;
        let Some(now) = self.history.last().filter(|now| now.is_finite()) else {
            // No candidate passed: the first success has a large gain, and its probability decays.
            return (-(self.asked as f64) / HOPELESS_TRIALS).exp2();
        };
        let half = self.history.get(trials / 2).copied().unwrap_or(*now);
        // The first pass is the end of a failure, not a gain that can be repeated.
        let first = self.history.iter().find(|log| log.is_finite());
        let before = half.min(first.copied().unwrap_or(*now));
        (before - now + PRIOR_GAIN) / after
    }
}

impl TaskState {
    /// Returns the expected gain of the next trial, weighted, per unit of cost.
    fn gain_rate(&self, unit: CostUnit) -> f64 {
        let account = &self.account;
        let by_history = account.gain_by_history();
        let trials = self.account.history.len().max(1) as f64;
        let by_model = self.strategy.expected_improvement();
        let mut gain = by_model.map_or(by_history, |model| (model * by_history).sqrt());
        if let Some(left) = self.strategy.remaining_gain() {
            // The bound holds for the sum over all further trials.
            gain = gain.min(left / trials);
        }
        let cost = match unit {
            CostUnit::Trials => 1.0,
            // A recording without costs charges zero, and no gain over zero is NaN, which has no
            // rank.
            CostUnit::Seconds => account.cost_of_trial().unwrap_or(1.0).max(1e-9),
        };
        account.weight * gain / cost
    }

    /// Reports whether the task is postponed and its missing first trials take little of the budget,
    /// seconds.
    pub(super) fn is_brief(&self, budget: Option<f64>) -> bool {
        let account = &self.account;
        let missing = FIRST_TRIALS.saturating_sub(account.reported());
        let cost = account.cost_of_trial().map(|cost| cost * missing as f64);
        let short = cost
            .zip(budget)
            .is_some_and(|(cost, budget)| cost <= FIRST_TRIALS_SHARE * budget);
        account.postponed && missing > 0 && short && !account.stopped
    }

    /// Returns the rank of the task for the next trial; the smallest is next. `budget`: seconds.
    pub(super) fn turn_rank(
        &self,
        rule: Allocation,
        unit: CostUnit,
        budget: Option<f64>,
    ) -> TurnRank {
        let account = &self.account;
        let first = account.asked < FIRST_TRIALS;
        let group = match account.postponed {
            _ if rule != Allocation::ExpectedGain => Group::FirstTrials,
            false if first => Group::FirstTrials,
            false => Group::FurtherTrials,
            true if first && self.is_brief(budget) => Group::BriefTrials,
            true => Group::Postponed,
        };
        let (stage, value) = match rule {
            Allocation::RoundRobin => (0, account.asked as f64),
            Allocation::EqualShares => match account.cost_of_trial() {
                None => (0, account.asked as f64),
                Some(cost) => (1, cost * account.asked as f64),
            },
            Allocation::ExpectedGain if first => {
                let cost = account.cost_of_trial();
                (account.asked, cost.unwrap_or(account.work))
            }
            Allocation::ExpectedGain => (FIRST_TRIALS, -self.gain_rate(unit)),
        };
        TurnRank {
            group,
            stage,
            value,
        }
    }
}

/// A task whose trials exceed its share of the budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PostponedTask {
    /// The task.
    pub(crate) task: usize,
    /// Mean cost of its trials, seconds; `None`: the first one was stopped.
    pub(crate) seconds: Option<f64>,
    /// Its share of the budget, seconds.
    pub(crate) share: f64,
}

/// Groups of tasks, in the order in which they get trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Group {
    FirstTrials,
    /// First trials of a postponed task that take little of the budget.
    BriefTrials,
    FurtherTrials,
    Postponed,
}

/// Rank of a task for the next trial, in order of its fields.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct TurnRank {
    group: Group,
    stage: u64,
    value: f64,
}

impl<W> Schedule<W> {
    /// Returns the task for the next proposal; ties by index, for the same order on every machine.
    pub(super) fn next_task(&self) -> Option<usize> {
        let open = self.tasks.iter().enumerate();
        let open = open.filter(|(_, task)| !task.finished && !task.converged && !task.waits);
        let (rule, unit, budget) = (self.allocation, self.cost_unit, self.budget());
        let ranks = open.map(|(at, task)| (task.turn_rank(rule, unit, budget), at));
        ranks
            .reduce(|best, next| if next.0 < best.0 { next } else { best })
            .map(|(_, at)| at)
    }

    /// Returns the budget of all tasks, seconds.
    pub(super) fn budget(&self) -> Option<f64> {
        self.share.map(|share| share * self.tasks.len() as f64)
    }

    /// Adds the cost and the result of a reported trial to its task's account.
    pub(super) fn settle(&mut self, task: usize, seconds: Option<f64>) {
        let active = self.active();
        let state = &mut self.tasks[task];
        let cost = match self.cost_unit {
            CostUnit::Trials => Some(1.0),
            CostUnit::Seconds => seconds,
        };
        let best = state.best().map(BestTime::us);
        state.account.add(cost, best);
        state.account.add_time(seconds);
        let mean = state.account.cost_of_trial();
        let exceeds = mean
            .zip(self.share)
            .is_some_and(|(cost, share)| self.cost_unit == CostUnit::Seconds && cost > share);
        state.account.postponed = exceeds;
        // One that took longer says as little against the limit as one that was stopped.
        if !exceeds {
            self.excess_stops = self.excess_stops.saturating_sub(1);
        }
        self.replace_parked(active);
        self.clear_waits();
    }

    /// Allows tasks that waited for a result to propose again.
    pub(super) fn clear_waits(&mut self) {
        for task in &mut self.tasks {
            task.waits = false;
        }
    }

    /// Returns a task that was postponed since the last call.
    pub(crate) fn take_postponed(&mut self) -> Option<PostponedTask> {
        let share = self.share?;
        let tasks = self.tasks.iter_mut().enumerate();
        let (at, task) = tasks
            .into_iter()
            .find(|(_, task)| task.account.postponed && !task.account.announced)?;
        task.account.announced = true;
        let mean = task.account.cost_of_trial();
        let seconds = mean.filter(|_| !task.account.stopped);
        Some(PostponedTask {
            task: at,
            seconds,
            share,
        })
    }

    /// Returns the mean time of a task's trials, seconds, if it is known.
    pub(crate) fn seconds_of_trial(&self, task: usize) -> Option<f64> {
        self.tasks[task].account.seconds_of_trial()
    }
}
