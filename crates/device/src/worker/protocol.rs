//! Messages between the tuner and a device's worker process: JSON with code beside it, as bytes.
//!
//! Code, launches and seeds cross the pipe, never tensors.

use crate::gpu::GpuFacts;
use crate::gpu::examine::Examination;
use crate::gpu::meter::Spent;
use crate::gpu::nvml::Health;
use crate::step::Step;
use serde::{Deserialize, Deserializer, Serialize};
use std::io;
use tuner_core::plan::{Code, Plan};
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::timing::calibration::Calibration;
use tuner_judge::timing::paired::PairedResult;
use tuner_process::{Parts, from_json, to_json};

/// What the tuner asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Open the device: the first request on a real GPU, with the tuner's own kernels compiled
    /// for it.
    Open(Box<Code>),
    /// Judge one candidate: check problems first, then the timed one.
    Judge(Box<Job>),
    /// Judge one candidate and time it against others, on a real GPU.
    Measure(Box<MeasureRequest>),
    /// Measure what the device can do at best.
    Calibrate,
    /// Load the device for so many milliseconds and watch it.
    Examine(u64),
    /// Compare two candidates that are known to be right.
    Duel(Box<TimingComparison>),
    /// Time the best candidates once more.
    Finale(Box<TimingComparison>),
}

/// A candidate to be timed, with what it is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureRequest {
    /// The candidate.
    pub job: Job,
    /// The fixed reference of its kernel and problem, which is known to be right; `None` while
    /// there is none: the candidate is its own.
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
    /// It.
    pub plan: Plan,
    /// Its time over that of the reference.
    pub ratio: f64,
}

/// Candidates that are compared with each other. Each is judged right on the contest's seed first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingComparison {
    /// The fixed reference.
    pub reference: Option<Plan>,
    /// The candidates, all of one problem; in a duel the challenger and the incumbent.
    pub plans: Vec<Plan>,
    /// Seed of the input data and of the order.
    pub seed: u64,
    /// How hard the gate looks at each before it is timed.
    #[serde(default)]
    pub level: Level,
}

/// Where a candidate stands after it was timed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RelativeTime {
    /// Its time over that of the reference.
    pub ratio: f64,
    /// It is the best so far: the first one, or the winner of a duel.
    pub replaces_incumbent: bool,
}

/// A GPU as its worker found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// What the driver says.
    pub facts: GpuFacts,
    /// What NVML said before this process had a context: every process in it is another one.
    pub health: Option<Health>,
    /// The GPU counts the energy that it uses.
    #[serde(default)]
    pub counts_energy: bool,
}

/// One candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Problems that must be right but are not timed.
    pub checks: Vec<Plan>,
    /// The problem to time; `None` only checks.
    pub timed: Option<Plan>,
    /// Seeds of the input data.
    pub seeds: Vec<u64>,
    /// Runs with a randomised order of warps.
    pub schedules: u32,
    /// How hard the gate looks; with one seed given, the level adds its own to it.
    #[serde(default)]
    pub level: Level,
    /// The timed problem is a proof: it is run whole where that takes at most this number of lane
    /// instructions, and no time is asked for.
    #[serde(default)]
    pub proof_limit: Option<u64>,
}

/// What the worker answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// A step begins; its deadline starts now.
    Begins(Step),
    /// The judgement.
    Judged(#[serde(deserialize_with = "received")] Box<TimedJudgement>),
    /// The job itself is wrong (an oracle that does not fit its arguments): the user's mistake.
    Unusable(String),
    /// The device is open.
    Opened(Box<Opened>),
    /// The judgement of a timed candidate, its standing where it has a time, and what it cost.
    Measured(
        #[serde(deserialize_with = "received")] Box<TimedJudgement>,
        Option<RelativeTime>,
        Spent,
    ),
    /// What the device can do at best.
    Calibrated(Box<Calibration>),
    /// How the device behaves under load.
    Examined(Box<Examination>),
    /// The result of a duel; `None` when it gave none.
    Dueled(Option<Box<PairedResult>>),
    /// The final times, or why there is none, one a candidate in their order.
    Final(#[serde(deserialize_with = "TimedJudgement::all_received")] Vec<TimedJudgement>),
    /// What was asked for failed on the device, with no candidate to blame.
    Failed(String),
    /// The answer follows, and this process must be replaced: a kernel corrupted its context.
    Corrupted(String),
    /// The device failed, through no fault of a candidate.
    Lost(String),
}

fn received<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<TimedJudgement>, D::Error> {
    TimedJudgement::received(deserializer).map(Box::new)
}

impl Request {
    /// The parts of the message: JSON, then text and machine code of each plan.
    ///
    /// # Errors
    /// It has no JSON form.
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

    /// Reads the parts back.
    ///
    /// # Errors
    /// They are another message, or text is not UTF-8.
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

    /// All code in it, in a fixed order.
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
