//! Records of one trial: plain values that the engine produces, the store holds, and the leaderboard and
//! exports read.

pub(crate) mod compared;
mod definition;
mod proof;
pub(crate) mod verdict;

pub use compared::{Compared, rank_class};
pub use definition::{ConstraintDefinition, Definition, LaunchDefinition, ParameterDefinition};
pub use verdict::{Hazard, ProofEffect, Validity, Verdict, VerdictClass, VerdictFacts};

use crate::cache_mode::CacheMode;
use crate::judgement::Judgement;
use crate::named::named;
use crate::units::{ContentHash, Micros, Seed};
use crate::value::Value;
use serde::{Deserialize, Serialize};

named! {
    /// Kind of device of a time.
    pub enum DeviceKind {
        /// A real NVIDIA GPU.
        Cuda,
        /// The virtual GPU.
        Vgpu,
        /// Measurements recorded by others, replayed.
        Replay,
    }
}

named! {
    /// Source of a time. Kinds never rank together.
    pub enum TimingKind {
        /// Timed on a real GPU by this tuner.
        Measured,
        /// Computed by the virtual GPU's model.
        Predicted,
        /// Read from a recorded file.
        Recorded,
    }
}

/// A configuration by name, in the order of the space's parameters.
pub type ConfigValues = Vec<(String, Value)>;

/// Result of compiling a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Compilation {
    /// Hash of the template file (and the files it includes) as read.
    pub template_hash: ContentHash,
    /// Hash of the machine code.
    pub cubin_hash: ContentHash,
    /// `major.minor` of the NVRTC that compiled it.
    pub nvrtc_version: String,
    /// Target, such as `sm_90`.
    pub arch: String,
    /// Registers per thread (the largest over the candidate's kernels).
    pub registers: u32,
    /// Bytes spilled to local memory, stores and loads (the largest over the kernels).
    pub spill_bytes: u64,
    /// Stack frame, bytes per thread.
    pub stack_bytes: u64,
    /// Shared memory per block, static and dynamic, bytes (the largest over the launches).
    pub shared_bytes: u64,
    /// Host time of the compile, microseconds; 0 on a cache hit.
    pub compile_us: u64,
    /// Length of the PTX, bytes; 0 if it was not stored.
    #[serde(default)]
    pub ptx_bytes: u64,
    /// Length of the machine code (the kernels' text sections), bytes; 0 if it was not stored.
    #[serde(default)]
    pub sass_bytes: u64,
}

/// A time with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Measurement {
    /// Source of the time.
    pub kind: TimingKind,
    /// Median, microseconds.
    pub p50: Micros,
    /// 90th percentile, microseconds.
    pub p90: Micros,
    /// 95 % confidence interval of the median, microseconds.
    pub ci95: [Micros; 2],
    /// Raw samples, microseconds, in the order they were taken.
    pub samples: Vec<f64>,
    /// Name of the timing protocol, part of a measurement's identity (for example `recorded`).
    pub protocol: String,
    /// The same cubin with the same launch was measured before, and that time was reused.
    pub reused: bool,
    /// Circumstances of the measurement; `None` for predicted and recorded times.
    #[serde(default)]
    pub evidence: Option<Box<TimingEvidence>>,
}

impl AsRef<Measurement> for Measurement {
    fn as_ref(&self) -> &Measurement {
        self
    }
}

