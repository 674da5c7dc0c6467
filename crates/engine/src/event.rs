//! Events of a run, read by the progress display, `--events` and tests.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tuner_core::record::{
    Compared, ConfigValues, DeviceKind, TimingKind, Verdict, config_as_object,
};
use tuner_core::units::Seed;

/// An event. As JSON, one object with its kind in `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run is stored in the database.
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
        /// The run's tasks.
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
    /// A note for the user.
    Note {
        /// A line.
        text: String,
    },
    /// The run has ended; everything announced is stored.
    RunFinished {
        /// The run.
        run_id: String,
        /// The reason.
        reason: StopReason,
        /// Configurations judged.
        evals: u64,
        /// Number of candidates by verdict, over all tasks.
        verdicts: BTreeMap<Verdict, u64>,
        /// Time of the search strategy: its suggestions and what it learns from results, microseconds.
        #[serde(default)]
        search_us: u64,
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
    /// Index of the run's task.
    #[serde(skip)]
    pub task: usize,
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Order in which results were reported to the search within the task, from 0.
    pub sequence: u64,
    /// The configuration.
    #[serde(with = "config_as_object")]
    pub config: ConfigValues,
    /// The judgement.
    pub verdict: Verdict,
    /// The finding in one line; only if it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Median time, microseconds; null if it failed.
    pub time_us: Option<f64>,
    /// Source of the time. Absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<TimingKind>,
    /// Comparison of the results at the timed size; absent if it failed, and for recorded times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// Fastest time of the task so far, including this one, microseconds.
    pub best_us: Option<f64>,
    /// This is the fastest of its task so far.
    pub new_best: bool,
    /// The operator that proposed it.
    pub origin: String,
    /// Configurations judged so far in the run, including this one.
    pub evals: u64,
    /// The device's virtual clock after it, seconds; 0 on the wall clock.
    pub clock_s: f64,
    /// It was stored before this process started.
    pub resumed: bool,
    /// Its time is that of a candidate with the same code and launches.
    #[serde(skip)]
    pub reused: bool,
    /// An earlier run judged it, and its result was reused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known: bool,
    /// Its launch is over a limit of the device, which was known before a compile: it is not counted
    /// in `evals`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
    /// 95 % interval of the median, microseconds; only for measured times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95_us: Option<[f64; 2]>,
    /// Upper bound of the expected gain of further trials of the task, as a share of its best time,
    /// with 90 % confidence. Absent before the search has an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<f64>,
    /// Doubts about its comparison, such as an expected result that is the same for all inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// Reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// `--evals` configurations are judged.
    Evals,
    /// The time is up.
    Budget,
    /// Every configuration of every space is judged.
    Exhausted,
    /// Further trials gain at most the share of `--until-converged`, with 90 % confidence.
    Converged,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}
