//! Runs: the data at their start, and the data of a resumed run.

use std::path::PathBuf;
use tuner_core::record::{ConfigValues, Definition, DeviceKind, Provenance, TaskKey, TrialRecord};
use tuner_core::units::{ContentHash, Seed};

/// Name of a run: UTC time to the millisecond and six random digits, so that names sort by time and
/// two processes never share one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct RunId(pub(super) String);

impl RunId {
    /// Generates a new name.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "every name is another")]
    pub fn new() -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let now = jiff::Timestamp::now();
        let chance = ContentHash::from_parts([
            &now.as_nanosecond().to_le_bytes()[..],
            &std::process::id().to_le_bytes()[..],
            &COUNTER.fetch_add(1, Ordering::Relaxed).to_le_bytes()[..],
            tuner_core::provenance::host().as_bytes(),
        ]);
        let digits: String = format!("{now:.3}")
            .chars()
            .filter(|c| c.is_ascii_digit() || *c == 'T')
            .collect();
        Self(format!("{digits}-{}", &chance.as_str()[..6]))
    }

    /// Wraps a name from external text; an unknown one is not found.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A recorded file as the source of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingSource {
    /// Absolute path at the time.
    pub path: PathBuf,
    /// Hash of the file's bytes: equal for the same recording in any location.
    pub hash: ContentHash,
}

/// The device of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceStart {
    /// Its name, as in [`TaskKey::device`].
    pub name: String,
    /// Its kind.
    pub kind: DeviceKind,
    /// Target such as `sm_90`; empty when unknown.
    pub arch: String,
    /// The resolved selector: `cuda:0`, `vgpu:h100`, `replay:FILE`.
    pub selector: String,
    /// The recorded file, on replay.
    pub recording: Option<RecordingSource>,
    /// The device's names in expressions (`DEVICE_SM_COUNT`, …) and their values; may be empty.
    pub environment: ConfigValues,
}

/// One kernel and problem to be tuned in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStart {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// The problem's sizes, in the order of the YAML; empty when unknown.
    pub sizes: ConfigValues,
    /// Hash of the template; `None` on replay, where the recording replaces it.
    pub template_hash: Option<ContentHash>,
    /// Identity of reference, arguments and tolerances; `None` on replay.
    pub reference_hash: Option<ContentHash>,
    /// Parameters and constraints.
    pub definition: Definition,
    /// The default configuration, if valid.
    pub default_config: Option<ConfigValues>,
    /// The search space's file, absolute; `None` on replay.
    pub space_path: Option<PathBuf>,
    /// Provenance of the results.
    pub provenance: Provenance,
}

/// Data of a run at its start.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStart {
    /// The device.
    pub device: DeviceStart,
    /// The seed.
    pub seed: Seed,
    /// The strategy's name.
    pub strategy: String,
    /// Settings to store (budget, evals, jobs, window, …), as a JSON object.
    pub settings: serde_json::Value,
    /// The tasks, at least one.
    pub tasks: Vec<TaskStart>,
}

impl RunStart {
    /// Returns the key under which trials of a task are submitted.
    #[must_use]
    pub fn key(&self, task: &TaskStart) -> TaskKey {
        TaskKey {
            kernel: task.kernel.clone(),
            problem: task.problem.clone(),
            device: self.device.name.clone(),
        }
    }

    /// Returns the version of a kernel: the template's hash, or the recording's. Versions of one
    /// template with different references have a suffix after a `#`.
    pub(super) fn version(&self, task: &TaskStart) -> String {
        match (&task.template_hash, &self.device.recording) {
            (Some(hash), _) => hash.to_string(),
            (None, Some(recording)) => format!("recording:{}", recording.hash),
            (None, None) => "unknown".to_owned(),
        }
    }
}

/// End of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum RunEnd {
    /// Its budget was used up or its space exhausted.
    Finished,
    /// Ctrl-C; can be resumed.
    Interrupted,
    /// The tuner failed; can be resumed.
    Failed,
}

/// An unfinished run, with all of its stored data.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct StoredRun {
    /// Its name; a resumed run keeps it.
    #[sqlx(rename = "name")]
    pub id: RunId,
    /// The strategy it used.
    pub strategy: String,
    /// Its settings.
    #[sqlx(json)]
    pub settings: serde_json::Value,
    /// Start, RFC 3339 UTC.
    pub started_at: String,
    /// Its tasks, in the order of the requesting [`RunStart`].
    #[sqlx(skip)]
    pub tasks: Vec<StoredTask>,
}

/// One task of a [`StoredRun`].
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTask {
    /// Its key.
    pub key: TaskKey,
    /// Its trials, in the order they were reported to the search.
    pub trials: Vec<TrialRecord>,
    /// Candidates whose launch was announced and never returned: a verdict of `timeout` that was
    /// not reported to the search. `sequence` is meaningless here; submitting the record again with
    /// its sequence replaces it.
    pub never_came_back: Vec<TrialRecord>,
}