/// Evidence of a measured time in addition to its samples, so that it can be judged again later.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Serialize,
    Deserialize,
    utoipa::ToSchema
)]
pub struct TimingEvidence {
    /// State of the caches during the samples.
    pub cache: CacheMode,
    /// Launch sequences per sample.
    pub launches: u32,
    /// Multiprocessor cycles of each sample; empty if the device does not report them.
    pub cycles: Vec<f64>,
    /// Multiprocessor clock of each sample, MHz; empty if the device does not report it.
    pub clock_mhz: Vec<f64>,
    /// Identity of the fixed reference: its machine code with its launches. Ratios to different
    /// references are never compared.
    pub reference: Option<ContentHash>,
    /// Time of the candidate over that of the reference, one for each block of interleaved samples.
    pub reference_ratios: Vec<f64>,
    // On a fleet the session is that of its first GPU; samples are of the GPU that measured them.
    /// Median time of the reference in this session, microseconds: the unit of the ratios.
    pub reference_us: Option<f64>,
    /// Flags for the reader: `bimodal`, `unsteady`, `throttled`, `late` (the host queued a sample
    /// late), `raced` (dropped early as clearly slower, few samples) and `cycles_disagree`.
    pub flags: Vec<String>,
    /// Verification level before the time: `first` (one seed, one run), `timing` (three seeds,
    /// repeated) or `final` (everything). `None`: not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The other cache mode, if it was timed as well.
    pub other: Option<OtherMode>,
    /// The energy of a launch sequence, if requested and counted by the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
}

/// The energy of one launch sequence: the energy of the whole device while it runs nothing else, divided by
/// the number of launch sequences of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Energy {
    /// Median of the windows, millijoules.
    pub launch_mj: f64,
    /// 95 % confidence interval of the median, millijoules.
    pub ci95_mj: [f64; 2],
    /// Energy of each window, millijoules.
    pub samples_mj: Vec<f64>,
}

/// A time in the cache mode that does not rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OtherMode {
    /// The mode.
    pub cache: CacheMode,
    /// Median, microseconds.
    pub p50: Micros,
    /// 90th percentile, microseconds.
    pub p90: Micros,
    /// 95 % confidence interval of the median, microseconds.
    pub ci95: [Micros; 2],
    /// Raw samples, microseconds.
    pub samples: Vec<f64>,
}

/// One judged candidate. Its time is a [`Measured`](crate::evidence::Measured) when it is stored,
/// and a plain [`Measurement`] when it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRecord<T = Measurement> {
    /// Order in which results were reported to the search within (run, kernel, problem), from 0.
    pub sequence: u64,
    /// The configuration.
    pub config: ConfigValues,
    /// Identity of the candidate: hash of rendered source, options, NVRTC version and arch; for recorded
    /// data, hash of the file's content and the configuration.
    pub candidate_hash: ContentHash,
    /// The finding.
    pub judgement: Judgement,
    /// Result of the compile; `None` for recorded data and if the compile failed.
    pub compilation: Option<Compilation>,
    /// The time; only if the verdict is `ok`.
    pub measurement: Option<T>,
    /// Device-side cost charged to the budget on replay and vgpu, microseconds: compile + benchmark.
    pub charged_us: u64,
    /// The search's name of the operator that proposed it (`seed`, `default`, `mutate`, …).
    pub origin: String,
    /// Explanation of a predicted time, as `tuner predict` prints it; `None` elsewhere.
    pub counters: Option<serde_json::Value>,
}

impl<T> TrialRecord<T> {
    /// Converts the form of the trial's time.
    #[must_use]
    pub fn map_time<U>(self, form: impl FnOnce(T) -> U) -> TrialRecord<U> {
        TrialRecord {
            sequence: self.sequence,
            config: self.config,
            candidate_hash: self.candidate_hash,
            judgement: self.judgement,
            compilation: self.compilation,
            measurement: self.measurement.map(form),
            charged_us: self.charged_us,
            origin: self.origin,
            counters: self.counters,
        }
    }
}

/// Identity of a tuning task: one kernel, one problem, one device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize)]
pub struct TaskKey {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Device name, such as `NVIDIA H200`, `vgpu:h100`, or a recorded file's device.
    pub device: String,
}

impl std::fmt::Display for TaskKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{} {} on {}", self.kernel, self.problem, self.device);
        f.write_str(&crate::escape::line(&text))
    }
}

/// Provenance of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Commit of the tree that holds the template; `None` outside git.
    pub commit: Option<String>,
    /// That tree had uncommitted changes to the template or the space file.
    pub dirty: bool,
    /// SHA-256 of the changes of a dirty tree (`git diff --binary HEAD` of the files; untracked files count
    /// as new).
    #[serde(default)]
    pub diff_hash: Option<String>,
    /// Host name.
    pub host: String,
    /// Version of this program.
    pub tuner_version: String,
    /// GPU driver version, on real devices.
    pub driver: Option<String>,
    /// `major.minor` of NVRTC, if one was used.
    pub nvrtc_version: Option<String>,
}

