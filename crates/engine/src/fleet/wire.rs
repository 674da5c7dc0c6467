//! Network messages: an assignment for each run, orders and answers for each candidate.

use super::siblings::SiblingTimes;
use crate::Judged;
use serde::{Deserialize, Serialize};
use tuner_core::record::Compilation;
use tuner_core::units::{ContentHash, Micros};
use tuner_device::DeviceFacts;
use tuner_judge::judgement::TimedJudgement;

/// Version of these messages. A hub and its workers must use the same one.
// 2: judgements record the comparison of results, and candidates are proven.
pub const PROTOCOL: u32 = 2;

/// Everything that a worker needs to judge the candidates of a run. It is named by the hash of its
/// text, and its files by theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The device of the candidates.
    pub device: DeviceFacts,
    /// NVRTC of the run, `major.minor`; part of every candidate's identity.
    pub nvrtc: Option<String>,
    /// The recorded file, on replay.
    pub recording: Option<ContentHash>,
    /// The kernels' files.
    pub kernels: Vec<Bundle>,
    /// The run's tasks, in order.
    pub tasks: Vec<AssignedTask>,
    /// The requested compile target, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// The model that predicts times at compile time, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<String>,
}

/// One kernel and problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedTask {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
}

/// A search space with all files that it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// The search space's file, one of `files`.
    pub space: String,
    /// All files; their paths are relative to a common folder.
    pub files: Vec<BundleFile>,
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleFile {
    /// Path below the common folder.
    pub path: String,
    /// Hash of its content.
    pub hash: ContentHash,
}

/// One step for one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkOrder {
    /// Name of the order: equal for the same candidate, task and step.
    pub id: ContentHash,
    /// Identity that the candidate must have.
    pub candidate: ContentHash,
    /// Index in the assignment's tasks.
    pub task: usize,
    /// The configuration, as choices of the space's parameters.
    pub choices: Vec<u32>,
    /// The step.
    pub step: Step,
}

/// Step of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Look it up in the recording.
    Recorded,
    /// Compile it.
    Compile {
        /// Number of false objects so far; if positive, caches are bypassed.
        again: u32,
    },
    /// Judge and time compiled code.
    Device(Box<Compiled>),
    /// Run the timed problem of compiled code whole, on a virtual GPU.
    Prove {
        /// The candidate.
        compiled: Box<Compiled>,
        /// Limit of lane instructions.
        limit: u64,
    },
    /// Time the best configurations again, in one comparison.
    Final(Box<Finalists>),
}

/// Correct configurations to time in one comparison on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalists {
    /// Choices of each.
    pub configs: Vec<Vec<u32>>,
    /// Seed of the input data and of the order.
    pub seed: u64,
    /// Workers that have timed them before: another GPU is required.
    pub not: Vec<String>,
}

/// A compiled candidate; its code is in the object store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compiled {
    /// Identity of the candidate.
    pub candidate: ContentHash,
    /// Result of the compiler.
    pub compilation: Compilation,
    /// Everything that decides its judgement: machine code, launches and shapes.
    pub same: ContentHash,
    /// Hash of the object that holds the [`Work`](crate::Work).
    pub object: ContentHash,
    /// Earlier compiles whose object was false.
    pub again: u32,
    /// The time predicted by the assignment's prior.
    #[serde(default)]
    pub predicted: Option<Micros>,
}

/// Answer to an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The candidate is judged.
    Judged(Box<Judged>),
    /// It is compiled.
    Compiled(Box<Compiled>),
    /// The final times or reasons, one for each configuration in order.
    Final {
        /// The worker that timed them.
        worker: String,
        /// The times.
        #[serde(deserialize_with = "TimedJudgement::all_received")]
        times: Vec<TimedJudgement>,
    },
    /// The referenced object is absent or does not match its hash.
    FalseObject(String),
    /// Retry limit reached; holds the last reason.
    NotJudged(String),
    /// It cannot be executed anywhere because of the request; the text describes the fix.
    Unusable(String),
}

impl Answer {
    /// Reports whether the answer is consistent: wrong candidates have no time, and times are
    /// plausible. Members of a fleet do not trust each other.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        match self {
            Self::Judged(judged) => {
                judged.charged_us <= CHARGED_MAX_US && is_consistent(&judged.found)
            }
            Self::Final { times, .. } => times.iter().all(is_consistent),
            Self::Compiled(_) | Self::FalseObject(_) | Self::NotJudged(_) | Self::Unusable(_) => {
                true
            }
        }
    }

    /// Returns the identity of the answer's candidate, if it names one.
    #[must_use]
    pub fn candidate(&self) -> Option<&ContentHash> {
        match self {
            Self::Judged(judged) => Some(&judged.candidate),
            Self::Compiled(compiled) => Some(&compiled.candidate),
            Self::Final { .. } | Self::FalseObject(_) | Self::NotJudged(_) | Self::Unusable(_) => {
                None
            }
        }
    }
}

/// Maximum time charged to a candidate, microseconds: about 11 days.
const CHARGED_MAX_US: u64 = 1_000_000_000_000;

impl SiblingTimes {
    /// Reports whether all times are possible.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let incumbent = self.incumbent.iter().flat_map(|(_, range)| {
            let [low, high] = range.ci95;
            [range.us, low, high]
        });
        let mut times = incumbent.chain([self.reference_us]);
        times.all(|time| Micros::PLAUSIBLE_US.contains(&time))
    }
}

fn is_consistent(found: &TimedJudgement) -> bool {
    let Some(measured) = &found.measured else {
        return true;
    };
    let record = measured.record();
    let times = [record.p50, record.p90, record.ci95[0], record.ci95[1]];
    let times = times.into_iter().map(Micros::get);
    let mut all = times.chain(record.samples.iter().copied());
    found.judgement.is_ok() && all.all(|time| Micros::PLAUSIBLE_US.contains(&time))
}

#[cfg(test)]
mod tests;
