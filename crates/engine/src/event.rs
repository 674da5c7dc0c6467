//! What happens in a run, as it happens: the progress display, `--events` and tests read these.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tuner_core::record::{
    Compared, ConfigValues, DeviceKind, TimingKind, Verdict, config_as_object,
};
use tuner_core::units::Seed;

/// Something that happened. As JSON, one object with its kind in `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run has its row in the database.
    RunStarted {
        /// The run.
        run_id: String,
        /// Device name.
        device: String,
        /// Kind of device.
        device_kind: DeviceKind,
        /// The search strategy.
        strategy: String,
        /// The seed.
        seed: Seed,
        /// What is tuned.
        tasks: Vec<TaskFacts>,
        /// Limit on judged configurations.
        evals: Option<u64>,
        /// Limit on time, seconds on the device's clock.
        budget_s: Option<f64>,
        /// Results that an interrupted run had stored before.
        resumed: u64,
    },
    /// A candidate was judged and its result is committed to the database.
    Trial(TrialEvent),
    /// Something that the user should know.
    Note {
        /// A line.
        text: String,
    },
    /// The run is over; everything announced is stored.
    RunFinished {
        /// The run.
        run_id: String,
        /// Why it is over.
        reason: StopReason,
        /// Configurations judged.
        evals: u64,
        /// How many got which verdict, over all tasks.
        verdicts: BTreeMap<Verdict, u64>,
    },
}

/// A kernel and problem of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFacts {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Number of valid configurations, decimal (may exceed 2^53).
    pub valid: String,
}

/// A judged and stored candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialEvent {
    /// Which of the run's tasks.
    #[serde(skip)]
    pub task: usize,
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Order in which results were told to the search within the task, from 0.
    pub sequence: u64,
    /// The configuration.
    #[serde(with = "config_as_object")]
    pub config: ConfigValues,
    /// The judgement.
    pub verdict: Verdict,
    /// What was found, in a line; only where it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Median time, microseconds; null where it failed.
    pub time_us: Option<f64>,
    /// How the time came to be. Absent where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<TimingKind>,
    /// How results were compared at the timed size; absent where it failed, and for recorded times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// Fastest time of the task so far, this one included, microseconds.
    pub best_us: Option<f64>,
    /// This one is the fastest of its task so far.
    pub new_best: bool,
    /// The operator that proposed it.
    pub origin: String,
    /// Configurations judged so far in the run, this one included.
    pub evals: u64,
    /// The device's virtual clock after it, seconds; 0 where the wall clock counts.
    pub clock_s: f64,
    /// It had been stored before this process began.
    pub resumed: bool,
    /// What further trials of the task may still bring, as a share of its best time: with a chance
    /// of nine in ten no more than this. Absent where the search has no estimate yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<f64>,
}

/// Why a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// `--evals` configurations are judged.
    Evals,
    /// The time is up.
    Budget,
    /// Every configuration of every space is judged.
    Exhausted,
    /// Further trials bring no more than `--until-converged` asks for, with a chance of nine in ten.
    Converged,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}
