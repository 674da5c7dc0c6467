//! Messages between the tuner and a device's worker process: JSON, followed by code as bytes.
//!
//! Code, launches and seeds cross the pipe, never tensors.

use crate::gpu::GpuFacts;
use crate::gpu::examine::Examination;
use crate::gpu::meter::Spent;
use crate::gpu::nvml::Health;
use crate::step::Step;
use serde::{Deserialize, Deserializer, Serialize};
use std::io;
use std::path::PathBuf;
use tuner_core::plan::{Code, Plan};
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::timing::calibration::Calibration;
use tuner_judge::timing::paired::PairedResult;
use tuner_process::{Parts, from_json, to_json};

/// Requests of the tuner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Open the device: the first request for a real GPU, with the helper kernels compiled for it.
    Open(Box<Code>),
    /// Judge one candidate: check problems first, then the timed one.
    Judge(Box<Job>),
    /// Judge one candidate and time it against others, on a real GPU.
    Measure(Box<MeasureRequest>),
    /// Measure the peak rates of the device.
    Calibrate,
    /// Load the device for this number of milliseconds and monitor it.
    Examine(u64),
    /// Compare two candidates that have passed the gate.
    Duel(Box<TimingComparison>),
    /// Time the best candidates again.
    Finale(Box<TimingComparison>),
}

/// A candidate to be timed, with its reference and incumbent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureRequest {
    /// The candidate.
    pub job: Job,
    /// The fixed reference of its kernel and problem, which has passed the gate; `None` if there is none
    /// yet: the candidate is its own reference.
    pub reference: Option<Plan>,
    /// The best candidate so far.
    pub incumbent: Option<IncumbentPlan>,
    /// Measure its energy too.
    #[serde(default)]
    pub energy: bool,
}

/// A candidate that was timed before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IncumbentPlan {
    /// Its plan.
    pub plan: Plan,
    /// Its time relative to the reference.
    pub ratio: f64,
}

/// Candidates to compare with each other. Each passes the gate on the comparison's seed first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingComparison {
    /// The fixed reference.
    pub reference: Option<Plan>,
    /// The candidates, all of one problem; in a paired comparison the challenger and the incumbent.
    pub plans: Vec<Plan>,
    /// Seed of the input data and of the order.
    pub seed: u64,
    /// Verification level of the gate before timing.
    #[serde(default)]
    pub level: Level,
}

/// Result of a timed candidate relative to the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RelativeTime {
    /// Its time relative to the reference.
    pub ratio: f64,
    /// It is the best so far: the first one, or the winner of a paired comparison.
    pub replaces_incumbent: bool,
}

/// A GPU as opened by its worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// Facts reported by the driver.
    pub facts: GpuFacts,
    /// Health reported by NVML before this process had a context: all listed processes are others.
    pub health: Option<Health>,
    /// The GPU has an energy counter.
    #[serde(default)]
    pub counts_energy: bool,
}

/// One candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Problems to verify but not to time.
    pub checks: Vec<Plan>,
    /// The problem to time; `None` only verifies.
    pub timed: Option<Plan>,
    /// Seeds of the input data.
    pub seeds: Vec<u64>,
    /// Runs with a randomised order of warps.
    pub schedules: u32,
    /// Verification level of the gate; with a single seed, the level adds its own seeds.
    #[serde(default)]
    pub level: Level,
    /// The timed problem is a proof: it is run whole if that takes at most this number of lane
    /// instructions, and it is not timed.
    #[serde(default)]
    pub proof_limit: Option<u64>,
    /// Run whole, and write the contents of the outputs to this folder.
    #[serde(default)]
    pub outputs: Option<PathBuf>,
}

/// Responses of the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// A step begins; its deadline starts now.
    Begins(Step),
    /// The judgement.
    Judged(#[serde(deserialize_with = "received")] Box<TimedJudgement>),
    /// The job itself is invalid (an oracle that does not fit its arguments): a user error.
    Unusable(String),
    /// The device is open.
    Opened(Box<Opened>),
    /// The judgement of a timed candidate, its relative time if it has one, and the time spent.
    Measured(
        #[serde(deserialize_with = "received")] Box<TimedJudgement>,
        Option<RelativeTime>,
        Spent,
    ),
    /// Peak rates of the device.
    Calibrated(Box<Calibration>),
    /// Behaviour of the device under load.
    Examined(Box<Examination>),
    /// Result of a paired comparison; `None` if it was undecided.
    Dueled(Option<Box<PairedResult>>),
    /// The final times, or the reasons for their absence, one per candidate, in order.
    Final(#[serde(deserialize_with = "TimedJudgement::all_received")] Vec<TimedJudgement>),
    /// A request failed on the device, independently of a candidate.
    Failed(String),
    /// Precedes the answer: this process must be replaced, because a kernel corrupted its context.
    Corrupted(String),
    /// The device failed, independently of a candidate.
    Lost(String),
}

fn received<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<TimedJudgement>, D::Error> {
    TimedJudgement::received(deserializer).map(Box::new)
}

impl Request {
    /// Splits the message into parts: JSON, then PTX and SASS of each plan.
    ///
    /// # Errors
    /// The message cannot be serialized as JSON.
    pub fn into_parts(mut self) -> io::Result<Parts> {
        let mut code = Vec::new();
        for plan in self.codes_mut() {
            code.push(std::mem::take(&mut plan.ptx).as_bytes().to_vec());
            code.push(std::mem::take(&mut plan.cubin).to_vec());
        }
        let mut parts = vec![to_json(&self)?];
        parts.append(&mut code);
        Ok(parts)
    }

    /// Assembles a message from its parts.
    ///
    /// # Errors
    /// The parts are those of another message, or text is not UTF-8.
    pub fn from_parts(parts: Parts) -> io::Result<Self> {
        let mut request: Self = from_json(&parts)?;
        let mut code = parts.into_iter().skip(1);
        for plan in request.codes_mut() {
            let missing = || io::Error::new(io::ErrorKind::InvalidData, "a plan without its code");
            let (ptx, cubin) = code.next().zip(code.next()).ok_or_else(missing)?;
            let ptx = String::from_utf8(ptx).map_err(io::Error::other)?;
            (plan.ptx, plan.cubin) = (ptx.into(), cubin.into());
        }
        Ok(request)
    }

    /// Returns all code in it, in a fixed order.
    fn codes_mut(&mut self) -> Vec<&mut Code> {
        let plans: Vec<&mut Plan> = match self {
            Self::Open(code) => return vec![code],
            Self::Calibrate | Self::Examine(_) => Vec::new(),
            Self::Judge(job) => job.plans_mut().collect(),
            Self::Measure(measuring) => {
                let rival = measuring.incumbent.as_mut().map(|rival| &mut rival.plan);
                let plans = measuring.job.plans_mut();
                plans.chain(&mut measuring.reference).chain(rival).collect()
            }
            Self::Duel(contest) | Self::Finale(contest) => contest
                .plans
                .iter_mut()
                .chain(&mut contest.reference)
                .collect(),
        };
        plans.into_iter().flat_map(Plan::codes_mut).collect()
    }
}

impl Job {
    fn plans_mut(&mut self) -> impl Iterator<Item = &mut Plan> {
        self.checks.iter_mut().chain(&mut self.timed)
    }
}

#[cfg(test)]
mod tests;
