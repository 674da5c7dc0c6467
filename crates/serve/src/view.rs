//! Response types of the API. The OpenAPI document is generated from these types.

use serde::{Deserialize, Serialize};
use tuner_core::record::{DeviceKind, LeaderboardRow, Verdict, VerdictFacts};
use tuner_engine::job::Request;
use tuner_evolve::lineage;
use tuner_report::family::FamilyRow;
use tuner_store::{Lineage, RunTask};
use utoipa::ToSchema;

/// A verdict and its consequences.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct VerdictView {
    /// Its name.
    pub verdict: Verdict,
    /// Its consequences.
    #[serde(flatten)]
    pub facts: VerdictFacts,
}

/// A run and its progress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// Name; names sort by the time of submission.
    pub id: String,
    /// `queued`, `running`, `finished`, `stopped`, `failed`, or `interrupted` (a `tuner run` that
    /// ended before its limits).
    pub state: String,
    /// Reason of the end or failure; may be empty.
    pub message: String,
    /// Request; null if `tuner run` began the run itself.
    pub request: Option<Request>,
    /// Device, or the device that the run waits for.
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
    /// The device's virtual clock, seconds; 0 for the wall clock.
    pub clock_s: f64,
    /// Wall time since the engine started it, seconds; null unless it is running.
    pub elapsed_s: Option<f64>,
    /// Configurations judged per second since then; null unless it is running.
    pub rate: Option<f64>,
    /// Current activities on its candidates, the oldest first; empty unless it is running.
    #[serde(default)]
    pub activities: Vec<ActivityView>,
    /// Notes for the submitter.
    pub notes: Vec<String>,
    /// Kernels and problems; empty before the run begins.
    pub tasks: Vec<RunTask>,
    /// Submission time, RFC 3339 UTC; null if `tuner run` began it.
    pub submitted_at: Option<String>,
    /// Start time.
    pub started_at: Option<String>,
    /// End time.
    pub ended_at: Option<String>,
}

/// Work on a candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActivityView {
    /// Stage: `compiling`, `judging` or `proving`.
    pub stage: String,
    /// Kernel, problem and configuration.
    pub candidate: String,
    /// Seconds since it began.
    pub seconds: f64,
}

/// Kernels, problems and devices that a request for a run may name.
#[derive(Debug, Serialize, ToSchema)]
pub struct Choices {
    /// Kernels in the daemon's folders.
    pub kernels: Vec<KernelChoice>,
    /// GPUs of this machine, virtual GPUs, and recordings in the daemon's folders.
    pub devices: Vec<String>,
    /// Budget of a run without a budget and a number of evaluations, such as `10m`.
    pub default_budget: String,
}

/// A kernel.
#[derive(Debug, Serialize, ToSchema)]
pub struct KernelChoice {
    /// Name of its file without the suffix.
    pub name: String,
    /// Names of its problems.
    pub problems: Vec<String>,
}

/// Runs, latest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunView>,
    /// Pass as `before` for the next page; null on the last page.
    pub next: Option<String>,
}

/// The users' note on a run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteView {
    /// Text, at most 10,000 characters; empty if there is none.
    #[schema(max_length = 10_000)]
    pub text: String,
    /// Time of the last change, RFC 3339 UTC; ignored in requests.
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

/// Response to a stop request.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Stopping {
    /// The run.
    pub id: String,
    /// Current state: `stopped` if it had not begun, `running` while its engine finishes the candidate on
    /// the device.
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

/// A device and its clocks.
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
    /// Start of the latest run.
    pub last_run_at: Option<String>,
    /// The run on its engine.
    pub running: Option<String>,
    /// Marketing name.
    pub full_name: Option<String>,
    /// Multiprocessors.
    pub sm_count: Option<u32>,
    /// Boost clock, MHz.
    pub boost_mhz: Option<u32>,
    /// Current clock of the multiprocessors, MHz; only of a real GPU.
    pub sm_mhz: Option<u32>,
    /// Current clock of the memory, MHz; only of a real GPU.
    pub memory_mhz: Option<u32>,
    /// Memory bandwidth, GB/s.
    pub dram_gb_s: Option<f64>,
}

/// Health of the daemon.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`; `waiting` while another process keeps the database locked; `failing` if it cannot be written;
    /// `degraded` with another condition.
    pub status: String,
    /// Version of the tuner.
    pub version: String,
    /// Differs with every start.
    pub instance: String,
    /// Seconds since the start, on a monotonic clock.
    pub uptime_s: f64,
    /// Current conditions; empty if the daemon is healthy.
    #[serde(default)]
    pub conditions: Vec<ConditionView>,
}

/// A condition that prevents normal operation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ConditionView {
    /// `database_locked`, `database_not_writable`, `queue_full`, `compiler_missing` or
    /// `device_failing`.
    pub name: String,
    /// Start of the condition, RFC 3339 UTC.
    pub since: String,
    /// Error and fix.
    pub detail: String,
}

/// An evolution of changed code as a family tree.
#[derive(Debug, Serialize, ToSchema)]
pub struct EvolutionView {
    /// Name.
    pub id: String,
    /// `running`, `interrupted` or `finished`.
    pub state: String,
    /// Kernel, device, mutator and kind of its times.
    pub title: String,
    /// The changes, each after its parent.
    pub changes: Vec<ChangeView>,
    /// Figures of merit.
    pub figures: Vec<FigureView>,
}

/// A change of a kernel's code.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangeView {
    /// Number.
    pub change: i64,
    /// Generation; 1 is a child of the shipped template.
    pub depth: usize,
    /// Outcome as text, with the verdict of a failure.
    pub outcome: String,
    /// It was accepted or predicted better.
    pub better: bool,
    /// Gains over the shipped template, or the finding.
    pub found: String,
    /// Note of the mutator.
    pub note: String,
    /// Unified diff against the parent; empty without one.
    pub diff: String,
}

/// A figure of merit.
#[derive(Debug, Serialize, ToSchema)]
pub struct FigureView {
    /// Name.
    pub name: String,
    /// Value in words.
    pub value: String,
}

impl EvolutionView {
    /// Creates the view of an evolution; `speedups` as for [`lineage::tree`].
    pub(super) fn new(of: &Lineage, speedups: Option<&[Option<f64>]>) -> Self {
        let tree = lineage::tree(of, speedups);
        let figures = tree.figures.into_iter();
        Self {
            id: of.name.clone(),
            state: of.state.clone(),
            title: tree.title,
            changes: tree.rows.into_iter().map(ChangeView::from).collect(),
            figures: figures
                .map(|(name, value)| FigureView { name, value })
                .collect(),
        }
    }
}

impl From<FamilyRow> for ChangeView {
    fn from(row: FamilyRow) -> Self {
        Self {
            change: row.change,
            depth: row.depth,
            outcome: row.outcome,
            better: row.better,
            found: row.found,
            note: row.note,
            diff: row.diff,
        }
    }
}
