//! What crosses the network: an assignment once a run, orders and answers for each candidate.

use super::siblings::SiblingTimes;
use crate::Judged;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use tuner_core::record::Compilation;
use tuner_core::units::{ContentHash, Micros};
use tuner_device::DeviceFacts;
use tuner_judge::judgement::TimedJudgement;

/// Version of these messages. A hub and its workers must speak the same one.
// 2: judgements say how results were compared, and candidates are proven.
pub const PROTOCOL: u32 = 2;

/// Everything that a worker needs to know of a run to judge its candidates. It is named by the hash
/// of its text, and what it names, by theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The device that candidates are made for.
    pub device: DeviceFacts,
    /// NVRTC of the run, `major.minor`; part of every candidate's identity.
    pub nvrtc: Option<String>,
    /// The recorded file, on replay.
    pub recording: Option<ContentHash>,
    /// The kernels' files.
    pub kernels: Vec<Bundle>,
    /// What is tuned, in the order of the run.
    pub tasks: Vec<AssignedTask>,
    /// The model that whoever compiles a candidate asks for its time beforehand, where one is asked.
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

/// A search space with everything that is read for it.
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

/// One thing to do with one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkOrder {
    /// Name of the order: the same candidate, task and step have the same name.
    pub id: ContentHash,
    /// Identity that the candidate must have.
    pub candidate: ContentHash,
    /// Place in the assignment's tasks.
    pub task: usize,
    /// The configuration, as choices of the space's parameters.
    pub choices: Vec<u32>,
    /// What to do.
    pub step: Step,
}

/// What is done with a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Look it up in the recording.
    Recorded,
    /// Compile it.
    Compile {
        /// How often its code turned out not to be what its hash says; then no cache is asked.
        again: u32,
    },
    /// Judge and time what was compiled.
    Device(Box<Compiled>),
    /// Run the timed problem of what was compiled whole, on a virtual GPU.
    Prove {
        /// The candidate.
        compiled: Box<Compiled>,
        /// Lane instructions that this may take.
        limit: u64,
    },
    /// Time the best once more, together.
    Final(Box<Finalists>),
}

/// Configurations that were found to be right, to be timed together on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalists {
    /// Choices of each.
    pub configs: Vec<Vec<u32>>,
    /// Seed of the input data and of the order.
    pub seed: u64,
    /// Workers that have timed them before: another GPU is asked for.
    pub not: Vec<String>,
}

/// A compiled candidate; its code lies in the object store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compiled {
    /// Identity of the candidate.
    pub candidate: ContentHash,
    /// What the compiler said.
    pub compilation: Compilation,
    /// What decides its judgement: machine code, launches and shapes.
    pub same: ContentHash,
    /// Hash of the object that holds the [`Work`](crate::Work).
    pub object: ContentHash,
    /// How often it was compiled before, and its code turned out to be none.
    pub again: u32,
    /// The time that the assignment's prior expects.
    #[serde(default)]
    pub predicted: Option<Micros>,
}

/// What came of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The candidate is judged.
    Judged(Box<Judged>),
    /// It is compiled.
    Compiled(Box<Compiled>),
    /// The final times, or why there is none, one a configuration in their order.
    Final {
        /// Who timed them.
        worker: String,
        /// The times.
        #[serde(deserialize_with = "TimedJudgement::all_received")]
        times: Vec<TimedJudgement>,
    },
    /// The code that it names is not there, or not what its hash says.
    FalseObject(String),
    /// Nobody could judge it, and why: the limit of tries is reached.
    NotJudged(String),
    /// It cannot be carried out anywhere, through the asker's fault: the text says what to mend.
    Unusable(String),
}

impl Answer {
    /// Whether the answer does not contradict itself: what is wrong has no time, and times are of this
    /// world. Members of a fleet do not trust each other.
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

    /// Identity of the candidate that the answer is about, where it names one.
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

/// Longest time that a candidate may be charged with, microseconds: some 11 days.
const CHARGED_MAX_US: u64 = 1_000_000_000_000;

/// Times that a kernel may take, microseconds: one cycle of a fast clock takes 0.3 ns, and runs have
/// deadlines far below the three hours of the other end.
const TIMES_US: RangeInclusive<f64> = 1e-4..=1e10;

impl SiblingTimes {
    /// Reports whether all times are possible.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let incumbent = self.incumbent.iter().flat_map(|(_, range)| {
            let [low, high] = range.ci95;
            [range.us, low, high]
        });
        let mut times = incumbent.chain([self.reference_us]);
        times.all(|time| TIMES_US.contains(&time))
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
    found.judgement.is_ok() && all.all(|time| TIMES_US.contains(&time))
}

#[cfg(test)]
mod tests;