/// One row of the leaderboard, in the documented JSON form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LeaderboardRow {
    /// Rank within (kernel, problem, device), from 1; rows in a tie with the row above share it.
    pub rank: u32,
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Device name.
    pub device: String,
    /// Kind of device.
    pub device_kind: DeviceKind,
    /// Source of the time.
    pub timing: TimingKind,
    /// Parameter values, in the order of the space.
    #[serde(with = "config_as_object")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub config: ConfigValues,
    /// Median, µs.
    pub time_us_p50: f64,
    /// 90th percentile, µs.
    pub time_us_p90: f64,
    /// 95 % interval of the median, µs. For a predicted time the interval that its model states,
    /// intended to hold nine of ten times; null if it states none.
    pub ci95_us: Option<[f64; 2]>,
    /// Number of raw samples.
    pub samples: u64,
    /// The intervals of this row and the best one cannot be distinguished.
    pub tied_with_best: bool,
    /// The default configuration's time divided by this one's; null when the default has none.
    pub speedup_vs_default: Option<f64>,
    /// The baseline's time divided by this one's; null when there is none.
    pub speedup_vs_baseline: Option<f64>,
    /// Comparison of results at the timed size; null for recorded rows.
    #[serde(default)]
    pub compared: Option<Compared>,
    /// Commit of the template's tree.
    pub commit: Option<String>,
    /// The tree was dirty; null for recorded rows.
    pub dirty: Option<bool>,
    /// SHA-256 of the uncommitted changes; null for a clean tree.
    #[serde(default)]
    pub diff_hash: Option<String>,
    /// The template was edited since; null if it is not available and for recorded rows.
    #[serde(default)]
    pub stale: Option<bool>,
    /// Hash of the template.
    pub template_hash: Option<String>,
    /// Hash of the machine code.
    pub cubin_hash: Option<String>,
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Spilled bytes.
    pub spill_bytes: Option<u64>,
    /// Shared memory per block, bytes.
    pub shared_bytes: Option<u64>,
    /// Largest error / tolerance.
    pub max_error: Option<f64>,
    /// Seed of the run.
    pub seed: Seed,
    /// The run.
    pub run_id: String,
    /// Time of measurement, RFC 3339 UTC.
    pub measured_at: String,
    /// Verification level before the time was taken, for measured times: `first` (one seed, one
    /// run), `timing` (three seeds, repeated) or `final` (everything).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Length of the machine code, bytes; only if requested and stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<u64>,
    /// Energy of a launch sequence, millijoules; only if requested and measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<f64>,
    /// 95 % interval of that, millijoules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_ci95_mj: Option<[f64; 2]>,
    /// Fastest time of the search, µs, if the time is of a final comparison: the rows without one are
    /// compared with it by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_us: Option<f64>,
}

/// Returns the value of that name.
#[must_use]
pub fn value_of<'v>(values: &'v ConfigValues, name: &str) -> Option<&'v Value> {
    let found = values.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value)
}

/// Formats values as `NAME=value` with a separator.
#[must_use]
pub fn assignments<'c>(
    values: impl IntoIterator<Item = &'c (String, Value)>,
    between: &str,
) -> String {
    let each = values.into_iter();
    let texts: Vec<String> = each
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    texts.join(between)
}

/// A configuration as a JSON object in parameter order.
pub mod config_as_object {
    use super::{ConfigValues, Value};
    use serde::de::{MapAccess, Visitor};

    /// Writes the pairs as one object, in order.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: serde::Serializer>(
        config: &ConfigValues,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(config.iter().map(|(name, value)| (name, value)))
    }

    /// Reads one object, keeping its order.
    ///
    /// # Errors
    /// Errors of the deserializer, and invalid parameter values.
    pub fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ConfigValues, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = ConfigValues;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of parameter values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ConfigValues, A::Error> {
                let mut pairs = ConfigValues::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    pairs.push((name, value));
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
