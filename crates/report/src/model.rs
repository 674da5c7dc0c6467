//! Input of a report: plain values, read by the caller.

use super::family::FamilyTree;
use serde_json::{Map, Value as Json};
use tuner_core::entry::StoredTrial;
use tuner_core::record::{ConfigValues, LeaderboardRow, Verdict};
use tuner_store::{Board, TimeLine};

/// Input of a report.
#[derive(Debug, Clone)]
pub struct Input {
    /// The database's path, as given.
    pub database: String,
    /// Price of an hour of a GPU, in any currency; `None` if not given.
    pub gpu_price: Option<f64>,
    /// One for each kernel, problem and device; sorted.
    pub subjects: Vec<Subject>,
    /// Family trees of changed templates of these kernels, oldest first.
    pub families: Vec<FamilyTree>,
}

/// One kernel on one problem and device.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its board, with at least one row.
    pub board: Board,
    /// Every judged candidate with its best time or latest failure, in the order of judging.
    pub candidates: Vec<StoredTrial>,
    /// The runs, oldest first.
    pub runs: Vec<TimeLine>,
    /// The time of another program for the same work, if measured.
    pub baseline: Option<Peer>,
    /// Facts from the kernel's files, if available.
    pub kernel: Option<KernelFacts>,
    /// Explanation of the winner's time.
    pub profile: Option<WinnerProfile>,
    /// Changes of one parameter of the winner that were predicted for this report.
    pub predicted_changes: Vec<Change>,
    /// Warnings: legal but fragile, with the reason.
    pub warnings: Vec<String>,
}

/// Another program for the same work.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Median, µs.
    pub p50_us: f64,
    /// 90th percentile, µs.
    pub p90_us: f64,
    /// Its time over the winner's, with the ends of the 95 % interval; equal without one.
    pub ratio: [f64; 3],
}

/// Facts of the search space and the template.
#[derive(Debug, Clone)]
pub struct KernelFacts {
    /// Path of the search space, as typed on the command line.
    pub path: String,
    /// Description of the computation.
    pub summary: String,
    /// Useful operations of the problem.
    pub flops: Option<f64>,
    /// Bytes that must move.
    pub bytes: Option<f64>,
    /// It uses tensor cores.
    pub tensor: bool,
    /// The rendered sources of the default and of the winner, or the reason for their absence.
    pub sources: Result<[String; 2], String>,
}

/// Counters of the winner and their source.
#[derive(Debug, Clone)]
pub struct WinnerProfile {
    /// Display text: `ncu 2025.1, measured`, `virtual GPU's counters, predicted`.
    pub source: String,
    /// They are from a real GPU.
    pub measured: bool,
    /// Counters by name.
    pub metrics: Map<String, Json>,
}

/// A configuration that differs from the winner in one parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The parameter.
    pub parameter: String,
    /// The winner's value.
    pub from: String,
    /// The other value.
    pub to: String,
    /// The judgement.
    pub verdict: Verdict,
    /// Its time, µs.
    pub p50_us: Option<f64>,
    /// Its time over the winner's.
    pub cost: Option<f64>,
    /// Predicted for this report, not from the database.
    pub predicted: bool,
}

impl Subject {
    /// Returns the winning row; the caller ensures that it exists.
    pub(super) fn best(&self) -> Option<&LeaderboardRow> {
        self.board.rows.first()
    }

    /// Returns the judged candidate of a configuration.
    pub(super) fn candidate(&self, config: &ConfigValues) -> Option<&StoredTrial> {
        self.candidates
            .iter()
            .find(|judged| judged.trial.config == *config)
    }

    /// Returns the label of its times.
    pub(super) fn label(&self) -> &'static str {
        self.board.timing.name()
    }
}

/// Returns a number of a counter map.
pub(super) fn number(metrics: &Map<String, Json>, key: &str) -> Option<f64> {
    metrics
        .get(key)
        .and_then(Json::as_f64)
        .filter(|value| value.is_finite())
}
