//! What the API answers with. The OpenAPI document is made from these types.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tuner_core::record::{
    Compilation, ConfigValues, DeviceKind, Hazard, LeaderboardRow, Measurement, TimingKind,
    Verdict, config_as_object,
};
use tuner_engine::job::Request;
use utoipa::ToSchema;

/// A run and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// Name; names sort by the time of submission.
    pub id: String,
    /// `queued`, `running`, `finished`, `stopped`, `failed`, or `interrupted` (a `tuner run` that
    /// ended before its limits).
    pub state: String,
    /// How it ended, or why it failed; may be empty.
    pub message: String,
    /// What was asked for; null where `tuner run` began the run itself.
    pub request: Option<Request>,
    /// The device, or what the run waits for.
    pub device: String,
    /// Kind of device; null before the run begins.
    pub device_kind: Option<DeviceKind>,
    /// Search strategy; null before the run begins.
    pub strategy: Option<String>,
    /// Seed, decimal (may exceed 2^53).
    pub seed: Option<String>,
    /// Limit on judged configurations.
    pub evals_limit: Option<u64>,
    /// Limit on time, seconds on the device's clock.
    pub budget_s: Option<f64>,
    /// Configurations judged and stored.
    pub evals: u64,
    /// The device's virtual clock, seconds; 0 where the wall clock counts.
    pub clock_s: f64,
    /// Wall time since the engine took it up, seconds; null unless it is running.
    pub elapsed_s: Option<f64>,
    /// Configurations judged a second since then; null unless it is running.
    pub rate: Option<f64>,
    /// What the submitter should know.
    pub notes: Vec<String>,
    /// Kernels and problems; empty before the run begins.
    pub tasks: Vec<TaskView>,
    /// When it was submitted, RFC 3339 UTC; null where `tuner run` began it.
    pub submitted_at: Option<String>,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
}

/// A kernel and problem of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Number of valid configurations, decimal; null where it is not at hand.
    pub valid: Option<String>,
    /// Configurations judged.
    pub evals: u64,
    /// The fastest verified time, µs.
    pub best_us: Option<f64>,
    /// The configuration with that time.
    #[serde(with = "optional_config")]
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    pub best_config: Option<ConfigValues>,
    /// Time of the default configuration, µs.
    pub default_us: Option<f64>,
    /// How many candidates got which verdict.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub verdicts: BTreeMap<Verdict, u64>,
    /// What further trials may still bring, as a share of the best time: with a chance of nine in ten
    /// no more. Null where the search has no estimate.
    #[serde(default)]
    pub left: Option<f64>,
    /// Where the best time so far fell. Only with a single run; lists leave it empty.
    pub curve: Vec<PointView>,
}

/// A point of a best-so-far curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PointView {
    /// Results of the task until then.
    pub evals: u64,
    /// The new best, µs.
    pub us: f64,
}

/// One result of a run, in short.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrialView {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Place in the order of its task, from 0; null where the launch has not come back.
    pub sequence: Option<u64>,
    /// The judgement.
    pub verdict: Verdict,
    /// Why, its first 300 characters.
    pub detail: String,
    /// Identity of the candidate, for `/api/v1/candidates/{candidate}`.
    pub candidate: String,
    /// The configuration.
    #[serde(with = "config_as_object")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub config: ConfigValues,
    /// Median, µs, where it passed.
    pub time_us: Option<f64>,
    /// The time that one launch in ten exceeds, µs, where it passed.
    #[serde(default)]
    pub time_us_p90: Option<f64>,
    /// Registers a thread, where it was compiled.
    #[serde(default)]
    pub registers: Option<u32>,
    /// Machine code, bytes, where its length was kept.
    #[serde(default)]
    pub code_bytes: Option<u64>,
    /// Energy of a launch sequence, millijoules, where it was measured.
    #[serde(default)]
    pub energy_mj: Option<f64>,
}

/// Runs, latest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunView>,
    /// Pass as `before` for the next page; null on the last.
    pub next: Option<String>,
}

/// What people wrote beside a run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteView {
    /// The text, at most 10,000 characters; empty where there is none.
    #[schema(max_length = 10_000)]
    pub text: String,
    /// When it was last changed, RFC 3339 UTC; not read.
    #[serde(default)]
    pub changed_at: Option<String>,
}

/// A submitted run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// Its name.
    pub id: String,
    /// `queued`.
    pub state: String,
}

/// Whether a stop was asked for in time.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Stopping {
    /// The run.
    pub id: String,
    /// Its state now: `stopped` where it had not begun, `running` where its engine still finishes
    /// the candidate on the device.
    pub state: String,
}

/// A row of the leaderboard (the keys of `tuner leaderboard --format json`) and its candidate.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeaderboardEntry {
    /// The row.
    #[serde(flatten)]
    pub row: LeaderboardRow,
    /// Identity of the candidate, for `/api/v1/candidates/{candidate}`.
    pub candidate: String,
}

