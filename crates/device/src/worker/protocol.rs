//! Messages between the tuner and a device's worker process: length-delimited JSON over pipes.
//!
//! Code, launches and seeds cross the pipe, never tensors, so the same messages can cross hosts.

use crate::gpu::GpuFacts;
use crate::gpu::nvml::Health;
use crate::step::Step;
use serde::{Deserialize, Deserializer, Serialize};
use std::io::{self, Read, Write};
use tuner_core::plan::{Code, Plan};
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_judge::timing::calibration::Calibration;
use tuner_judge::timing::paired::DuelResult;

/// Largest message accepted, bytes: far above any plan, far below what a corrupt length asks for.
const MESSAGE_BYTES_MAX: u32 = 256 << 20;

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
    /// The judgement of a timed candidate, and its standing where it has a time.
    Measured(
        #[serde(deserialize_with = "received")] Box<TimedJudgement>,
        Option<RelativeTime>,
    ),
    /// What the device can do at best.
    Calibrated(Box<Calibration>),
    /// The result of a duel; `None` when it gave none.
    Dueled(Option<Box<DuelResult>>),
    /// The final times, or why there is none, one a candidate in their order.
    Final(#[serde(deserialize_with = "TimedJudgement::all_received")] Vec<TimedJudgement>),
    /// What was asked for failed on the device, with no candidate to blame.
    Failed(String),
    /// The answer follows, and this process must be replaced: a kernel spoiled its context.
    Spoiled(String),
    /// The device failed, through no fault of a candidate.
    Lost(String),
}

fn received<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<TimedJudgement>, D::Error> {
    TimedJudgement::received(deserializer).map(Box::new)
}

/// Writes one message.
///
/// # Errors
/// The pipe's own, and a message over the limit.
pub fn send<T: Serialize>(pipe: &mut impl Write, message: &T) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let length = u32::try_from(bytes.len())
        .ok()
        .filter(|length| *length <= MESSAGE_BYTES_MAX)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "message too large"))?;
    pipe.write_all(&length.to_le_bytes())?;
    pipe.write_all(&bytes)?;
    pipe.flush()
}

/// Reads one message; `None` when the other side closed the pipe between messages.
///
/// # Errors
/// The pipe's own, a message cut short, an absurd length, or text that is no message.
pub fn receive<T: for<'de> Deserialize<'de>>(pipe: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0u8; 4];
    let mut have = 0;
    while have < length.len() {
        match pipe.read(&mut length[have..])? {
            0 if have == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => have += count,
        }
    }
    let length = u32::from_le_bytes(length);
    if length > MESSAGE_BYTES_MAX {
        let text = format!("a message of {length} bytes is over the limit");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut bytes = vec![0; length as usize];
    pipe.read_exact(&mut bytes)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_pipe_and_a_cut_one_is_an_error() {
        let mut pipe = Vec::new();
        send(&mut pipe, &Response::Begins(Step::Gate)).unwrap();
        send(&mut pipe, &Response::Unusable("x".into())).unwrap();
        let mut reader = pipe.as_slice();
        assert_eq!(
            receive(&mut reader).unwrap(),
            Some(Response::Begins(Step::Gate))
        );
        assert_eq!(
            receive(&mut reader).unwrap(),
            Some(Response::Unusable("x".into()))
        );
        assert_eq!(receive::<Response>(&mut reader).unwrap(), None);
        let cut = &pipe[..pipe.len() - 1];
        let mut reader = cut;
        receive::<Response>(&mut reader).unwrap();
        assert!(receive::<Response>(&mut reader).is_err());
        assert!(receive::<Response>(&mut [0xff, 0xff, 0xff, 0xff].as_slice()).is_err());
    }
}
