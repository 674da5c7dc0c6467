//! What the API answers with. The OpenAPI document is made from these types.

use serde::{Deserialize, Serialize};
use tuner_core::record::{DeviceKind, LeaderboardRow};
use tuner_engine::job::Request;
use tuner_store::RunTask;
use utoipa::ToSchema;

/// A run and how far it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
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
    pub tasks: Vec<RunTask>,
    /// When it was submitted, RFC 3339 UTC; null where `tuner run` began it.
    pub submitted_at: Option<String>,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
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
