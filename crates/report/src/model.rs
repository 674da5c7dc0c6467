//! What a report is made from: plain values, read elsewhere.

use serde_json::{Map, Value as Json};
use tuner_core::entry::StoredTrial;
use tuner_core::record::{ConfigValues, LeaderboardRow, Verdict};
use tuner_store::{Board, TimeLine};

/// Everything a report is about.
#[derive(Debug, Clone)]
pub struct Input {
    /// The database, as it was named.
    pub database: String,
    /// Price of an hour of a GPU, in whatever currency; `None` where none was given.
    pub gpu_price: Option<f64>,
    /// One kernel, problem and device each; sorted.
    pub subjects: Vec<Subject>,
}

/// One kernel on one problem and device.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Which, with its best rows, of which there is one at least.
    pub board: Board,
    /// Every judged candidate with its best time or latest failure, in the order of judging.
    pub candidates: Vec<StoredTrial>,
    /// The runs, oldest first.
    pub runs: Vec<TimeLine>,
    /// The time of something else that does the same, where one was taken.
    pub baseline: Option<Peer>,
    /// What the files of the kernel say, where they are at hand.
    pub kernel: Option<KernelFacts>,
    /// What explains the winner's time.
    pub profile: Option<WinnerProfile>,
    /// Changes of one parameter of the winner that were predicted for this report.
    pub predicted_changes: Vec<Change>,
    /// What is right and yet should not stay so, with the reason.
    pub warnings: Vec<String>,
}

/// A peer that does the same work.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Median, µs.
    pub p50_us: f64,
    /// 90th percentile, µs.
    pub p90_us: f64,
    /// Its time over the winner's, with the ends of the 95 % interval; equal where there is none.
    pub ratio: [f64; 3],
}

/// What the search space and the template say.
#[derive(Debug, Clone)]
pub struct KernelFacts {
    /// Where the search space lies, as people type it.
    pub path: String,
    /// What it computes.
    pub summary: String,
    /// Useful operations of the problem.
    pub flops: Option<f64>,
    /// Bytes that must move.
    pub bytes: Option<f64>,
    /// It uses tensor cores.
    pub tensor: bool,
    /// The rendered sources of the default and of the winner, or why there are none.
    pub sources: Result<[String; 2], String>,
}

/// Counters of the winner and where they come from.
#[derive(Debug, Clone)]
pub struct WinnerProfile {
    /// For people: `ncu 2025.1, measured`, `virtual GPU's counters, predicted`.
    pub source: String,
    /// They come from a real GPU.
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
    /// The winning row; the caller has seen to it that there is one.
    pub(super) fn best(&self) -> Option<&LeaderboardRow> {
        self.board.rows.first()
    }

    /// The judged candidate of a configuration.
    pub(super) fn candidate(&self, config: &ConfigValues) -> Option<&StoredTrial> {
        self.candidates
            .iter()
            .find(|judged| judged.trial.config == *config)
    }

    /// How its times are called.
    pub(super) fn label(&self) -> &'static str {
        self.board.timing.name()
    }
}

/// A number of a counter map.
pub(super) fn number(metrics: &Map<String, Json>, key: &str) -> Option<f64> {
    metrics
        .get(key)
        .and_then(Json::as_f64)
        .filter(|value| value.is_finite())
}
