//! A ranked group of results.

use std::path::PathBuf;
use tuner_core::record::{
    ConfigValues, Definition, DeviceKind, LeaderboardRow, TaskKey, TimingKind,
};
use tuner_core::units::ContentHash;

/// One ranked group.
#[derive(Debug, Clone)]
pub struct Board {
    /// Kernel, problem and device.
    pub key: TaskKey,
    /// Kind of device.
    pub device_kind: DeviceKind,
    /// Kind of time.
    pub timing: TimingKind,
    /// The problem's sizes.
    pub sizes: ConfigValues,
    /// The device's names in expressions and their values.
    pub environment: ConfigValues,
    /// Target such as `sm_90`; may be empty.
    pub arch: String,
    /// Parameters and constraints, as of the latest run.
    pub definition: Definition,
    /// Path of the search space at the last tuning; `None` on replay.
    pub space_path: Option<PathBuf>,
    /// The default configuration, as of the latest run, if valid.
    pub default_config: Option<ConfigValues>,
    /// Identity of the reference of the rows; `None` on replay, and for results that predate its recording.
    pub reference_hash: Option<String>,
    /// Driver of the best row, if it has one.
    pub driver: Option<String>,
    /// Ranked rows, best first.
    pub rows: Vec<LeaderboardRow>,
    /// Identity of each row's candidate.
    pub candidates: Vec<ContentHash>,
    pub(super) problem_id: i64,
    pub(super) device_id: i64,
}