/// Everything known of a candidate.
#[derive(Debug, Serialize, ToSchema)]
pub struct CandidateView {
    /// Its identity.
    pub candidate: String,
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// The problem's sizes.
    #[serde(with = "config_as_object")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub sizes: ConfigValues,
    /// The configuration.
    #[serde(with = "config_as_object")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub config: ConfigValues,
    /// Hash of the template.
    pub template_hash: Option<String>,
    /// What the compiler made: registers, spills, shared memory, sizes of PTX and SASS.
    pub compilation: Option<Compilation>,
    /// Verdicts, latest first.
    pub attempts: Vec<AttemptView>,
}

/// One verdict on a candidate.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttemptView {
    /// The run.
    pub run: String,
    /// The device.
    pub device: String,
    /// Its kind.
    pub device_kind: DeviceKind,
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub detail: String,
    /// Everything the checks found, with source lines.
    pub hazards: Vec<HazardView>,
    /// Largest error divided by its tolerance.
    pub max_error: Option<f64>,
    /// The time with its raw samples.
    pub measurement: Option<Measurement>,
    /// The operator of the search that proposed it.
    pub origin: String,
    /// Place in the order of its run.
    pub sequence: u64,
    /// Commit of the template's tree.
    pub commit: Option<String>,
    /// The tree was dirty.
    pub dirty: bool,
    /// GPU driver.
    pub driver: Option<String>,
    /// When, RFC 3339 UTC.
    pub judged_at: String,
}

/// A hazard with the line of source it names.
#[derive(Debug, Serialize, ToSchema)]
pub struct HazardView {
    /// The hazard.
    #[serde(flatten)]
    pub hazard: Hazard,
    /// Text of that line as the template has it now; null where it is not at hand.
    pub source: Option<String>,
}

/// What the values of a board's parameters are worth.
#[derive(Debug, Serialize, ToSchema)]
pub struct EffectsView {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Device name.
    pub device: String,
    /// How the times came to be.
    pub timing: TimingKind,
    /// Parameters with more than one value.
    pub parameters: Vec<EffectView>,
    /// The share of the variance of log time that parameters explain only together, 0 to 1; null
    /// where there are too few results.
    pub together: Option<f64>,
}

/// What the values of a parameter are worth.
#[derive(Debug, Serialize, ToSchema)]
pub struct EffectView {
    /// The parameter.
    pub parameter: String,
    /// The share of the variance of log time that it explains alone, 0 to 1 (functional analysis of
    /// variance over a random forest, Hutter et al. 2014); null where there are too few results.
    pub importance: Option<f64>,
    /// Its values, in order.
    pub values: Vec<EffectValueView>,
}

/// What one value is worth.
#[derive(Debug, Serialize, ToSchema)]
pub struct EffectValueView {
    /// The value.
    #[schema(value_type = serde_json::Value)]
    pub value: tuner_core::value::Value,
    /// Candidates with it that passed.
    pub count: u64,
    /// The fastest of them, µs.
    pub best_us: f64,
    /// Their median, µs.
    pub median_us: f64,
}

/// A device and what is known of its clocks.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeviceView {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: DeviceKind,
    /// Compile target; may be empty.
    pub arch: String,
    /// Runs on it.
    pub runs: u64,
    /// When the latest began.
    pub last_run_at: Option<String>,
    /// The run that its engine works on now.
    pub running: Option<String>,
    /// Marketing name.
    pub full_name: Option<String>,
    /// Multiprocessors.
    pub sm_count: Option<u32>,
    /// Boost clock, MHz.
    pub boost_mhz: Option<u32>,
    /// Clock of the multiprocessors at this moment, MHz; only of a real GPU.
    pub sm_mhz: Option<u32>,
    /// Clock of the memory at this moment, MHz; only of a real GPU.
    pub memory_mhz: Option<u32>,
    /// Memory bandwidth, GB/s.
    pub dram_gb_s: Option<f64>,
}

/// Whether the daemon is well.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`; `waiting` while another process keeps the database locked; `failing` where it cannot
    /// be written; `degraded` with another condition.
    pub status: String,
    /// Version of the tuner.
    pub version: String,
    /// Differs with every start.
    pub instance: String,
    /// Seconds since it started, on a clock that never jumps.
    pub uptime_s: f64,
    /// What keeps it from its work; empty where nothing does.
    #[serde(default)]
    pub conditions: Vec<ConditionView>,
}

/// Something that keeps the daemon from its work.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ConditionView {
    /// `database_locked`, `database_not_writable`, `queue_full`, `compiler_missing` or
    /// `device_failing`.
    pub name: String,
    /// When it was first seen, RFC 3339 UTC.
    pub since: String,
    /// What is wrong, and the way out.
    pub detail: String,
}

/// An optional configuration as an object or null.
mod optional_config {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tuner_core::record::{ConfigValues, config_as_object};

    #[derive(Serialize, Deserialize)]
    struct Object(#[serde(with = "config_as_object")] ConfigValues);

    pub(super) fn serialize<S: Serializer>(
        config: &Option<ConfigValues>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        config.clone().map(Object).serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Option<ConfigValues>, D::Error> {
        Ok(Option::<Object>::deserialize(deserializer)?.map(|object| object.0))
    }
}
